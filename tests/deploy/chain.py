"""What every recipe must show, asked of the whole chain from outside: a POST that is
sent twice happens once, it belongs to the caller who sent it, the service sees that
caller's address, and nobody is believed who only says so in a header."""
import http.client
import json
import ssl
import subprocess

from harness.gateway import binary
from harness.secret import ALICE, BOB, new_key

# Neither the proxy's address nor the gateway's, on the same machine.
CALLER = "127.0.0.3"
FORGED = {"X-Forwarded-For": ["198.51.100.7", "203.0.113.9, 127.0.0.1"], "X-Forwarded-User": "alice", "X-Forwarded-Proto": "gopher",
          "X-Forwarded-Host": "forged.test", "X-Real-IP": "198.51.100.7", "Forwarded": "for=198.51.100.7;proto=gopher",
          "Via": "1.1 forged"}
BODY = b'{"amount": 10}'


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()
        self.replayed = self.headers["Idempotent-Replayed"] == "true"

    def __repr__(self):
        return f"<{self.status} {dict(self.headers)} {self.body[:400]!r}>"


def post(port, key, *, ca=None, auth=ALICE, headers=None, body=BODY, path="/payments"):
    """One POST from CALLER on a connection of its own; over TLS where `ca` is given. A header whose value is
    a list is sent in several lines."""
    how = {"timeout": 30, "source_address": (CALLER, 0)}
    connection = (http.client.HTTPSConnection("localhost", port, context=ssl.create_default_context(cafile=ca), **how)
                  if ca else http.client.HTTPConnection("127.0.0.1", port, **how))
    fields = {"Idempotency-Key": key, "Content-Type": "application/json", **(headers or {})}
    if auth:
        fields["Authorization"] = auth
    try:
        connection.putrequest("POST", path)
        for name, value in {**fields, "Content-Length": str(len(body))}.items():
            for line in value if isinstance(value, list) else [value]:
                connection.putheader(name, line)
        connection.endheaders(body)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def operations(recipe, key, config="hapax.yaml"):
    """What the store has of this key: [{tenant, state, …}], by the operator's command beside the server."""
    done = subprocess.run([binary(), "keys", "ls", "--config", config, "--key", key, "--json"], cwd=recipe.folder,
                          capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["operations"]


def judge(recipe, send, effects, arrived):
    """`send(key, auth=, headers=)` posts through the chain; `effects(key)`: how often that happened;
    `arrived(key)`: (address, scheme) of the caller, as the service took them the last time."""
    key, other, late = new_key(), new_key(), new_key()
    first, again = send(key), send(key)
    assert 200 <= first.status < 300 and not first.replayed, f"{first}\n{recipe.logs()}"
    assert (again.status, again.body, again.replayed) == (first.status, first.body, True), again
    assert effects(key) == 1
    honest = arrived(key)
    assert honest[0] == CALLER, honest
    # Forged headers make nobody another caller, and no other address.
    forged = send(key, headers=FORGED)
    assert forged.replayed and effects(key) == 1, forged
    assert not send(other, headers=FORGED).replayed and arrived(other) == honest
    [mine] = operations(recipe, key)
    [forged] = operations(recipe, other)
    assert mine["state"] == "completed" and mine["tenant"] == forged["tenant"], (mine, forged)
    # Another caller with the same key has an operation of its own, whoever it says it is.
    stranger = send(key, auth=BOB, headers=FORGED)
    assert not stranger.replayed and effects(key) == 2, stranger
    assert len({one["tenant"] for one in operations(recipe, key)}) == 2
    # Sent at once: one of them executes.
    assert send(late).status == first.status and send(late, auth=ALICE).replayed and effects(late) == 1
    return mine["tenant"]
