"""Shows verified callers (`tenant: {from: jwt}`): a renewed token is the same caller, a token
that is not good reserves nothing, and the keys are read and exchanged beside the requests."""
import json
import signal
import time

import pytest

from harness import check
from harness.external_service import CREDENTIAL, ExternalService
from harness.external_tls import Authority, server_context
from harness.issuer import AUDIENCE, Issuer, NAME, RsaKey, SecretKey, token
from harness.operator_command import Operator
from harness.secret import new_key


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return [RsaKey(folder, "one"), RsaKey(folder, "two")]


@pytest.fixture
def issuer(keys):
    one = Issuer(keys[:1])
    yield one
    one.stop()


def config(where, **tenant):
    return {"tenant": {"from": "jwt", "keys": where, "issuer": NAME, "audience": [AUDIENCE], **tenant}}


def count(one, result):
    return one.gateway.metrics()[f'hapax_jwt_total{{result="{result}"}}']


def test_a_renewed_token_is_the_same_caller(site, issuer, keys):
    """A payment is retried with a token that was renewed meanwhile: it happens once. Another
    subject's is another payment, and does not see the first."""
    one, key = site(config(issuer.url)), new_key()
    first = one.gateway.post(key=key, auth=token(keys[0]))
    again = one.gateway.post(key=key, auth=token(keys[0]))
    strange = one.gateway.post(key=key, auth=token(keys[0], sub="bob"))
    assert (first.status, again.status, strange.status) == (200, 200, 200)
    assert (first.replayed, again.replayed, strange.replayed) == (False, True, False)
    assert first.body == again.body
    assert len(one.provider.ledger(key)) == 2
    reference = first["Hapax-Operation"]
    assert one.gateway.operation(reference, token(keys[0])).json()["state"] == "completed"
    check.problem(one.gateway.operation(reference, token(keys[0], sub="bob")), "not_found")


def test_a_lost_answer_and_a_renewed_token(site, issuer, keys):
    """The answer is lost while the token expires: the retry learns that, and pays nothing twice."""
    one, key = site(config(issuer.url)), new_key()
    lost = one.gateway.post(key=key, auth=token(keys[0]), behave="reset=after")
    check.problem(lost, "upstream_outcome_unknown", status=502)
    again = one.gateway.post(key=key, auth=token(keys[0]), behave="reset=after")
    check.problem(again, "idempotency_outcome_unknown")
    assert len(one.provider.ledger(key)) == 1


def test_without_it_the_renewed_token_is_another_caller(site, keys):
    """What `from: jwt` is for: by the credential alone, the retry pays a second time."""
    one, key = site({}), new_key()
    assert one.gateway.post(key=key, auth=token(keys[0])).status == 200
    assert not one.gateway.post(key=key, auth=token(keys[0])).replayed
    assert len(one.provider.ledger(key)) == 2


def test_bad_tokens(site, issuer, keys):
    """Every kind of bad token: 401 with the error codes of RFC 6750, nothing reserved or sent."""
    one, now = site(config(issuer.url)), int(time.time())
    secret = SecretKey("one", keys[0].jwk["n"].encode())
    good = token(keys[0])
    rows = [
        (token(keys[0], exp=now - 3600), "has expired"),
        (token(keys[0], exp=None), "has expired"),
        (token(keys[0], nbf=now + 3600), "not valid yet"),
        (token(keys[0], iss="https://evil.test"), "another issuer"),
        (token(keys[0], aud=["shop", "mail"]), "another audience"),
        (token(keys[0], sub=7), "no usable claim"),
        (token(keys[0], sign=keys[1].sign), "signature of the token is wrong"),
        (good[:-8] + "AAAAAAAA", "signature of the token is wrong"),
        (token(keys[0], header={"alg": "none"}, sign=lambda data: b"x"), "algorithm"),
        (token(secret), "algorithm"),
        (token(keys[0], header={"crit": ["exp"]}), "critical"),
        (token(keys[0], header={"typ": "logout+jwt"}), "typ"),
        ("Bearer not.a.token", "not a signed JWT"),
        ("Bearer " + "a" * 20000, "not a signed JWT"),
    ]
    for auth, description in rows:
        refused = one.gateway.post(key=new_key(), auth=auth)
        check.problem(refused, "unauthenticated")
        challenge = refused["WWW-Authenticate"]
        assert challenge.startswith('Bearer realm="hapax", error="invalid_token", error_description="')
        assert description in challenge, (description, challenge)
    check.problem(one.gateway.get("/.hapax/operations?path=/pay&key=k", auth=rows[0][0]), "unauthenticated")
    missing = one.gateway.post(key=new_key(), auth=None)
    check.problem(missing, "unauthenticated")
    assert missing["WWW-Authenticate"] == 'Bearer realm="hapax"'
    basic = one.gateway.post(key=new_key(), auth="Basic s3cr3t")
    check.problem(basic, "unauthenticated")
    assert 'error="invalid_request"' in basic["WWW-Authenticate"]
    assert not one.provider.seen()
    assert count(one, "expired") == 3 and count(one, "signature") == 2
    # None of them was remembered as somebody.
    assert one.gateway.post(auth=good).status == 200


