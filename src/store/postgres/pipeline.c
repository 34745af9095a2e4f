/* libpq's pipeline: statements are sent one behind the other and their results taken
 * in order, with a deadline for all: a database that does not answer must not hold the
 * committer for ever. Sockets do not block, because both sides may have more to send
 * than fits into their buffers. */
#include "store/postgres/pipeline.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "store/store.h"

/* Beyond the server's own statement_timeout (connection.c): it is the server
 * that should give up first, since it then says what it did. */
#define ANSWER_MS 15000

static const struct {
	const char *name;
	enum hpx_pg_role role;
	const char *sql;
} statements[] = {
#define X(name, role, sql) { "hapax_" #name, HPX_PG_##role, sql },
	HPX_PG_LIST(X)
#undef X
};

const char *hpx_pg_sql(enum hpx_pg_statement statement)
{
	HPX_ASSERT((size_t)statement < sizeof(statements) / sizeof(statements[0]));
	return statements[statement].sql;
}

/* ---- parameters ---- */

void hpx_pg_add_bytes(struct hpx_pg_params *params, struct hpx_span bytes)
{
	HPX_ASSERT(params->count < HPX_PG_PARAMS_MAX);
	params->value[params->count] = bytes.ptr;
	params->length[params->count] = (int)bytes.len;
	params->count++;
}

void hpx_pg_add_int8(struct hpx_pg_params *params, int64_t value)
{
	char *out = params->number[params->count];

	for (int i = 0; i < 8; i++)
		out[i] = (char)((uint64_t)value >> (56 - 8 * i));
	hpx_pg_add_bytes(params, hpx_span(out, 8));
}

/* ---- arrays ---- */

/* Far below PostgreSQL's own bound of 1 GiB for a message. */
#define ARRAY_BYTES_MAX ((size_t)768 << 20)
/* The binary form of an array: dimensions (1), whether there are nulls, the element's
 * type, its length, its lower bound (1), then each element with its length before it,
 * all of them big endian. */
#define HEADER_BYTES 20

static void store_u32(char *out, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (char)(value >> (24 - 8 * i));
}

static void append(struct hpx_pg_array *array, struct hpx_span bytes)
{
	if (array->status == HPX_OK)
		array->status = hpx_buffer_append(&array->bytes, bytes);
}

static void append_u32(struct hpx_pg_array *array, uint32_t value)
{
	char bytes[4];

	store_u32(bytes, value);
	append(array, hpx_span(bytes, sizeof(bytes)));
}

void hpx_pg_columns_init(struct hpx_pg_columns *columns, const enum hpx_pg_type *types, int count)
{
	static const char header[HEADER_BYTES];

	HPX_ASSERT(count <= HPX_PG_PARAMS_MAX);
	columns->count = count;
	columns->next = 0;
	for (int i = 0; i < count; i++) {
		struct hpx_pg_array *array = &columns->array[i];
		*array = (struct hpx_pg_array){ .type = types[i] };
		hpx_buffer_init(&array->bytes, ARRAY_BYTES_MAX);
		append(array, hpx_span(header, sizeof(header)));
	}
}

void hpx_pg_columns_done(struct hpx_pg_columns *columns)
{
	for (int i = 0; i < columns->count; i++)
		hpx_buffer_done(&columns->array[i].bytes);
}

static struct hpx_pg_array *next_column(struct hpx_pg_columns *columns)
{
	struct hpx_pg_array *array = &columns->array[columns->next];

	HPX_ASSERT(columns->next < columns->count);
	columns->next = (columns->next + 1) % columns->count;
	array->count++;
	return array;
}

void hpx_pg_put_bytes(struct hpx_pg_columns *columns, struct hpx_span bytes)
{
	struct hpx_pg_array *array = next_column(columns);

	if (bytes.len > ARRAY_BYTES_MAX)
		array->status = HPX_TOO_LARGE;
	append_u32(array, (uint32_t)bytes.len);
	append(array, bytes);
}

