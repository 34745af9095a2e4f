"""Shows, over every `tenant.from`, that nobody is given another caller's answer,
that a caller's retry is one operation however a proxy spells its headers, and
that a header which names nobody neither hides nor splits an operation. The
provider's ledger is the judge. One gateway for each rule, many rows."""
import hashlib

import pytest

from harness import check
from harness.directory import Directory
from harness.secret import ALICE, BASIC, BOB, new_key

# Whoever sends one of these is somebody, and stays the same in a retry.
STABLE = [
    "X-Auth-Token", "X-Access-Token", "X-Session-Token", "Private-Token", "apikey", "api-key",
    "X-Goog-Api-Key", "X-Shopify-Access-Token", "CB-ACCESS-KEY", "Ocp-Apim-Subscription-Key",
    "X-Vault-Token", "X-Forwarded-User", "X-Forwarded-Email", "Remote-User", "X-Consumer-Id",
    "X-Consumer-Username", "x-amzn-oidc-identity", "X-Goog-Authenticated-User-Id",
    "X-Goog-Authenticated-User-Email", "X-Ms-Client-Principal-Id", "Cf-Access-Client-Id",
    "Cf-Access-Authenticated-User-Email", "client-id", "client-secret", "X-Auth-Request-User",
    "X-User-Token", "X-MBX-APIKEY", "DD-API-KEY", "X-Algolia-API-Key", "X-Figma-Token",
    "api_key", "access_token", "REMOTE_USER",
]
# Of these, the ones whose value is a proxy's word: no secret, anybody could send it.
VOUCHED = {
    "X-Forwarded-User", "X-Forwarded-Email", "Remote-User", "REMOTE_USER", "X-Consumer-Id", "X-Consumer-Username",
    "x-amzn-oidc-identity", "X-Goog-Authenticated-User-Id", "X-Goog-Authenticated-User-Email",
    "X-Ms-Client-Principal-Id", "Cf-Access-Client-Id", "Cf-Access-Authenticated-User-Email", "X-Auth-Request-User",
}
# So is he, but the value is signed anew; and the header beside it that stays.
RENEWED = [
    ("x-amzn-oidc-data", "x-amzn-oidc-identity"),
    ("x-amzn-oidc-accesstoken", "x-amzn-oidc-identity"),
    ("X-Goog-Iap-Jwt-Assertion", "X-Goog-Authenticated-User-Id"),
    ("Cf-Access-Jwt-Assertion", "Cf-Access-Authenticated-User-Email"),
    ("X-Forwarded-Client-Cert", "ssl-client-subject-dn"),
    ("X-Forwarded-Access-Token", "X-Forwarded-User"),
    ("X-Auth-Request-Access-Token", "X-Auth-Request-User"),
    ("X-Ms-Token-Aad-Access-Token", "X-Ms-Client-Principal-Id"),
    ("X-Ms-Token-Aad-Id-Token", "X-Ms-Client-Principal-Id"),
    ("OIDC_access_token", "OIDC_CLAIM_sub"),
]
SUSPECT = ["X-My-Token", "Acme-Secret", "X-Amz-Security-Token", "X-Session-Id", "X-Acme-Jwt"]
HARMLESS = [
    "X-CSRF-Token", "X-XSRF-TOKEN", "X-Csrftoken", "X-Recaptcha-Token", "h-captcha-response",
    "X-Device-Token", "X-Push-Token", "X-Ms-Continuation-Token", "X-Request-Token",
    "X-Requested-With", "DPoP", "X-Amz-Date", "X-Amz-Content-Sha256", "X-Hub-Signature-256",
    "Signature", "Signature-Input", "X-Request-Id", "User-Agent", "traceparent",
]
# What clients, and the proxies before hapax, send beside a credential. All of it
# may be another in the next try.
ORDINARY = {
    "browser": """Accept Accept-Encoding Accept-Language Origin Referer Sec-Fetch-Site Sec-Fetch-Mode Sec-Fetch-Dest
        Sec-CH-UA Sec-CH-UA-Mobile Sec-CH-UA-Platform Sec-GPC Sec-Private-State-Token DNT Priority X-Client-Data
        Save-Data User-Agent Cookie X-Client-Id X-Requested-With X-CSRF-Token X-Socket-Id X-Inertia HX-Request X-WP-Nonce
        requesttoken X-Turnstile-Token X-Atlassian-Token X-Anti-Forgery-Token""",
    "tracing": """traceparent tracestate baggage sentry-trace b3 X-B3-TraceId X-B3-SpanId X-B3-Sampled uber-trace-id
        x-datadog-trace-id x-datadog-parent-id x-datadog-sampling-priority x-datadog-origin x-datadog-tags newrelic
        X-NewRelic-ID X-NewRelic-Transaction elastic-apm-traceparent X-Instana-T X-Dynatrace Request-Id
        Request-Context X-Request-Id X-Correlation-Id X-Cloud-Trace-Context X-Amzn-Trace-Id""",
    "stripe": """X-Stripe-Client-User-Agent X-Stripe-Client-Telemetry Stripe-Version User-Agent""",
    "openai": """X-Stainless-Retry-Count X-Stainless-Timeout X-Stainless-Runtime-Version""",
    "aws": """amz-sdk-invocation-id amz-sdk-request X-Amz-Date X-Amz-Content-Sha256 X-Amz-Security-Token X-Amz-Target
        X-Amz-User-Agent x-amz-checksum-crc32 X-Aws-Waf-Token""",
    "google": """x-goog-api-client x-goog-request-params x-goog-user-project X-Server-Timeout X-Firebase-AppCheck
        X-Firebase-GMPID X-Firebase-Client X-Android-Package X-Android-Cert Firebase-Instance-ID-Token""",
    "azure": """x-ms-client-request-id x-ms-date x-ms-version x-ms-return-client-request-id x-ms-client-principal-idp
        X-ARR-LOG-ID X-ARR-SSL X-AppService-Proto X-SITE-DEPLOYMENT-ID WAS-DEFAULT-HOSTNAME CLIENT-IP DISGUISED-HOST
        X-Original-URL""",
    "grpc-web": """X-Grpc-Web grpc-timeout grpc-accept-encoding X-User-Agent""",
    "webdav": """Depth Destination If Overwrite Timeout Lock-Token""",
    "kubernetes": """Kubectl-Command Kubectl-Session Audit-ID X-Stream-Protocol-Version""",
    "nginx": """X-Real-IP X-Forwarded-For X-Forwarded-Port X-Forwarded-Server X-Scheme X-Original-URI
        X-Original-Forwarded-For""",
    "envoy": """X-Envoy-Attempt-Count X-Envoy-Decorator-Operation X-Envoy-Expected-Rq-Timeout-Ms
        X-Envoy-External-Address X-Envoy-Internal X-Envoy-Original-Path X-Envoy-Peer-Metadata
        X-Envoy-Peer-Metadata-Id X-Forwarded-Client-Cert""",
    "cloudflare": """CF-Ray CF-Connecting-IP CF-IPCountry CF-Visitor CF-EW-Via CF-Worker Cdn-Loop True-Client-IP
        Cf-Access-Jwt-Assertion""",
    "alb": """X-Amzn-Trace-Id x-amzn-oidc-data x-amzn-oidc-accesstoken X-Amzn-Mtls-Clientcert""",
    "oauth2-proxy": """X-Forwarded-Access-Token X-Auth-Request-Access-Token GAP-Signature X-Forwarded-Groups""",
    "mod_auth_openidc": """OIDC_access_token OIDC_access_token_expires OIDC_id_token OIDC_CLAIM_exp OIDC_CLAIM_iat""",
    "webhooks": """Webhook-Id Webhook-Timestamp Webhook-Signature X-Hub-Signature-256 Stripe-Signature
        X-Slack-Signature X-Slack-Request-Timestamp X-Twilio-Signature X-GitHub-Delivery""",
}
SCHEMES = ["Bearer", "bearer", "Basic", "Token", "ApiKey", "DPoP"]
UNSTABLE = ["Digest username=\"s3cr3t\", nonce=\"{}\"", "AWS4-HMAC-SHA256 Credential=s3cr3t{}",
            "Hawk id=\"s3cr3t\", ts=\"{}\"", "Negotiate s3cr3t{}", "Signature keyId=\"s3cr3t{}\""]
