"""Shows when two requests mean the same: a retry may spell its JSON, form,
query or multipart body anew, but another amount is another request, and it
leaves the record as it was."""
import gzip
import hashlib
import sqlite3
import struct
import zlib

import pytest

from harness import check
from harness.secret import new_key

CONFIG = {"routes": [
    {"match": "POST /ignoring", "fingerprint": {"ignore": ["/sent_at", "/meta/try", "/a~1b"]}},
    {"match": "POST /headed", "fingerprint": {"headers": ["X-Currency"]}},
    {"match": "POST /hosted", "fingerprint": {"headers": ["Host"]}},
]}
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def judge(shared, one, other, same):
    """`one` and `other` are keyword sets of a request; sends both with one key."""
    gateway, key = shared.gateway, new_key()
    first = gateway.call("POST", key=key, **one)
    assert first.status == 200, first
    second = gateway.call("POST", key=key, **other)
    if same:
        check.same_answer(first, second)
    else:
        check.problem(second, "idempotency_key_reused")
        check.same_answer(first, gateway.call("POST", key=key, **one))
    assert len(shared.provider.ledger(key)) == 1


def typed(content_type, body, *more, target="/f"):
    body = body if isinstance(body, bytes) else body.encode()
    return {"target": target, "body": body, "headers": [("Content-Type", content_type), *more]}


JSON_ROWS = [
    ('{"a":1,"b":2}', '{"b":2,"a":1}', True),
    ('{"a":1}', ' {\r\n\t"a" : 1 } ', True),
    ('{"a":1}', '{"a":1.0}', True),
    ('{"a":1}', '{"a":1e0}', True),
    ('{"a":100}', '{"a":1E2}', True),
    ('{"a":0.1}', '{"a":0.10}', True),
    ('{"a":0}', '{"a":-0}', True),
    ('{"a":1}', '{"a":2}', False),
    ('{"a":1}', '{"a":"1"}', False),
    ('{"a":9007199254740993}', '{"a":9007199254740992}', False),
    ('{"a":9007199254740993}', '{"a":9007199254740993.0}', True),
    ('{"a":1.000000000000000001}', '{"a":1.000000000000000002}', False),
    ('{"a":1.000000000000000001}', '{"a":1}', False),
    ('{"a":1e400}', '{"a":1e401}', False),
    ('{"a":123456789012345678901234567890}', '{"a":123456789012345678901234567891}', False),
    ('{"a":[1,2]}', '{"a":[2,1]}', False),
    ('{"a":null}', '{}', False),
    ('{"a":false}', '{"a":null}', False),
    ('{"a":"\\u00e9"}', '{"a":"é"}', True),
    ('{"a":"\\/"}', '{"a":"/"}', True),
    ('{"a":"\\ud83d\\ude00"}', '{"a":"😀"}', True),
    ('{"a":"e\\u0301"}', '{"a":"é"}', False),
    ('{"a":1,"a":2}', '{"a":2}', False),
    ('{"a":1,"a":2}', '{"a":2,"a":1}', False),
    ('{"a":1,}', '{"a":1, }', False),
    ('{"a":{"x":1,"y":[{"p":1,"q":2}]}}', '{"a":{"y":[{"q":2,"p":1}],"x":1}}', True),
    ('{"\\u20ac":1,"\\r":2,"1":3}', '{"1":3,"\\r":2,"€":1}', True),
    ('{}', '[]', False),
    ('', '{}', False),
]


@pytest.mark.parametrize("one, other, same", JSON_ROWS)
def test_json(shared, one, other, same):
    """JSON counts by its meaning, numbers by their exact value."""
    judge(shared, typed(JSON, one), typed(JSON, other), same)


@pytest.mark.parametrize("one, other, same", [
    ("application/json", "application/json; charset=utf-8", True),
    ("application/json", "Application/JSON", True),
    ("application/json", "text/plain", False),
    ("application/vnd.x+json", "application/vnd.x+json;v=2", True),
    ("application/vnd.x+json", "application/json", False),
])
def test_media_type(shared, one, other, same):
    """The media type counts, its parameters do not."""
    judge(shared, typed(one, '{"a": 1}'), typed(other, '{"a": 1}'), same)