void hpx_pg_put_parts(struct hpx_pg_columns *columns, const struct hpx_span *parts, size_t count,
		      enum hpx_status status)
{
	struct hpx_pg_array *array = next_column(columns);
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += parts[i].len;
	if (status == HPX_OK && len > ARRAY_BYTES_MAX)
		status = HPX_TOO_LARGE;
	if (status != HPX_OK)
		array->status = status;
	append_u32(array, (uint32_t)len);
	for (size_t i = 0; i < count; i++)
		append(array, parts[i]);
}

void hpx_pg_put_text(struct hpx_pg_columns *columns, struct hpx_span text)
{
	struct hpx_pg_array *array = next_column(columns);
	size_t at = 0;

	if (text.len > ARRAY_BYTES_MAX)
		array->status = HPX_TOO_LARGE;
	append_u32(array, (uint32_t)text.len);
	if (text.len > 0 && hpx_utf8_valid(text) && memchr(text.ptr, '\0', text.len) == NULL) {
		append(array, text);
		return;
	}
	while (at < text.len && array->status == HPX_OK) {
		size_t len = hpx_utf8_sequence(hpx_span_skip(text, at));
		bool good = len > 0 && text.ptr[at] != '\0';
		append(array, good ? hpx_span(text.ptr + at, len) : HPX_SPAN("?"));
		at += good ? len : 1;
	}
}

static size_t width_of(enum hpx_pg_type type)
{
	switch (type) {
	case HPX_PG_BOOL:
		return 1;
	case HPX_PG_INT2:
		return 2;
	case HPX_PG_INT4:
		return 4;
	default:
		HPX_ASSERT(type == HPX_PG_INT8);
		return 8;
	}
}

void hpx_pg_put_int(struct hpx_pg_columns *columns, int64_t value)
{
	struct hpx_pg_array *array = next_column(columns);
	size_t width = width_of(array->type);
	char bytes[8];

	for (size_t i = 0; i < width; i++)
		bytes[i] = (char)((uint64_t)value >> (8 * (width - 1 - i)));
	append_u32(array, (uint32_t)width);
	append(array, hpx_span(bytes, width));
}

void hpx_pg_put_null(struct hpx_pg_columns *columns)
{
	struct hpx_pg_array *array = next_column(columns);

	array->has_null = true;
	append_u32(array, UINT32_MAX);
}

uint32_t hpx_pg_columns_rows(const struct hpx_pg_columns *columns)
{
	return columns->array[0].count;
}

size_t hpx_pg_columns_bytes(const struct hpx_pg_columns *columns)
{
	size_t bytes = 0;

	for (int i = 0; i < columns->count; i++)
		bytes += columns->array[i].bytes.len;
	return bytes;
}

enum hpx_status hpx_pg_columns_param(struct hpx_pg_columns *columns, struct hpx_pg_params *params)
{
	HPX_ASSERT(columns->next == 0); /* whole rows only */
	params->count = 0;
	for (int i = 0; i < columns->count; i++) {
		struct hpx_pg_array *array = &columns->array[i];
		HPX_ASSERT(array->count == columns->array[0].count);
		char *header = array->bytes.ptr;
		if (array->status != HPX_OK)
			return array->status;
		store_u32(header, 1);
		store_u32(header + 4, array->has_null);
		store_u32(header + 8, (uint32_t)array->type);
		store_u32(header + 12, array->count);
		store_u32(header + 16, 1);
		hpx_pg_add_bytes(params, hpx_buffer_span(&array->bytes));
	}
	return HPX_OK;
}

/* ---- trouble ---- */

/* X(SQLSTATE or its class, status) */
#define SQLSTATE_LIST(X) \
	X("55P03", BUSY)        /* lock_not_available */ \
	X("40001", BUSY)        /* serialization_failure */ \
	X("40P01", BUSY)        /* deadlock_detected */ \
	X("57014", TIMEOUT)     /* query_canceled: statement_timeout */ \
	X("57P", UNAVAILABLE)   /* shutdown, crash, cannot connect now */ \
	X("08", UNAVAILABLE)    /* connection exceptions */ \
	X("25P03", UNAVAILABLE) /* idle_in_transaction_session_timeout */ \
	X("53100", FULL) \
	X("53200", NOMEM) \
	X("53300", UNAVAILABLE) /* too_many_connections */ \
	X("25006", READ_ONLY)   /* this is no primary any more */ \
	X("42501", READ_ONLY)   /* insufficient_privilege */ \
	X("54", TOO_LARGE) \
	X("22", INVALID) \
	X("23502", INVALID) /* not_null_violation */ \
	X("23514", INVALID) /* check_violation */ \
	X("HX001", STALE)   /* these: the SQL functions' own */ \
	X("HX002", REFUSED) \
	X("HX003", CONFLICT) \
	X("HX004", INVALID) \
	X("HX005", NOT_FOUND) \
	X("HX006", UNSUPPORTED) \
	X("XX", CORRUPT)

