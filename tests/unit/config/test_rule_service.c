/* Shows what does not go together about external services, with the remedy, and
 * what is only warned of. */
#include "config_test.h"

#include <stdlib.h>

/* Lines 1 and 2. */
#define UP "upstream: http://127.0.0.1:9000\nstore: sqlite:/s.db\n"
#define IN_MEMORY "upstream: http://127.0.0.1:9000\nstore: 'memory:'\n"
/* Line 3. */
#define VERIFIED "tenant: {from: subrequest, url: 'http://a:1/v', header: X-T}\n"
#define NOBODY "tenant: {from: authorization}\n"
/* Line 4. */
#define MAILER "targets: {mailer: {url: 'https://m'}}\n"
#define GOOD UP VERIFIED MAILER
/* From line 5. */
#define ROUTE "routes:\n  - match: POST /a\n"
#define ASYNC ROUTE "    deliver: async\n    target: mailer\n"

struct row {
	const char *text;
	const char *report;
};

static int set_secret(void **state)
{
	(void)state;
	setenv("HPX_TEST_SECRET", "s3cret-of-sixteen", 1);
	setenv("HPX_TEST_SHORT", "s3cret-of-15-by", 1);
	return 0;
}

static void refused(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		test_report(rows[i].text, NULL, HPX_INVALID, rows[i].report);
}

static void taken(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		test_report(rows[i].text, NULL, HPX_OK, rows[i].report);
}

#define UNVERIFIED \
	"is async, and no upstream checks who is calling; say tenant.from: jwt or subrequest, or " \
	"header with tenant.anonymous: refuse\n"
#define OUTLIVES "which needs a store that outlives hapax; give store: sqlite:PATH or postgres://…\n"
#define NEED_STORE \
	"need a store that outlives hapax; give store: sqlite:PATH or postgres://…\n"

#define JWT "tenant: {from: jwt, issuer: 'https://i', audience: [a], keys: "

/* What must be said about tokens, and keys that cannot be trusted or used. */
static void tokens_that_cannot_be(void **state)
{
	static const struct row rows[] = {
		{ UP "tenant: {from: jwt}\n",
		  "f:3:10: tenant.from: is jwt, but no issuer is named; add e.g. tenant.issuer: "
		  "https://login.example, byte for byte as in iss\n"
		  "f:3:10: tenant.from: is jwt, but nothing says for whom a token must be; a token "
		  "that was given for another service would work here: add e.g. tenant.audience: "
		  "[payments], or tenant.audience: [] where the issuer writes no aud\n"
		  "f:3:10: tenant.from: is jwt, but no keys are named; add e.g. tenant.keys: "
		  "https://login.example/.well-known/jwks.json\n" },
		{ UP "tenant: {from: jwt, issuer: 'https://i#x', audience: [], keys: 'https://i/k'}\n",
		  "f:3:21: tenant.issuer: must be visible ASCII without #, which ends the issuer in a "
		  "tenant's name\n" },
		{ UP JWT "'http://i/k'}\n",
		  "f:3:57: tenant.keys: is an http URL of another machine: whoever stands between could "
		  "put in a key of their own; use https, or a file\n" },
		{ UP JWT "'https://i/k', algorithms: [RS256, HS256]}\n",
		  "f:3:78: tenant.algorithms: accepts HS256 with keys from a URL: whoever can read the "
		  "key can sign with it; name a file in tenant.keys, or leave HS256 out\n" },
		{ UP JWT "/nowhere/at/all}\n",
		  "f:3:57: tenant.keys: cannot be used: No such file or directory\n" },
		{ UP JWT "/proc}\n", "f:3:57: tenant.keys: cannot be used: it is no file\n" },
		{ UP JWT "/proc/version}\n",
		  "f:3:57: tenant.keys: cannot be used: the text is not JSON, or a name stands twice in "
		  "an object\n" },
		{ UP JWT "'https://i/k', algorithms: [RS512]}\n",
		  "f:3:90: tenant.algorithms: \"RS512\" is not one of RS256, PS256, ES256, EdDSA, HS256\n" },
	};

	(void)state;
	refused(rows, COUNT(rows));
}

