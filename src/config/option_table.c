/* The table of options: every option of the configuration file and of the
 * command line is one row here, in the order of the reference page and of the
 * sample file. Rows of one group stand together. */
#include "config/option.h"
#include "config/parse_context.h"
#include "http/message.h"
#include "settings/settings.h"
#include "store/store.h"

#define SECOND 1000ull
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* The place of an option, and the member that takes its value. */
#define IN(type, member) \
	.offset = offsetof(struct type, member), .width = sizeof(((struct type *)0)->member)
#define GLOBAL(member) .place = HPX_PLACE_GLOBAL, IN(hpx_settings, member)
#define POLICY(member) .place = HPX_PLACE_POLICY, .reloadable = true, IN(hpx_route, member)
#define OTHER(type, member) .companion_offset = offsetof(struct type, member)
#define RANGE(least, most) .min = least, .max = most
#define CHOICES(...) \
	.choices = (const char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}
#define RELOADABLE .reloadable = true
/* An option of a policy that decides about an operation after its request: it cannot
 * be reloaded. */
#define FIXED_POLICY(member) .place = HPX_PLACE_POLICY, IN(hpx_route, member)
#define TARGET(member) .place = HPX_PLACE_TARGET, IN(hpx_job_target, member)
#define LISTENER(member) \
	.place = HPX_PLACE_LISTENER, IN(hpx_listener_settings, member)
/* TLS of the side `tls` of `type`; its files are read again by a reload. */
#define TLS_ROWS(PLACE, type, group, tls, whose) \
	{ group "certificate", HPX_OPTION_FILES, PLACE(tls.certificates), .reloadable = true, \
	  OTHER(type, tls.certificate_count), .example = "/etc/hapax/tls/api.pem", \
	  .text = whose " certificate (PEM), followed by those that vouch for it, as certificate " \
			"authorities deliver it. Read again when the file changes." }, \
	{ \
		group "key", HPX_OPTION_FILES, PLACE(tls.keys), .reloadable = true, OTHER(type, tls.key_count), \
								.example = "/etc/hapax/tls/api.key", \
								.text = "The private key of the certificate (PEM, without a passphrase); for several " \
									"certificates as many, in the same order. Only hapax's user should be able to " \
									"read it." \
	}
#define MIN_VERSION_ROW(PLACE, group, tls) \
	{ \
		group "min_version", HPX_OPTION_CHOICE, PLACE(tls.min_version), .reloadable = true, \
										.default_value = "1.2", CHOICES("1.2", "1.3"), \
										.text = "The oldest version of TLS. 1.2 and 1.3 are spoken, with Mozilla's intermediate " \
											"settings." \
	}
#define CLIENT_CA_ROW(PLACE, group, tls) \
	{ \
		group "client_ca", HPX_OPTION_FILE, PLACE(tls.ca), .reloadable = true, \
								   .example = "/etc/hapax/tls/clients.pem", \
								   .text = "The certificate authorities (PEM) that vouch for clients. With it, every client " \
									   "must show a certificate of theirs." \
	}
#define WEBHOOK(member) .place = HPX_PLACE_WEBHOOK, IN(hpx_webhook, member)

/* Rows that several sections share: how a service is called, what its answers
 * mean, and `reconcile`, which routes and targets have alike. Each macro takes
 * PLACE, one of the macros above that name a member. */
/* clang-format off */
#define CREDENTIAL_ROWS(PLACE, group, caller)                                                 \
	{ group "credentials.header", HPX_OPTION_TOKEN, PLACE(caller.credentials.header),     \
	  .default_value = "Authorization",                                                   \
	  .text = "The header that carries the credential." },                                \
	{ group "credentials.file", HPX_OPTION_FILE, PLACE(caller.credentials.file),          \
	  .example = "/etc/hapax/mailer.credential",                                          \
	  .text = "A file with the header's whole value in one line (for Authorization, e.g. " \
		  "Bearer and the token). Only hapax's user should be able to read it. It is " \
		  "read at start." },                                                         \
	{ group "credentials.env", HPX_OPTION_VARIABLE, PLACE(caller.credentials.env),        \
	  .example = "MAILER_CREDENTIAL",                                                     \
	  .text = "The same, from an environment variable." },                                \
	{ group "ca_file", HPX_OPTION_FILE, PLACE(caller.ca_file),                            \
	  .example = "/etc/hapax/ca.pem",                                                     \
	  .text = "The certificates (PEM) to trust for this service; default the system's." }

