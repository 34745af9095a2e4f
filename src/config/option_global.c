/* The options at the top of the file and of the command line. Those of one
 * group stand together. */
#include "config/option_row.h"
#include "http/message.h"

static const struct hpx_option rows[] = {
	{ "config", HPX_OPTION_TEXT, HPX_PLACE_COMMAND, .flag = "config", .flag_value = "FILE",
	  .text = "The configuration file. Flags win over what it says." },

	/* Where it listens, what it stands before, where it keeps records. */
	{ "listen", HPX_OPTION_ADDRESS, GLOBAL(listen), .default_value = "127.0.0.1:8080",
	  .example = "unix:/run/hapax/hapax.sock", .flag = "listen", .flag_value = "ADDRESS",
	  .text = "Where clients connect: host:port, or unix:PATH." },
	{ "admin", HPX_OPTION_ADDRESS, GLOBAL(admin), OTHER(hpx_settings, has_admin),
	  .off = true, .default_value = "127.0.0.1:8081", .flag = "admin", .flag_value = "ADDRESS",
	  .text = "Where /healthz, /readyz and /metrics are served; off for nowhere. Keep it "
		  "away from clients." },
	{ "upstream", HPX_OPTION_UPSTREAM, GLOBAL(upstream), .example = "http://127.0.0.1:9000",
	  .flag = "upstream", .flag_value = "URL",
	  .text = "The API that hapax stands in front of: http://host:port, or unix:PATH. "
		  "Must be given." },
	{ "upstream_name", HPX_OPTION_TEXT, GLOBAL(upstream_name), .default_value = "default",
	  .example = "payments", .flag = "upstream-name", .flag_value = "NAME",
	  .text = "The upstream's name within every scope: the same service at another address "
		  "has the same keys. Must be given where the store is PostgreSQL, which "
		  "several services may share: the same name for all gateways of one service, "
		  "another for another service. Keys of another name are other keys. Has no "
		  "space." },
	{ "store", HPX_OPTION_STORE, GLOBAL(store), .default_value = "sqlite:hapax.db",
	  .example = "sqlite:/var/lib/hapax/hapax.db", .flag = "store", .flag_value = "URL",
	  .text = "Where operations are kept: sqlite:PATH, one gateway's own file (a relative "
		  "path counts from the directory that hapax is started in), or "
		  "postgres://user@host/database, one database that any number of gateways "
		  "share; a password is better kept in PGPASSFILE. (memory: keeps them until hapax stops, "
		  "for trying things out.)" },
	{ "store_create", HPX_OPTION_CHOICE, GLOBAL(store_create), .default_value = "always",
	  CHOICES("never", "always"),
	  .text = "What happens where the store's file is absent: always makes a new one; "
		  "never refuses to start, so that a lost disk or a mistyped path does not "
		  "look like an empty store and run old keys again. Services say never once "
		  "the file is there." },
	{ "cache", HPX_OPTION_SIZE, GLOBAL(cache_bytes_max), .default_value = "16MiB",
	  RANGE(0, 1024 * GIB),
	  .text = "Memory for completed answers, so that a replay need not ask the store; 0 keeps "
		  "none. What an operator removes is gone at once with SQLite, and within a second "
		  "from every gateway with PostgreSQL; a gateway that cannot hear of it stops "
		  "answering from memory." },
	{ "cache_entries", HPX_OPTION_COUNT, GLOBAL(cache_entries_max), .default_value = "16384",
	  RANGE(1, 10000000), .text = "How many answers that may be." },
	{ "loops", HPX_OPTION_COUNT, GLOBAL(loops), .default_value = "0", RANGE(0, 256),
	  .text = "Event loops; 0 is one per core." },
	{ "core_dumps", HPX_OPTION_BOOL, GLOBAL(core_dumps), .default_value = "false",
	  .text = "Whether a crash of hapax serve or work may leave a core file, as the system's "
		  "own limits let it. It holds what was in memory: credentials, keys and bodies." },
	{ "log_level", HPX_OPTION_CHOICE, GLOBAL(log_level), .default_value = "info",
	  CHOICES("debug", "info", "warn", "error"),
	  .text = "The least important line that is still logged." },

	/* What the protocol looks like. */
	{ "profile", HPX_OPTION_CHOICE, GLOBAL(profile), .default_value = "ietf",
	  CHOICES("ietf", "stripe"),
	  .text = "A whole set of defaults: ietf follows the IETF draft; stripe behaves as "
		  "Stripe's API does. Options that are given win over it." },
	{ "key_header", HPX_OPTION_TOKEN, GLOBAL(key_header), RELOADABLE,
	  .default_value = "Idempotency-Key", .text = "The header that carries the key." },
	{ "key_syntax", HPX_OPTION_CHOICE, GLOBAL(key_syntax), RELOADABLE, .default_value = "ietf",
	  .stripe_default = "bare", CHOICES("ietf", "strict", "bare"),
	  .text = "How keys are written: ietf takes \"k\" and k as one key; strict takes the "
		  "quoted form only; bare takes the bytes as they are." },
	{ "mismatch_status", HPX_OPTION_COUNT, GLOBAL(mismatch_status), RELOADABLE,
	  .default_value = "422", .stripe_default = "400", RANGE(400, 499),
	  .text = "The status for a key that was used with another request." },
	{ "errors", HPX_OPTION_CHOICE, GLOBAL(stripe_errors), RELOADABLE, .default_value = "problem",
	  .stripe_default = "stripe", CHOICES("problem", "stripe"),
	  .text = "The shape of hapax's own answers: problem is application/problem+json (RFC "
		  "9457), stripe is {\"error\": ...} as Stripe has it." },
	{ "underscore_headers", HPX_OPTION_CHOICE, GLOBAL(drop_underscores), RELOADABLE,
	  .default_value = "pass", CHOICES("pass", "drop"),
	  .text = "What becomes of request headers with _ in their names, which WSGI and CGI "
		  "servers cannot tell from those with -: pass sends them on, and refuses with "
		  "400 those that would be taken for a header that hapax acts on; drop sends none "
		  "of them on, but for names that this configuration has." },
	{ "own_paths", HPX_OPTION_BOOL, GLOBAL(own_paths), RELOADABLE, .default_value = "true",
	  .text = "Whether /.hapax/ (operations, policy, problems, webhooks) is served. It is never "
		  "forwarded." },
	{ "cors.origins", HPX_OPTION_ORIGINS, GLOBAL(cors.origins), RELOADABLE,
	  OTHER(hpx_settings, cors.origin_count), .default_value = "",
	  .example = "[\"https://shop.example\"]",
	  .text = "Origins whose pages may read hapax's own answers and replays, as browsers write "
		  "them: scheme://host, and the port where it is not the scheme's own. \"*\" alone "
		  "is every origin. Empty, hapax says nothing about origins. First answers are the "
		  "application's to open, and preflights pass to it." },
	{ "cors.credentials", HPX_OPTION_BOOL, GLOBAL(cors.credentials), RELOADABLE,
	  .default_value = "false",
	  .text = "Whether those pages may send cookies and the like and still read the answer; "
		  "say true where the application does." },
	{ "observe", HPX_OPTION_BOOL, GLOBAL(observe), RELOADABLE, .default_value = "false",
	  .flag = "observe",
	  .text = "Only watches: refuses, replays and alters nothing, and counts what would "
		  "have happened. True here holds for every route." },

	/* Who is calling. */
	{ "tenant.from", HPX_OPTION_CHOICE, GLOBAL(tenant_from), .default_value = "automatic",
	  CHOICES("automatic", "authorization", "credential", "header", "cookie", "anonymous",
		  "subrequest"),
	  .text = "What names the tenant. automatic is Authorization (Bearer, Basic, Token, "
		  "ApiKey, DPoP) and X-Api-Key, both where both are there, and beside them "
		  "whatever else is known to name a caller; where only that is there, or a "
		  "cookie, it is 401. authorization is those two and looks at nothing else; "
		  "credential is a hash of the header tenant.name; header is the header "
		  "tenant.name as it is, which must come from a trusted peer or over a unix "
		  "socket; cookie is the cookie tenant.name; anonymous is one tenant for all; "
		  "subrequest asks the service at tenant.url." },
	{ "tenant.name", HPX_OPTION_TOKEN, GLOBAL(tenant_name), .example = "X-Tenant",
	  .text = "The name of that header or cookie." },
	{ "tenant.with", HPX_OPTION_HEADERS, GLOBAL(tenant_with),
	  OTHER(hpx_settings, tenant_with_count), .default_value = "",
	  .example = "[Stripe-Account, Host]",
	  .text = "Headers that are part of the tenant too, whatever names it: two requests that "
		  "differ in one of them never share a key. They must be the same in every "
		  "retry." },
	{ "tenant.ignore", HPX_OPTION_HEADERS, GLOBAL(tenant_ignore),
	  OTHER(hpx_settings, tenant_ignore_count), .default_value = "",
	  .example = "[X-Session-Token]",
	  .text = "Headers that do not name a caller here, although their names look like it: "
		  "automatic and subrequest do not look at them." },
	{ "tenant.anonymous", HPX_OPTION_CHOICE, GLOBAL(tenant_anonymous), .default_value = "local",
	  CHOICES("local", "allow", "refuse"),
	  .text = "What becomes of a request without any credential. local: where hapax listens "
		  "on a loopback address or a unix socket, and the request was not forwarded "
		  "(no X-Forwarded-*, Forwarded, Via or X-Real-IP), it is the anonymous "
		  "tenant's, otherwise 401. allow: it is the anonymous tenant's; all such "
		  "callers share keys and answers. refuse: 401." },
	{ "tenant.url", HPX_OPTION_URL, GLOBAL(subrequest.caller.url),
	  .example = "http://127.0.0.1:9001/verify",
	  .text = "Under from: subrequest, the service that says who is calling: it is sent a "
		  "GET with the caller's credentials; a 2xx names the tenant in tenant.header, "
		  "anything else refuses the request with 401 or 403." },
	{ "tenant.header", HPX_OPTION_TOKEN, GLOBAL(subrequest.header), .example = "X-Tenant",
	  .text = "The header of its answer that names the tenant." },
	{ "tenant.cache", HPX_OPTION_DURATION, GLOBAL(subrequest.cache_ms), .default_value = "10s",
	  RANGE(0, HOUR),
	  .text = "How long its answer is remembered, and so how long a credential that was "
		  "withdrawn may still work; 0 asks every time." },
	{ "tenant.ca_file", HPX_OPTION_FILE, GLOBAL(subrequest.caller.ca_file),
	  .example = "/etc/hapax/ca.pem",
	  .text = "The certificates (PEM) that its own must lead to. Left out, those that the "
		  "system trusts." },
	{ "tenant.connect_timeout", HPX_OPTION_DURATION,
	  GLOBAL(subrequest.caller.connect_timeout_ms), .default_value = "1s",
	  RANGE(10, 10 * MINUTE), .text = "For a connection to it." },
	{ "tenant.timeout", HPX_OPTION_DURATION, GLOBAL(subrequest.caller.timeout_ms),
	  .default_value = "3s", RANGE(10, 10 * MINUTE),
	  .text = "For the whole question. Past it, the request is refused with 503." },
	{ "trusted_peers", HPX_OPTION_NETWORKS, GLOBAL(trusted_peers), RELOADABLE,
	  OTHER(hpx_settings, trusted_peer_count), .default_value = "",
	  .example = "[10.0.0.0/8, \"::1\"]",
	  .text = "Addresses and networks whose X-Forwarded-* and tenant header are believed: "
		  "your own proxies, nobody else." },

	/* How much. */
	{ "limits.head", HPX_OPTION_SIZE, GLOBAL(head_bytes_max), RELOADABLE,
	  .default_value = "32KiB", RANGE(KIB, MIB),
	  .text = "The head of a message: its first line and all header fields." },
	{ "limits.fields", HPX_OPTION_COUNT, GLOBAL(fields_max), RELOADABLE, .default_value = "100",
	  RANGE(10, HPX_HTTP_FIELDS_MAX), .text = "Header fields in one message." },
	{ "limits.request_body", HPX_OPTION_SIZE, GLOBAL(request_body_bytes_max), RELOADABLE,
	  .default_value = "1MiB", RANGE(1, GIB),
	  .text = "The body of a guarded request; a larger one is refused with 413." },
	{ "limits.response_body", HPX_OPTION_SIZE, GLOBAL(response_body_bytes_max), RELOADABLE,
	  .default_value = "1MiB", RANGE(1, GIB),
	  .text = "The body of an answer that is stored; a larger one is streamed, and a retry "
		  "learns that it happened, not what was said." },
	{ "limits.bodies", HPX_OPTION_SIZE, GLOBAL(bodies_bytes_max), .default_value = "64MiB",
	  RANGE(64 * KIB, 1024 * GIB),
	  .text = "All bodies of guarded requests and answers in memory together; a "
		  "quarter of it is left to the answers, and past the rest new requests are "
		  "refused with 503." },
	{ "limits.connections", HPX_OPTION_COUNT, GLOBAL(connections_max), .default_value = "10000",
	  RANGE(1, 1000000), .text = "Client connections." },
	{ "limits.upstream_connections", HPX_OPTION_COUNT, GLOBAL(upstream_connections_max),
	  RELOADABLE, .default_value = "256", RANGE(1, 65535),
	  .text = "Connections to the upstream, per event loop. Where all of them are in use, "
		  "requests wait (limits.upstream_queue)." },
	{ "limits.upstream_queue", HPX_OPTION_COUNT, GLOBAL(upstream_queue_max), RELOADABLE,
	  .default_value = "4096", RANGE(0, 1000000),
	  .text = "Requests that wait for a connection to the upstream, per event loop, first "
		  "come, first served; guarded ones and passed-through ones are counted apart. "
		  "Nothing is reserved meanwhile. Where the queue is full, what is known "
		  "is still answered, and only what would be executed is refused with 503." },
	{ "limits.pass_share", HPX_OPTION_COUNT, GLOBAL(pass_share), RELOADABLE,
	  .default_value = "75", RANGE(1, 100),
	  .text = "How many of limits.upstream_connections, in percent, requests that pass "
		  "through unguarded may use, tunnels among them; the rest is left to guarded "
		  "ones. At least one. Under observe (for all routes) it is all of them." },
	{ "limits.tunnel_share", HPX_OPTION_COUNT, GLOBAL(tunnel_share), RELOADABLE,
	  .default_value = "25", RANGE(0, 100),
	  .text = "How many of them, in percent, WebSockets may use; at least one, and none "
		  "with 0. The next one is refused with 503 at once, because a tunnel may stay "
		  "for days." },
	{ "limits.waiters", HPX_OPTION_COUNT, GLOBAL(waiters_max), .default_value = "1000",
	  RANGE(0, 1000000),
	  .text = "Requests that wait for somebody else's answer (concurrent: wait); the next "
		  "one gets 503 at once." },
	{ "limits.waiters_per_operation", HPX_OPTION_COUNT, GLOBAL(waiters_per_operation_max),
	  .default_value = "100", RANGE(0, 1000000), .text = "The same, for one operation." },
	{ "limits.free_space", HPX_OPTION_SIZE, GLOBAL(free_bytes_min), .default_value = "64MiB",
	  RANGE(0, 1024 * GIB),
	  .text = "What the store must have left to write into: free on its disk, and free "
		  "inside its file, where records have expired. Below it, new operations are "
		  "refused with 503, so that those under way can still be written. A quarter of "
		  "it must be free on the disk itself, for the log." },

	/* How long. */
	{ "timeouts.head", HPX_OPTION_DURATION, GLOBAL(head_timeout_ms), RELOADABLE,
	  .default_value = "10s", RANGE(10, HOUR),
	  .text = "For a request's head, from its first byte." },
	{ "timeouts.body", HPX_OPTION_DURATION, GLOBAL(body_timeout_ms), RELOADABLE,
	  .default_value = "30s", RANGE(10, HOUR), .text = "Between two bytes of a request's body." },
	{ "timeouts.keep_alive", HPX_OPTION_DURATION, GLOBAL(keep_alive_ms), RELOADABLE,
	  .default_value = "75s", RANGE(0, DAY),
	  .text = "How long a client's idle connection is kept." },
	{ "timeouts.connect", HPX_OPTION_DURATION, GLOBAL(connect_timeout_ms), RELOADABLE,
	  .default_value = "3s", RANGE(10, 10 * MINUTE),
	  .text = "For a connection to the upstream. Nothing was sent yet: a retry is safe." },
	{ "timeouts.send", HPX_OPTION_DURATION, GLOBAL(send_timeout_ms), RELOADABLE,
	  .default_value = "30s", RANGE(10, HOUR),
	  .text = "While the upstream takes nothing of a request, or a client nothing of its "
		  "answer." },
	{ "timeouts.first_byte", HPX_OPTION_DURATION, GLOBAL(first_byte_timeout_ms), RELOADABLE,
	  .default_value = "60s", RANGE(10, DAY),
	  .text = "From the request's last byte to the answer's first. Past it, the outcome is "
		  "unknown." },
	{ "timeouts.idle", HPX_OPTION_DURATION, GLOBAL(idle_timeout_ms), RELOADABLE,
	  .default_value = "60s", RANGE(0, DAY),
	  .text = "Between two bytes of an answer; 0 is without end." },
	{ "timeouts.whole", HPX_OPTION_DURATION, GLOBAL(whole_timeout_ms), RELOADABLE,
	  .default_value = "5m", RANGE(10, DAY),
	  .text = "For a whole guarded exchange with the upstream." },
	{ "timeouts.queue", HPX_OPTION_DURATION, GLOBAL(queue_timeout_ms), RELOADABLE,
	  .default_value = "10s", RANGE(10, HOUR),
	  .text = "How long a request waits for a connection to the upstream before it gets "
		  "503; nothing was reserved or sent." },
	{ "timeouts.reuse_idle", HPX_OPTION_DURATION, GLOBAL(reuse_idle_ms), RELOADABLE,
	  .default_value = "1s", RANGE(0, HOUR),
	  .text = "How long a connection to the upstream may have been idle when a guarded "
		  "request uses it again. Longer risks that the upstream just closed it, and "
		  "then nobody knows the outcome." },
	{ "timeouts.reuse_quarantine", HPX_OPTION_DURATION, GLOBAL(reuse_quarantine_ms),
	  RELOADABLE, .default_value = "60s", RANGE(SECOND, DAY),
	  .text = "How long guarded requests use no kept connection after the upstream sent bytes "
		  "that nobody had asked for: a second answer that comes late would be taken for "
		  "the next caller's. See reuse." },
	{ "timeouts.store", HPX_OPTION_DURATION, GLOBAL(store_timeout_ms), RELOADABLE,
	  .default_value = "5s", RANGE(10, 10 * MINUTE),
	  .text = "How long a client waits for the store before it gets 503." },
	{ "timeouts.drain", HPX_OPTION_DURATION, GLOBAL(drain_ms), RELOADABLE, .default_value = "25s",
	  RANGE(0, HOUR),
	  .text = "How long requests under way may take after SIGTERM; what is left then is "
		  "written as unknown." },

	/* Duties in the background. */
	{ "events.retention", HPX_OPTION_DURATION, GLOBAL(event_retention_ms), .default_value = "30d",
	  RANGE(10 * MINUTE, 3650 * DAY),
	  .text = "How long the history of operations is kept, for people; gateways hear from "
		  "its last minutes what was removed." },
	{ "sweep.every", HPX_OPTION_DURATION, GLOBAL(sweep_every_ms), RELOADABLE,
	  .default_value = "1s", RANGE(10, HOUR), .text = "How often lost leases are looked for." },
	{ "reap.every", HPX_OPTION_DURATION, GLOBAL(reap_every_ms), RELOADABLE, .default_value = "1s",
	  RANGE(10, DAY), .text = "How often expired records are deleted." },
	{ "reap.batch", HPX_OPTION_COUNT, GLOBAL(reap_batch), RELOADABLE, .default_value = "100",
	  RANGE(1, 10000), .text = "How many of them at once. Where there are more, it goes on after "
				   "four times as long as that took; without a pause once it is "
				   "behind for ten minutes." },
	{ "work.inside", HPX_OPTION_BOOL, GLOBAL(work), .default_value = "true",
	  .text = "Whether hapax serve delivers jobs and settles what is unknown; false leaves "
		  "both to hapax work, which needs PostgreSQL." },
	{ "work.deliveries", HPX_OPTION_COUNT, GLOBAL(deliveries_max), .default_value = "256",
	  RANGE(1, 65535),
	  .text = "Deliveries and probes under way at once, to all targets together." },
	{ "jobs.retention", HPX_OPTION_DURATION, GLOBAL(job_retention_ms), .default_value = "7d",
	  RANGE(SECOND, 3650 * DAY),
	  .text = "How long a job that is done or discarded is kept. Not shorter than the "
		  "retention of any route: while an operation is known, its jobs must be too, "
		  "or one could be added a second time." },
};

const struct hpx_option_part hpx_option_global = HPX_OPTION_PART(rows);
