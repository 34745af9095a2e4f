"""What the whole-program tests stand on: a client that reads strictly, a
provider with a ledger, and the gateway as a process. Nothing here knows how
hapax is written, only what it promises."""