#define SIGN_ROW(PLACE, group, name, mapping, ruling, ROW_KIND, sample, words)                \
	{ group name, ROW_KIND, PLACE(mapping.signs[HPX_RULING_##ruling]), .default_value = "", \
	  .example = sample, .text = words }

#define ANSWER_ROWS(PLACE, type, group, rule, sample, whole)                                  \
	{ group "answer.status", HPX_OPTION_COUNT, PLACE(rule.status), .default_value = "0",  \
	  RANGE(0, 299), .example = "201",                                                    \
	  .text = "What a retry gets once it was found that the request was applied, and its " \
		  "own answer was lost: this status (2xx), with the service's own object as the " \
		  "body, and Idempotent-Reconstructed: true. 0: no answer is made; the retry " \
		  "gets 409 response_not_kept." },                                            \
	{ group "answer.body", HPX_OPTION_TEXT, PLACE(rule.body), .default_value = HPX_ANSWER_WHOLE, \
	  .example = sample,                                                                  \
	  .text = "The body of that answer. " whole " A JSON pointer: the value there." },    \
	{ group "answer.headers", HPX_OPTION_FIELDS, PLACE(rule.headers), .default_value = "", \
	  OTHER(type, rule.header_count),                                                     \
	  .example = "[\"Location: /payments/{/id}\"]",                                       \
	  .text = "Headers of that answer: \"Name: value\", where {/pointer} stands for a value of " \
		  "the object, or a name alone for the service's own header of that name. "   \
		  "Content-Type is that of the object unless it is given." }

#define RECONCILE_ROWS(PLACE, type, elsewhere, identify)                                      \
	{ "reconcile.settle_after", HPX_OPTION_DURATION,                                      \
	  PLACE(reconcile.rule.settle_after_ms), .example = "2m", RANGE(SECOND, 30 * DAY),    \
	  .text = "The longest time that the service can take for a request, from the request's " \
		  "last byte on. Before that, \"not applied\" does not count, because the slow " \
		  "original may still run. Must be given if probe.not_applied is." },         \
	{ "reconcile.confirm_after", HPX_OPTION_DURATION,                                     \
	  PLACE(reconcile.rule.confirm_after_ms), .default_value = "30s", RANGE(SECOND, DAY), \
	  .text = "\"Not applied\" counts only if it is said twice in a row, at least this "  \
		  "time apart." },                                                            \
	{ "reconcile.tries", HPX_OPTION_COUNT, PLACE(reconcile.rule.tries_max),               \
	  .default_value = "20", RANGE(2, 1000),                                              \
	  .text = "How many probes are sent before a person must decide." },                  \
	{ "reconcile.backoff", HPX_OPTION_DURATION, PLACE(reconcile.rule.backoff.base_ms),    \
	  .default_value = "10s", RANGE(10, DAY),                                             \
	  .text = "The longest wait before the first probe. It doubles with each probe; every " \
		  "wait is random, up to this." },                                            \
	{ "reconcile.backoff_max", HPX_OPTION_DURATION, PLACE(reconcile.rule.backoff.cap_ms), \
	  .default_value = "1h", RANGE(10, 7 * DAY),                                          \
	  .text = "The longest wait, however often it doubled." },                            \
	{ "reconcile.retry_after_max", HPX_OPTION_DURATION,                                   \
	  PLACE(reconcile.rule.retry_after_max_ms), .default_value = "1h", RANGE(0, 7 * DAY), \
	  .text = "The longest delay of the next probe that a Retry-After can ask for." },    \
	{ "reconcile.probe.url", HPX_OPTION_URL, PLACE(reconcile.probe.caller.url),           \
	  .example = "https://api.example/v1",                                                \
	  .text = "The service that is asked: http or https, without credentials or query. "  \
		  "Default: " elsewhere },                                                    \
	{ "reconcile.probe.get", HPX_OPTION_PROBE, PLACE(reconcile.probe.get),                \
	  .example = "/payments?operation={operation}",                                       \
	  .text = "The path and query of the GET, added to that URL. " identify },            \
	CREDENTIAL_ROWS(PLACE, "reconcile.probe.", reconcile.probe.caller),                   \
	{ "reconcile.probe.connect_timeout", HPX_OPTION_DURATION,                             \
	  PLACE(reconcile.probe.caller.connect_timeout_ms), .default_value = "5s",            \
	  RANGE(10, 10 * MINUTE), .text = "The longest time for connecting to that service." }, \
	{ "reconcile.probe.timeout", HPX_OPTION_DURATION,                                     \
	  PLACE(reconcile.probe.caller.timeout_ms), .default_value = "10s", RANGE(10, HOUR),  \
	  .text = "The longest time for a whole probe." },                                    \
	{ "reconcile.probe.concurrency", HPX_OPTION_COUNT, PLACE(reconcile.probe.concurrency), \
	  .default_value = "4", RANGE(1, 1024),                                               \
	  .text = "The most calls of this probe that one process has under way at once. All " \
		  "probes together have at most 1024; if more are configured, each gets an "  \
		  "equal share." },                                                           \
	{ "reconcile.probe.rate", HPX_OPTION_COUNT, PLACE(reconcile.probe.per_second),        \
	  .default_value = "10", RANGE(1, 100000),                                            \
	  .text = "The most calls of this probe a second, of one process; after a quiet second, " \
		  "as many at once. After an outage very many outcomes may be unknown: the "  \
		  "service must bear this rate beside its usual load." },                     \
	{ "reconcile.probe.verdict", HPX_OPTION_POINTER, PLACE(reconcile.probe.mapping.pointer), \
	  .example = "/status",                                                               \
	  .text = "Where the body of a 2xx answer has the word that the lists below name." }, \
	SIGN_ROW(PLACE, "reconcile.probe.", "applied", reconcile.probe.mapping, APPLIED,      \
		 HPX_OPTION_MATCHES, "[200]",                                                 \
		 "Answers that mean that it happened: statuses (three digits), and words at " \
		  "verdict. An answer that is in no list means nothing."),                    \
	SIGN_ROW(PLACE, "reconcile.probe.", "declined", reconcile.probe.mapping, DECLINED,    \
		 HPX_OPTION_MATCHES, "[failed]",                                              \
		 "Answers that mean that it was executed and refused. The operation is "      \
		  "completed, and the failure is its answer."),                               \
	SIGN_ROW(PLACE, "reconcile.probe.", "not_applied", reconcile.probe.mapping,           \
		 NOT_APPLIED, HPX_OPTION_MATCHES, "[404]",                                    \
		 "Answers that mean that it never happened, and may be executed again."),     \
	SIGN_ROW(PLACE, "reconcile.probe.", "not_yet", reconcile.probe.mapping, NOT_YET,      \
		 HPX_OPTION_MATCHES, "[202, pending]",                                        \
		 "Answers that mean that it is still under way."),                              \
	{ "reconcile.probe.amount", HPX_OPTION_POINTER, PLACE(reconcile.probe.amount),        \
	  .example = "/amount",                                                               \
	  .text = "Where the body of the probe's answer has the amount. With it, a route's probe " \
		  "that asks by {key} settles only if the amount is that of the request, as an " \
		  "exact decimal. An answer without an amount can say only that it was not "  \
		  "applied." },                                                               \
	{ "reconcile.probe.amount_request", HPX_OPTION_POINTER, PLACE(reconcile.probe.amount_request), \
	  .example = "/amount",                                                               \
	  .text = "Where the JSON body of the client's request has the amount." },            \
	ANSWER_ROWS(PLACE, type, "reconcile.probe.", reconcile.probe.answer, "/data",         \
		    "answer: all of the probe's answer.")
/* clang-format on */

static const struct hpx_option rows[] = {
	/* ---- the command line, and the top of the file ---- */

	{ "config", HPX_OPTION_TEXT, HPX_PLACE_COMMAND, .flag = "config", .flag_value = "FILE",
	  .text = "The configuration file. Flags win over what it says." },

	/* Addresses, the upstream, the store. */
	{ "listen", HPX_OPTION_ADDRESS, GLOBAL(listen), .default_value = "127.0.0.1:8080",
	  .example = "unix:/run/hapax/hapax.sock", .flag = "listen", .flag_value = "ADDRESS",
	  .text = "Where clients connect: host:port, or unix:PATH; or several listeners, each with "
		  "options of its own (listen[])." },
	{ "admin", HPX_OPTION_ADDRESS, GLOBAL(admin), OTHER(hpx_settings, has_admin),
	  .off = true, .default_value = "127.0.0.1:8081", .flag = "admin", .flag_value = "ADDRESS",
	  .text = "Where /healthz, /readyz, /metrics and /api/v1/coverage are served; off for "
		  "nowhere. Keep it away from clients." },
	TLS_ROWS(GLOBAL, hpx_settings, "admin_tls.", admin_tls, "The admin listener's"),
	CLIENT_CA_ROW(GLOBAL, "admin_tls.", admin_tls),
	MIN_VERSION_ROW(GLOBAL, "admin_tls.", admin_tls),
	{ "upstream", HPX_OPTION_UPSTREAM, GLOBAL(upstream), RELOADABLE, .example = "http://127.0.0.1:9000",
	  .flag = "upstream", .flag_value = "URL",
	  .text = "The API that hapax stands in front of: http://host:port, "
		  "https://host:port, or unix:PATH. The certificate behind https is always "
		  "verified. Must be given. A reload may change the address: requests under "
		  "way end at the old one, and keys stay valid. A change between http and "
		  "https, or of the name in the certificate, needs a restart." },
	{ "upstream_tls.ca", HPX_OPTION_FILE, GLOBAL(upstream_tls.ca), RELOADABLE,
	  .example = "/etc/hapax/tls/ca.pem",
	  .text = "The certificate authorities (PEM) to trust for an https upstream; default "
		  "the system's." },
	{ "upstream_tls.name", HPX_OPTION_CUSTOM, GLOBAL(upstream_tls.name),
	  .example = "payments.internal", .read = hpx_server_name_read,
	  .text = "The name that the upstream's certificate must have, and that is asked for "
		  "(SNI); default the host of the URL." },
	TLS_ROWS(GLOBAL, hpx_settings, "upstream_tls.", upstream_tls, "hapax's own"),
	MIN_VERSION_ROW(GLOBAL, "upstream_tls.", upstream_tls),
	{ "upstream_name", HPX_OPTION_TEXT, GLOBAL(upstream_name), .default_value = HPX_UPSTREAM_DEFAULT,
	  .example = "payments", .flag = "upstream-name", .flag_value = "NAME",
	  .text = "A name for the upstream, without spaces. Keys belong to the name, so the "
		  "same service at another address keeps its keys. Must be given where the "
		  "store is PostgreSQL, because several services may share it: the same name "
		  "for all gateways of one service, another name for another service." },
	{ "store", HPX_OPTION_STORE, GLOBAL(store), .default_value = HPX_STORE_DEFAULT_URL,
	  .example = "sqlite:/var/lib/hapax/hapax.db", .flag = "store", .flag_value = "URL",
	  .text = "Where operations are kept. sqlite:PATH is a file for one gateway; a relative "
		  "path counts from the directory that hapax is started in. "
		  "postgres://user@host/database is a database for any number of gateways; put "
		  "a password into PGPASSFILE. memory: keeps them until hapax stops, for trying "
		  "things out." },
	{ "store_create", HPX_OPTION_CHOICE, GLOBAL(store_create), .default_value = "always",
	  CHOICES("never", "always"),
	  .text = "What happens when the store's file is absent. always makes a new file. never "
		  "refuses to start, so that a lost disk or a mistyped path is not taken for an "
		  "empty store, which would execute old keys again. Use never once the file is "
		  "there." },
	{ "cache", HPX_OPTION_SIZE, GLOBAL(cache_bytes_max), .default_value = "16MiB",
	  RANGE(0, 1024 * GIB),
	  .text = "Memory for completed answers, so that a replay need not ask the store; 0 "
		  "keeps none. An operation that a person removes is gone from memory at once "
		  "with SQLite, and within a second from every gateway with PostgreSQL. A "
		  "gateway that cannot learn what was removed stops answering from memory." },
	{ "cache_entries", HPX_OPTION_COUNT, GLOBAL(cache_entries_max), .default_value = "16384",
	  RANGE(1, 10000000), .text = "How many answers are kept in that memory." },
	{ "loops", HPX_OPTION_COUNT, GLOBAL(loops), .default_value = "0", RANGE(0, 256),
	  .text = "How many event loops serve requests; 0 means one per core." },
	{ "core_dumps", HPX_OPTION_BOOL, GLOBAL(core_dumps), .default_value = "false",
	  .text = "Whether a crash of hapax serve or hapax work may leave a core file; the "
		  "system's own limits still hold. A core file has everything that was in "
		  "memory: credentials, keys and bodies." },
	{ "log_level", HPX_OPTION_CHOICE, GLOBAL(log_level), RELOADABLE, .default_value = "info",
	  CHOICES("debug", "info", "warn", "error"),
	  .text = "The least important level of events that is logged, on standard error." },
	{ "log_format", HPX_OPTION_CHOICE, GLOBAL(log_format), RELOADABLE, .default_value = "text",
	  CHOICES("text", "json"),
	  .text = "How an event is logged: text (name=value), or json with the same fields, an object "
		  "in each line." },
	{ "access_log", HPX_OPTION_CHOICE, GLOBAL(access_log), RELOADABLE, .default_value = "auto",
	  CHOICES("auto", "off", "text", "json"), .flag = "access-log", .flag_value = "FORMAT",
	  .text = "A line for each request: what came, what hapax did with it, how long each part "
		  "took. json: an object. text: the same fields as name=value; on a terminal a "
		  "short line. auto: the short line on a terminal, nothing elsewhere. off: "
		  "nothing. No line has a key, credential, path, query or body in it." },
	{ "access_log_file", HPX_OPTION_FILE, GLOBAL(access_log_file), RELOADABLE,
	  .example = "/var/log/hapax/access.log",
	  .text = "The file that the lines are appended to; default standard output. To rotate "
		  "it, move it away, then send SIGHUP: hapax opens a new file. A disk that is "
		  "full or slow "
		  "holds up no request: lines that do not fit into 1 MiB of memory are dropped and "
		  "counted (hapax_access_log_dropped_total)." },

	/* The protocol. */
	{ "profile", HPX_OPTION_CHOICE, GLOBAL(profile), .default_value = "ietf",
	  CHOICES("ietf", "stripe", "paypal", "square"),
	  .text = "A set of defaults. ietf follows the IETF draft; stripe, paypal and square "
		  "behave as these APIs do. An option that is given wins over the profile." },
	{ "key_header", HPX_OPTION_TOKEN, GLOBAL(key_header), RELOADABLE,
	  .default_value = "Idempotency-Key", .text = "The header that carries the key." },
	{ "key_syntax", HPX_OPTION_CHOICE, GLOBAL(key_syntax), RELOADABLE, .default_value = "ietf",
	  CHOICES("ietf", "strict", "bare"),
	  .text = "How keys are written: ietf takes \"k\" and k as one key; strict takes the "
		  "quoted form only; bare takes the bytes as they are." },
	{ "mismatch_status", HPX_OPTION_COUNT, GLOBAL(mismatch_status), RELOADABLE,
	  .default_value = "422", RANGE(400, 499),
	  .text = "The status for a key that was used with another request." },
	{ "errors", HPX_OPTION_CHOICE, GLOBAL(errors), RELOADABLE, .default_value = "problem",
	  CHOICES("problem", "stripe", "paypal", "square"),
	  .text = "The shape of hapax's own answers: problem is application/problem+json (RFC "
		  "9457); stripe, paypal and square are as these APIs have them." },
	{ "underscore_headers", HPX_OPTION_CHOICE, GLOBAL(drop_underscores), RELOADABLE,
	  .default_value = "pass", CHOICES("pass", "drop"),
	  .text = "What happens to request headers with _ in their names. WSGI and CGI servers "
		  "cannot tell them from headers with -. pass sends them on, but refuses with "
		  "400 a header that could be taken for one that hapax acts on. drop sends only "
		  "those that this configuration names." },
	{ "own_paths", HPX_OPTION_BOOL, GLOBAL(own_paths), RELOADABLE, .default_value = "true",
	  .text = "Whether /.hapax/ (operations, policy, problems, webhooks) is served. It is never "
		  "forwarded." },
	{ "cors.origins", HPX_OPTION_ORIGINS, GLOBAL(cors.origins), RELOADABLE,
	  OTHER(hpx_settings, cors.origin_count), .default_value = "",
	  .example = "[\"https://shop.example\"]",
	  .text = "Origins whose pages may read hapax's own answers and replays, as browsers "
		  "write them: scheme://host, with the port if it is not the scheme's default. "
		  "\"*\" alone means every origin. If the list is empty, hapax adds no CORS "
		  "headers. First answers and preflights are the application's: hapax passes "
		  "them on." },
	{ "cors.credentials", HPX_OPTION_BOOL, GLOBAL(cors.credentials), RELOADABLE,
	  .default_value = "false",
	  .text = "Whether those pages may send cookies and other credentials and still read "
		  "the answer. Set it to true if the application allows it." },
	{ "observe", HPX_OPTION_BOOL, GLOBAL(observe), RELOADABLE, .default_value = "false",
	  .flag = "observe",
	  .text = "Only watches: hapax refuses, replays and changes nothing, and counts what "
		  "it would have done. Set here, it applies to every route." },

	/* Tenants. */
	{ "tenant.from", HPX_OPTION_CHOICE, GLOBAL(tenant.from), .default_value = "automatic",
	  CHOICES("automatic", "authorization", "credential", "header", "cookie", "anonymous",
		  "subrequest", "jwt", "certificate"),
	  .text = "What names the tenant. automatic uses Authorization (Bearer, Basic, Token, "
		  "ApiKey, DPoP) and X-Api-Key, both if both are there, together with other "
		  "headers that are known to name a caller; a request that has only such a "
		  "header, or only a cookie, gets 401. authorization uses only those two "
		  "headers. credential uses a hash of the header tenant.name. header uses the "
		  "header tenant.name as it is; it must come from a trusted peer or over a unix "
		  "socket. cookie uses the cookie tenant.name. anonymous is one tenant for all. "
		  "subrequest asks the service at tenant.url. jwt verifies the signed token of "
		  "Authorization: Bearer here; the tenant is its issuer and its tenant.claim, so "
		  "that a renewed token is the same caller. certificate uses a name in the "
		  "client's certificate (tenant.certificate), which the listener's tls.client_ca "
		  "has verified." },
	{ "tenant.certificate", HPX_OPTION_CHOICE, GLOBAL(tenant.certificate), .default_value = "subject",
	  CHOICES("subject", "common_name", "dns", "uri", "email"),
	  .text = "With from: certificate, which name of the certificate is the tenant. subject: "
		  "the whole subject. common_name: its only CN. dns, uri, email: the first "
		  "alternative name of that kind. A renewed certificate with the same name is the "
		  "same tenant; the same name under another authority of tls.client_ca is another." },
	{ "tenant.name", HPX_OPTION_TOKEN, GLOBAL(tenant.name), .example = "X-Tenant",
	  .text = "The name of the header or cookie that tenant.from uses." },
	{ "tenant.with", HPX_OPTION_HEADERS, GLOBAL(tenant.with),
	  OTHER(hpx_settings, tenant.with_count), .default_value = "",
	  .example = "[Stripe-Account, Host]",
	  .text = "Headers that are part of the tenant as well: two requests that differ in one "
		  "of them never share a key. They must be the same in every retry." },
	{ "tenant.ignore", HPX_OPTION_HEADERS, GLOBAL(tenant.ignore),
	  OTHER(hpx_settings, tenant.ignore_count), .default_value = "",
	  .example = "[X-Session-Token]",
	  .text = "Headers that do not name a caller here, although their names look like it. "
		  "automatic and subrequest ignore them." },
	{ "tenant.anonymous", HPX_OPTION_CHOICE, GLOBAL(tenant.anonymous), .default_value = "local",
	  CHOICES("local", "allow", "refuse"),
	  .text = "What happens to a request without any credential. local takes it for the "
		  "anonymous tenant if hapax listens on a loopback address or a unix socket and "
		  "the request was not forwarded (no X-Forwarded-*, Forwarded, Via or "
		  "X-Real-IP); otherwise it gets 401. allow always takes it for the anonymous "
		  "tenant: all such callers share keys and answers. refuse answers 401." },
	{ "tenant.url", HPX_OPTION_URL, GLOBAL(tenant.subrequest.caller.url),
	  .example = "http://127.0.0.1:9001/verify",
	  .text = "With from: subrequest, the service that says who is calling. It gets a GET "
		  "with the caller's credentials. A 2xx names the tenant in tenant.header; with "
		  "any other answer the request is refused with 401 or 403." },
	{ "tenant.header", HPX_OPTION_TOKEN, GLOBAL(tenant.subrequest.header), .example = "X-Tenant",
	  .text = "The header of that service's answer that names the tenant." },
	{ "tenant.cache", HPX_OPTION_DURATION, GLOBAL(tenant.subrequest.cache_ms), .default_value = "10s",
	  RANGE(0, HOUR),
	  .text = "How long that answer is remembered. A credential that was withdrawn may "
		  "still work for this long; 0 asks every time." },
	{ "tenant.keys", HPX_OPTION_FILE, GLOBAL(tenant.jwt.keys),
	  .example = "https://login.example/.well-known/jwks.json",
	  .text = "With from: jwt, the keys that tokens are verified with: a JWK Set, as the path "
		  "of a file or as an https URL (http for a loopback address only). They are read "
		  "at the start, every tenant.refresh, and when a token names a key that is not "
		  "known, then at most once a minute. If that fails, the old keys stay. While there "
		  "are none, requests that need a tenant are refused with 503." },
	{ "tenant.issuer", HPX_OPTION_TEXT, GLOBAL(tenant.jwt.rule.issuer),
	  .example = "https://login.example",
	  .text = "With from: jwt, the iss that a token must have, byte for byte." },
	{ "tenant.audience", HPX_OPTION_TEXTS, GLOBAL(tenant.jwt.rule.audiences),
	  OTHER(hpx_settings, tenant.jwt.rule.audience_count), .default_value = "",
	  .example = "[payments]",
	  .text = "With from: jwt, the audiences of which a token must name one in its aud. Without "
		  "it, a token that was given for another service works here too; where the issuer "
		  "writes no aud, write []." },
	{ "tenant.claim", HPX_OPTION_TEXT, GLOBAL(tenant.jwt.rule.claim), .default_value = "sub",
	  .text = "With from: jwt, the claim that names the caller: a string at the top of the "
		  "token that is the same in every token of one caller." },
	{ "tenant.algorithms", HPX_OPTION_CHOICES, GLOBAL(tenant.jwt.rule.algorithms),
	  CHOICES("RS256", "PS256", "ES256", "EdDSA", "HS256"), .example = "[RS256]",
	  .text = "With from: jwt, the algorithms that are accepted; if none are given, all of these "
		  "but HS256. The type of the key and its own "
		  "alg must fit too. HS256 needs tenant.keys in a file, because whoever can read the "
		  "key can sign with it." },
	{ "tenant.skew", HPX_OPTION_DURATION, GLOBAL(tenant.jwt.rule.skew_ms), .default_value = "60s",
	  RANGE(0, 10 * MINUTE),
	  .text = "With from: jwt, how far the issuer's clock and this one may be apart: a token is "
		  "accepted for this long before its nbf and after its exp." },
	{ "tenant.refresh", HPX_OPTION_DURATION, GLOBAL(tenant.jwt.refresh_ms), .default_value = "5m",
	  RANGE(SECOND, 24 * HOUR),
	  .text = "With from: jwt, how often the keys are read again. A key that the issuer withdrew "
		  "may still work for this long." },
	{ "tenant.ca_file", HPX_OPTION_FILE, GLOBAL(tenant.subrequest.caller.ca_file),
	  .example = "/etc/hapax/ca.pem",
	  .text = "The certificates (PEM) to trust for this service, or for the URL of tenant.keys; "
		  "default the system's." },
	{ "tenant.connect_timeout", HPX_OPTION_DURATION,
	  GLOBAL(tenant.subrequest.caller.connect_timeout_ms), .default_value = "1s",
	  RANGE(10, 10 * MINUTE),
	  .text = "The longest time for connecting to that service, or to the host of tenant.keys." },
	{ "tenant.timeout", HPX_OPTION_DURATION, GLOBAL(tenant.subrequest.caller.timeout_ms),
	  .default_value = "3s", RANGE(10, 10 * MINUTE),
	  .text = "The longest time for the whole subrequest, or for reading tenant.keys. After "
		  "it, a request that waits for a subrequest is refused with 503." },
	{ "trusted_peers", HPX_OPTION_NETWORKS, GLOBAL(trusted_peers), RELOADABLE,
	  OTHER(hpx_settings, trusted_peer_count), .default_value = "",
	  .example = "[10.0.0.0/8, \"::1\"]",
	  .text = "Addresses and networks whose X-Forwarded-* and tenant headers are trusted: "
		  "your own proxies, and nobody else." },

	/* Limits. */
	{ "limits.head", HPX_OPTION_SIZE, GLOBAL(head_bytes_max), RELOADABLE,
	  .default_value = "32KiB", RANGE(KIB, MIB),
	  .text = "The largest head of a message: its first line and all header fields." },
	{ "limits.fields", HPX_OPTION_COUNT, GLOBAL(fields_max), RELOADABLE, .default_value = "100",
	  RANGE(10, HPX_HTTP_FIELDS_MAX), .text = "The most header fields in one message." },
	{ "limits.request_body", HPX_OPTION_SIZE, GLOBAL(request_body_bytes_max), RELOADABLE,
	  .default_value = "1MiB", RANGE(1, GIB),
	  .text = "The largest body of a guarded request; a larger one is refused with 413." },
	{ "limits.response_body", HPX_OPTION_SIZE, GLOBAL(response_body_bytes_max), RELOADABLE,
	  .default_value = "1MiB", RANGE(1, GIB),
	  .text = "The largest body of an answer that is stored. A larger one is streamed and "
		  "not stored: a retry learns that the operation happened, but does not get the "
		  "answer." },
	{ "limits.bodies", HPX_OPTION_SIZE, GLOBAL(bodies_bytes_max), .default_value = "64MiB",
	  RANGE(64 * KIB, 1024 * GIB),
	  .text = "The most memory for the bodies of all guarded requests and answers together. "
		  "A quarter is reserved for answers, and a quarter of the rest for requests with a "
		  "body of up to 16 KiB; when that is used, new requests are refused with 503." },
	{ "limits.connections", HPX_OPTION_COUNT, GLOBAL(connections_max), .default_value = "10000",
	  RANGE(1, 1000000), .text = "The most client connections." },
	{ "limits.upstream_connections", HPX_OPTION_COUNT, GLOBAL(upstream_connections_max),
	  RELOADABLE, .default_value = "256", RANGE(1, 65535),
	  .text = "The most connections to the upstream, per event loop. When all are in use, "
		  "requests wait (limits.upstream_queue)." },
	{ "limits.upstream_queue", HPX_OPTION_COUNT, GLOBAL(upstream_queue_max), RELOADABLE,
	  .default_value = "4096", RANGE(0, 1000000),
	  .text = "The most requests that wait for a connection to the upstream, per event "
		  "loop; guarded and unguarded requests are counted apart. Nothing is reserved "
		  "for a waiting request. When the queue is full, replays are still answered; a "
		  "request that would be executed is refused with 503." },
	{ "limits.pass_share", HPX_OPTION_COUNT, GLOBAL(pass_share), RELOADABLE,
	  .default_value = "75", RANGE(1, 100),
	  .text = "The percentage of limits.upstream_connections that unguarded requests and "
		  "tunnels may use, at least one connection. The rest is reserved for guarded "
		  "requests. With observe for all routes, they may use all." },
	{ "limits.tunnel_share", HPX_OPTION_COUNT, GLOBAL(tunnel_share), RELOADABLE,
	  .default_value = "25", RANGE(0, 100),
	  .text = "The percentage of limits.upstream_connections that tunnels (WebSockets) may "
		  "use, at least one connection; 0 means none. The next one is refused with 503 "
		  "at once, because a tunnel may stay for days." },
	{ "limits.waiters", HPX_OPTION_COUNT, GLOBAL(waiters_max), .default_value = "1000",
	  RANGE(0, 1000000),
	  .text = "The most requests that wait for the answer of a request under way "
		  "(concurrent: wait). The next one gets 503 at once." },
	{ "limits.waiters_per_operation", HPX_OPTION_COUNT, GLOBAL(waiters_per_operation_max),
	  .default_value = "100", RANGE(0, 1000000), .text = "The most requests that wait for the answer of one operation." },
	{ "limits.free_space", HPX_OPTION_SIZE, GLOBAL(free_bytes_min), .default_value = "64MiB",
	  RANGE(0, 1024 * GIB),
	  .text = "How much space the store must have left: free on its disk, together with "
		  "what is free inside its file where records have expired. With less, new "
		  "operations are refused with 503, so that those under way can still be "
		  "written. A quarter of it must be free on the disk itself, for the log." },

	{ "limits.body_rate", HPX_OPTION_SIZE, GLOBAL(body_rate_min), RELOADABLE,
	  .default_value = "256", RANGE(0, 1024 * MIB),
	  .text = "How many bytes of a request's body must come in a second, judged every ten "
		  "seconds (or every timeouts.body, where that is shorter). A slower one is "
		  "refused with 408; 0 means no such limit." },
	{ "limits.preset", HPX_OPTION_CHOICE, GLOBAL(limit_preset), RELOADABLE, .default_value = "none",
	  .sample = "public", CHOICES("none", "public"),
	  .text = "Where anybody can reach hapax: public turns on the limits below, each unless "
		  "it is given. They hold for each gateway: three gateways let through three "
		  "times as much." },
	{ "limits.tenant.new_keys", HPX_OPTION_RATE, GLOBAL(rates[HPX_RATE_NEW_KEYS]), RELOADABLE,
	  .default_value = "off", .public_value = "100/s", .off = true, .example = "100/s burst 500",
	  .text = "How many requests of one tenant may begin something: a new key, or one whose "
		  "last attempt failed. As many at once as the number says, or as burst says. "
		  "More get 429 rate_limited, and nothing happens. Retries of known keys do not "
		  "count here." },
	{ "limits.tenant.replays", HPX_OPTION_RATE, GLOBAL(rates[HPX_RATE_REPLAYS]), RELOADABLE,
	  .default_value = "off", .public_value = "500/s", .off = true, .example = "500/s",
	  .text = "How many requests of one tenant may be about known keys: replays, and retries "
		  "of what is under way, unknown, or another request's. New keys do not count "
		  "here." },
	{ "limits.tenant.status_reads", HPX_OPTION_RATE, GLOBAL(rates[HPX_RATE_STATUS_READS]), RELOADABLE,
	  .default_value = "off", .public_value = "20/s", .off = true, .example = "20/s",
	  .text = "How often one tenant may ask for the state of operations "
		  "(GET /.hapax/operations)." },
	{ "limits.tenant.active_keys", HPX_OPTION_COUNT, GLOBAL(active_keys_max), RELOADABLE,
	  .default_value = "0", .public_value = "1000000", RANGE(0, 100000000),
	  .text = "How many keys of one tenant may be kept; 0 means no limit. A request with one "
		  "more gets 429 too_many_keys. Each gateway estimates the number from the "
		  "keys that it has begun itself since its start: a tenant may begin this many "
		  "at once, and they become free again evenly within retention. So within one "
		  "retention a tenant can begin up to twice as many." },
	{ "limits.tenant.stored", HPX_OPTION_SIZE, GLOBAL(stored_bytes_max), RELOADABLE,
	  .default_value = "0", .public_value = "1GiB", RANGE(0, 1024 * GIB),
	  .text = "How much may be stored for one tenant; 0 means no limit. Estimated in the "
		  "same way: 1 KiB for each key, and its answer's body." },
	{ "limits.key.requests", HPX_OPTION_RATE, GLOBAL(rates[HPX_RATE_KEY_REQUESTS]), RELOADABLE,
	  .default_value = "off", .public_value = "10/s", .off = true, .example = "10/s",
	  .text = "How many requests may come with one and the same key. A storm of retries is "
		  "refused by its head, before its bodies are read." },
	{ "limits.peer.new_keys", HPX_OPTION_RATE, GLOBAL(rates[HPX_RATE_PEER_NEW_KEYS]), RELOADABLE,
	  .default_value = "off", .public_value = "1000/s", .off = true, .example = "1000/s",
	  .text = "How many requests from one address (of IPv6, one /64 network) may begin "
		  "something, whatever tenants they name. Behind trusted_peers the address is the "
		  "last one of X-Forwarded-For that is not trusted. Unix sockets and trusted peers "
		  "themselves have no such limit." },

	/* Timeouts. */
	{ "timeouts.head", HPX_OPTION_DURATION, GLOBAL(head_timeout_ms), RELOADABLE,
	  .default_value = "10s", RANGE(10, HOUR),
	  .text = "The longest time for a request's head, from its first byte." },
	{ "timeouts.body", HPX_OPTION_DURATION, GLOBAL(body_timeout_ms), RELOADABLE,
	  .default_value = "30s", RANGE(10, HOUR), .text = "The longest time between two bytes of a request's body." },
	{ "timeouts.whole_body", HPX_OPTION_DURATION, GLOBAL(whole_body_timeout_ms), RELOADABLE,
	  .default_value = "2m", RANGE(10, DAY),
	  .text = "The longest time for the whole body of a guarded request, which is held in "
		  "memory. Later it is refused with 408, and nothing was sent on. Bodies that "
		  "pass through unguarded have no such limit." },
	{ "timeouts.keep_alive", HPX_OPTION_DURATION, GLOBAL(keep_alive_ms), RELOADABLE,
	  .default_value = "75s", RANGE(0, DAY),
	  .text = "How long a client's idle connection is kept." },
	{ "timeouts.connect", HPX_OPTION_DURATION, GLOBAL(connect_timeout_ms), RELOADABLE,
	  .default_value = "3s", RANGE(10, 10 * MINUTE),
	  .text = "The longest time for connecting to the upstream. Nothing was sent then, so a "
		  "retry is safe." },
	{ "timeouts.send", HPX_OPTION_DURATION, GLOBAL(send_timeout_ms), RELOADABLE,
	  .default_value = "30s", RANGE(10, HOUR),
	  .text = "The longest time in which the upstream reads nothing of a request, or a "
		  "client nothing of its answer." },
	{ "timeouts.first_byte", HPX_OPTION_DURATION, GLOBAL(first_byte_timeout_ms), RELOADABLE,
	  .default_value = "60s", RANGE(10, DAY),
	  .text = "The longest time from the request's last byte to the answer's first. After "
		  "it, the outcome is unknown." },
	{ "timeouts.idle", HPX_OPTION_DURATION, GLOBAL(idle_timeout_ms), RELOADABLE,
	  .default_value = "60s", RANGE(0, DAY),
	  .text = "The longest time between two bytes of an answer; 0 means no limit." },
	{ "timeouts.whole", HPX_OPTION_DURATION, GLOBAL(whole_timeout_ms), RELOADABLE,
	  .default_value = "5m", RANGE(10, DAY),
	  .text = "The longest time for a whole guarded exchange with the upstream." },
	{ "timeouts.queue", HPX_OPTION_DURATION, GLOBAL(queue_timeout_ms), RELOADABLE,
	  .default_value = "10s", RANGE(10, HOUR),
	  .text = "How long a request waits for a connection to the upstream before it gets "
		  "503. Nothing was reserved or sent then." },
	{ "timeouts.reuse_idle", HPX_OPTION_DURATION, GLOBAL(reuse_idle_ms), RELOADABLE,
	  .default_value = "1s", RANGE(0, HOUR),
	  .text = "How long a connection to the upstream may have been idle before a guarded "
		  "request uses it again. The longer, the more likely that the upstream is just "
		  "closing it; the outcome is then unknown." },
	{ "timeouts.reuse_quarantine", HPX_OPTION_DURATION, GLOBAL(reuse_quarantine_ms),
	  RELOADABLE, .default_value = "60s", RANGE(SECOND, DAY),
	  .text = "How long guarded requests use only new connections after the upstream sent "
		  "bytes that no request asked for. On a kept connection, a late second answer "
		  "would be taken for the next caller's. See reuse." },
	{ "timeouts.store", HPX_OPTION_DURATION, GLOBAL(store_timeout_ms), RELOADABLE,
	  .default_value = "5s", RANGE(10, 10 * MINUTE),
	  .text = "How long a client waits for the store before it gets 503." },
	{ "timeouts.drain", HPX_OPTION_DURATION, GLOBAL(drain_ms), RELOADABLE, .default_value = "25s",
	  RANGE(0, HOUR),
	  .text = "How long requests under way may take after SIGTERM. What has not ended by "
		  "then is stored as unknown." },

	/* Background work. */
	{ "events.retention", HPX_OPTION_DURATION, GLOBAL(event_retention_ms), .default_value = "30d",
	  RANGE(10 * MINUTE, 3650 * DAY),
	  .text = "How long the history of operations is kept. It is for people; gateways also "
		  "read in its last minutes which operations were removed." },
	{ "history.retention", HPX_OPTION_DURATION, GLOBAL(history_retention_ms), .default_value = "0s",
	  RANGE(0, 36500 * DAY), .example = "400d",
	  .text = "How long an entry is kept of a finished operation that was deleted, by the "
		  "reaper or by hapax keys forget. The entry has tenant, key, request, times and "
		  "status, and no body. It is in the table hapax_history (SQLite) "
		  "or hapax.history (PostgreSQL); hapax history lists it. The time counts from "
		  "the request; 0 keeps no entry. With PostgreSQL, the gateway that was started "
		  "last decides for all gateways of a database. Entries that were made before "
		  "stay if the option is set to 0 again." },
	{ "sweep.every", HPX_OPTION_DURATION, GLOBAL(sweep_every_ms), RELOADABLE,
	  .default_value = "1s", RANGE(10, HOUR), .text = "How often lost leases are looked for." },
	{ "reap.every", HPX_OPTION_DURATION, GLOBAL(reap_every_ms), RELOADABLE, .default_value = "1s",
	  RANGE(10, DAY), .text = "How often expired records are deleted." },
	{ "reap.batch", HPX_OPTION_COUNT, GLOBAL(reap_batch), RELOADABLE, .default_value = "100",
	  RANGE(1, 10000), .text = "How many records are deleted at once. If more have expired, the next batch "
				   "comes after a pause four times as long as the last batch took. After ten "
				   "minutes of this there are no pauses." },
	{ "work.inside", HPX_OPTION_BOOL, GLOBAL(work), .default_value = "true",
	  .text = "Whether hapax serve delivers jobs and settles unknown outcomes. false leaves "
		  "both to hapax work, which needs PostgreSQL." },
	{ "work.deliveries", HPX_OPTION_COUNT, GLOBAL(deliveries_max), .default_value = "256",
	  RANGE(1, 65535),
	  .text = "The most deliveries under way at once, to all targets together." },
	{ "jobs.retention", HPX_OPTION_DURATION, GLOBAL(job_retention_ms), .default_value = "7d",
	  RANGE(SECOND, 3650 * DAY),
	  .text = "How long a job that is done or discarded is kept. Not shorter than the "
		  "retention of any route: if a job were forgotten before its operation, it "
		  "could be added a second time." },

	/* Traces. */
	{ "traces.endpoint", HPX_OPTION_URL, GLOBAL(traces.caller.url),
	  .example = "http://127.0.0.1:4318",
	  .text = "The collector that spans are sent to, as OTLP over HTTP in JSON; without a path, "
		  "/v1/traces is added. Without this option there are no traces, and traceparent "
		  "travels as it came." },
	{ "traces.sample", HPX_OPTION_FRACTION, GLOBAL(traces.sample_millionths), RELOADABLE,
	  .default_value = "1", .example = "0.05",
	  .text = "The share of the requests that is traced. A request with a traceparent has its "
		  "own say: it is traced if its sampled flag is set, else not." },
	{ "traces.service_name", HPX_OPTION_TEXT, GLOBAL(traces.service_name), .default_value = "hapax",
	  .example = "payments-gateway",
	  .text = "What the collector calls this process (service.name)." },
	{ "traces.spans", HPX_OPTION_COUNT, GLOBAL(traces.spans_max), .default_value = "8192",
	  RANGE(512, 1000000),
	  .text = "The most spans that wait in memory, about 500 bytes each. While the collector is "
		  "slow or down, spans beyond that are dropped and counted." },
	CREDENTIAL_ROWS(GLOBAL, "traces.", traces.caller),
	{ "traces.connect_timeout", HPX_OPTION_DURATION, GLOBAL(traces.caller.connect_timeout_ms),
	  .default_value = "2s", RANGE(10, 10 * MINUTE),
	  .text = "The longest time for connecting to the collector." },
	{ "traces.timeout", HPX_OPTION_DURATION, GLOBAL(traces.caller.timeout_ms),
	  .default_value = "10s", RANGE(10, 10 * MINUTE),
	  .text = "The longest time for sending one batch of spans. No request waits for it." },

	/* ---- routes, and `defaults` ---- */

	{ "match", HPX_OPTION_PATTERN, .place = HPX_PLACE_ROUTE, RELOADABLE,
	  IN(hpx_route, pattern), .example = "POST /payments/{id}",
	  .text = "The requests of this route: a method or *, a space, and a path, which may "
		  "have a host before it. {x} stands for one segment, a final * for the rest. "
		  "The most specific route wins; the order in the file does not matter. Must be "
		  "given." },
	{ "key", HPX_OPTION_CHOICE, POLICY(policy.key), .default_value = "required",
	  CHOICES("required", "optional", "ignore"),
	  .text = "Whether POST, PATCH and every other method that is neither safe nor "
		  "idempotent needs a key. required refuses a request without a key; optional "
		  "lets it pass unguarded; ignore guards nothing." },
	{ "key_from", HPX_OPTION_CUSTOM_LIST, POLICY(key_from), .pairs = true, .default_value = "",
	  .read = hpx_key_sources_read,
	  .example = "[{header: PayPal-Request-Id}, {body: /idempotency_key}, {query: request_id}]",
	  .text = "Where the key is, if not in key_header alone: headers, members of a JSON body as "
		  "JSON pointers, query parameters; at most 4. The first one that is present "
		  "counts; if two are present and differ, the request gets 400. A key in the "
		  "body is known only when the whole body has arrived. A member stays part of "
		  "the fingerprint unless "
		  "fingerprint.ignore names it." },
	{ "key_max", HPX_OPTION_COUNT, POLICY(key_demand.bytes_max), .default_value = "255",
	  RANGE(1, HPX_KEY_MAX),
	  .text = "The most bytes of a new key; a longer one is refused with 400." },
	{ "key_min", HPX_OPTION_COUNT, POLICY(key_demand.bytes_min), .default_value = "1",
	  RANGE(1, HPX_KEY_MAX), .sample = "16",
	  .text = "The fewest bytes of a new key; a shorter one is refused with 400. Two clients "
		  "that count 1, 2, 3 under one credential would meet in short keys. A key that is "
		  "known already is answered as before." },
	{ "key_refuse", HPX_OPTION_CHOICES, POLICY(key_demand.refuse), .default_value = "",
	  CHOICES("email", "card"), .example = "[email, card]",
	  .text = "New keys that are refused with 400, because no personal data belongs in a key: "
		  "email is an address with a dotted domain; card is a number of 13 to 19 digits "
		  "that passes Luhn's check, stands alone and does not begin with 0 or 1. While "
		  "observing, such keys are counted, whatever stands here." },
	{ "key_storage", HPX_OPTION_CHOICE, POLICY(key_storage), .default_value = "plain",
	  CHOICES("plain", "hash"),
	  .text = "The copy of a key that people see in the store. plain: the key. hash: its "
		  "SHA-256; hapax keys show --key KEY still finds the operation. A hash does "
		  "not hide a key that can be guessed. It cannot be combined with a probe that "
		  "has {key}." },
	{ "max_age.header", HPX_OPTION_TOKEN, POLICY(max_age.header), .example = "X-Sent-At",
	  .text = "The header in which a client says when it made the request: RFC 3339, an HTTP "
		  "date, or seconds or milliseconds since 1970. A new key with a time that is old, "
		  "missing or cannot be read is refused with 400 request_too_old; a key that is "
		  "known already is answered as before. It protects only where the client cannot "
		  "change the time: where the service checks a signature over this header, or "
		  "fingerprint.headers names it." },
	{ "max_age.within", HPX_OPTION_DURATION, POLICY(max_age.within_ms), .default_value = "5m",
	  RANGE(SECOND, 365 * DAY), .text = "How old that time may be." },
	{ "max_age.skew", HPX_OPTION_DURATION, POLICY(max_age.skew_ms), .default_value = "30s",
	  RANGE(0, DAY),
	  .text = "How far the client's clock and this one may be apart: a time so far in the "
		  "future is taken, and so much more age." },
	{ "scope", HPX_OPTION_CHOICE, .place = HPX_PLACE_POLICY, IN(hpx_route, policy.scope),
	  .default_value = "path", CHOICES("path", "route", "tenant"),
	  .text = "Where a key of one tenant is unique. path: within one method and path. "
		  "route: within the route. tenant: everywhere." },
	{ "retention", HPX_OPTION_DURATION, POLICY(policy.retention_ms), .default_value = "24h",
	  RANGE(SECOND, 3650 * DAY),
	  .text = "How long an answer is kept. After that, the same key is executed again, "
		  "unless expired says otherwise." },
	{ "retention_max", HPX_OPTION_DURATION, POLICY(policy.retention_max_ms), .default_value = "0s",
	  RANGE(0, 3650 * DAY), .example = "30d",
	  .text = "The longest time for which the upstream may keep a single answer, by the "
		  "header Hapax-Retention (7d, 36h) of the answer; never shorter than "
		  "retention. 0: the header is ignored. It never reaches the client." },
	{ "tombstone", HPX_OPTION_DURATION, POLICY(policy.tombstone_ms), .default_value = "0s",
	  RANGE(0, 3650 * DAY), .example = "30d",
	  .text = "How long a key is known after the answer has expired: id, fingerprint, status and "
		  "times, without the answer. 0: until it is deleted, which is soon." },
	{ "expired", HPX_OPTION_CHOICE, POLICY(policy.expired), .default_value = "execute",
	  CHOICES("execute", "refuse"),
	  .text = "What a request gets whose key was executed and whose answer has expired, as "
		  "long as hapax still knows the key (see tombstone). execute: it is executed "
		  "as a new operation, "
		  "counted and logged. refuse: 410 idempotency_key_expired, whatever the request is." },
	{ "lease", HPX_OPTION_DURATION, POLICY(policy.lease_ms), .default_value = "30s",
	  RANGE(SECOND, HOUR),
	  .text = "After this time without a sign of life, an attempt counts as lost. The lease "
		  "is renewed while the connection to the upstream lives, so a slow request is "
		  "not lost." },
	{ "server_error", HPX_OPTION_CHOICE, POLICY(policy.server_error), .default_value = "retry",
	  CHOICES("retry", "replay", "unknown"),
	  .text = "What a 5xx of the upstream means (502, 504, and 503 with Retry-After have "
		  "their own rules). retry: it was rolled back and may be executed again. "
		  "replay: it is the final answer. unknown: nobody knows whether it happened." },
	{ "on_lost", HPX_OPTION_CHOICE, POLICY(policy.on_lost), .default_value = "unknown",
	  CHOICES("unknown", "resume"),
	  .text = "What it means when an attempt is lost (its lease or its answer). unknown: it "
		  "may have happened. resume: a retry executes it again, from its last recovery "
		  "point on; this needs fenced or honours_keys." },
	{ "fenced", HPX_OPTION_BOOL, POLICY(policy.fenced), .default_value = "false",
	  .text = "Your promise that the service accepts nothing more from an attempt once a "
		  "later attempt has begun (by Hapax-Lease and the SQL functions, or by "
		  "Hapax-Attempt)." },
	{ "honours_keys", HPX_OPTION_DURATION, POLICY(policy.honours_keys_ms), .default_value = "0s",
	  RANGE(0, 3650 * DAY), .example = "48h",
	  .text = "Your promise that the service itself executes a key only once, and for how "
		  "long it remembers a key; 0 means that it does not. At least as long as "
		  "retention." },
	{ "completes", HPX_OPTION_CHOICE, POLICY(policy.completes), .default_value = "upstream",
	  CHOICES("upstream", "application"),
	  .text = "What ends an attempt. upstream: the service's HTTP answer. application: only "
		  "hapax.complete (libhapax: hapax_complete) in the service's own transaction; "
		  "an attempt that ends without it is proved not executed. application needs a "
		  "service that works in the store's database." },
	{ "concurrent", HPX_OPTION_CHOICE, POLICY(policy.concurrent), .default_value = "conflict",
	  CHOICES("conflict", "wait", "accepted"),
	  .text = "What a retry gets while the first request is under way. conflict: 409. wait: "
		  "the answer, when it comes. accepted: 202." },
	{ "wait", HPX_OPTION_DURATION, POLICY(policy.wait_ms), .default_value = "10s",
	  RANGE(10, 10 * MINUTE), .text = "How long a retry waits with concurrent: wait before it gets 409." },
	{ "store", HPX_OPTION_CHOICE, POLICY(policy.keep), .default_value = "answer",
	  CHOICES("answer", "status"),
	  .text = "What is kept of an answer. answer: all of it. status: only the status and "
		  "Location, for answers that hold secrets." },
	{ "reuse", HPX_OPTION_CHOICE, POLICY(policy.reuse), .default_value = "allow",
	  CHOICES("allow", "never"),
	  .text = "Whether a guarded request may use a kept connection to the upstream. allow: "
		  "yes, while the upstream sends one answer per request. never: each request "
		  "gets a new connection, so that even an upstream that answers twice cannot "
		  "give a caller the answer of another." },
	{ "observe", HPX_OPTION_BOOL, POLICY(observe), .default_value = "false",
	  .text = "Only watches, on this route." },
	{ "fingerprint.ignore", HPX_OPTION_POINTERS, POLICY(recipe.ignore),
	  OTHER(hpx_route, recipe.ignore_count), .default_value = "",
	  .example = "[/metadata/sent_at]",
	  .text = "Members of a JSON body that may differ between a request and its retry, as "
		  "JSON pointers (RFC 6901). A route's list replaces that of defaults." },
	{ "fingerprint.only", HPX_OPTION_POINTERS, POLICY(recipe.only),
	  OTHER(hpx_route, recipe.only_count), .default_value = "",
	  .example = "[/amount, /currency, /customer]",
	  .text = "The members of a JSON body that must be the same in a request and its retry; all "
		  "others may differ. Two requests that differ only in other members count as "
		  "the same: the second gets the answer of the first. It cannot be combined "
		  "with fingerprint.ignore. A body "
		  "that is not JSON counts whole. A route's list replaces that of defaults." },
	{ "fingerprint.headers", HPX_OPTION_HEADERS, POLICY(recipe.headers),
	  OTHER(hpx_route, recipe.header_count), .default_value = "", .example = "[X-Currency]",
	  .text = "Headers that must be the same in a retry. A route's list replaces that of "
		  "defaults." },

	/* Jobs, and unknown outcomes. */
	{ "deliver", HPX_OPTION_CHOICE, FIXED_POLICY(policy.deliver), .default_value = "now",
	  CHOICES("now", "async"),
	  .text = "How a request is executed. now sends it to the upstream and gives back its "
		  "answer. async stores it as a job for target and answers 202 at once; the "
		  "job's answer becomes the operation's. async needs a verified tenant "
		  "(tenant.from: jwt or subrequest, or header with tenant.anonymous: refuse)." },
	{ "target", HPX_OPTION_NAME, FIXED_POLICY(target_name), .example = "mailer",
	  .text = "The name of the target that deliver: async sends to. The request's path and "
		  "query are added to the target's URL." },
	RECONCILE_ROWS(FIXED_POLICY, hpx_route, "the upstream.",
		       "{operation} is replaced by the operation's reference (Hapax-Operation), "
		       "{key} by the client's key, which counts only where it selects exactly "
		       "one operation of the route; reservations are then indexed by their key."),

	/* ---- listeners ---- */

	{ "address", HPX_OPTION_ADDRESS, .place = HPX_PLACE_LISTENER,
	  IN(hpx_listener_settings, address), .example = "0.0.0.0:8443",
	  .text = "Where clients connect: host:port, or unix:PATH. Must be given." },
	TLS_ROWS(LISTENER, hpx_listener_settings, "tls.", tls,
		 "TLS is spoken where this is given: the listener's"),
	CLIENT_CA_ROW(LISTENER, "tls.", tls),
	MIN_VERSION_ROW(LISTENER, "tls.", tls),
	{ "proxy_protocol", HPX_OPTION_BOOL, .place = HPX_PLACE_LISTENER,
	  IN(hpx_listener_settings, proxy_protocol), .default_value = "false",
	  .text = "Whether connections begin with a PROXY header (version 1 or 2), in which a load "
		  "balancer names its client. Connections from other addresses than "
		  "trusted_peers, or without the header, are closed." },

	/* ---- targets: external services that jobs are sent to ---- */

	{ "url", HPX_OPTION_URL, TARGET(caller.url), .example = "https://mail.example/api",
	  .text = "Where the target is: http or https, without credentials or query. A job's "
		  "path is added to it. Must be given." },
	CREDENTIAL_ROWS(TARGET, "", caller),
	{ "connect_timeout", HPX_OPTION_DURATION, TARGET(caller.connect_timeout_ms),
	  .default_value = "5s", RANGE(10, 10 * MINUTE),
	  .text = "The longest time for connecting to the target. Nothing was sent then; the "
		  "job is sent later." },
	{ "timeout", HPX_OPTION_DURATION, TARGET(caller.timeout_ms), .default_value = "30s",
	  RANGE(10, HOUR),
	  .text = "The longest time for a whole delivery. After it, the outcome is unknown." },
	{ "concurrency", HPX_OPTION_COUNT, TARGET(concurrency), .default_value = "16",
	  RANGE(1, 4096), .text = "The most deliveries to this target that one process has under way at once." },
	{ "attempts", HPX_OPTION_COUNT, TARGET(attempts_max), .default_value = "12",
	  RANGE(1, 1000),
	  .text = "How often a job is sent before it becomes a dead letter." },
	{ "backoff", HPX_OPTION_DURATION, TARGET(backoff.base_ms), .default_value = "1s",
	  RANGE(10, DAY),
	  .text = "The longest wait before the second attempt. It doubles with each attempt; "
		  "every wait is random, up to this." },
	{ "backoff_max", HPX_OPTION_DURATION, TARGET(backoff.cap_ms), .default_value = "1h",
	  RANGE(10, 7 * DAY), .text = "The longest wait, however often it doubled." },
	{ "retry_after_max", HPX_OPTION_DURATION, TARGET(retry_after_max_ms), .default_value = "1h",
	  RANGE(0, 7 * DAY),
	  .text = "The longest delay of the next attempt that a Retry-After can ask for." },
	{ "honours_keys", HPX_OPTION_DURATION, TARGET(honours_keys_ms), .default_value = "0s",
	  RANGE(0, 3650 * DAY), .example = "24h",
	  .text = "Your promise that the target itself executes a key only once, and for how "
		  "long it remembers a key; 0 means that it does not. A job whose outcome is "
		  "unknown is sent again only within this time after its first delivery. With 0 "
		  "it is never sent again, but reconciled." },
	{ "server_error", HPX_OPTION_CHOICE, TARGET(server_error), .default_value = "unknown",
	  CHOICES("retry", "replay", "unknown"),
	  .text = "What a 5xx of the target means (502, 504, and 503 with Retry-After have their own "
		  "rules). retry: it was rolled back, and the job is sent again later. replay: it is "
		  "the final answer; a job whose answer nobody waits for is a dead letter. unknown: "
		  "nobody knows whether it happened." },
	{ "key_header", HPX_OPTION_TOKEN, TARGET(key_header), .default_value = "Idempotency-Key",
	  .text = "The header that carries the job's key to the target." },
	{ "provider_id", HPX_OPTION_POINTER, TARGET(provider_id), .example = "/id",
	  .text = "Where the target's JSON answer has its own id of what was created, as a JSON "
		  "pointer (RFC 6901). The id is kept with the job; probes and webhooks can "
		  "name it." },
	{ "breaker.failures", HPX_OPTION_COUNT, TARGET(breaker.failures_max), .default_value = "5",
	  RANGE(0, 1000),
	  .text = "After this many failures in a row, nothing is sent to the target for a while. "
		  "Then one job finds out whether the target is back. 0 never stops." },
	{ "breaker.pause_max", HPX_OPTION_DURATION, TARGET(breaker.open_max_ms),
	  .default_value = "1m", RANGE(SECOND, DAY),
	  .text = "The longest such pause. The first takes 1s; each failure doubles it." },
	RECONCILE_ROWS(TARGET, hpx_job_target, "the target, with its credentials and ca_file.",
		       "{operation} is replaced by the operation's reference, {provider_id} by "
		       "the target's own id, {key} by the key that the job was sent with."),

	/* ---- webhooks: external services that report an outcome unasked ---- */

	{ "scheme", HPX_OPTION_CHOICE, WEBHOOK(signature.scheme), .example = "stripe",
	  CHOICES("stripe", "standard-webhooks", "hmac-body"),
	  .text = "How messages are signed. stripe: Stripe-Signature. standard-webhooks: "
		  "webhook-signature with webhook-id and webhook-timestamp. hmac-body: an "
		  "HMAC-SHA256 of the body alone, hexadecimal or base64, in a header of any "
		  "name. Must be given." },
	{ "secret_file", HPX_OPTION_FILE, WEBHOOK(secret_file),
	  .example = "/etc/hapax/bank.secret",
	  .text = "A file with the secret; only hapax's user should be able to read it. It may "
		  "have several secrets, one per line, and all of them are valid: so a secret "
		  "can be changed without a gap. The file is read at start and with every "
		  "reload." },
	{ "secret_env", HPX_OPTION_VARIABLE, WEBHOOK(secret_env), .example = "BANK_SECRET",
	  .text = "The same, from an environment variable." },
	{ "tolerance", HPX_OPTION_DURATION, WEBHOOK(signature.tolerance_ms), .default_value = "5m",
	  RANGE(SECOND, DAY),
	  .text = "How far the signed time may be from ours. hmac-body signs no time." },
	{ "header", HPX_OPTION_TOKEN, WEBHOOK(signature.header), .example = "X-Signature",
	  .text = "hmac-body: the header that carries the signature." },
	{ "prefix", HPX_OPTION_TEXT, WEBHOOK(signature.prefix), .example = "sha256=",
	  .text = "hmac-body: the text before the signature, in that header." },
	{ "operation", HPX_OPTION_POINTER, WEBHOOK(operation),
	  .example = "/data/metadata/operation",
	  .text = "Where the JSON body has the operation's reference, as a JSON pointer. This, "
		  "provider_id or key must be given; the first that a message has counts." },
	{ "provider_id", HPX_OPTION_POINTER, WEBHOOK(provider_id), .example = "/data/id",
	  .text = "Where the body has the provider's own id, which its answer to the job gave, or "
		  "the application (hapax.provider_id)." },
	{ "key", HPX_OPTION_POINTER, WEBHOOK(key), .example = "/data/metadata/idempotency_key",
	  .text = "Where the body has the client's key, for messages without a reference. It counts "
		  "only where it selects exactly one operation, over all tenants and states of the "
		  "route; otherwise nothing is settled. Reservations of the route are then indexed by "
		  "their key." },
	{ "route", HPX_OPTION_TEXT, WEBHOOK(route), .example = "POST /payments",
	  .text = "With key: the route that the keys belong to, as it is written under routes." },
	{ "amount", HPX_OPTION_POINTER, WEBHOOK(amount), .example = "/data/amount",
	  .text = "Where the body has the amount. With it, a message that is matched by key settles "
		  "only if the amount is that of the request, as an exact decimal." },
	{ "amount_request", HPX_OPTION_POINTER, WEBHOOK(amount_request), .example = "/amount",
	  .text = "Where the JSON body of the client's request has the amount." },
	{ "target", HPX_OPTION_NAME, WEBHOOK(target), .example = "mailer",
	  .text = "The name of the target whose service sends the messages. They then settle "
		  "only jobs of that target. Without it, they settle any operation and any job. "
		  "Must be given if provider_id is and there are several targets, because two "
		  "services may give the same id." },
	{ "verdict", HPX_OPTION_POINTER, WEBHOOK(mapping.pointer), .example = "/data/status",
	  .text = "Where the body has the word that the lists below name. Must be given." },
	SIGN_ROW(WEBHOOK, "", "applied", mapping, APPLIED, HPX_OPTION_WORDS, "[succeeded]",
		 "Words that mean that it happened. A word that is in no list means nothing."),
	SIGN_ROW(WEBHOOK, "", "declined", mapping, DECLINED, HPX_OPTION_WORDS, "[failed]",
		 "Words that mean that it was executed and refused."),
	SIGN_ROW(WEBHOOK, "", "not_applied", mapping, NOT_APPLIED, HPX_OPTION_WORDS,
		 "[not_found]", "Words that mean that it never happened."),
	SIGN_ROW(WEBHOOK, "", "not_yet", mapping, NOT_YET, HPX_OPTION_WORDS, "[pending]",
		 "Words that mean that it is still under way."),
	ANSWER_ROWS(WEBHOOK, hpx_webhook, "", answer, "/data/object", "answer: all of the message."),
	{ "settle_after", HPX_OPTION_DURATION, WEBHOOK(settle_after_ms), .example = "2m",
	  RANGE(SECOND, 30 * DAY),
	  .text = "The longest time that the service can take for a request, from the request's "
		  "last byte on. Before that, \"not applied\" does not count. Must be given if "
		  "not_applied is." },
	{ "body", HPX_OPTION_SIZE, WEBHOOK(body_bytes_max), .default_value = "64KiB",
	  RANGE(1, MIB), .text = "The largest body of a message; a larger one is refused with 413." },
	{ "rate", HPX_OPTION_COUNT, WEBHOOK(per_second), .default_value = "100", RANGE(1, 100000),
	  .text = "How many messages are taken in a second; more are refused with 429." },
};
_Static_assert(sizeof(rows) / sizeof(rows[0]) <= HPX_OPTION_MAX, "one element per option");

static const struct hpx_option_section sections[] = {
	{ HPX_SPAN_INIT("defaults"), HPX_SPAN_INIT("defaults."), HPX_SECTION_GROUP,
	  HPX_PLACE_BIT(HPX_PLACE_POLICY) },
	{ HPX_SPAN_INIT("routes"), HPX_SPAN_INIT("routes[]."), HPX_SECTION_LIST,
	  HPX_PLACE_BIT(HPX_PLACE_POLICY) | HPX_PLACE_BIT(HPX_PLACE_ROUTE) },
	{ HPX_SPAN_INIT("listen"), HPX_SPAN_INIT("listen[]."), HPX_SECTION_LIST,
	  HPX_PLACE_BIT(HPX_PLACE_LISTENER) },
	{ HPX_SPAN_INIT("targets"), HPX_SPAN_INIT("targets."), HPX_SECTION_MAP,
	  HPX_PLACE_BIT(HPX_PLACE_TARGET) },
	{ HPX_SPAN_INIT("webhooks"), HPX_SPAN_INIT("webhooks."), HPX_SECTION_MAP,
	  HPX_PLACE_BIT(HPX_PLACE_WEBHOOK) },
	{ HPX_SPAN_INIT(""), HPX_SPAN_INIT(""), HPX_SECTION_ROOT,
	  HPX_PLACE_BIT(HPX_PLACE_GLOBAL) },
};

const struct hpx_option_table hpx_config_options = {
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
};