@pytest.mark.parametrize("content_type, one, other, same", [
    ("application/vnd.x+json", '{"a":1,"b":2}', '{"b":2,"a":1}', True),
    ("text/plain", '{"a":1,"b":2}', '{"b":2,"a":1}', False),
    ("text/plain", "a", "a", True),
    ("application/octet-stream", b"\0\1\2", b"\0\1\3", False),
    ("application/octet-stream", b"\0\1\2", b"\0\1\2", True),
    (JSON, b'{"a":"\xff"}', b'{"a":"\xff"}', True),
    (JSON, b'{"a":"\xff"}', b'{"a": "\xff"}', False),
    (FORM, "a=1&b=2", "b=2&a=1", True),
    (FORM, "a=1&b=2", "a=1&b=3", False),
    (FORM, "a=1&a=2", "a=2&a=1", False),
    (FORM, "a=1&a=2&b=3", "b=3&a=1&a=2", False),
    (FORM, "a=x+y", "a=x%20y", True),
    (FORM, "a=%7e", "a=~", True),
    (FORM, "a=1", "a=1&b=", False),
])
def test_body_kind(shared, content_type, one, other, same):
    """Forms count by their fields; what is not understood counts by its bytes."""
    judge(shared, typed(content_type, one), typed(content_type, other), same)


@pytest.mark.parametrize("one, other, same", [
    ("/q?a=s3cr3t&b=2", "/q?b=2&a=s3cr3t", True),
    ("/q?a=s3cr3t", "/q?a=s3cr3t2", False),
    ("/q?a=s3cr3t", "/q", False),
    ("/q?a=1&a=2", "/q?a=2&a=1", False),
    ("/q?a=%7E", "/q?a=~", True),
])
def test_query(shared, one, other, same):
    """The query counts, its order only where a name repeats."""
    judge(shared, {"target": one}, {"target": other}, same)


def multipart(boundary, value, name="file", before="", behind=""):
    text = (f'--{boundary}\r\nContent-Disposition: form-data; name="amount"\r\n\r\n10\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="a"\r\n'
            f"Content-Type: application/octet-stream\r\n\r\n{value}\r\n--{boundary}--\r\n")
    return typed(f"multipart/form-data; boundary={boundary}", before + text + behind)


@pytest.mark.parametrize("one, other, same", [
    (("AaB03x", "hello"), ("zzz--9", "hello"), True),
    (("AaB03x", "hello"), ("AaB03x", "hellO"), False),
    (("AaB03x", "hello"), ("zzz--9", "hello", "other"), False),
    (("AaB03x", "hello"), ("AaB03x", "hello", "file", "", "amount=99"), False),
    (("AaB03x", "hello", "file", "", "amount=10"), ("AaB03x", "hello", "file", "", "amount=99"), False),
    (("AaB03x", "hello", "file", "amount=10\r\n"), ("AaB03x", "hello"), False),
    (("AaB03x", "hello", "file", "a\r\n", "b"), ("zzz--9", "hello", "file", "a\r\n", "b"), True),
])
def test_multipart(shared, one, other, same):
    """Multipart counts by its parts, and by what stands before and behind them,
    where some readers look for more; each try has a boundary of its own."""
    judge(shared, multipart(*one), multipart(*other), same)


def deflate(data, level):
    return zlib.compress(data, level)


@pytest.mark.parametrize("coding, pack", [("gzip", gzip.compress), ("deflate", deflate)])
@pytest.mark.parametrize("other, same", [(b'{"b": 2, "a": 1}', True), (b'{"a":1,"b":3}', False)])
def test_compressed(shared, coding, pack, other, same):
    """A compressed body counts by what it holds, however well it is packed."""
    more = ("Content-Encoding", coding)
    judge(shared, typed(JSON, pack(b'{"a":1,"b":2}', 9), more), typed(JSON, pack(other, 1), more), same)


def test_compressed_bomb(shared):
    """A body that unpacks without end harms nobody, and its retry is a retry."""
    bomb = gzip.compress(bytes(64 << 20), 9)
    one = typed(JSON, bomb, ("Content-Encoding", "gzip"))
    key = new_key()
    first = shared.gateway.call("POST", key=key, **one)
    assert first.status in (200, 413), first
    if first.status == 200:
        check.same_answer(first, shared.gateway.call("POST", key=key, **one))