static void tokens_that_are_taken(void **state)
{
	static const struct row rows[] = {
		{ UP JWT "'https://i/k?p=1'}\n", "" },
		{ UP JWT "'http://127.0.0.1:1/k'}\n", "" },
		{ UP JWT "'https://i/k', anonymous: allow}\n",
		  "f:3:78: warning: tenant.anonymous: has no effect where tenant.from is jwt: a request "
		  "without a token is refused\n" },
		{ UP "tenant: {claim: x}\n",
		  "f:3:10: warning: tenant.claim: has no effect unless tenant.from is jwt\n" },
		{ UP JWT "'https://169.254.169.254/k'}\n",
		  "f:3:57: warning: tenant.keys: is a link-local address, where clouds give out the "
		  "machine's own credentials; name the service's address, if this is not what you "
		  "mean\n" },
		{ UP "webhooks: {w: {scheme: stripe, secret_env: HPX_TEST_SHORT, operation: /o, verdict: "
		     "/v, applied: [a]}}\n",
		  "f:3:32: warning: webhooks.w.secret_env: has on line 1 a secret of fewer than 16 bytes, "
		  "which can be guessed from one signed message; ask the sender for a longer one\n" },
		/* An async route accepts it as a verified tenant. */
		{ UP JWT "'https://i/k'}\n" MAILER ASYNC, "" },
	};

	(void)state;
	taken(rows, COUNT(rows));
}

static void async_routes_that_cannot_be(void **state)
{
	static const struct row rows[] = {
		{ GOOD "routes:\n  - match: M-POST /a\n    deliver: async\n    target: mailer\n",
		  "f:6:5: routes[].match: has the method M-POST, and deliver is async: a job's "
		  "method is 1 to 32 capital letters\n" },
		{ GOOD ROUTE "    deliver: async\n",
		  "f:7:5: routes[].deliver: is async, but no target is named; add target: with "
		  "a name of targets\n" },
		{ GOOD ROUTE "    deliver: async\n    target: maler\n",
		  "f:8:5: routes[].target: \"maler\" is none of targets; did you mean "
		  "\"mailer\"?\n" },
		{ GOOD ROUTE "    deliver: async\n    target: bank\n",
		  "f:8:5: routes[].target: \"bank\" is none of targets; add it there, with "
		  "its url\n" },
		{ GOOD ROUTE "    target: Mailer\n",
		  "f:7:13: routes[].target: \"Mailer\" is no name: 1 to 63 of a-z, 0-9, _ and "
		  "-\n" },
		{ GOOD ROUTE "    deliver: asnyc\n",
		  "f:7:14: routes[].deliver: \"asnyc\" is not one of now, async; did you mean "
		  "\"async\"?\n" },
		/* Whoever calls must be known. */
		{ UP NOBODY MAILER ASYNC, "f:7:5: routes[].deliver: " UNVERIFIED },
		{ UP "tenant: {from: anonymous}\n" MAILER ASYNC,
		  "f:7:5: routes[].deliver: " UNVERIFIED },
		{ UP "tenant: {from: cookie, name: s, anonymous: refuse}\n" MAILER ASYNC,
		  "f:7:5: routes[].deliver: " UNVERIFIED },
		{ UP "tenant: {from: header, name: T}\n" MAILER ASYNC
		     "trusted_peers: ['::1']\n",
		  "f:7:5: routes[].deliver: " UNVERIFIED },
		{ UP NOBODY MAILER "defaults: {deliver: async, target: mailer}\n",
		  "f:5:12: defaults.deliver: " UNVERIFIED },
		/* A route that inherits it says nothing of its own. */
		{ UP NOBODY MAILER "defaults: {deliver: async, target: mailer}\n"
				   "routes: [{match: POST /a}]\n",
		  "f:5:12: defaults.deliver: " UNVERIFIED },
		{ IN_MEMORY VERIFIED MAILER ASYNC,
		  "f:4:1: targets: " NEED_STORE "f:7:5: routes[].deliver: is async, " OUTLIVES },
		/* What an async request never reaches. */
		{ GOOD ASYNC "    completes: application\n",
		  "f:9:5: routes[].completes: is application, but with deliver: async no "
		  "application takes part; say completes: upstream, or deliver: now\n" },
		{ GOOD ASYNC "defaults: {completes: application}\n",
		  "f:6:5: routes[].completes: is application, but with deliver: async no "
		  "application takes part; say completes: upstream, or deliver: now\n" },
		{ GOOD ASYNC "    on_lost: resume\n    fenced: yes\n",
		  "f:9:5: routes[].on_lost: is resume, but with deliver: async the target's "
		  "honours_keys decides what is sent again; write on_lost: unknown, or "
		  "deliver: now\n"
		  "f:10:5: warning: routes[].fenced: has no effect where deliver is async; the "
		  "options of the target count\n" },
		{ GOOD ASYNC "    key: optional\n",
		  "f:9:5: routes[].key: must be required where deliver is async: a request "
		  "without a key would go to the upstream\n" },
		{ GOOD ASYNC "profile: stripe\n",
		  "f:6:5: routes[].key: must be required where deliver is async: a request "
		  "without a key would go to the upstream\n" },
	};
	(void)state;
	refused(rows, COUNT(rows));
}