def test_good_tokens(site, issuer, keys):
    """Several audiences, a clock that is a little off, no typ; unguarded requests need none."""
    one, now = site(config(issuer.url, audience=["shop", AUDIENCE])), int(time.time())
    for auth in (token(keys[0], aud=["x", "shop"]), token(keys[0], exp=now - 30),
                 token(keys[0], nbf=now + 30), token(keys[0], header={"typ": None, "kid": None}),
                 token(keys[0], header={"typ": "at+jwt"}, exp=now + 60.5)):
        assert one.gateway.post(auth=auth).status == 200
    assert one.gateway.get("/anything", auth=None).status == 200


def test_a_token_is_verified_once(site, issuer, keys):
    """The same token again costs a hash; it is forgotten when it expires."""
    one, auth = site(config(issuer.url, skew="0s")), token(keys[0], exp=int(time.time()) + 3)
    for _ in range(5):
        assert one.gateway.post(auth=auth).status == 200
    assert count(one, "verified") == 1 and count(one, "cached") == 4
    check.until(lambda: one.gateway.post(auth=auth).status == 401, "the token expires")
    assert issuer.asked == 1


def test_no_keys_yet(site, issuer, keys):
    """The issuer cannot be reached: 503, nothing executed, and the same key works later."""
    issuer.stop()
    one, key, auth = site(config(issuer.url, timeout="200ms")), new_key(), token(keys[0])
    refused = one.gateway.post(key=key, auth=auth)
    check.problem(refused, "tenant_unavailable")
    assert refused.json()["executed"] == "no" and int(refused["Retry-After"]) >= 1
    assert not one.provider.seen()
    one.gateway.wait_log("jwt_keys_failed")
    assert one.gateway.metrics()['hapax_jwt_refreshes_total{result="failed"}'] >= 1
    issuer.start()
    check.until(lambda: one.gateway.post(key=key, auth=auth).status == 200, "the keys are read")
    assert len(one.provider.ledger(key)) == 1
    assert one.gateway.metrics()["hapax_jwt_keys"] == 1


def test_an_unknown_key_refreshes_once_a_minute(site, issuer, keys):
    """The issuer has a new key: the first token of it reads the keys again, and the retry is
    served. Invented kids afterwards cause no more readings, and are 401."""
    one, key = site(config(issuer.url)), new_key()
    assert one.gateway.post(auth=token(keys[0])).status == 200
    issuer.keys, new = keys[1:], token(keys[1])
    issuer.open.clear()
    check.problem(one.gateway.post(key=key, auth=new), "tenant_unavailable")
    issuer.wait_asked(2)
    # While the keys are read, the old ones are in force.
    assert one.gateway.post(auth=token(keys[0])).status == 200
    issuer.open.set()
    check.until(lambda: one.gateway.post(key=key, auth=new).status == 200, "the new key is known")
    assert len(one.provider.ledger(key)) == 1
    for n in range(20):
        check.problem(one.gateway.post(auth=token(keys[1], header={"kid": f"k{n}"})), "unauthenticated")
    # The old key is gone, and with it what was verified with it.
    check.problem(one.gateway.post(auth=token(keys[0])), "unauthenticated")
    assert issuer.asked == 2


