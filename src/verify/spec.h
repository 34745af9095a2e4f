/* The description of what is verified: the request and further ones, how effects
 * are counted, and the bounds. Read from a file, from flags, or both (a flag wins).
 * All spans live in the spec's arena. */
#ifndef HPX_VERIFY_SPEC_H
#define HPX_VERIFY_SPEC_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/span.h"
#include "base/status.h"
#include "config/option.h"

#define HPX_VERIFY_HEADERS_MAX 64
#define HPX_VERIFY_PROBLEM_SIZE 512

enum hpx_dialect { HPX_DIALECT_AUTO,
		   HPX_DIALECT_IETF,
		   HPX_DIALECT_STRIPE,
		   HPX_DIALECT_PAYPAL,
		   HPX_DIALECT_SQUARE,
		   HPX_DIALECT_COUNT };

/* What a dialect promises. `auto` takes either where two are possible. */
struct hpx_dialect_traits {
	const char *name;
	const char *key_header; /* NULL: the key is in the body, as {{key}} */
	bool strings;           /* keys are Strings of RFC 9651 */
	bool refuses_missing;   /* a request without a key may be refused */
	bool executes_missing;  /* or executed */
	bool mismatch_422;      /* another request under the key */
	bool mismatch_400;
	bool stores_errors; /* a 500 is the answer for every retry */
	bool marks_replays; /* Idempotent-Replayed is promised */
};
extern const struct hpx_dialect_traits hpx_dialects[HPX_DIALECT_COUNT];

/* The named requests of a description, besides the main one. */
#define HPX_VERIFY_REQUEST_LIST(X) \
	X(main, "the request that must happen once") \
	X(other, "a request to another endpoint that takes keys") \
	X(slow, "a request that the API takes a second or more to answer") \
	X(client_error, "a request that the API refuses with a 4xx") \
	X(server_error, "a request whose effect happens, but which is answered by a 5xx") \
	X(outage, "a request without effect and answered by a 5xx at first, and done later") \
	X(binary, "a request whose answer is not text") \
	X(large_answer, "a request whose answer is larger than the API would store") \
	X(get, "a request that only reads") \
	X(delete, "a DELETE that may be sent, twice")

enum hpx_verify_request_name {
#define X(name, about) HPX_REQUEST_##name,
	HPX_VERIFY_REQUEST_LIST(X)
#undef X
		HPX_REQUEST_COUNT
};

/* Templates, not yet filled in. The path begins with '/'. Headers are those of the main
 * request, changed by the request's own; none of them is the key's. */
struct hpx_verify_request {
	bool given;
	struct hpx_span method;
	struct hpx_span path;                            /* with its query */
	struct hpx_span headers[HPX_VERIFY_HEADERS_MAX]; /* "Name: value" */
	size_t header_count;
	struct hpx_span body;
};

struct hpx_verify_spec {
	struct hpx_arena arena;
	/* The host under test. */
	bool tls;
	struct hpx_span host;
	uint16_t port;
	struct hpx_span ca_file; /* empty: the system's */
	bool insecure;           /* certificates are not checked */

	struct hpx_verify_request requests[HPX_REQUEST_COUNT];
	struct hpx_span other_body;                             /* must mismatch; empty: made by changing a number */
	struct hpx_span number;                                 /* pointer to the number to vary; empty: the first */
	struct hpx_span resource;                               /* pointer to the created resource's id; may be empty */
	struct hpx_span effects_path;                           /* GET, a template; empty: effects are not counted */
	struct hpx_span effects_count;                          /* pointer to a number or a list; "": the whole answer */
	struct hpx_span tenant_headers[HPX_VERIFY_HEADERS_MAX]; /* the second tenant's */
	size_t tenant_header_count;
	struct hpx_span key_header; /* "Idempotency-Key" */
	enum hpx_dialect dialect;
	struct hpx_span skip[64]; /* rows that do not apply */
	size_t skip_count;
	struct hpx_span only[64]; /* none: all rows */
	size_t only_count;