static void async_routes_that_can_be(void **state)
{
	static const struct row rows[] = {
		{ GOOD ASYNC, "" },
		{ GOOD ROUTE "    deliver: async\ndefaults: {target: mailer}\n", "" },
		{ GOOD "defaults: {deliver: async, target: mailer}\n", "" },
		{ UP "tenant: {from: header, name: T, anonymous: refuse}\n" MAILER ASYNC
		     "trusted_peers: ['::1']\n",
		  "" },
		{ UP "tenant: {from: header, name: T, anonymous: refuse}\n" MAILER ASYNC
		     "listen: unix:/s\n",
		  "" },
		/* A 5xx of the target is judged by the rules of jobs. */
		{ GOOD "routes: [{match: POST /payments, deliver: async, target: mailer}]\n",
		  "" },
		{ GOOD ASYNC "    concurrent: wait\n",
		  "f:9:5: warning: routes[].concurrent: has no effect where deliver is async: "
		  "the answer is 202 at once; Prefer: wait at its Location waits\n" },
		{ GOOD ASYNC "    server_error: replay\n    honours_keys: 48h\n",
		  "f:9:5: warning: routes[].server_error: has no effect where deliver is "
		  "async; the options of the target count\n"
		  "f:10:5: warning: routes[].honours_keys: has no effect where deliver is "
		  "async; the options of the target count\n" },
		{ GOOD ASYNC "    reconcile: {tries: 5}\n",
		  "f:7:5: warning: routes[].deliver: is async: the target's reconcile counts, "
		  "and this has no effect\n" },
		{ GOOD ASYNC "observe: true\n",
		  "f:7:5: warning: routes[].deliver: is async, but requests are only "
		  "observed: they go to the upstream\n" },
		{ GOOD ROUTE "    target: mailer\n",
		  "f:7:5: warning: routes[].target: has no effect unless deliver is async\n" },
		{ GOOD "defaults: {target: mailer}\n",
		  "f:5:12: warning: defaults.target: has no effect unless deliver is async\n" },
	};
	(void)state;
	taken(rows, COUNT(rows));
}

/* On line 3; the probe's options begin at column 32. */
#define PROBE(text) UP "defaults: {reconcile: {probe: {" text "}}}\n"
#define SETTLED(text) UP "defaults: {reconcile: {settle_after: 2m, probe: {" text "}}}\n"
/* Column 54. */
#define T_PROBE(text) UP "targets: {t: {url: 'https://t', reconcile: {probe: {" text "}}}}\n"
#define GET "get: '/{operation}', "
#define STILL_RUNS \
	"is missing: without it, a request that still runs could count as \"not applied\"; " \
	"give the longest time that the service can take, e.g. settle_after: 2m\n"
#define NOTHING \
	"is missing, and so are declined and not_applied: nothing could ever be settled; " \
	"say what the answers mean\n"