MINE = ("Authorization", ALICE)


class Matrix:
    """Sends rows over one kept connection to one gateway, and judges them."""

    def __init__(self, site):
        self.gateway = site.gateway
        self.provider = site.provider
        self.wire = None

    def send(self, key, headers, method="POST", target="/pay"):
        if self.wire is None:
            self.wire = self.gateway.connect()
        self.wire.send(self.gateway.request(method, target, key=key, auth=None, headers=headers))
        answer = self.wire.answer(method)
        if "close" in answer.fields.tokens("Connection"):
            self.wire.close()
            self.wire = None
        return answer

    def own(self, one, other):
        """Two callers: an operation each, and each one's retry is answered with his own."""
        key = new_key()
        answers = [self.send(key, h) for h in (one, other, respelled(one), respelled(other))]
        note = f"{one} and {other}: {answers}"
        assert [a.status for a in answers] == [200] * 4, note
        assert [a.replayed for a in answers] == [False, False, True, True], note
        assert answers[0].body == answers[2].body != answers[1].body == answers[3].body, note
        assert len(self.provider.ledger(key)) == 2, note

    def same(self, one, other):
        """One caller: one operation, and the second request gets its answer."""
        key = new_key()
        answers = [self.send(key, h) for h in (one, other, respelled(one))]
        note = f"{one} and {other}: {answers}"
        assert [(a.status, a.replayed) for a in answers] == \
            [(200, False), (200, True), (200, True)], note
        assert len({a.body for a in answers}) == 1 == len(self.provider.ledger(key)), note

    def refused(self, headers, *words):
        """Nobody: 401 with the remedy, and nothing is executed."""
        key = new_key()
        answer = self.send(key, headers)
        document = check.problem(answer, "unauthenticated")
        missing = [w for w in words if w not in document["detail"]]
        assert not missing, f"{headers}: {missing} not in {document['detail']}"
        assert not self.provider.seen(key=key), headers

    def malformed(self, headers):
        """Two of a kind: refused, by whichever rule sees it first."""
        key = new_key()
        answer = self.send(key, headers)
        assert answer.status in (400, 401) and not self.provider.seen(key=key), (headers, answer)


