/* The table of what a description can say: the file, the flags and --help come
 * from it. */
#include "verify/spec.h"

#define AT(member) .offset = offsetof(struct hpx_verify_spec, member)
#define LIST(member, counter) \
	.offset = offsetof(struct hpx_verify_spec, member), \
	.count = offsetof(struct hpx_verify_spec, counter)
#define MAIN(member) \
	.offset = offsetof(struct hpx_verify_spec, requests[HPX_REQUEST_main].member)

#define SECOND 1000u
#define HOUR (3600 * SECOND)

const struct hpx_verify_option hpx_verify_options[] = {
	{ "url", NULL, "URL", "What is verified: its host is the only one that is asked.",
	  HPX_VERIFY_URL, .offset = 0 },
	{ "key_header", "key-header", "NAME", "The header of the key (Idempotency-Key).",
	  HPX_VERIFY_NAME, AT(key_header) },
	{ "method", "X,request", "METHOD", "The method (POST).", HPX_VERIFY_METHOD,
	  MAIN(method) },
	{ "headers", "H,header", "LINE...",
	  "A header line; {{env:NAME}} keeps a secret out of files and reports.",
	  HPX_VERIFY_LINES, MAIN(headers),
	  .count = offsetof(struct hpx_verify_spec, requests[HPX_REQUEST_main].header_count) },
	{ "body", "d,data", "BODY",
	  "The body, or @FILE; {{uuid}}, {{n}} and {{key}} differ for each operation.",
	  HPX_VERIFY_BODY, MAIN(body) },
	{ "other_body", "other-body", "BODY",
	  "A body that must not pass under the same key (or one number is changed).",
	  HPX_VERIFY_BODY, AT(other_body) },
	{ "number", "number", "POINTER", "The number in the body that may be changed.",
	  HPX_VERIFY_POINTER, AT(number) },
	{ "resource", "resource", "POINTER", "Where an answer names what was created: /id.",
	  HPX_VERIFY_POINTER, AT(resource) },
	{ "effects.get", "effects", "PATH", "A GET by which effects are counted.",
	  HPX_VERIFY_PATH, AT(effects_path) },
	{ "effects.count", "effects-count", "POINTER",
	  "Where its answer has their number, or their list (the whole answer).",
	  HPX_VERIFY_POINTER, AT(effects_count) },
	{ "second_tenant", "second-tenant", "LINE...",
	  "A header line of another caller's, in place of the first one's.", HPX_VERIFY_LINES,
	  LIST(tenant_headers, tenant_header_count) },
	{ "dialect", "dialect", "NAME", "auto, ietf or stripe (auto: found out).",
	  HPX_VERIFY_DIALECT, AT(dialect) },
	{ "skip", "skip", "ROW...", "A row that does not apply.", HPX_VERIFY_ROWS,
	  LIST(skip, skip_count) },
	{ "only", "only", "ROW...", "Judges this row alone.", HPX_VERIFY_ROWS,
	  LIST(only, only_count) },
	{ "limits.requests", "requests", "N", "At most so many requests (5000).",
	  HPX_VERIFY_COUNT, AT(requests_max), .min = 1, .max = 1000000 },
	{ "limits.time", "time", "DURATION", "Nothing is sent after so long (5m).",
	  HPX_VERIFY_DURATION, AT(time_max_ms), .min = SECOND, .max = 24 * HOUR },
	{ "limits.concurrency", "concurrency", "N", "At most so many at once (100).",
	  HPX_VERIFY_COUNT, AT(concurrency_max), .min = 1, .max = 1000 },
	{ "limits.timeout", "timeout", "DURATION", "For one answer (30s).",
	  HPX_VERIFY_DURATION, AT(answer_timeout_ms), .min = 10, .max = HOUR },
	{ "limits.settle", "settle", "DURATION",
	  "For a definite answer, over retries, and for a start (60s).", HPX_VERIFY_DURATION,
	  AT(settle_ms), .min = 10, .max = HOUR },
	{ "crash.kill", "crash-cmd", "CMD", "Kills the server under test, by /bin/sh.",
	  HPX_VERIFY_TEXT, AT(crash_cmd) },
	{ "crash.start", "start-cmd", "CMD", "Starts it again; may stay in the foreground.",
	  HPX_VERIFY_TEXT, AT(start_cmd) },
	{ "crash.times", "crashes", "N", "How often it is killed (10).", HPX_VERIFY_COUNT,
	  AT(crashes), .min = 1, .max = 1000 },
	{ "seed", "seed", "N", "For the moments of crashes; a run says which it used.",
	  HPX_VERIFY_COUNT, AT(seed), .min = 0, .max = INT64_MAX },
	{ "cacert", "cacert", "FILE", "Certificates to trust, in place of the system's.",
	  HPX_VERIFY_FILE, AT(ca_file) },
	{ "insecure", "insecure", NULL, "Checks no certificate.", HPX_VERIFY_SWITCH,
	  AT(insecure) },
};

const size_t hpx_verify_option_count =
	sizeof(hpx_verify_options) / sizeof(hpx_verify_options[0]);
_Static_assert(sizeof(hpx_verify_options) / sizeof(hpx_verify_options[0]) <=
		       HPX_VERIFY_OPTION_MAX,
	       "the flags have a place for each");

#define OF_REQUEST(member) .offset = offsetof(struct hpx_verify_request, member)

const struct hpx_verify_option hpx_verify_request_options[] = {
	{ "method", NULL, NULL, NULL, HPX_VERIFY_METHOD, OF_REQUEST(method) },
	{ "path", NULL, NULL, NULL, HPX_VERIFY_PATH, OF_REQUEST(path) },
	{ "headers", NULL, NULL, NULL, HPX_VERIFY_LINES, OF_REQUEST(headers),
	  .count = offsetof(struct hpx_verify_request, header_count) },
	{ "body", NULL, NULL, NULL, HPX_VERIFY_BODY, OF_REQUEST(body) },
};
_Static_assert(sizeof(hpx_verify_request_options) / sizeof(hpx_verify_request_options[0]) ==
		       HPX_VERIFY_REQUEST_OPTION_COUNT,
	       "as the header says");

const char *hpx_verify_request_name_text(enum hpx_verify_request_name name)
{
	static const char *const words[] = {
#define X(name, about) #name,
		HPX_VERIFY_REQUEST_LIST(X)
#undef X
	};

	return words[name];
}

const char *hpx_verify_request_name_about(enum hpx_verify_request_name name)
{
	static const char *const words[] = {
#define X(name, about) about,
		HPX_VERIFY_REQUEST_LIST(X)
#undef X
	};

	return words[name];
}
