/* Shows that C and SQL keep the same of an application's headers: every name
 * that one of them leaves out, every form that one of them refuses, every byte
 * at every place. */
#include "fixture.h"

#include "../unit/http/kept_vectors.h"
#include "cluster.h"
#include "http/field.h"

static PGresult *by_sql(PGconn *conn, const char *lines)
{
	const char *params[] = { lines };

	return PQexecParams(conn, "SELECT hapax.kept_headers($1::text)", 1, NULL, params, NULL, NULL,
			    1);
}

static void compare(PGconn *conn, const char *lines)
{
	struct hpx_buffer kept;
	PGresult *result = by_sql(conn, lines);
	bool taken = PQresultStatus(result) == PGRES_TUPLES_OK;

	hpx_buffer_init(&kept, HPX_KEPT_BYTES_MAX);
	enum hpx_status status = hpx_field_lines_keep(hpx_span_of(lines), &kept);
	struct hpx_span sql = taken ? hpx_span(PQgetvalue(result, 0, 0),
					       (size_t)PQgetlength(result, 0, 0)) :
				      HPX_SPAN("");
	if (taken != (status == HPX_OK) || !hpx_span_eq(sql, hpx_buffer_span(&kept)))
		fail_msg("\"%.80s\": SQL %s \"%.*s\", C %s \"%.*s\"", lines,
			 taken ? "keeps" : "refuses", HPX_SPAN_ARG(sql), hpx_status_name(status),
			 HPX_SPAN_ARG(hpx_buffer_span(&kept)));
	hpx_buffer_done(&kept);
	PQclear(result);
}

static void the_vectors(void **state)
{
	PGconn *conn = cluster_connect();

	(void)state;
	for (size_t i = 0; i < KEPT_VECTORS; i++)
		compare(conn, kept_vectors[i].lines);
	PQfinish(conn);
}

static void every_name(void **state)
{
	static const char *const names[] = {
		"Connection",
		"Keep-Alive",
		"Proxy-",
		"proxy-anything",
		"Proxy",
		"TE",
		"TEE",
		"Trailer",
		"Transfer-Encoding",
		"Upgrade",
		"Content-Length",
		"Content-Type",
		"Set-Cookie",
		"Set-Cookie2",
		"Date",
		"Age",
		"Via",
		"Alt-Svc",
		"Clear-Site-Data",
		"Authentication-Info",
		"RateLimit",
		"RateLimit-",
		"ratelimit-policy",
		"RateLimits",
		"Server-Timing",
		"Idempotent-Replayed",
		"Idempotent-Reconstructed",
		"Idempotency-Expires",
		"Idempotency-Key",
		"Hapax-",
		"hapax_x",
		"Hapax",
		"HAPAX-LEASE",
		"WWW-Authenticate",
		"Retry-After",
	};
	PGconn *conn = cluster_connect();
	char lines[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(lines, sizeof(lines), "A: 1\n%s: value\nB: 2", names[i]);
		compare(conn, lines);
	}
	PQfinish(conn);
}

static void every_byte_at_every_place(void **state)
{
	static const char *const shapes[] = { "@A: v", "A@B: v", "A@: v", "A:@v", "A: v@w",
					      "A: v@", "A: v@\nB: w", "Date: v@w" };
	PGconn *conn = cluster_connect();
	char lines[32];

	(void)state;
	for (int c = 1; c < 128; c++)
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
			snprintf(lines, sizeof(lines), "%s", shapes[i]);
			*strchr(lines, '@') = (char)c;
			compare(conn, lines);
		}
	PQfinish(conn);
}

/* The bound is on what is kept, to the byte. */
static void the_bound(void **state)
{
	static const char *const names[] = { "Dote: ", "Date: " };
	static char lines[HPX_KEPT_BYTES_MAX + 16];
	PGconn *conn = cluster_connect();

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (size_t len = HPX_KEPT_BYTES_MAX - 4; len < HPX_KEPT_BYTES_MAX + 4; len++) {
			memset(lines, 'x', len);
			memcpy(lines, names[i], strlen(names[i]));
			lines[len] = '\0';
			compare(conn, lines);
		}
	PQfinish(conn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_POSTGRES(the_vectors),
		ON_POSTGRES(every_name),
		ON_POSTGRES(every_byte_at_every_place),
		ON_POSTGRES(the_bound),
	};
	return run_on_drivers("kept_fields", tests);
}