def respelled(headers):
    """The same request after another proxy: other case, order and white space."""
    return [(name.swapcase(), f" \t{value}  ") for name, value in reversed(headers)]


@pytest.fixture
def matrix(site):
    running = []

    def start(config=None):
        running.append(Matrix(site(config)))
        return running[-1]

    yield start
    for one in running:
        if one.wire is not None:
            one.wire.close()


@pytest.fixture
def matrix_of_all(shared):
    one = Matrix(shared)
    yield one
    if one.wire is not None:
        one.wire.close()


# What holds whatever `from` is, as long as it looks at Authorization.
def check_credentials(matrix):
    for scheme in SCHEMES:
        matrix.own([("Authorization", f"{scheme} s3cr3t-1")], [("Authorization", f"{scheme} s3cr3t-2")])
    matrix.own([("Authorization", "Basic " + BASIC)], [("Authorization", "Bearer " + BASIC)])
    matrix.same([("Authorization", "Bearer s3cr3t-9")], [("Authorization", "bEARER   s3cr3t-9")])
    matrix.own([("X-Api-Key", "s3cr3t-1")], [("X-Api-Key", "s3cr3t-2")])
    matrix.own([("X-Api-Key", "s3cr3t-1")], [("Authorization", "Bearer s3cr3t-1")])
    matrix.own([MINE, ("X-Api-Key", "s3cr3t-1")], [MINE, ("X-Api-Key", "s3cr3t-2")])
    matrix.own([MINE, ("X-Api-Key", "s3cr3t-1")], [("Authorization", BOB), ("X-Api-Key", "s3cr3t-1")])
    matrix.own([MINE, ("X-Api-Key", "s3cr3t-1")], [MINE])
    matrix.own([MINE], [])
    for scheme in UNSTABLE:
        matrix.refused([("Authorization", scheme.format(1))], "tenant: {from: subrequest",
                       "tenant: {from: credential, name: Authorization} if it stays the same")
        matrix.refused([("Authorization", scheme.format(1)), ("X-Api-Key", "s3cr3t-1")],
                     "tenant: {ignore: [Authorization]}")
    matrix.refused([("Authorization", "s3cr3t-raw")], "{from: credential, name: Authorization}")
    matrix.refused([("Authorization", "Bearer")])
    for twice in ("Authorization", "X-Api-Key"):
        matrix.malformed([(twice, ALICE), (twice, BOB)])
        matrix.malformed([(twice, ALICE), (twice, ALICE)])