@pytest.mark.parametrize("one, other, same", [
    ('{"n":1,"sent_at":1}', '{"n":1,"sent_at":2}', True),
    ('{"n":1,"sent_at":1}', '{"n":1}', True),
    ('{"n":1,"meta":{"try":1,"x":1}}', '{"n":1,"meta":{"x":1,"try":2}}', True),
    ('{"n":1,"meta":{"try":1,"x":1}}', '{"n":1,"meta":{"x":2,"try":1}}', False),
    ('{"n":1,"a/b":1}', '{"n":1,"a/b":2}', True),
    ('{"n":1,"sent_at":1}', '{"n":2,"sent_at":1}', False),
    ('{"n":1,"in":{"sent_at":1}}', '{"n":1,"in":{"sent_at":2}}', False),
])
def test_ignore(shared, one, other, same):
    """Ignored members do not count, wherever else their name stands."""
    judge(shared, typed(JSON, one, target="/ignoring"), typed(JSON, other, target="/ignoring"), same)


@pytest.mark.parametrize("one, other, same", [
    ([("X-Currency", "EUR")], [("X-Currency", "EUR")], True),
    ([("X-Currency", "EUR")], [("x-currency", "EUR")], True),
    ([("X-Currency", "EUR")], [("X-Currency", "USD")], False),
    ([("X-Currency", "EUR")], [], False),
    ([("X-Other", "1")], [("X-Other", "2")], True),
])
def test_included_headers(shared, one, other, same):
    """A header that the route includes counts; others do not."""
    judge(shared, {"target": "/headed", "headers": one}, {"target": "/headed", "headers": other}, same)


def test_included_host(shared):
    """Host counts as it is sent on: what the target names goes before the field."""
    gateway, key = shared.gateway, new_key()

    def send(target, host):
        return gateway.raw("\r\n".join([
            f"POST {target} HTTP/1.1", f"Host: {host}", f"Idempotency-Key: {key}",
            "Content-Length: 0", "", ""]).encode())
    first = send("http://a.test/hosted", "b.test")
    assert first.status == 200 and shared.provider.seen(key=key)[0]["Host"] == "a.test"
    check.problem(send("/hosted", "b.test"), "idempotency_key_reused")
    check.same_answer(first, send("/hosted", "a.test"))



@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "x-http-method", "X-Method-Override"])
def test_method_override(shared, name):
    """A POST that stands for another method is another request, on every route."""
    def meant(method, target="/f"):
        return {"target": target, "headers": [(name, method)] if method else []}
    for target in ("/f", "/headed", "/ignoring"):
        judge(shared, meant("DELETE", target), meant("PATCH", target), False)
    judge(shared, meant(None), meant("DELETE"), False)
    judge(shared, meant("DELETE"), meant(None), False)
    judge(shared, meant("DELETE"), meant("DELETE"), True)


def test_content_encoding_in_two_fields(shared):
    """Both count: the upstream gets both."""
    one = typed(JSON, gzip.compress(b'{"a":1}', 9), ("Content-Encoding", "gzip"))
    two = typed(JSON, gzip.compress(b'{"a":1}', 9), ("Content-Encoding", "gzip"), ("Content-Encoding", "br"))
    judge(shared, one, two, False)


def fingerprint_of_version_1(method, path, media_type, canonical):
    """What a recipe without lists made of a JSON body before recipes had another version."""
    def part(data):
        return struct.pack(">Q", len(data)) + data
    media = part(b"present") + part(b"%d" % len(media_type)) + media_type
    parts = [part(hashlib.sha256(b"1").digest()[:16]), part(method), part(path), part(b"absent"), media,
             part(b"absent"), part(b"json"), part(canonical)]
    return hashlib.sha256(b"".join(parts)).digest()