static void probes_that_cannot_be(void **state)
{
	static const struct row rows[] = {
		{ PROBE("applied: [200]"),
		  "f: defaults.reconcile.probe.get: is missing; say what to ask, e.g. get: "
		  "\"/payments?operation={operation}\"\n" },
		{ PROBE("url: 'https://p'"),
		  "f: defaults.reconcile.probe.get: is missing; say what to ask, e.g. get: "
		  "\"/payments?operation={operation}\"\n" },
		{ UP ROUTE "    reconcile: {probe: {declined: [410]}}\n",
		  "f:4:5: routes[].reconcile.probe.get: is missing; say what to ask, e.g. "
		  "get: \"/payments?operation={operation}\"\n" },
		{ PROBE(GET "not_yet: [202]"),
		  "f: defaults.reconcile.probe.applied: " NOTHING },
		{ PROBE(GET "not_applied: [404]"),
		  "f: defaults.reconcile.settle_after: " STILL_RUNS },
		{ T_PROBE(GET "not_applied: [404]"),
		  "f:3:11: targets.t.reconcile.settle_after: " STILL_RUNS },
		{ PROBE("get: /x, applied: [200]"),
		  "f:3:32: defaults.reconcile.probe.get: is the same question for every operation; put "
		  "{operation} or {key} into it\n" },
		{ T_PROBE("get: /x, applied: [200]"),
		  "f:3:53: targets.t.reconcile.probe.get: is the same question for every "
		  "operation; put {operation}, {provider_id} or {key} into it\n" },
		{ PROBE("get: '/{provider_id}', applied: [200]"),
		  "f:3:32: defaults.reconcile.probe.get: has {provider_id}, which only a job's "
		  "answer gives; use {operation}\n" },
		{ PROBE("get: '/{operation}/{key}', applied: [200], amount: /a"),
		  "f: defaults.reconcile.probe.amount_request: is missing; amount (in the probe's "
		  "answer) and amount_request (in the client's request) are compared\n" },
		{ PROBE(GET "applied: [200], amount: /a, amount_request: /b"),
		  "f:3:69: defaults.reconcile.probe.amount: has no effect where the probe does not "
		  "ask by the client's key; leave it out, or put {key} into get\n" },
		{ T_PROBE("get: '/{key}', applied: [200], amount: /a, amount_request: /b"),
		  "f:3:84: targets.t.reconcile.probe.amount: has no effect where the probe does not "
		  "ask by the client's key; leave it out\n" },
		/* One answer, one meaning. */
		{ SETTLED(GET "applied: [200, 404], not_applied: [404]"),
		  "f:3:92: defaults.reconcile.probe.not_applied: lists \"404\", which stands in "
		  "applied too; an answer has one meaning\n" },
		{ PROBE(GET "verdict: /s, applied: [done], not_yet: [done]"),
		  "f:3:83: defaults.reconcile.probe.not_yet: lists \"done\", which stands in "
		  "applied too; an answer has one meaning\n" },
		{ PROBE(GET "applied: [done]"),
		  "f: defaults.reconcile.probe.verdict: is missing; say where the words of the "
		  "lists stand, e.g. verdict: /status\n" },
		{ "upstream: unix:/u\nstore: sqlite:/s\ndefaults: {reconcile: {probe: {" GET
		  "applied: [200]}}}\n",
		  "f: defaults.reconcile.probe.url: is missing: a probe cannot ask an upstream "
		  "behind unix:; give its http:// or https:// URL\n" },
		{ T_PROBE(GET "applied: [200], credentials: {header: Host}"),
		  "f:3:104: targets.t.reconcile.probe.credentials.header: names a header that "
		  "means something else; e.g. Authorization\n" },
	};
	(void)state;
	refused(rows, COUNT(rows));
}

static void probes_that_can_be(void **state)
{
	static const struct row rows[] = {
		{ PROBE(GET "applied: [200]"), "" },
		{ SETTLED(GET "applied: [200], not_applied: [404]"), "" },
		{ T_PROBE("get: '/{provider_id}', applied: [200]"), "" },
		{ PROBE("get: '/{operation}/{key}', applied: [200], amount: /a, amount_request: /b"), "" },
		/* A job's key is its own. */
		{ T_PROBE("get: '/{key}', applied: [200]"), "" },
		{ PROBE("get: '/{key}', applied: [200]"),
		  "f:3:32: warning: defaults.reconcile.probe.get: names the client's key "
		  "alone, which counts only where it selects exactly one operation of the route; "
		  "{operation} always does\n" },
		{ PROBE(GET "verdict: /s, applied: [200]"),
		  "f:3:53: warning: defaults.reconcile.probe.verdict: has no effect: no list "
		  "has a word that could stand there\n" },
		/* What is said here may be meant for the questions of routes. */
		{ PROBE("url: 'https://p', applied: [200]") ROUTE
		  "    reconcile: {probe: {get: '/{operation}'}}\n",
		  "" },
		{ UP "defaults: {reconcile: {settle_after: 2m, backoff: 2h}}\n",
		  "f:3:42: warning: defaults.reconcile.backoff: is larger than "
		  "reconcile.backoff_max, which then counts\n" },
		{ PROBE(GET "url: 'http://p', applied: [200], credentials: {env: "
			    "HPX_TEST_SECRET}"),
		  "f:3:53: warning: defaults.reconcile.probe.url: is http://, so that the "
		  "credential travels in the clear; use https://\n" },
		{ PROBE(GET "url: 'http://localhost:1', applied: [200], credentials: {env: "
			    "HPX_TEST_SECRET}"),
		  "" },
		{ "upstream: unix:/u\nstore: sqlite:/s\ndefaults: {reconcile: {probe: {" GET
		  "url: 'http://p', applied: [200]}}}\n",
		  "" },
	};
	(void)state;
	taken(rows, COUNT(rows));
}