def check_harmless(matrix, beside):
    """Headers that name nobody, alone and beside what does: nothing changes."""
    for name in HARMLESS:
        matrix.same([*beside, (name, "s3cr3t-1")], [*beside, (name, "s3cr3t-2")])
        matrix.same([*beside, (name, "s3cr3t-1")], beside)


@pytest.mark.parametrize("more", [{}, {"profile": "stripe"}], ids=["ietf", "stripe"])
def test_unsaid(matrix, more):
    """The default: credentials, and beside them every listed header."""
    one = matrix(more)
    if more:  # answers have Stripe's shape
        one.refused = lambda headers, *words: one.malformed(headers)
    check_credentials(one)
    check_harmless(one, [])
    check_harmless(one, [MINE])
    for name in STABLE:
        kind = "header" if name in VOUCHED else "credential"
        one.refused([(name, "s3cr3t-1")], f"tenant: {{from: {kind}, name: {name}}}")
        one.own([MINE, (name, "s3cr3t-1")], [MINE, (name, "s3cr3t-2")])
        one.own([MINE, (name, "s3cr3t-1")], [MINE])
        one.same([MINE, (name, "")], [MINE])
        one.malformed([MINE, (name, "s3cr3t-1"), (name.upper(), "s3cr3t-2")])
        one.malformed([(name, "s3cr3t-1"), (name, "s3cr3t-1")])
    for name, twin in RENEWED:
        one.refused([(name, "s3cr3t-1")], name, f"tenant: {{from: header, name: {twin}}}")
        one.same([MINE, (name, "s3cr3t-1")], [MINE, (name, "s3cr3t-2")])
        one.same([("X-Api-Key", "s3cr3t-1"), (name, "s3cr3t-1")],
                 [("X-Api-Key", "s3cr3t-1"), (name, "s3cr3t-2")])
        one.own([MINE, (name, "s3cr3t-1"), (twin, "s3cr3t-1")], [MINE, (name, "s3cr3t-1"), (twin, "s3cr3t-2")])
    for name in SUSPECT:
        one.refused([(name, "s3cr3t-1")], f"name: {name}}}", f"tenant: {{ignore: [{name}]}}")
        one.same([MINE, (name, "s3cr3t-1")], [MINE, (name, "s3cr3t-2")])
    # Servers that take _ for - read the listed name; what is listed so is itself.
    for name in ("X_Auth_Token", "X_Goog_Api_Key", "X_My_Token", "acme_secret"):
        one.malformed([(name, "s3cr3t-1")])
    one.malformed([MINE, ("X_Auth_Token", "s3cr3t-1")])
    one.same([MINE, ("csrf_token", "s3cr3t-1")], [MINE, ("csrf_token", "s3cr3t-2")])
    one.own([MINE, ("client_id", "s3cr3t-1")], [MINE, ("client_id", "s3cr3t-2")])
    one.refused([("client_id", "s3cr3t-1")], "{from: credential, name: client_id}")
    one.refused([("Cookie", "session=s3cr3t")], "{from: cookie, name:", "{ignore: [Cookie]}")
    one.same([MINE, ("Cookie", "s=s3cr3t1")], [MINE, ("Cookie", "s=s3cr3t2")])
    one.refused([("Proxy-Authorization", "Basic " + BASIC)])