def check_of_row(row):
    """The check of a plain row, as the store makes it: CRC-32 over its columns, numbers as
    eight bytes and texts with their length."""
    names = ("id", "rest", "token", "fingerprint", "recipe", "tenant_hash")
    numbers = ("owner", "created", "retention", "tombstone", "when_lost")
    texts = [row[name].encode() for name in ("tenant", "scope", "key", "method", "path", "route")]
    parts = [row[name] for name in names] + [struct.pack("<q", row[name]) for name in numbers]
    parts += [struct.pack("<q", len(text)) + text for text in texts]
    return zlib.crc32(b"".join(parts))


def test_record_of_an_older_recipe(site):
    """A record that was made by version 1 is compared by version 1: its retry is
    one, whatever counts in new records."""
    one = site({"cache": "0"})
    gateway, key = one.gateway, new_key()
    sent = {"key": key, "body": b'{"b":1, "a":2}'}
    first = gateway.post("/old", **sent)
    db = sqlite3.connect(gateway.folder / "hapax.db")
    recipe = hashlib.sha256(b"1").digest()[:16]
    db.execute("INSERT INTO hapax_recipe (id, text) VALUES (?, '1')", (recipe,))
    db.row_factory = sqlite3.Row
    row = dict(db.execute("SELECT * FROM hapax_operation_1").fetchone())
    assert row["crc"] == check_of_row(row)
    row["recipe"] = recipe
    row["fingerprint"] = fingerprint_of_version_1(b"POST", b"/old", JSON.encode(), b'{"a":2,"b":1}')
    db.execute("UPDATE hapax_operation_1 SET recipe = ?, fingerprint = ?, crc = ?",
               (row["recipe"], row["fingerprint"], check_of_row(row)))
    db.commit()
    db.close()
    check.same_answer(first, gateway.post("/old", **sent))
    check.same_answer(first, gateway.post("/old", headers=[("X-HTTP-Method-Override", "DELETE")], **sent))
    check.problem(gateway.post("/old", key=key, body=b'{"b":1, "a":3}'), "idempotency_key_reused")
    assert len(one.provider.ledger(key)) == 1


@pytest.mark.parametrize("before, after, same", [
    (["/a"], [], True), ([], ["/a"], False), (["/a"], ["/b"], True), (["/b"], ["/a"], False),
])
def test_record_keeps_its_recipe(site, before, after, same):
    """A changed configuration breaks nobody's retry: the record names the recipe
    by which its own retries are judged."""
    def config(ignore):
        return {"defaults": {"fingerprint": {"ignore": ignore}}}
    one = site(config(before))
    key = new_key()
    first = one.gateway.post(key=key, body=b'{"a":1,"b":1}')
    one.gateway.restart(config(after))
    second = one.gateway.post(key=key, body=b'{"a":2,"b":1}')
    if same:
        check.same_answer(first, second)
    else:
        check.problem(second, "idempotency_key_reused")
    new = new_key()
    one.gateway.post(key=new, body=b'{"a":1,"b":1}')
    assert one.gateway.post(key=new, body=b'{"a":2,"b":1}').replayed == ("/a" in after)
    assert len(one.provider.ledger(key)) == 1


def test_mismatch_says_which_operation(shared):
    """422 is not stored over the answer, and does not lengthen the record's life."""
    gateway, key = shared.gateway, new_key()
    first = gateway.post(key=key, body=b'{"a":1}')
    for _ in range(3):
        check.problem(gateway.post(key=key, body=b'{"a":2}'), "idempotency_key_reused")
    again = gateway.post(key=key, body=b'{"a":1}')
    check.same_answer(first, again)
    assert again["Idempotency-Expires"] == first["Idempotency-Expires"]


@pytest.mark.parametrize("body", [
    b"[" * 100000, b'{"a":' * 50000, b"1" * 500000, b"[" * 50000 + b"]" * 50000,
    b'{"a":1e999999999999}', b'{"a":-1e-999999999999}', b'"' + b"\\u0000" * 50000 + b'"',
], ids=["open arrays", "open objects", "digits", "nested", "exponent", "small exponent", "escapes"])
def test_hostile_json(shared, body):
    """Depth, digits and exponents are bounded: the request is carried out, and
    its retry, byte for byte the same, is a retry."""
    judge(shared, typed(JSON, body), typed(JSON, body), True)
