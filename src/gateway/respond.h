/* Answers to the client: those of hapax, stored ones, and the upstream's. Without a
 * client (it is gone, or has its answer) all of these do nothing. */
#ifndef HPX_GATEWAY_RESPOND_H
#define HPX_GATEWAY_RESPOND_H

#include "gateway/request.h"

enum hpx_respond_close { HPX_RESPOND_KEEP,
			 HPX_RESPOND_CLOSE };

/* The details of a refusal; zero members are left out. */
struct hpx_refusal {
	const char *detail;
	unsigned status;      /* 0: the code's own */
	const char *executed; /* NULL: the code's own */
	unsigned retry_after_s;
	unsigned original_status;
	struct hpx_span location;
	const char *allow;      /* the methods of a 405 */
	struct hpx_span fields; /* further header lines */
	bool is_limit;          /* of a caller: Retry-After is spread, as that of a 503 is */
	const char *challenge;  /* what follows the realm in WWW-Authenticate (RFC 6750 §3) */
};

/* From `seconds` to four times as many, for a Retry-After where many are refused at once:
 * clients that all came back at the same moment would be refused again. */
unsigned hpx_respond_spread(struct hpx_shard *shard, unsigned seconds);

/* A problem document of hapax, in the shape of the profile. Returns DONE, like the
 * next three: the request has its answer. */
enum hpx_next hpx_respond_refuse(struct hpx_request *request, enum hpx_problem_code code,
				 const struct hpx_refusal *refusal, enum hpx_respond_close close);

/* The same, with a detail only (may be NULL); the connection goes on. */
enum hpx_next hpx_respond_problem(struct hpx_request *request, enum hpx_problem_code code,
				  const char *detail);

/* A whole answer of hapax: `fields` are further header lines; an empty `content_type`
 * is left out. */
enum hpx_next hpx_respond_direct(struct hpx_request *request, unsigned status, struct hpx_span content_type,
				 struct hpx_span fields, struct hpx_span body);

/* The stored answer in request->reservation.stored, marked as a replay unless the
 * application has just committed it. */
enum hpx_next hpx_respond_replay(struct hpx_request *request);

/* The upstream's whole answer, as it was collected. */
void hpx_respond_collected(struct hpx_request *request);

/* The upstream's answer as it flows: its head (with what was collected so
 * far), pieces, end. While too much is on its way to the client, the exchange is
 * paused. `break` ends the answer in the middle: the client must see that it is
 * not whole. */
void hpx_respond_begin(struct hpx_request *request);
void hpx_respond_piece(struct hpx_request *request, struct hpx_span bytes);
void hpx_respond_end(struct hpx_request *request);
void hpx_respond_break(struct hpx_request *request);

/* A 1xx of the upstream; an event of an exchange whose user is the request. */
void hpx_respond_informational(void *request, const struct hpx_http_head *head);

/* Fills request->answer from the head of the upstream's answer: the fields for the
 * client, and those for a replay. False: the head cannot be written safely, or is too
 * large. */
bool hpx_respond_take_head(struct hpx_request *request, const struct hpx_http_head *head);

#endif