static void targets_that_cannot_be(void **state)
{
	static const struct row rows[] = {
		{ UP "targets: {t: {}}\n",
		  "f:3:11: targets.t.url: is missing; say where it is, e.g. url: "
		  "https://mail.example/api\n" },
		{ UP "targets: {T: {url: 'https://t'}}\n",
		  "f:3:11: targets: \"T\" is no name: 1 to 63 of a-z, 0-9, _ and -\n" },
		{ UP "targets: {a.b: {url: 'https://t'}}\n",
		  "f:3:11: targets: \"a.b\" is no name: 1 to 63 of a-z, 0-9, _ and -\n" },
		{ UP "targets: [t]\n",
		  "f:3:1: targets: must be a mapping of names, each with its own options, not "
		  "a list\n" },
		{ UP "targets: {t: x}\n",
		  "f:3:11: targets.t: must be a mapping of options, not a single value\n"
		  "f:3:11: targets.t.url: is missing; say where it is, e.g. url: "
		  "https://mail.example/api\n" },
		{ UP "targets: {t: {ulr: 'https://t', url: 'https://t'}}\n",
		  "f:3:15: targets.t.ulr: is no option; did you mean targets.t.url?\n" },
		{ UP "targets: {t: {url: 'https://t', key_header: Authorization}}\n",
		  "f:3:33: targets.t.key_header: names a header that means something else; "
		  "e.g. Idempotency-Key\n" },
		{ UP "targets: {t: {url: 'https://t', credentials: {header: "
		     "Content-Length}}}\n",
		  "f:3:47: targets.t.credentials.header: names a header that means something "
		  "else; e.g. Authorization\n" },
		{ IN_MEMORY "targets: {t: {url: 'https://t'}}\n",
		  "f:3:1: targets: " NEED_STORE },
		{ UP "targets: {t: {url: 'https://t'}}\ndefaults: {retention: 30d}\n",
		  "f: jobs.retention: is shorter than the retention of defaults: a job could "
		  "be added a second time after it was deleted; make it as long\n" },
		{ UP "targets: {t: {url: 'https://t'}}\njobs: {retention: 1h}\n"
		     "defaults: {retention: 1h}\nroutes: [{match: POST /a, retention: 2h}]\n",
		  "f:4:8: jobs.retention: is shorter than the retention of POST /a: a job "
		  "could be added a second time after it was deleted; make it as long\n" },
	};
	(void)state;
	refused(rows, COUNT(rows));
}

static void targets_that_can_be(void **state)
{
	static const struct row rows[] = {
		{ UP "targets: {a-1_b: {url: 'http://t:1/x%20y/'}, b: {url: 'https://[::1]'}}\n",
		  "" },
		{ UP "defaults: {retention: 30d}\n", "" },
		{ UP "targets: {t: {url: 'https://t', backoff: 2h}}\n",
		  "f:3:33: warning: targets.t.backoff: is larger than backoff_max, which then "
		  "counts\n" },
		{ UP "targets: {t: {url: 'https://t', timeout: 4s}}\n",
		  "f:3:11: warning: targets.t.connect_timeout: is larger than timeout: it is "
		  "never reached\n" },
		{ UP "targets: {t: {url: 'https://t', honours_keys: 30s}}\n",
		  "f:3:33: warning: targets.t.honours_keys: is not longer than timeout: a job "
		  "that timed out is never sent again\n" },
		{ UP "targets: {t: {url: 'http://t', credentials: {env: "
		     "HPX_TEST_SECRET}}}\n",
		  "f:3:15: warning: targets.t.url: is http://, so that the credential travels "
		  "in the clear; use https://\n" },
	};
	(void)state;
	taken(rows, COUNT(rows));
}

#define SECRET "secret_env: HPX_TEST_SECRET, "
#define WEBHOOK(text) UP "webhooks: {w: {" text "}}\n"
#define REST "operation: /o, verdict: /v, applied: [ok]"

#define KEYED "key: /k, verdict: /v, applied: [ok], scheme: stripe, " SECRET
#define PAY "routes: [{match: POST /pay}]\n"
#define TWO "targets: {bank: {url: 'https://b'}, mailer: {url: 'https://m'}}\n"

