"""Shows which requests hapax guards, what counts as a key, and that two
spellings of one key are one key."""
import pytest

from harness import check
from harness.secret import new_key

CONFIG = {"routes": [
    {"match": "PUT /guarded/{id}"},
    {"match": "DELETE /guarded/{id}"},
    {"match": "POST /optional", "key": "optional"},
    {"match": "POST /ignored", "key": "ignore"},
    {"match": "PATCH /ignored/*", "key": "ignore"},
]}


@pytest.mark.parametrize("method, path", [
    ("POST", "/a"), ("PATCH", "/a"), ("PUT", "/guarded/1"), ("DELETE", "/guarded/1"),
])
def test_guarded(gateway, provider, method, path):
    """A guarded method needs a key, and with one it happens once."""
    before = len(provider.seen())
    check.problem(gateway.call(method, path, key=None), "idempotency_key_missing")
    assert len(provider.seen()) == before
    key = new_key()
    first = gateway.call(method, path, key=key)
    assert first.status == 200 and first["Hapax-Operation"], first
    check.same_answer(first, gateway.call(method, path, key=key))
    assert len(provider.ledger(key)) == 1


@pytest.mark.parametrize("method, path", [
    ("GET", "/a"), ("HEAD", "/a"), ("OPTIONS", "/a"), ("PUT", "/a"), ("DELETE", "/a"),
    ("GET", "/guarded/1"), ("POST", "/ignored"), ("PATCH", "/ignored/x"), ("POST", "/optional"),
])
def test_passes_without_key(gateway, provider, method, path):
    """What is not guarded passes without a key, each time."""
    before = len(provider.seen())
    for _ in range(2):
        answer = gateway.call(method, path, key=None)
        assert answer.status == 200 and answer["Hapax-Operation"] is None, answer
    seen = provider.seen()[before:]
    assert [(r.method, r.target) for r in seen] == [(method, path)] * 2
    assert all(r["Hapax-Operation"] is None for r in seen), seen


@pytest.mark.parametrize("method, path", [
    ("GET", "/a"), ("PUT", "/a"), ("DELETE", "/a"), ("POST", "/ignored"), ("PATCH", "/ignored/x"),
])
def test_key_means_nothing_there(gateway, provider, method, path):
    """Where nothing is guarded, a key changes nothing: both requests go up."""
    key = new_key()
    answers = [gateway.call(method, path, key=key) for _ in range(2)]
    assert [a.status for a in answers] == [200, 200]
    assert len(provider.seen(key=key)) == 2


def test_optional_key_guards(gateway, provider):
    """With `key: optional`, a key that is there guards."""
    key = new_key()
    check.same_answer(gateway.post("/optional", key=key), gateway.post("/optional", key=key))
    assert len(provider.ledger(key)) == 1


def test_optional_key_must_be_well_formed(gateway):
    """With `key: optional`, a malformed key is still refused."""
    check.problem(gateway.post("/optional", key='"'), "idempotency_key_invalid")


GOOD = [
    '"{}"', "{}", '"{} with space, comma"', '"{}\\"quoted\\""', '"{}\\\\"', "{}\\", "{};a=1",
    "  {}  ", ":{}:", "?{}", "{}(){{}}<>@/[]=",
]


@pytest.mark.parametrize("form", GOOD)
def test_good_key(gateway, provider, form):
    """A well-formed key is taken, and reaches the provider as it came."""
    key = form.format(new_key())
    first = gateway.post(key=key)
    assert first.status == 200, first
    check.same_answer(first, gateway.post(key=key))
    ups = [r for r in provider.seen() if r["Idempotency-Key"] == key.strip()]
    assert len(ups) == 1, "the key did not come up as it was sent, once"


BAD = [
    '""', "", '"', '"{}', '{}"', '"{}"x', '"{}";p=1', '"{}", "b"', "{} b", "{},b", 'a"{}',
    '"{}\\x"', '"{}\\', '"{}\\"', '"{}\t"', "{}\tb", '"{}\xe4"', "{}\xe4", "{}\x80",
]


@pytest.mark.parametrize("form", BAD)
def test_bad_key(gateway, provider, form):
    """A malformed key is refused, never ignored: ignoring it would run unprotected."""
    before = len(provider.seen())
    check.problem(gateway.post(key=form.format(new_key())), "idempotency_key_invalid")
    assert len(provider.seen()) == before


@pytest.mark.parametrize("quote", ['', '"'])
@pytest.mark.parametrize("length, ok", [(1, True), (255, True), (256, False), (4000, False)])
def test_key_length(gateway, quote, length, ok):
    """1 to 255 bytes after decoding."""
    text = new_key().ljust(length, "x")[-length:] if length > 1 else "~"
    answer = gateway.post(f"/length/{length}{'q' if quote else ''}", key=f"{quote}{text}{quote}")
    if ok:
        assert answer.status == 200, answer
    else:
        check.problem(answer, "idempotency_key_invalid")


def test_escapes_do_not_count_against_the_length(gateway):
    """255 quotation marks are 255 bytes, though 512 are sent."""
    assert gateway.post("/escapes", key='"' + '\\"' * 255 + '"').status == 200
    check.problem(gateway.post("/escapes", key='"' + '\\"' * 256 + '"'), "idempotency_key_invalid")


@pytest.mark.parametrize("second", ["same", "other"])
def test_repeated_header(gateway, provider, second):
    """Two key headers are refused, equal or not."""
    key = new_key()
    more = [("Idempotency-Key", key if second == "same" else new_key())]
    before = len(provider.seen())
    check.problem(gateway.post(key=key, headers=more), "idempotency_key_invalid")
    assert len(provider.seen()) == before


@pytest.mark.parametrize("one, other", [
    ('"{}"', "{}"), ("{}", '"{}"'), ("{}\\b", '"{}\\\\b"'), ("  {}", '"{}"'),
])
def test_two_spellings_one_key(gateway, provider, one, other):
    """`"k"` and `k` are one key."""
    key = new_key()
    check.same_answer(gateway.post(key=one.format(key)), gateway.post(key=other.format(key)))
    assert len([l for l in provider.ledger() if key in l[2]]) == 1


def test_new_key_same_body(gateway, provider):
    """A new key with the same body is a new operation."""
    answers = [gateway.post("/twice") for _ in range(2)]
    assert answers[0]["Hapax-Operation"] != answers[1]["Hapax-Operation"]
    assert not answers[1].replayed and len(provider.seen("/twice")) == 2


def test_keys_are_case_sensitive(gateway, provider):
    """Keys are opaque: another case is another key."""
    key = new_key()
    assert not gateway.post("/case", key=key + "a").replayed
    assert not gateway.post("/case", key=key + "A").replayed
    assert len(provider.seen("/case")) == 2


def test_strict(site):
    """`key_syntax: strict` turns the bare form off."""
    one = site({"key_syntax": "strict"})
    check.problem(one.gateway.post(key=new_key()), "idempotency_key_invalid")
    assert one.gateway.post(key=f'"{new_key()}"').status == 200
    assert len(one.provider.seen()) == 1


def test_own_header_name(site):
    """Another header can carry the key; the standard one then means nothing."""
    one = site({"key_header": "X-Request-Key"})
    check.problem(one.gateway.post(), "idempotency_key_missing")
    mine = [("X-Request-Key", new_key())]
    first = one.gateway.post(key=None, headers=mine)
    check.same_answer(first, one.gateway.post(key=None, headers=mine))
    assert len(one.provider.ledger()) == 1
    assert one.provider.seen()[0]["X-Request-Key"] == mine[0][1]
