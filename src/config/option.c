/* The rows of the table of options, in the order of the reference and the
 * sample file. Options of one group stand together. */
#include "config/option.h"

#include <limits.h>

#include "config/nearest.h"
#include "gateway/settings.h"
#include "http/message.h"

#define SECOND 1000ull
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* Where a value goes. */
#define IN(type, member)                                                      \
	.offset = offsetof(struct type, member), .width = sizeof(((struct type *)0)->member)
#define GLOBAL(member) .place = HPX_PLACE_GLOBAL, IN(hpx_settings, member)
#define POLICY(member) .place = HPX_PLACE_POLICY, .reloadable = true, IN(hpx_route, member)
#define OTHER(type, member) .other = offsetof(struct type, member)
#define RANGE(least, most) .min = least, .max = most
#define CHOICES(...) .choices = (const char *const[]){ __VA_ARGS__, NULL }
#define RELOADABLE .reloadable = true

static const struct hpx_option options[] = {
	{ "config", HPX_OPTION_TEXT, HPX_PLACE_COMMAND, .flag = "config", .flag_value = "FILE",
	  .text = "The configuration file. Flags win over what it says." },

	/* Where it listens, what it stands before, where it keeps records. */
	{ "listen", HPX_OPTION_ADDRESS, GLOBAL(listen), .standard = "127.0.0.1:8080",
	  .example = "unix:/run/hapax/hapax.sock", .flag = "listen", .flag_value = "ADDRESS",
	  .text = "Where clients connect: host:port, or unix:PATH." },
	{ "admin", HPX_OPTION_ADDRESS, GLOBAL(admin), OTHER(hpx_settings, has_admin),
	  .off = true, .standard = "127.0.0.1:8081", .flag = "admin", .flag_value = "ADDRESS",
	  .text = "Where /healthz, /readyz and /metrics are served; off for nowhere. Keep it "
		  "away from clients." },
	{ "upstream", HPX_OPTION_UPSTREAM, GLOBAL(upstream), .example = "http://127.0.0.1:9000",
	  .flag = "upstream", .flag_value = "URL",
	  .text = "The API that hapax stands in front of: http://host:port, or unix:PATH. "
		  "Must be given." },
	{ "upstream_name", HPX_OPTION_TEXT, GLOBAL(upstream_name), .example = "payments",
	  .text = "The upstream's name within every scope. Left out, it is the upstream's URL; "
		  "name it before the URL changes, because keys of another name are other "
		  "keys." },
	{ "store", HPX_OPTION_STORE, GLOBAL(store), .standard = "sqlite:hapax.db",
	  .example = "sqlite:/var/lib/hapax/hapax.db", .flag = "store", .flag_value = "URL",
	  .text = "Where operations are kept: sqlite:PATH, one gateway's own file (a relative "
		  "path counts from the directory that hapax is started in), or "
		  "postgres://user@host/database, one database that any number of gateways "
		  "share; a password is better kept in PGPASSFILE. (memory: keeps them until hapax stops, "
		  "for trying things out.)" },
	{ "store_create", HPX_OPTION_CHOICE, GLOBAL(store_create), .standard = "always",
	  CHOICES("never", "always"),
	  .text = "What happens where the store's file is absent: always makes a new one; "
		  "never refuses to start, so that a lost disk or a mistyped path does not "
		  "look like an empty store and run old keys again. Services say never once "
		  "the file is there." },
	{ "loops", HPX_OPTION_COUNT, GLOBAL(loops), .standard = "0", RANGE(0, 256),
	  .text = "Event loops; 0 is one per core." },
	{ "log_level", HPX_OPTION_CHOICE, GLOBAL(log_level), .standard = "info",
	  CHOICES("debug", "info", "warn", "error"),
	  .text = "The least important line that is still logged." },

	/* What the protocol looks like. */
	{ "profile", HPX_OPTION_CHOICE, GLOBAL(profile), .standard = "ietf",
	  CHOICES("ietf", "stripe"),
	  .text = "A whole set of defaults: ietf follows the IETF draft; stripe behaves as "
		  "Stripe's API does. Options that are given win over it." },
	{ "key_header", HPX_OPTION_TOKEN, GLOBAL(key_header), RELOADABLE,
	  .standard = "Idempotency-Key", .text = "The header that carries the key." },
	{ "key_syntax", HPX_OPTION_CHOICE, GLOBAL(key_syntax), RELOADABLE, .standard = "ietf",
	  .stripe = "bare", CHOICES("ietf", "strict", "bare"),
	  .text = "How keys are written: ietf takes \"k\" and k as one key; strict takes the "
		  "quoted form only; bare takes the bytes as they are." },
	{ "mismatch_status", HPX_OPTION_COUNT, GLOBAL(mismatch_status), RELOADABLE,
	  .standard = "422", .stripe = "400", RANGE(400, 499),
	  .text = "The status for a key that was used with another request." },
	{ "errors", HPX_OPTION_CHOICE, GLOBAL(stripe_errors), RELOADABLE, .standard = "problem",
	  .stripe = "stripe", CHOICES("problem", "stripe"),
	  .text = "The shape of hapax's own answers: problem is application/problem+json (RFC "
		  "9457), stripe is {\"error\": ...} as Stripe has it." },
	{ "own_paths", HPX_OPTION_BOOL, GLOBAL(own_paths), RELOADABLE, .standard = "true",
	  .text = "Whether /.hapax/ (operations, policy, problems) is served. It is never "
		  "forwarded." },
	{ "observe", HPX_OPTION_BOOL, GLOBAL(observe), RELOADABLE, .standard = "false",
	  .flag = "observe",
	  .text = "Only watches: refuses, replays and alters nothing, and counts what would "
		  "have happened. True here holds for every route." },

	/* Who is calling. */
	{ "tenant.from", HPX_OPTION_CHOICE, GLOBAL(tenant_from), .standard = "authorization",
	  CHOICES("authorization", "header", "cookie", "anonymous"),
	  .text = "What names the tenant: authorization is Authorization (Bearer or Basic) or "
		  "else X-Api-Key; header is the header tenant.name, which must come from a "
		  "trusted peer or over a unix socket; cookie is the cookie tenant.name; "
		  "anonymous is one tenant for all." },
	{ "tenant.name", HPX_OPTION_TOKEN, GLOBAL(tenant_name), .example = "X-Tenant",
	  .text = "The name of that header or cookie." },
	{ "tenant.required", HPX_OPTION_BOOL, GLOBAL(tenant_required), .standard = "false",
	  .text = "Whether a request that names no tenant is refused with 401; otherwise it "
		  "is the anonymous tenant's." },
	{ "trusted_peers", HPX_OPTION_NETWORKS, GLOBAL(trusted_peers), RELOADABLE,
	  OTHER(hpx_settings, trusted_peer_count), .standard = "",
	  .example = "[10.0.0.0/8, \"::1\"]",
	  .text = "Addresses and networks whose X-Forwarded-* and tenant header are believed: "
		  "your own proxies, nobody else." },

	/* How much. */
	{ "limits.head", HPX_OPTION_SIZE, GLOBAL(head_bytes_max), RELOADABLE,
	  .standard = "32KiB", RANGE(KIB, MIB),
	  .text = "The head of a message: its first line and all header fields." },
	{ "limits.fields", HPX_OPTION_COUNT, GLOBAL(fields_max), RELOADABLE, .standard = "100",
	  RANGE(10, HPX_HTTP_FIELDS_MAX), .text = "Header fields in one message." },
	{ "limits.request_body", HPX_OPTION_SIZE, GLOBAL(request_body_bytes_max), RELOADABLE,
	  .standard = "1MiB", RANGE(1, GIB),
	  .text = "The body of a guarded request; a larger one is refused with 413." },
	{ "limits.response_body", HPX_OPTION_SIZE, GLOBAL(response_body_bytes_max), RELOADABLE,
	  .standard = "1MiB", RANGE(1, GIB),
	  .text = "The body of an answer that is stored; a larger one is streamed, and a retry "
		  "learns that it happened, not what was said." },
	{ "limits.bodies", HPX_OPTION_SIZE, GLOBAL(bodies_bytes_max), .standard = "64MiB",
	  RANGE(64 * KIB, 1024 * GIB),
	  .text = "All bodies of guarded requests and answers in memory together; a "
		  "quarter of it is left to the answers, and past the rest new requests are "
		  "refused with 503." },
	{ "limits.connections", HPX_OPTION_COUNT, GLOBAL(connections_max), .standard = "10000",
	  RANGE(1, 1000000), .text = "Client connections." },
	{ "limits.upstream_connections", HPX_OPTION_COUNT, GLOBAL(upstream_connections_max),
	  RELOADABLE, .standard = "256", RANGE(1, 65535),
	  .text = "Connections to the upstream, per event loop." },
	{ "limits.waiters", HPX_OPTION_COUNT, GLOBAL(waiters_max), .standard = "1000",
	  RANGE(0, 1000000),
	  .text = "Requests that wait for somebody else's answer (concurrent: wait); the next "
		  "one gets 503 at once." },
	{ "limits.waiters_per_operation", HPX_OPTION_COUNT, GLOBAL(waiters_per_operation_max),
	  .standard = "100", RANGE(0, 1000000), .text = "The same, for one operation." },
	{ "limits.free_space", HPX_OPTION_SIZE, GLOBAL(free_bytes_min), .standard = "64MiB",
	  RANGE(0, 1024 * GIB),
	  .text = "What the store's disk must have free: below it, new operations are refused "
		  "with 503, so that those under way can still be written." },

	/* How long. */
	{ "timeouts.head", HPX_OPTION_DURATION, GLOBAL(head_timeout_ms), RELOADABLE,
	  .standard = "10s", RANGE(10, HOUR),
	  .text = "For a request's head, from its first byte." },
	{ "timeouts.body", HPX_OPTION_DURATION, GLOBAL(body_timeout_ms), RELOADABLE,
	  .standard = "30s", RANGE(10, HOUR), .text = "Between two bytes of a request's body." },
	{ "timeouts.keep_alive", HPX_OPTION_DURATION, GLOBAL(keep_alive_ms), RELOADABLE,
	  .standard = "75s", RANGE(0, DAY),
	  .text = "How long a client's idle connection is kept." },
	{ "timeouts.connect", HPX_OPTION_DURATION, GLOBAL(connect_timeout_ms), RELOADABLE,
	  .standard = "3s", RANGE(10, 10 * MINUTE),
	  .text = "For a connection to the upstream. Nothing was sent yet: a retry is safe." },
	{ "timeouts.send", HPX_OPTION_DURATION, GLOBAL(send_timeout_ms), RELOADABLE,
	  .standard = "30s", RANGE(10, HOUR),
	  .text = "While the upstream takes nothing of a request, or a client nothing of its "
		  "answer." },
	{ "timeouts.first_byte", HPX_OPTION_DURATION, GLOBAL(first_byte_timeout_ms), RELOADABLE,
	  .standard = "60s", RANGE(10, DAY),
	  .text = "From the request's last byte to the answer's first. Past it, the outcome is "
		  "unknown." },
	{ "timeouts.idle", HPX_OPTION_DURATION, GLOBAL(idle_timeout_ms), RELOADABLE,
	  .standard = "60s", RANGE(0, DAY),
	  .text = "Between two bytes of an answer; 0 is without end." },
	{ "timeouts.whole", HPX_OPTION_DURATION, GLOBAL(whole_timeout_ms), RELOADABLE,
	  .standard = "5m", RANGE(10, DAY),
	  .text = "For a whole guarded exchange with the upstream." },
	{ "timeouts.reuse_idle", HPX_OPTION_DURATION, GLOBAL(reuse_idle_ms), RELOADABLE,
	  .standard = "1s", RANGE(0, HOUR),
	  .text = "How long a connection to the upstream may have been idle when a guarded "
		  "request uses it again. Longer risks that the upstream just closed it, and "
		  "then nobody knows the outcome." },
	{ "timeouts.store", HPX_OPTION_DURATION, GLOBAL(store_timeout_ms), RELOADABLE,
	  .standard = "5s", RANGE(10, 10 * MINUTE),
	  .text = "How long a client waits for the store before it gets 503." },
	{ "timeouts.drain", HPX_OPTION_DURATION, GLOBAL(drain_ms), RELOADABLE, .standard = "25s",
	  RANGE(0, HOUR),
	  .text = "How long requests under way may take after SIGTERM; what is left then is "
		  "written as unknown." },

	/* Duties in the background. */
	{ "events.retention", HPX_OPTION_DURATION, GLOBAL(event_retention_ms), .standard = "30d",
	  RANGE(SECOND, 3650 * DAY),
	  .text = "How long the history of operations is kept, for people." },
	{ "sweep.every", HPX_OPTION_DURATION, GLOBAL(sweep_every_ms), RELOADABLE,
	  .standard = "1s", RANGE(10, HOUR), .text = "How often lost leases are looked for." },
	{ "reap.every", HPX_OPTION_DURATION, GLOBAL(reap_every_ms), RELOADABLE, .standard = "1s",
	  RANGE(10, DAY), .text = "How often expired records are deleted." },
	{ "reap.batch", HPX_OPTION_COUNT, GLOBAL(reap_batch), RELOADABLE, .standard = "200",
	  RANGE(1, 10000), .text = "How many of them at once." },

	/* Routes, and `defaults` for where no route matches or says otherwise. */
	{ "match", HPX_OPTION_PATTERN, .place = HPX_PLACE_ROUTE, RELOADABLE,
	  IN(hpx_route, pattern), .example = "POST /payments/{id}",
	  .text = "The requests of this route: a method or *, then a path, which may have a "
		  "host before it. {x} is one segment, a final * the rest. The most specific "
		  "route wins, wherever it stands. Must be given." },
	{ "key", HPX_OPTION_CHOICE, POLICY(policy.key), .standard = "required",
	  .stripe = "optional", CHOICES("required", "optional", "ignore"),
	  .text = "Whether POST and PATCH need a key: required refuses a request without one; "
		  "optional lets it pass unguarded; ignore guards nothing." },
	{ "scope", HPX_OPTION_CHOICE, .place = HPX_PLACE_POLICY, IN(hpx_route, policy.scope),
	  .standard = "path", .stripe = "tenant", CHOICES("path", "route", "tenant"),
	  .text = "What a key is unique within, besides the tenant: path is method and path; "
		  "route is the route's pattern; tenant is everything that the tenant does." },
	{ "retention", HPX_OPTION_DURATION, POLICY(policy.retention_ms), .standard = "24h",
	  RANGE(SECOND, 3650 * DAY),
	  .text = "How long an answer is kept. After that, the same key is executed again." },
	{ "lease", HPX_OPTION_DURATION, POLICY(policy.lease_ms), .standard = "30s",
	  RANGE(SECOND, HOUR),
	  .text = "How long an attempt is believed to be alive without a sign. It is renewed "
		  "while the upstream's connection lives, so a slow request is no lost one." },
	{ "server_error", HPX_OPTION_CHOICE, POLICY(policy.server_error), .standard = "retry",
	  .stripe = "replay", CHOICES("retry", "replay", "unknown"),
	  .text = "What a 5xx of the upstream means (502, 504, and 503 with Retry-After have "
		  "their own rules): retry says that it rolled back and may run again; replay "
		  "says that it is the final answer; unknown says that nobody knows." },
	{ "on_lost", HPX_OPTION_CHOICE, POLICY(policy.on_lost), .standard = "unknown",
	  CHOICES("unknown", "resume"),
	  .text = "What it means when an attempt is lost (its lease, or its answer): unknown "
		  "says that it may have happened; resume lets a retry run it again, after its "
		  "last recovery point, which needs fenced or honours_keys." },
	{ "fenced", HPX_OPTION_BOOL, POLICY(policy.fenced), .standard = "false",
	  .text = "Your word that the service takes nothing more from an attempt once a later "
		  "one has begun (by Hapax-Lease and the SQL functions, or by Hapax-Attempt)." },
	{ "honours_keys", HPX_OPTION_DURATION, POLICY(policy.honours_keys_ms), .standard = "0s",
	  RANGE(0, 3650 * DAY), .example = "48h",
	  .text = "Your word that the service itself executes a key once, and for how long it "
		  "remembers; 0 is not at all. At least as long as retention." },
	{ "completes", HPX_OPTION_CHOICE, POLICY(policy.completes), .standard = "upstream",
	  CHOICES("upstream", "application"),
	  .text = "Whose word ends an attempt: upstream is the service's HTTP answer; "
		  "application is only what the service commits by hapax.complete (libhapax: "
		  "hapax_complete) in its own transaction, so that an attempt that ends without it "
		  "is proved not executed. Needs a service that works in the store's database." },
	{ "concurrent", HPX_OPTION_CHOICE, POLICY(policy.concurrent), .standard = "conflict",
	  CHOICES("conflict", "wait", "accepted"),
	  .text = "What a retry gets while the first request is under way: conflict is 409; "
		  "wait is the answer when it comes; accepted is 202." },
	{ "wait", HPX_OPTION_DURATION, POLICY(policy.wait_ms), .standard = "10s",
	  RANGE(10, 10 * MINUTE), .text = "How long concurrent: wait waits before its 409." },
	{ "store", HPX_OPTION_CHOICE, POLICY(policy.keep), .standard = "answer",
	  CHOICES("answer", "status"),
	  .text = "What is kept of an answer: answer is all of it; status is that it happened, "
		  "with status and Location, for answers that hold secrets." },
	{ "observe", HPX_OPTION_BOOL, POLICY(observe), .standard = "false",
	  .text = "Only watches, on this route." },
	{ "fingerprint.ignore", HPX_OPTION_POINTERS, POLICY(recipe.ignore),
	  OTHER(hpx_route, recipe.ignore_count), .standard = "",
	  .example = "[/metadata/sent_at]",
	  .text = "Members of a JSON body that may differ between a request and its retry, as "
		  "JSON pointers (RFC 6901). A route's list replaces that of defaults." },
	{ "fingerprint.headers", HPX_OPTION_HEADERS, POLICY(recipe.headers),
	  OTHER(hpx_route, recipe.header_count), .standard = "", .example = "[X-Currency]",
	  .text = "Headers that must be the same in a retry. A route's list replaces that of "
		  "defaults." },
};

#define COUNT (sizeof(options) / sizeof(options[0]))
_Static_assert(COUNT <= HPX_OPTION_MAX, "HPX_OPTION_MAX is too small");

size_t hpx_option_count(void)
{
	return COUNT;
}

const struct hpx_option *hpx_option_at(size_t index)
{
	return &options[index];
}

size_t hpx_option_index(const struct hpx_option *option)
{
	return (size_t)(option - options);
}

const struct hpx_option *hpx_option_flag(size_t n)
{
	for (size_t i = 0; i < COUNT; i++)
		if (options[i].flag != NULL && n-- == 0)
			return &options[i];
	return NULL;
}

const char *hpx_option_kind_words(enum hpx_option_kind kind)
{
	static const char *const words[] = {
#define X(name, text, list) text,
		HPX_OPTION_KIND_LIST(X)
#undef X
	};

	return words[kind];
}

bool hpx_option_kind_is_list(enum hpx_option_kind kind)
{
	static const bool lists[] = {
#define X(name, text, list) list,
		HPX_OPTION_KIND_LIST(X)
#undef X
	};

	return lists[kind];
}