static void webhooks_that_cannot_be(void **state)
{
	static const struct row rows[] = {
		{ WEBHOOK(SECRET REST), "f:3:12: webhooks.w.scheme: is missing; say how it is "
					"signed: stripe, standard-webhooks or hmac-body\n" },
		{ WEBHOOK("scheme: stripe, " REST),
		  "f:3:12: webhooks.w.secret_file: is missing; name a file with the secret, or "
		  "a variable by secret_env: without it anybody could send it\n" },
		{ WEBHOOK("scheme: stripe, " SECRET "verdict: /v, applied: [ok]"),
		  "f:3:12: webhooks.w.operation: is missing, and so are provider_id and key: nothing "
		  "says which operation it is about; give one, e.g. operation: "
		  "/data/metadata/operation\n" },
		{ WEBHOOK("scheme: stripe, " SECRET "operation: /o, applied: [ok]"),
		  "f:3:12: webhooks.w.verdict: is missing; say where the words of the lists "
		  "stand, e.g. verdict: /status\n" },
		{ WEBHOOK("scheme: stripe, " SECRET "operation: /o, verdict: /v, not_yet: [x]"),
		  "f:3:12: webhooks.w.applied: " NOTHING },
		{ WEBHOOK("scheme: stripe, " SECRET REST ", not_applied: [gone]"),
		  "f:3:12: webhooks.w.settle_after: " STILL_RUNS },
		{ WEBHOOK("scheme: stripe, " SECRET REST ", declined: [no, ok]"),
		  "f:3:104: webhooks.w.declined: lists \"ok\", which stands in applied too; an "
		  "answer has one meaning\n" },
		{ WEBHOOK("scheme: hmac-body, " SECRET REST),
		  "f:3:12: webhooks.w.header: is missing; say which header carries the "
		  "signature, e.g. header: X-Signature\n" },
		{ WEBHOOK("scheme: strip, " SECRET REST),
		  "f:3:24: webhooks.w.scheme: \"strip\" is not one of stripe, "
		  "standard-webhooks, hmac-body; did you mean \"stripe\"?\n" },
		{ WEBHOOK("scheme: stripe, " SECRET REST) "own_paths: off\n",
		  "f:3:1: webhooks: come in under /.hapax/, which own_paths: false hides; say "
		  "own_paths: true\n" },
		{ IN_MEMORY "webhooks: {w: {scheme: stripe, " SECRET REST "}}\n",
		  "f:3:1: webhooks: " NEED_STORE },
		{ WEBHOOK("target: bonk, scheme: stripe, " SECRET REST) TWO,
		  "f:3:16: webhooks.w.target: \"bonk\" is none of targets; did you mean \"bank\"?\n" },
		{ WEBHOOK("scheme: stripe, " SECRET REST ", provider_id: /i") TWO,
		  "f:3:12: webhooks.w.target: is missing: two services may use the same id; "
		  "name the target that sends this webhook\n" },
		{ WEBHOOK(KEYED "body: 1KiB") PAY,
		  "f:3:12: webhooks.w.route: is missing: a key alone may be that of another route; "
		  "say which it is, e.g. route: POST /payments\n" },
		{ WEBHOOK(KEYED "route: POST /payment") PAY,
		  "f:3:98: webhooks.w.route: \"POST /payment\" is none of routes; write it as it "
		  "stands there\n" },
		{ WEBHOOK("target: bank, " KEYED "route: POST /pay") TWO PAY,
		  "f:3:16: webhooks.w.target: does not go with key: a target knows its job's key, "
		  "and not the client's; make two webhooks\n" },
		{ WEBHOOK(KEYED "route: POST /pay, amount: /a") PAY,
		  "f:3:12: webhooks.w.amount_request: is missing; amount (in the message) and "
		  "amount_request (in the client's request) are compared\n" },
		{ WEBHOOK("scheme: stripe, " SECRET REST ", route: POST /pay") PAY,
		  "f:3:104: webhooks.w.route: has no effect without key; say where the message has "
		  "the client's key, e.g. key: /data/metadata/idempotency_key\n" },
		{ UP "webhooks: {w: {" KEYED "route: POST /pay, amount: /a, amount_request: /a}, v: {" KEYED
		     "route: POST /pay, amount: /a, amount_request: /b}}\n" PAY,
		  "f:3:265: webhooks.v.amount_request: differs from that of another webhook, "
		  "or of the probe, of the same route; a request has one amount\n" },
		{ UP "webhooks: {'': {scheme: stripe, " SECRET REST "}}\n",
		  "f:3:12: webhooks: \"\" is no name: 1 to 63 of a-z, 0-9, _ and -\n" },
	};
	(void)state;
	refused(rows, COUNT(rows));
}