def test_unsaid_pairs(matrix):
    """Of two listed headers, each tells callers apart, in whatever order they come."""
    one = matrix()
    for first, second in zip(STABLE, STABLE[1:] + STABLE[:1]):
        both = [MINE, (first, "s3cr3t-1"), (second, "s3cr3t-1")]
        one.own(both, [MINE, (first, "s3cr3t-1"), (second, "s3cr3t-2")])
        one.own(both, [MINE, (first, "s3cr3t-2"), (second, "s3cr3t-1")])
        one.own([MINE, (first, "s3cr3t-1")], [MINE, (second, "s3cr3t-1")])
    one.refused([("client-id", "s3cr3t-1"), ("client-secret", "s3cr3t-2")],
                "tenant: {from: credential, name: client-id, with: [client-secret]}")
    one.refused([("X-User-Email", "s3cr3t-1"), ("X-User-Token", "s3cr3t-2")],
                "tenant: {from: credential, name: X-User-Token, with: [X-User-Email]}")
    one.refused([("X-Forwarded-Email", "s3cr3t-1"), ("X-Forwarded-User", "s3cr3t-2")],
                "tenant: {from: header, name: X-Forwarded-Email, with: [X-Forwarded-User]} and lists the proxy")
    one.malformed([MINE, ("api-key", "s3cr3t-1"), ("api_key", "s3cr3t-2")])
    many = [(f"X-Consumer-{n}", "s3cr3t") for n in range(17)]
    one.refused([MINE, *many])


@pytest.mark.parametrize("sender", ORDINARY)
def test_ordinary(matrix_of_all, sender):
    """What clients and proxies send by themselves is refused nowhere, and splits no
    operation; one by one, all together, and on what passes through."""
    names = ORDINARY[sender].split()
    first, second = [[(name, f"s3cr3t-{n}") for name in names] for n in (1, 2)]
    matrix_of_all.same([MINE, *first], [MINE, *second])
    for one, other in zip(first, second):
        matrix_of_all.same([MINE, one], [MINE, other])
    # Perl's and others' way to ask for trailers.
    hop = [("Connection", "keep-alive, TE"), ("TE", "trailers, deflate;q=0.5")]
    assert matrix_of_all.send(None, [MINE, *first, *hop], "GET", "/page").status == 200
    assert matrix_of_all.send(new_key(), [MINE, *first, *hop]).status == 200


def test_unlisted_beside_a_credential(matrix):
    """It is not part of the tenant; it is counted, and each name logged once."""
    one = matrix()
    for name in ("X-My-Token", "x-my-token", "Acme-Secret", "X-My-Token"):
        one.send(new_key(), [MINE, (name, "s3cr3t-1")])
    assert one.gateway.metrics()["hapax_unlisted_credentials_total"] == 4
    one.gateway.wait_log("event=unlisted_credential .*header=Acme-Secret")
    one.gateway.events("unlisted_credential", 2)


def test_ignored(matrix):
    """`ignore` takes a header off, whichever it is."""
    one = matrix({"tenant": {"ignore": ["X-Auth-Token", "Authorization", "Cookie", "X-My-Token"]}})
    for name in ("X-Auth-Token", "Cookie", "X-My-Token", "Authorization"):
        one.same([(name, "s3cr3t-1")], [])
        one.same([("X-Api-Key", "s3cr3t"), (name, "s3cr3t-1")],
                 [("X-Api-Key", "s3cr3t"), (name, "s3cr3t-2")])
    one.refused([("X-Session-Token", "s3cr3t-1")])


def test_with(matrix):
    """`with` adds parts, to every tenant, and nothing twice."""
    one = matrix({"tenant": {"with": ["Stripe-Account", "Host"]}})
    for beside in ([MINE], []):
        one.own([*beside, ("Stripe-Account", "a")], [*beside, ("Stripe-Account", "b")])
        one.own([*beside, ("Stripe-Account", "a")], beside)
        one.malformed([*beside, ("Stripe-Account", "a"), ("Stripe-Account", "a")])
    key = new_key()
    answers = [one.gateway.raw(one.gateway.request("POST", f"http://{host}/pay", key=key))
               for host in ("a.test", "b.test", "A.test")]
    assert [(a.status, a.replayed) for a in answers] == [(200, False), (200, False), (200, True)]


def test_authorization(matrix):
    """Written, it looks at nothing but Authorization and X-Api-Key; but whoever
    brings another credential is not anonymous."""
    one = matrix({"tenant": {"from": "authorization"}})
    check_credentials(one)
    check_harmless(one, [])
    check_harmless(one, [MINE])
    for name in [*STABLE, *SUSPECT, *(n for n, _ in RENEWED)]:
        one.same([MINE, (name, "s3cr3t-1")], [MINE, (name, "s3cr3t-2")])
        one.refused([(name, "s3cr3t-1")], "ignore: [")