enum hpx_status hpx_pg_status_of(const char *sqlstate)
{
	static const struct {
		const char *state;
		enum hpx_status status;
	} table[] = {
#define X(state, status) { state, HPX_##status },
		SQLSTATE_LIST(X)
#undef X
	};

	if (sqlstate == NULL || *sqlstate == '\0')
		return HPX_UNAVAILABLE;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strncmp(sqlstate, table[i].state, strlen(table[i].state)) == 0)
			return table[i].status;
	return HPX_IO;
}

void hpx_pg_explain(const char *what, const char *message, char *problem)
{
	size_t len;

	hpx_store_problem(problem, "%s: %s", what, message != NULL ? message : "");
	len = strlen(problem);
	while (len > 0 && (problem[len - 1] == '\n' || problem[len - 1] == ' '))
		problem[--len] = '\0';
	for (size_t i = 0; i < len; i++)
		if (problem[i] == '\n' || problem[i] == '\t')
			problem[i] = ' ';
		else if (problem[i] == '"') /* it is quoted itself in a log line */
			problem[i] = '\'';
}

/* The first trouble is the one to tell; what follows is its consequence. */
static void fail(struct hpx_pg_pipe *pipe, enum hpx_status status, const char *message)
{
	if (pipe->status != HPX_OK)
		return;
	pipe->status = status;
	hpx_pg_explain("PostgreSQL", message, pipe->problem);
}

static void fail_by_result(struct hpx_pg_pipe *pipe, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	char text[HPX_STORE_PROBLEM_SIZE];

	/* The detail of an error can quote a row, the primary message does
	 * not. */
	if (primary != NULL)
		snprintf(text, sizeof(text), "%s (SQLSTATE %s)", primary, state ? state : "?");
	else
		snprintf(text, sizeof(text), "%s", PQerrorMessage(pipe->db->conn));
	fail(pipe, hpx_pg_status_of(state), text);
}

/* ---- the pipeline ---- */

struct hpx_pg_pipe hpx_pg_pipe(struct hpx_pg_db *db, char *problem)
{
	struct hpx_pg_pipe pipe = { .db = db,
				    .deadline_ms = hpx_clock_boot_ms() + ANSWER_MS,
				    .problem = problem };

	db->warned = false;
	if (db->conn == NULL || PQstatus(db->conn) != CONNECTION_OK)
		fail(&pipe, HPX_UNAVAILABLE, "the connection is lost");
	return pipe;
}

void hpx_pg_send(struct hpx_pg_pipe *pipe, enum hpx_pg_statement statement,
		 const struct hpx_pg_params *params)
{
	static const struct hpx_pg_params none;
	const struct hpx_pg_params *p = params != NULL ? params : &none;
	int formats[HPX_PG_PARAMS_MAX];

	if (pipe->status != HPX_OK)
		return;
	for (int i = 0; i < p->count; i++)
		formats[i] = 1;
	if (PQsendQueryPrepared(pipe->db->conn, statements[statement].name, p->count, p->value,
				p->length, formats, 1) != 1)
		fail(pipe, HPX_UNAVAILABLE, PQerrorMessage(pipe->db->conn));
	else
		pipe->waiting++;
}