static void webhooks_that_can_be(void **state)
{
	static const struct row rows[] = {
		{ WEBHOOK("scheme: stripe, " SECRET REST), "" },
		{ WEBHOOK(KEYED "route: POST /pay") PAY, "" },
		{ WEBHOOK(KEYED "route: POST /pay, amount: /a, amount_request: /b") PAY, "" },
		{ WEBHOOK("scheme: stripe, " SECRET "provider_id: /i, verdict: /v, declined: "
			  "[no], not_applied: [gone], settle_after: 5m"),
		  "" },
		{ WEBHOOK("scheme: hmac-body, header: X-S, " SECRET REST), "" },
		{ WEBHOOK("scheme: stripe, " SECRET REST) TWO, "" },
		{ WEBHOOK("target: bank, scheme: stripe, " SECRET REST ", provider_id: /i") TWO, "" },
		{ WEBHOOK("scheme: stripe, header: X-S, prefix: v=, " SECRET REST),
		  "f:3:32: warning: webhooks.w.header: has no effect unless scheme is "
		  "hmac-body\n"
		  "f:3:45: warning: webhooks.w.prefix: has no effect unless scheme is "
		  "hmac-body\n" },
		{ WEBHOOK("scheme: hmac-body, header: X-S, tolerance: 1m, " SECRET REST),
		  "f:3:48: warning: webhooks.w.tolerance: has no effect where scheme is "
		  "hmac-body, which signs no time\n" },
		{ WEBHOOK("scheme: hmac-body, header: X-S, " SECRET REST ", not_applied: [no], "
			  "settle_after: 5m"),
		  "f:3:120: warning: webhooks.w.not_applied: has no effect where scheme is "
		  "hmac-body: it signs no time, so the message may be old; add a probe to find "
		  "out what was not applied\n" },
	};
	(void)state;
	taken(rows, COUNT(rows));
}

/* The URL is on line 3 from column 20 on; it is never shown. */
static void urls(void **state)
{
	static const struct {
		const char *url;
		const char *problem; /* NULL: it is good */
	} rows[] = {
		{ "https://a", NULL },
		{ "HTTP://a.example:8080/v1/%7Eb", NULL },
		{ "http://[::1]:8080", NULL },
		{ "ftp://a", "begins with neither https:// nor http://" },
		{ "a.example", "begins with neither https:// nor http://" },
		{ "https://u:p@a", "has a credential in it; give that by a file or by the "
				   "environment" },
		{ "https://a/?t=1", "has a query or a fragment; leave it out" },
		{ "https://a?t=1", "has a query or a fragment; leave it out" },
		{ "https://a/#b", "has a query or a fragment; leave it out" },
		{ "https://a/b c", "has a path with bytes that must be written as %XX, or is "
				   "too long" },
		{ "https://a/{b}", "has a path with bytes that must be written as %XX, or is "
				   "too long" },
		{ "https://", "the host is missing" },
		{ "https://:443", "the host is missing" },
		{ "https://a b", "the host is not a name or an address (an IPv6 address stands "
				 "in brackets)" },
		{ "https://a:0", "nobody listens on port 0" },
		{ "https://a:65536", "the port is not a number up to 65535" },
		{ "https://[a]", "what stands in brackets is not an IPv6 address" },
	};
	char text[300];
	char report[300];
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		bool bad = rows[i].problem != NULL;
		snprintf(text, sizeof(text), UP "targets: {t: {url: '%s'}}\n", rows[i].url);
		snprintf(report, sizeof(report),
			 "f:3:20: targets.t.url: %s; write e.g. https://mail.example/api\n",
			 bad ? rows[i].problem : "");
		test_report(text, NULL, bad ? HPX_INVALID : HPX_OK, bad ? report : "");
	}
}

