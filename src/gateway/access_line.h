/* One line of the access log: what is known of a request when it is over, and how that is
 * printed. Never a key, a credential, a query, a path or a body: the route's pattern stands
 * for the path. */
#ifndef HPX_GATEWAY_ACCESS_LINE_H
#define HPX_GATEWAY_ACCESS_LINE_H

#include "base/buffer.h"

struct hpx_request;
struct hpx_settings;
struct hpx_shard;

/* What hapax did with a request. X(name) */
#define HPX_DID_LIST(X) \
	X(nothing)  /* the client left before anything was decided */ \
	X(executed) /* sent to the upstream, guarded */ \
	X(replayed) /* given the stored answer */ \
	X(waited)   /* for another request with the same key, whatever came of it */ \
	X(accepted) /* 202: it is delivered later, or is under way */ \
	X(refused)  /* nothing was sent; `code` says why */ \
	X(passed)   /* sent to the upstream without a guard */ \
	X(own)      /* answered by hapax itself: /.hapax/, a preflight */

enum hpx_did {
#define X(name) HPX_DID_##name,
	HPX_DID_LIST(X)
#undef X
		HPX_DID_COUNT
};

const char *hpx_did_name(enum hpx_did did);

enum hpx_access_format {
	HPX_ACCESS_NONE,
	HPX_ACCESS_TEXT, /* name=value, as events */
	HPX_ACCESS_JSON,
	HPX_ACCESS_TERMINAL, /* short, for a person who watches */
	HPX_ACCESS_COLOURED, /* the same, in colours */
};

/* A time that is not known, because that part was not come to. */
#define HPX_ACCESS_NO_TIME UINT64_MAX

struct hpx_access_line {
	int64_t wall_ms;
	struct hpx_span peer;
	struct hpx_span method; /* as the client wrote it; any length */
	struct hpx_span route;  /* empty: none */
	unsigned status;        /* 0: the client left before its answer */
	enum hpx_did did;
	const char *code;          /* of the problem document; NULL: none */
	unsigned attempt;          /* 0: none; the next two: empty */
	struct hpx_span operation; /* the reference */
	struct hpx_span tenant;    /* short hash */
	struct hpx_span trace;     /* the id of traceparent */
	uint64_t whole_us;         /* the parts are those of struct hpx_request_times */
	uint64_t queue_us;
	uint64_t reserve_us;
	uint64_t upstream_us;
	uint64_t complete_us;
	uint64_t bytes_in; /* heads and bodies, without TLS */
	uint64_t bytes_out;
};

/* Appends the line, with its newline: at most HPX_LOG_LINE_MAX bytes, and no control byte
 * but that one. After a failure `out` is as it was. */
enum hpx_status hpx_access_line_print(const struct hpx_access_line *line,
				      enum hpx_access_format format, struct hpx_buffer *out);

/* How these settings have lines printed. Asks whether standard output is a terminal. */
enum hpx_access_format hpx_access_format_of(const struct hpx_settings *settings);

/* ---- on the loop's thread ---- */

/* The request is over for the log: its line is made, once. */
void hpx_access_note(struct hpx_request *request);
/* Hands the lines of this turn to the writer. */
void hpx_access_hand_over(struct hpx_shard *shard);

#endif