/* Until the socket can be read (or written, where that is wanted too). */
static bool wait_for(struct hpx_pg_pipe *pipe, bool writing)
{
	struct pollfd fd = { .fd = PQsocket(pipe->db->conn),
			     .events = (short)(POLLIN | (writing ? POLLOUT : 0)) };
	int64_t left_ms = pipe->deadline_ms - hpx_clock_boot_ms();
	int ready;

	if (left_ms <= 0 || fd.fd < 0) {
		fail(pipe, HPX_TIMEOUT, "no answer in time; the connection is given up");
		return false;
	}
	ready = poll(&fd, 1, (int)left_ms);
	if (ready > 0 && (fd.revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
	    PQconsumeInput(pipe->db->conn) != 1) {
		fail(pipe, HPX_UNAVAILABLE, PQerrorMessage(pipe->db->conn));
		return false;
	}
	return ready >= 0 || errno == EINTR;
}

void hpx_pg_flush(struct hpx_pg_pipe *pipe)
{
	int left = 1;

	while (pipe->status == HPX_OK && left > 0) {
		left = PQflush(pipe->db->conn);
		if (left < 0)
			fail(pipe, HPX_UNAVAILABLE, PQerrorMessage(pipe->db->conn));
		else if (left > 0 && !wait_for(pipe, true))
			return;
	}
}

void hpx_pg_ask_early(struct hpx_pg_pipe *pipe)
{
	if (pipe->status == HPX_OK && PQsendFlushRequest(pipe->db->conn) != 1)
		fail(pipe, HPX_UNAVAILABLE, PQerrorMessage(pipe->db->conn));
}

static void sync_pipe(struct hpx_pg_pipe *pipe)
{
	if (pipe->synced || pipe->db->conn == NULL)
		return;
	pipe->synced = true;
	if (PQpipelineSync(pipe->db->conn) != 1)
		fail(pipe, HPX_UNAVAILABLE, PQerrorMessage(pipe->db->conn));
	hpx_pg_flush(pipe);
}

/* A connection on which results were not taken to the end is of no use. */
static void give_up(struct hpx_pg_pipe *pipe)
{
	hpx_pg_close(pipe->db);
}

/* The next result or NULL between two calls; false: the connection is given
 * up. */
static bool get_result(struct hpx_pg_pipe *pipe, PGresult **ret_result)
{
	PGconn *conn = pipe->db->conn;

	while (PQisBusy(conn)) {
		int left = PQflush(conn);
		if (left < 0 || !wait_for(pipe, left > 0)) {
			fail(pipe, HPX_UNAVAILABLE, PQerrorMessage(conn));
			give_up(pipe);
			return false;
		}
	}
	*ret_result = PQgetResult(conn);
	return true;
}

/* The end of one call's results. */
static bool skip_null(struct hpx_pg_pipe *pipe)
{
	PGresult *result = NULL;

	do {
		PQclear(result);
		if (!get_result(pipe, &result))
			return false;
	} while (result != NULL);
	return true;
}

PGresult *hpx_pg_take(struct hpx_pg_pipe *pipe)
{
	PGresult *result = NULL;
	ExecStatusType kind;

	sync_pipe(pipe);
	if (pipe->status != HPX_OK || pipe->waiting == 0)
		return NULL;
	if (!get_result(pipe, &result))
		return NULL;
	kind = PQresultStatus(result);
	if (kind == PGRES_COMMAND_OK || kind == PGRES_TUPLES_OK) {
		pipe->waiting--;
		if (skip_null(pipe))
			return result;
		PQclear(result);
		return NULL;
	}
	if (result == NULL)
		fail(pipe, HPX_UNAVAILABLE, PQerrorMessage(pipe->db->conn));
	else
		fail_by_result(pipe, result);
	PQclear(result);
	return NULL;
}

/* Up to the sync's own result; a connection that ends first is closed. */
static void drain(struct hpx_pg_pipe *pipe)
{
	unsigned nothing = 0;

	for (;;) {
		PGresult *result = NULL;
		if (!get_result(pipe, &result))
			return;
		ExecStatusType kind = PQresultStatus(result);
		nothing = result == NULL ? nothing + 1 : 0;
		if (nothing == 0 && kind == PGRES_FATAL_ERROR)
			fail_by_result(pipe, result);
		PQclear(result);
		if (nothing == 0 && kind == PGRES_PIPELINE_SYNC)
			return;
		if (PQstatus(pipe->db->conn) != CONNECTION_OK && nothing > 1) {
			fail(pipe, HPX_UNAVAILABLE, PQerrorMessage(pipe->db->conn));
			give_up(pipe);
			return;
		}
	}
}

enum hpx_status hpx_pg_end(struct hpx_pg_pipe *pipe)
{
	sync_pipe(pipe);
	if (pipe->db->conn != NULL && PQstatus(pipe->db->conn) == CONNECTION_OK)
		drain(pipe);
	if (pipe->db->conn != NULL && PQstatus(pipe->db->conn) != CONNECTION_OK) {
		fail(pipe, HPX_UNAVAILABLE, PQerrorMessage(pipe->db->conn));
		give_up(pipe);
	}
	return pipe->status;
}

/* All results of a plain query; the last one is kept. */
static PGresult *take_all(struct hpx_pg_pipe *pipe)
{
	PGresult *last = NULL;
	PGresult *result = NULL;

	while (get_result(pipe, &result) && result != NULL) {
		ExecStatusType kind = PQresultStatus(result);
		if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK)
			fail_by_result(pipe, result);
		PQclear(last);
		last = result;
	}
	return last;
}

