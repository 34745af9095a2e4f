"""Shows that behind nginx, Caddy and HAProxy, with TLS there, a POST happens once, for
the right caller and with that caller's address, and that forged headers end at the proxy."""
import pytest

import chain
from recipe import require


@pytest.mark.parametrize("name", ["nginx", "caddy", "haproxy"])
def test_proxy(recipe, provider, name):
    """From the page's own commands to the judge."""
    require(name, "openssl", "curl")
    one = recipe(name, service=provider.port)
    one.run("Start")
    said = one.run("Check")
    assert said.lower().count("idempotent-replayed: true") == 1, said
    assert len(provider.ledger("order-17")) == 1

    def arrived(key):
        request = provider.seen(key=key)[-1]
        assert request["X-Forwarded-User"] is None and request["Forwarded"] is None, request
        addresses = [word.strip() for word in request["X-Forwarded-For"].split(",")]
        assert addresses[1:] == ["127.0.0.1"] and request["X-Forwarded-Host"].startswith("localhost"), request
        return addresses[0], request["X-Forwarded-Proto"]

    def send(key, **how):
        return chain.post(one.port["8443"], key, ca=one.folder / "tls.crt", **how)

    chain.judge(one, send, lambda key: len(provider.ledger(key)), arrived)
    assert arrived(provider.seen()[-1]["Idempotency-Key"].strip('"'))[1] == "https"


@pytest.mark.parametrize("name", ["nginx", "caddy", "haproxy"])
def test_nobody_names_itself(recipe, provider, name):
    """Where the proxy is to name the caller, a name that came from outside does not get through it."""
    require(name, "openssl")
    one = recipe(name, service=provider.port,
                 replace={"{from: authorization}": "{from: header, name: X-Forwarded-User, anonymous: refuse}"})
    one.run("Start")
    answer = chain.post(one.port["8443"], "order-17", ca=one.folder / "tls.crt", headers=chain.FORGED)
    assert answer.status == 401 and provider.seen() == [], answer
    # Past the proxy, from its own address, the name is believed: that is what trusted_peers says.
    done = one.execute(f"curl -s -o answer -w '%{{http_code}}' -H 'X-Forwarded-User: alice' -H 'Idempotency-Key: order-17' "
                       f"-d amount=10 http://127.0.0.1:{one.port['8080']}/payments")
    [operation] = chain.operations(one, "order-17")
    assert done == "200" and operation["tenant"] == "header:alice", (done, operation)
