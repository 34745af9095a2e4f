/* The options of routes, and of `defaults` for where no route matches or says
 * otherwise. */
#include "config/option_reconcile.h"

static const struct hpx_option rows[] = {
	{ "match", HPX_OPTION_PATTERN, .place = HPX_PLACE_ROUTE, RELOADABLE,
	  IN(hpx_route, pattern), .example = "POST /payments/{id}",
	  .text = "The requests of this route: a method or *, then a path, which may have a "
		  "host before it. {x} is one segment, a final * the rest. The most specific "
		  "route wins, wherever it stands. Must be given." },
	{ "key", HPX_OPTION_CHOICE, POLICY(policy.key), .default_value = "required",
	  .stripe_default = "optional", CHOICES("required", "optional", "ignore"),
	  .text = "Whether POST, PATCH and every other method that is neither safe nor idempotent "
		  "needs a key: required refuses a request without one; optional lets it pass "
		  "unguarded; ignore guards nothing." },
	{ "scope", HPX_OPTION_CHOICE, .place = HPX_PLACE_POLICY, IN(hpx_route, policy.scope),
	  .default_value = "path", .stripe_default = "tenant", CHOICES("path", "route", "tenant"),
	  .text = "What a key is unique within, besides the tenant: path is method and path; "
		  "route is the route's pattern; tenant is everything that the tenant does." },
	{ "retention", HPX_OPTION_DURATION, POLICY(policy.retention_ms), .default_value = "24h",
	  RANGE(SECOND, 3650 * DAY),
	  .text = "How long an answer is kept. After that, the same key is executed again." },
	{ "lease", HPX_OPTION_DURATION, POLICY(policy.lease_ms), .default_value = "30s",
	  RANGE(SECOND, HOUR),
	  .text = "How long an attempt is believed to be alive without a sign. It is renewed "
		  "while the upstream's connection lives, so a slow request is no lost one." },
	{ "server_error", HPX_OPTION_CHOICE, POLICY(policy.server_error), .default_value = "retry",
	  .stripe_default = "replay", CHOICES("retry", "replay", "unknown"),
	  .text = "What a 5xx of the upstream means (502, 504, and 503 with Retry-After have "
		  "their own rules): retry says that it rolled back and may run again; replay "
		  "says that it is the final answer; unknown says that nobody knows." },
	{ "on_lost", HPX_OPTION_CHOICE, POLICY(policy.on_lost), .default_value = "unknown",
	  CHOICES("unknown", "resume"),
	  .text = "What it means when an attempt is lost (its lease, or its answer): unknown "
		  "says that it may have happened; resume lets a retry run it again, after its "
		  "last recovery point, which needs fenced or honours_keys." },
	{ "fenced", HPX_OPTION_BOOL, POLICY(policy.fenced), .default_value = "false",
	  .text = "Your word that the service takes nothing more from an attempt once a later "
		  "one has begun (by Hapax-Lease and the SQL functions, or by Hapax-Attempt)." },
	{ "honours_keys", HPX_OPTION_DURATION, POLICY(policy.honours_keys_ms), .default_value = "0s",
	  RANGE(0, 3650 * DAY), .example = "48h",
	  .text = "Your word that the service itself executes a key once, and for how long it "
		  "remembers; 0 is not at all. At least as long as retention." },
	{ "completes", HPX_OPTION_CHOICE, POLICY(policy.completes), .default_value = "upstream",
	  CHOICES("upstream", "application"),
	  .text = "Whose word ends an attempt: upstream is the service's HTTP answer; "
		  "application is only what the service commits by hapax.complete (libhapax: "
		  "hapax_complete) in its own transaction, so that an attempt that ends without it "
		  "is proved not executed. Needs a service that works in the store's database." },
	{ "concurrent", HPX_OPTION_CHOICE, POLICY(policy.concurrent), .default_value = "conflict",
	  CHOICES("conflict", "wait", "accepted"),
	  .text = "What a retry gets while the first request is under way: conflict is 409; "
		  "wait is the answer when it comes; accepted is 202." },
	{ "wait", HPX_OPTION_DURATION, POLICY(policy.wait_ms), .default_value = "10s",
	  RANGE(10, 10 * MINUTE), .text = "How long concurrent: wait waits before its 409." },
	{ "store", HPX_OPTION_CHOICE, POLICY(policy.keep), .default_value = "answer",
	  CHOICES("answer", "status"),
	  .text = "What is kept of an answer: answer is all of it; status is that it happened, "
		  "with status and Location, for answers that hold secrets." },
	{ "reuse", HPX_OPTION_CHOICE, POLICY(policy.reuse), .default_value = "allow",
	  CHOICES("allow", "never"),
	  .text = "Whether a guarded request may use a kept connection to the upstream: allow "
		  "does, while the upstream keeps to one answer per request; never opens one "
		  "for each request and closes it behind the answer, so that not even an "
		  "upstream that answers twice can give a caller somebody else's answer." },
	{ "observe", HPX_OPTION_BOOL, POLICY(observe), .default_value = "false",
	  .text = "Only watches, on this route." },
	{ "fingerprint.ignore", HPX_OPTION_POINTERS, POLICY(recipe.ignore),
	  OTHER(hpx_route, recipe.ignore_count), .default_value = "",
	  .example = "[/metadata/sent_at]",
	  .text = "Members of a JSON body that may differ between a request and its retry, as "
		  "JSON pointers (RFC 6901). A route's list replaces that of defaults." },
	{ "fingerprint.headers", HPX_OPTION_HEADERS, POLICY(recipe.headers),
	  OTHER(hpx_route, recipe.header_count), .default_value = "", .example = "[X-Currency]",
	  .text = "Headers that must be the same in a retry. A route's list replaces that of "
		  "defaults." },

	/* Jobs, and what nobody knows. */
	{ "deliver", HPX_OPTION_CHOICE, FIXED_POLICY(policy.deliver), .default_value = "now",
	  CHOICES("now", "async"),
	  .text = "How a request gets to be executed: now sends it to the upstream, and its "
		  "answer comes back; async keeps it as a job for target and answers 202 at "
		  "once. The job's answer becomes the operation's. Async needs a tenant that "
		  "was verified (tenant.from subrequest, or header with tenant.anonymous: refuse)." },
	{ "target", HPX_OPTION_NAME, FIXED_POLICY(target_name), .example = "mailer",
	  .text = "The target (of targets) that deliver: async sends to. The request keeps its "
		  "path and query, behind the target's URL." },
	RECONCILE_ROWS(FIXED_POLICY, "the upstream.",
		       "{operation} is replaced by the operation's reference (Hapax-Operation), "
		       "{key} by the client's key, which counts only where it selects exactly "
		       "one operation."),
};

const struct hpx_option_part hpx_option_route = HPX_OPTION_PART(rows);