	/* Bounds. */
	uint64_t requests_max;
	uint64_t time_max_ms;
	uint64_t concurrency_max;
	uint64_t answer_timeout_ms; /* for one answer */
	uint64_t settle_ms;         /* for a definite answer, over retries */

	struct hpx_span crash_cmd;
	struct hpx_span start_cmd;
	uint64_t crashes;
	uint64_t seed; /* random where none is given */
};

/* The name of a header line, up to its colon. The lines of a spec have one. */
static inline struct hpx_span hpx_verify_line_name(struct hpx_span line)
{
	return hpx_span_first(line, hpx_span_index(line, ':'));
}

/* "host:port" as a URL has it: brackets around IPv6, and no port where it is the
 * scheme's own. */
#define HPX_VERIFY_AUTHORITY_SIZE 272
void hpx_verify_authority(const struct hpx_verify_spec *spec, char out[HPX_VERIFY_AUTHORITY_SIZE]);

#define HPX_VERIFY_BODY_MAX ((size_t)16 << 20)

/* ---- reading a description ---- */

/* The options of a description, and their flags. The URL is the first row. */
extern const struct hpx_option_table hpx_verify_options;
#define HPX_VERIFY_OPTION_MAX 32

#define HPX_VERIFY_REPEAT_MAX 64

/* The values of the flags, each list ended by NULL, at the index of the option in
 * the table. Borrowed. */
struct hpx_verify_flags {
	const char *values[HPX_VERIFY_OPTION_MAX][HPX_VERIFY_REPEAT_MAX + 1];
};

struct hpx_config_report;

/* Reads a description's text (may be empty) and the flags, which win (of headers:
 * line by line). Files that the text names lie in `folder`. HPX_INVALID: the
 * report says what is wrong and what to do; nothing is opened but those files.
 * The caller calls _done in either case. */
enum hpx_status hpx_verify_spec_read(struct hpx_span text, struct hpx_span folder,
				     const struct hpx_verify_flags *flags,
				     struct hpx_config_report *report,
				     struct hpx_verify_spec *ret_spec);
/* The same for a file; `path` NULL: the flags alone. */
enum hpx_status hpx_verify_spec_load(const char *path, const struct hpx_verify_flags *flags,
				     struct hpx_config_report *report,
				     struct hpx_verify_spec *ret_spec);
void hpx_verify_spec_done(struct hpx_verify_spec *spec);

/* "main", "other" …; and a sentence about the request. */
const char *hpx_verify_request_name_text(enum hpx_verify_request_name name);
const char *hpx_verify_request_name_about(enum hpx_verify_request_name name);

/* ---- templates (template.c) ---- */

/* {{uuid}}, {{n}}, {{key}} and {{env:NAME}} in paths, headers and bodies. */
enum hpx_template_place {
	HPX_TEMPLATE_PATH,   /* values are percent-encoded */
	HPX_TEMPLATE_HEADER, /* the only place for {{env:NAME}}: it is kept out of reports */
	HPX_TEMPLATE_BODY,
};

struct hpx_template_values {
	struct hpx_span uuid;
	struct hpx_span n;
	struct hpx_span key;
};

#define HPX_TEMPLATE_PROBLEM_SIZE 200

/* HPX_INVALID: `problem` says what is wrong and what to do: an unknown variable,
 * one without an end, one that is not set in the environment. */
enum hpx_status hpx_template_check(struct hpx_span text, enum hpx_template_place place,
				   char problem[HPX_TEMPLATE_PROBLEM_SIZE]);
/* Of a template that was checked. HPX_INVALID: it was not. */
enum hpx_status hpx_template_fill(struct hpx_span text, enum hpx_template_place place,
				  const struct hpx_template_values *values,
				  struct hpx_buffer *out);
bool hpx_template_names_env(struct hpx_span text);
/* Whether any of its variables differs from operation to operation. */
bool hpx_template_varies(struct hpx_span text);

#endif