@pytest.mark.parametrize("status, text", [(500, None), (200, "<html>"), (200, '{"keys": []}'),
                                          (200, '{"keys": ' + "[" * 5000)])
def test_a_bad_answer_keeps_the_old_keys(site, issuer, keys, status, text):
    """The issuer breaks down: the callers of the known keys notice nothing."""
    one = site(config(issuer.url, refresh="1s"))
    issuer.status, issuer.text = status, text
    one.gateway.wait_log("jwt_keys_failed.*the old keys stay")
    assert one.gateway.post(auth=token(keys[0])).status == 200
    issuer.status, issuer.text = 200, None
    check.until(lambda: one.gateway.metrics()["hapax_jwt_keys_age_seconds"] == 0, "the keys are read again")


def test_a_withdrawn_key(site, issuer, keys):
    """A token that was verified is refused when its key is withdrawn."""
    one, auth = site(config(issuer.url, refresh="1s")), token(keys[0])
    assert one.gateway.post(auth=auth).status == 200
    issuer.keys = keys[1:]
    check.until(lambda: one.gateway.post(auth=auth).status == 401, "the key is withdrawn", seconds=30)


def test_keys_by_https(site, keys, tmp_path):
    """The certificate is verified: by another authority's word there are no keys."""
    authority, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "other")
    issuer = Issuer(keys[:1], server_context(*authority.certificate()))
    try:
        one = site(config(issuer.url, ca_file=authority.ca_file))
        assert one.gateway.post(auth=token(keys[0])).status == 200
        two = site(config(issuer.url, ca_file=stranger.ca_file))
        check.problem(two.gateway.post(auth=token(keys[0])), "tenant_unavailable")
    finally:
        issuer.stop()


def test_keys_in_a_file(site, keys, tmp_path):
    """HS256 by a file; SIGHUP reads it again; a file that is gone keeps the old keys."""
    secret, path = SecretKey("s"), tmp_path / "keys.json"
    path.write_text(json.dumps(secret.jwk))
    path.chmod(0o600)
    one = site(config(str(path), algorithms=["HS256"]))
    assert one.gateway.post(auth=token(secret)).status == 200
    check.problem(one.gateway.post(auth=token(keys[0])), "unauthenticated")
    path.unlink()
    one.gateway.process.send_signal(signal.SIGHUP)
    one.gateway.wait_log("reload_refused|jwt_keys_failed")
    assert one.gateway.post(auth=token(secret)).status == 200


def test_async_takes_it_as_verified(site, issuer, keys, tmp_path):
    """A route with deliver: async accepts the verified tenant; the token is not in the job."""
    credential = tmp_path / "credential"
    credential.write_text(CREDENTIAL + "\n")
    credential.chmod(0o600)
    with ExternalService(tmp_path / "external", tls=False, credential=CREDENTIAL, honours_keys=True) as external:
        one = site({**config(issuer.url),
                    "routes": [{"match": "POST /emails", "deliver": "async", "target": "mailer"}],
                    "targets": {"mailer": {"url": external.url + "/api", "honours_keys": "24h",
                                           "credentials": {"file": str(credential)}}}})
        key = new_key()
        accepted = one.gateway.post("/emails", key=key, auth=token(keys[0]))
        assert accepted.status == 202
        reference = accepted["Hapax-Operation"]
        check.until(lambda: one.gateway.operation(reference, token(keys[0])).json()["state"] == "completed",
                    "the job is delivered")
        assert one.gateway.post("/emails", key=key, auth=token(keys[0])).replayed
        assert len(external.ledger.effects()) == 1


def test_the_name_is_for_people(site, issuer, keys):
    """The operator sees issuer and claim."""
    one = site(config(issuer.url))
    reference = one.gateway.post(auth=token(keys[0]))["Hapax-Operation"]
    assert f"jwt:{NAME}#alice" in Operator(one.gateway).on("keys", "show", reference)
