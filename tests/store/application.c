/* The SQL functions as an application calls them, and the rows they meet. */
#include "application.h"

#include "base/bytes.h"

const char *lease_of(unsigned key, struct hpx_token token)
{
	static char text[HPX_LEASE_SIZE];
	struct hpx_operation_id id = id_of(key);

	hpx_lease_print(&id, &token, text);
	return text;
}

const char *state_after(PGconn *app, const char *format, ...)
{
	static char state[6];
	char sql[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);
	PGresult *result = PQexec(app, sql);
	const char *found = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	snprintf(state, sizeof(state), "%s", found != NULL ? found : "00000");
	PQclear(result);
	return state;
}

const char *ask(PGconn *app, const char *format, ...)
{
	static char text[512];
	char sql[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);
	PGresult *result = cluster_ask(app, sql);
	snprintf(text, sizeof(text), "%s",
		 PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "");
	PQclear(result);
	return text;
}

void put(struct fixture *f, unsigned key, const struct situation *s)
{
	struct hpx_operation_id id = id_of(key);
	char hex[2 * HPX_OPERATION_ID_SIZE + 1], sql[512];
	bool ends = s->state == HPX_STATE_COMPLETED ||
		    s->state == HPX_STATE_FAILED_RETRYABLE || s->state == HPX_STATE_PENDING;

	if (s->state == HPX_STATE_NONE)
		return;
	reserve(f, key, BODY, A);
	hpx_hex_encode(id.bytes, sizeof(id.bytes), hex);
	snprintf(sql, sizeof(sql),
		 "UPDATE hapax.operation SET state = %d, attempt = %u, when_lost = %d, "
		 "advanced = %s, point = 'begun', last_error = 'status_503', status = %d, expires = %s, token = %s "
		 "WHERE id = '%.32s'",
		 (int)s->state, s->attempt, (int)s->when_lost, s->advanced ? "true" : "false",
		 s->state == HPX_STATE_COMPLETED ? 200 : 0, ends ? "changed + 5" : "0",
		 s->state == HPX_STATE_FAILED_RETRYABLE ? "'00000000-0000-0000-0000-000000000000'" :
							  "token",
		 hex);
	cluster_sql(sql);
}

void print_record(const struct hpx_record *r, char *out, size_t size)
{
	char token[2 * HPX_TOKEN_SIZE + 1], mark[2 * HPX_MARK_SIZE + 1];

	hpx_hex_encode(r->token.bytes, sizeof(r->token.bytes), token);
	hpx_hex_encode(r->mark.bytes, sizeof(r->mark.bytes), mark);
	snprintf(out, size,
		 "%s attempt=%u token=%s mark=%s status=%u kept=%d changed=%lld expires=%lld "
		 "retention=%lld lease=%lld when_lost=%u advanced=%d last_error=%s point=%s",
		 hpx_state_name(r->state), r->attempt, token, mark, r->status, r->kept,
		 (long long)r->changed_ms, (long long)r->expires_ms, (long long)r->retention_ms,
		 (long long)r->lease_until_ms, r->when_lost, r->advanced,
		 hpx_last_error_name(r->last_error), r->point);
}

struct hpx_record record_or_none(struct fixture *f, unsigned key)
{
	if (strcmp(state_of(f, key), "none") == 0)
		return (struct hpx_record){ .state = HPX_STATE_NONE };
	return record_of(f, key);
}
