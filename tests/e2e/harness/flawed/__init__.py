"""A payments API that does idempotency right by itself, without any gateway, and
one flaw at a time that it can be started with. `hapax verify` is judged by it:
every row must hold for the right one, and each flaw must be found.

  book.py      what is durable: the ledger of effects, and the records of keys
  meaning.py   which key a request has, and what a request means
  api.py       the right one, from the request to the answer
  work.py      what the endpoints do
  right.py     other ways that are as right
  flaws.py     the wrong ones: each a subclass that gets one thing wrong
  control.py   the process, as a test starts and kills it
"""