def check_named(one, mine, yours, nobody):
    """A rule that names one thing: it decides, and what else is there does not."""
    one.own([mine], [yours])
    check_harmless(one, [mine])
    for name in [*STABLE, *SUSPECT, *(n for n, _ in RENEWED), "Authorization", "X-Api-Key"]:
        if name == mine[0]:
            continue
        one.same([mine, (name, "s3cr3t-1")], [mine, (name, "s3cr3t-2")])
        one.own([mine, (name, "s3cr3t-1")], [yours, (name, "s3cr3t-1")])
        one.refused([(name, "s3cr3t-1")], "ignore: [")
        one.refused([nobody, (name, "s3cr3t-1")], "ignore: [")
    one.same([], [])
    one.own([], [mine])
    one.malformed([mine, yours])


def test_credential(matrix):
    one = matrix({"tenant": {"from": "credential", "name": "X-Auth-Token"}})
    check_named(one, ("X-Auth-Token", "s3cr3t-1"), ("X-Auth-Token", "s3cr3t-2"), ("X-Auth-Token", ""))


def test_credential_with(matrix):
    """A raw Authorization, and a second header beside it."""
    one = matrix({"tenant": {"from": "credential", "name": "authorization", "with": ["client-id"]}})
    one.own([("Authorization", "s3cr3t-1")], [("Authorization", "s3cr3t-2")])
    one.own([("Authorization", "s3cr3t-1"), ("client-id", "a")],
            [("Authorization", "s3cr3t-1"), ("client-id", "b")])
    one.malformed([("Authorization", "s3cr3t-1"), ("client-id", "a"), ("client-id", "a")])


def test_header(matrix):
    one = matrix({"tenant": {"from": "header", "name": "X-Tenant"}, "trusted_peers": ["127.0.0.1"]})
    check_named(one, ("X-Tenant", "a"), ("X-Tenant", "b"), ("X-Tenant", ""))


@pytest.mark.parametrize("more", [
    {"tenant": {"from": "credential", "name": "Host"}},
    {"tenant": {"from": "header", "name": "Host"}, "trusted_peers": ["127.0.0.1"]},
    {"tenant": {"from": "anonymous", "with": ["Host"]}},
], ids=["credential", "header", "with"])
def test_host(matrix, more):
    """Tenants by their host: the one that is forwarded, wherever it stands."""
    one, key = matrix(more), new_key()
    target, field = "POST http://{}/pay HTTP/1.1", "Host: {}"
    sent = [("a.test", "b.test"), ("b.test", "b.test"), ("A.test", "b.test"), ("b.test", "a.test")]
    answers = []
    for absolute, host in sent:
        answers.append(one.gateway.raw("\r\n".join([
            target.format(absolute), field.format(host), f"Idempotency-Key: {key}",
            "Content-Length: 0", "", ""]).encode()))
    assert [(a.status, a.replayed) for a in answers] == \
        [(200, False), (200, False), (200, True), (200, True)], answers
    assert answers[0].body == answers[2].body != answers[1].body == answers[3].body
    assert [r["Host"] for r in one.provider.seen(key=key)] == ["a.test", "b.test"]


def test_cookie(matrix):
    one = matrix({"tenant": {"from": "cookie", "name": "s"}})
    check_named(one, ("Cookie", "s=s3cr3t1"), ("Cookie", "s=s3cr3t2"), ("Cookie", "t=s3cr3t1"))
    one.same([("Cookie", "s=s3cr3t1; t=1")], [("Cookie", "t=2"), ("Cookie", "s=s3cr3t1")])
    one.malformed([("Cookie", "s=s3cr3t1; s=s3cr3t2")])


def test_subrequest(matrix):
    """The service is told of every credential; whom it names by one, hapax never
    confuses with another."""
    directory = Directory()

    def judge(fields):
        told = sorted((n.lower(), v) for n, v in fields if n.lower() in looked_at and v)
        if not told:
            return 200, "X-Caller: visitor\r\n"
        return 200, f"X-Caller: {hashlib.sha256(repr(told).encode()).hexdigest()}\r\n"
    looked_at = {n.lower() for n in [*STABLE, *SUSPECT, *(n for n, _ in RENEWED), "Authorization",
                                     "X-Api-Key", "Cookie"]}
    directory.judge = judge
    try:
        one = matrix({"tenant": {"from": "subrequest", "url": directory.url, "header": "X-Caller",
                               "cache": "1h"}})
        check_harmless(one, [])
        check_harmless(one, [MINE])
        for name in [*STABLE, *SUSPECT, *(n for n, _ in RENEWED), "Authorization", "X-Api-Key"]:
            one.own([(name, "s3cr3t-1")], [(name, "s3cr3t-2")])
            one.own([(name, "s3cr3t-1"), ("Cookie", "s=s3cr3t")], [(name, "s3cr3t-2"), ("Cookie", "s=s3cr3t")])
            one.malformed([(name, "s3cr3t-1"), (name, "s3cr3t-2")])
    finally:
        directory.stop()