enum hpx_status hpx_pg_query(struct hpx_pg_db *db, const char *sql, int64_t within_ms,
			     PGresult **ret_result, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(db, problem);
	PGresult *result = NULL;

	pipe.deadline_ms = hpx_clock_boot_ms() + within_ms;
	if (pipe.status == HPX_OK && PQsendQuery(db->conn, sql) != 1)
		fail(&pipe, HPX_UNAVAILABLE, PQerrorMessage(db->conn));
	if (pipe.status == HPX_OK)
		result = take_all(&pipe);
	if (pipe.status == HPX_OK && result != NULL && ret_result != NULL)
		*ret_result = result;
	else
		PQclear(result);
	return pipe.status;
}

/* ---- columns ---- */

bool hpx_pg_int(const PGresult *result, int row, int column, int64_t min, int64_t max,
		int64_t *ret_value)
{
	struct hpx_span bytes = hpx_pg_bytes(result, row, column);
	int64_t value;

	if (bytes.ptr == NULL || bytes.len == 0 || bytes.len > 8)
		return false;
	value = (signed char)bytes.ptr[0];
	for (size_t i = 1; i < bytes.len; i++)
		value = (int64_t)((uint64_t)value << 8 | (unsigned char)bytes.ptr[i]);
	if (value < min || value > max)
		return false;
	*ret_value = value;
	return true;
}

struct hpx_span hpx_pg_bytes(const PGresult *result, int row, int column)
{
	if (PQgetisnull(result, row, column))
		return (struct hpx_span){ NULL, 0 };
	return hpx_span(PQgetvalue(result, row, column),
			(size_t)PQgetlength(result, row, column));
}

bool hpx_pg_fixed(const PGresult *result, int row, int column, void *out, size_t len)
{
	struct hpx_span bytes = hpx_pg_bytes(result, row, column);

	if (bytes.ptr == NULL || bytes.len != len)
		return false;
	memcpy(out, bytes.ptr, len);
	return true;
}

/* ---- preparing ---- */

static void send_prepare(struct hpx_pg_pipe *pipe, int i)
{
	if (pipe->status != HPX_OK)
		return;
	if (PQsendPrepare(pipe->db->conn, statements[i].name, statements[i].sql, 0, NULL) != 1)
		fail(pipe, HPX_UNAVAILABLE, PQerrorMessage(pipe->db->conn));
	else
		pipe->waiting++;
}

enum hpx_status hpx_pg_prepare(struct hpx_pg_db *db, enum hpx_pg_role role, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(db, problem);

	if (pipe.status == HPX_OK && PQenterPipelineMode(db->conn) != 1)
		fail(&pipe, HPX_UNAVAILABLE, PQerrorMessage(db->conn));
	for (int i = 0; i < HPX_PG_STATEMENT_COUNT; i++)
		if (statements[i].role == role)
			send_prepare(&pipe, i);
	while (pipe.status == HPX_OK && pipe.waiting > 0)
		PQclear(hpx_pg_take(&pipe));
	return hpx_pg_end(&pipe);
}

void hpx_pg_close(struct hpx_pg_db *db)
{
	if (db->conn != NULL)
		PQfinish(db->conn);
	db->conn = NULL;
}