static void values(void **state)
{
#define BRACES \
	"has braces that are none of {operation}, {provider_id} and {key}; others are %7B " \
	"and %7D\n"
#define NO_PATH \
	"is no path and query: it begins with /, and spaces and the like are %XX, e.g. " \
	"/payments?operation={operation}\n"
	static const struct row rows[] = {
		{ T_PROBE("applied: [200], get: '/{id}'"),
		  "f:3:74: targets.t.reconcile.probe.get: \"/{id}\" " BRACES },
		{ T_PROBE("applied: [200], get: '/{key'"),
		  "f:3:74: targets.t.reconcile.probe.get: \"/{key\" " BRACES },
		{ T_PROBE("applied: [200], get: '/{key}}'"),
		  "f:3:74: targets.t.reconcile.probe.get: \"/{key}}\" " BRACES },
		{ T_PROBE("applied: [200], get: '{key}'"),
		  "f:3:74: targets.t.reconcile.probe.get: \"{key}\" " NO_PATH },
		{ T_PROBE("applied: [200], get: '/a b{key}'"),
		  "f:3:74: targets.t.reconcile.probe.get: \"/a b{key}\" " NO_PATH },
		{ T_PROBE("applied: [200], get: 'https://x/{key}'"),
		  "f:3:74: targets.t.reconcile.probe.get: \"https://x/{key}\" " NO_PATH },
		{ T_PROBE("get: '/{key}', applied: [100, 200]"),
		  "f:3:77: targets.t.reconcile.probe.applied: \"100\" is no status of an "
		  "answer: 200 to 599\n" },
		{ T_PROBE("get: '/{key}', applied: [200, 200]"),
		  "f:3:77: targets.t.reconcile.probe.applied: names \"200\" twice\n" },
		{ T_PROBE("get: '/{key}', applied: 200"),
		  "f:3:77: targets.t.reconcile.probe.applied: must be a list, not a single "
		  "value\n" },
		{ UP "targets: {t: {url: 'https://t', provider_id: id}}\n",
		  "f:3:46: targets.t.provider_id: \"id\" is no JSON pointer to a member: write "
		  "e.g. /id, with ~1 for / and ~0 for ~ in a name\n" },
		{ UP "targets: {t: {url: 'https://t', credentials: {file: ''}}}\n",
		  "f:3:53: targets.t.credentials.file: must have 1 to 1024 characters\n" },
		{ UP "targets: {t: {url: 'https://t', concurrency: 0}}\n",
		  "f:3:46: targets.t.concurrency: \"0\" is too small: at least 1\n" },
		{ UP "defaults: {reconcile: {tries: 1}}\n",
		  "f:3:31: defaults.reconcile.tries: \"1\" is too small: at least 2\n" },
		{ UP "defaults: {reconcile: {prob: {get: /x}}}\n",
		  "f:3:24: defaults.reconcile.prob: is no option; did you mean "
		  "defaults.reconcile.probe?\n" },
		{ UP "targets: {t: {url: 'https://t', reconcile: 5}}\n",
		  "f:3:33: targets.t.reconcile: must be a mapping of options, not a single "
		  "value\n" },
	};
	(void)state;
	refused(rows, COUNT(rows));
}

static void subrequests(void **state)
{
	static const struct row bad[] = {
		{ UP "tenant: {from: subrequest}\n",
		  "f:3:10: tenant.from: is subrequest, but no service is named; add e.g. "
		  "tenant.url: http://127.0.0.1:9001/verify\n"
		  "f:3:10: tenant.from: is subrequest, but nothing says which header of its "
		  "answer names the tenant; add e.g. tenant.header: X-Tenant\n" },
		{ UP "tenant: {from: subrequest, url: 'https://a?x', header: T}\n",
		  "f:3:33: tenant.url: has a query or a fragment; leave it out; write e.g. "
		  "http://127.0.0.1:9001/verify\n" },
	};
	static const struct row good[] = {
		{ UP VERIFIED, "" },
		{ UP "tenant: {from: subrequest, url: 'http://a', header: T, anonymous: allow}\n",
		  "f:3:56: warning: tenant.anonymous: has no effect where tenant.from is "
		  "subrequest: a caller that the service does not name is refused\n" },
		{ UP "tenant: {cache: 1m}\n",
		  "f:3:10: warning: tenant.cache: has no effect unless tenant.from is "
		  "subrequest\n" },
	};
	(void)state;
	refused(bad, COUNT(bad));
	taken(good, COUNT(good));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_that_cannot_be),
		cmocka_unit_test(tokens_that_are_taken),
		cmocka_unit_test(async_routes_that_cannot_be),
		cmocka_unit_test(async_routes_that_can_be),
		cmocka_unit_test(probes_that_cannot_be),
		cmocka_unit_test(probes_that_can_be),
		cmocka_unit_test(targets_that_cannot_be),
		cmocka_unit_test(targets_that_can_be),
		cmocka_unit_test(webhooks_that_cannot_be),
		cmocka_unit_test(webhooks_that_can_be),
		cmocka_unit_test(urls),
		cmocka_unit_test(values),
		cmocka_unit_test(subrequests),
	};
	return cmocka_run_group_tests_name("rule_service", tests, set_secret, NULL);
}