def test_anonymous(matrix):
    """`from: anonymous` is one tenant for all: whoever writes it says so."""
    one = matrix({"tenant": {"from": "anonymous"}})
    for name in [*STABLE, *SUSPECT, *HARMLESS, *(n for n, _ in RENEWED), "X-Api-Key"]:
        one.same([(name, "s3cr3t-1")], [(name, "s3cr3t-2")])
    assert one.gateway.metrics()["hapax_anonymous_total"] > 100


# ---- without any credential ----

FORWARDED = [("X-Forwarded-For", "10.1.2.3"), ("Forwarded", "for=10.1.2.3"), ("Via", "1.1 proxy"),
             ("X-Real-IP", "10.1.2.3"), ("X-Forwarded-Proto", "https")]


def test_local(matrix):
    """On a loopback listener nobody in particular is the anonymous tenant, unless
    the request was forwarded."""
    one = matrix()
    one.same([], [])
    for field in FORWARDED:
        one.refused([field], field[0], "tenant: {anonymous: allow}")
        one.own([MINE, field], [("Authorization", BOB), field])
    metrics = one.gateway.metrics()
    assert metrics["hapax_anonymous_total"] == 3
    one.gateway.wait_log('event=tenants .*anonymous, because 127.0.0.1:.* is local')


def test_not_local(matrix):
    """All addresses together are not a loopback listener, even over 127.0.0.1."""
    one = matrix({"listen": "0.0.0.0:0"})
    line = one.gateway.wait_log("event=ready")
    one.gateway.port = int(line.split("listen=0.0.0.0:")[1].split()[0])
    one.refused([], "tenant: {anonymous: allow}")
    one.own([MINE], [("Authorization", BOB)])
    one.gateway.wait_log("event=tenants .*401, because 0.0.0.0:0 is not local")
    # What is not guarded needs no tenant.
    for method, target in (("GET", "/page"), ("PUT", "/page")):
        assert one.send(None, [("X-Auth-Token", "s3cr3t")], method, target).status == 200
        assert one.send(None, [], method, target).status == 200
    # An operation is its caller's to see.
    check.problem(one.send(None, [], "GET", "/.hapax/operations?path=/pay&key=k"), "unauthenticated")


def test_unix_listener(matrix, tmp_path):
    one = matrix({"listen": f"unix:{tmp_path}/gw.sock"})
    one.same([], [])
    one.refused([FORWARDED[0]])
    one.own([MINE], [])


def test_allowed(matrix):
    """`anonymous: allow` takes nobody in particular from everywhere; but not
    somebody whom it cannot tell from others."""
    one = matrix({"tenant": {"anonymous": "allow"}})
    one.same([], [FORWARDED[0]])
    one.own([MINE], [])
    one.refused([("X-Auth-Token", "s3cr3t-1")])
    one.refused([("Cookie", "s=s3cr3t")])


def test_refused(matrix):
    one = matrix({"tenant": {"anonymous": "refuse"}})
    one.refused([], "send Authorization or X-Api-Key")
    one.own([MINE], [("Authorization", BOB)])
    assert one.gateway.metrics()["hapax_anonymous_total"] == 0


def test_observed(matrix):
    """Observing refuses nobody, and counts who would be."""
    one = matrix({"observe": True, "tenant": {"anonymous": "refuse"}})
    for headers in ([], [("X-Auth-Token", "s3cr3t")], [("Authorization", "Digest s3cr3t")], [MINE]):
        assert one.send(new_key(), headers).status == 200
    check.until(lambda: one.gateway.observed()["created"] == 1, "it is counted")
    assert one.gateway.observed()["unauthenticated"] == 3
