/* Readers: each its own connection, opened when it is first needed, and again
 * after it was lost; a database that is away is asked once a second. */
#include <stdlib.h>

#include "base/clock.h"
#include "store/postgres/driver.h"

#define RETRY_MS 1000

enum hpx_status hpx_pg_reader_open(struct hpx_store *store, struct hpx_store_reader **ret_reader)
{
	struct hpx_pg_reader *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return HPX_NOMEM;
	r->base.store = store;
	*ret_reader = &r->base;
	return HPX_OK;
}

void hpx_pg_reader_close(struct hpx_store_reader *reader)
{
	struct hpx_pg_reader *r = (struct hpx_pg_reader *)reader;

	hpx_pg_close(&r->db);
	free(r->last);
	free(r);
}

static enum hpx_status connect_reader(struct hpx_pg_reader *r, char *problem)
{
	struct hpx_pg_store *s = hpx_pg_of(r->base.store);
	enum hpx_status status;

	if (r->db.conn != NULL && PQstatus(r->db.conn) == CONNECTION_OK)
		return HPX_OK;
	hpx_pg_close(&r->db);
	if (r->failed_ms != 0 && hpx_clock_boot_ms() - r->failed_ms < RETRY_MS)
		return HPX_UNAVAILABLE;
	r->connections++;
	status = hpx_pg_connect(s->url, HPX_PG_READER, &r->db, problem);
	if (status == HPX_OK)
		status = hpx_pg_prepare(&r->db, HPX_PG_READER, problem);
	if (status != HPX_OK)
		hpx_pg_close(&r->db);
	r->failed_ms = status == HPX_OK ? 0 : hpx_clock_boot_ms();
	return status;
}

static enum hpx_status ask_once(struct hpx_pg_reader *r, enum hpx_pg_statement statement,
				const struct hpx_pg_params *params, PGresult **ret_result)
{
	char problem[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status = connect_reader(r, problem);

	if (status != HPX_OK)
		return status;
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&r->db, problem);
	hpx_pg_send(&pipe, statement, params);
	PGresult *result = hpx_pg_take(&pipe);
	status = hpx_pg_end(&pipe);
	if (status != HPX_OK || result == NULL) {
		PQclear(result);
		return status != HPX_OK ? status : HPX_IO;
	}
	*ret_result = result;
	return HPX_OK;
}

/* A connection that was lost while it was idle shows only when it is used. */
enum hpx_status hpx_pg_ask(struct hpx_store_reader *reader, enum hpx_pg_statement statement,
			   const struct hpx_pg_params *params, PGresult **ret_result)
{
	struct hpx_pg_reader *r = (struct hpx_pg_reader *)reader;
	bool was_open = r->db.conn != NULL;
	enum hpx_status status = ask_once(r, statement, params, ret_result);

	if (status == HPX_UNAVAILABLE && was_open)
		status = ask_once(r, statement, params, ret_result);
	return status;
}

static enum hpx_status read_entry(const PGresult *result, struct hpx_arena *arena,
				  struct hpx_entry *entry, struct hpx_answer **answer)
{
	struct hpx_pg_row row;
	enum hpx_status status;

	hpx_pg_row_read(result, 0, &row);
	entry->record = row.found.record;
	entry->readable = row.found.readable;
	status = hpx_pg_description_read(result, 0, arena, &entry->description);
	if (status != HPX_OK || !entry->readable)
		return status;
	if (PQgetisnull(result, 0, HPX_PG_RESPONSE_COLUMN))
		/* Of an answer that is not kept there may be nothing. */
		status = entry->record.kept ? HPX_CORRUPT : HPX_OK;
	else
		status = hpx_pg_answer_read(result, 0, HPX_PG_RESPONSE_COLUMN + 1, &entry->record,
					    answer);
	if (status != HPX_CORRUPT)
		return status;
	entry->readable = false;
	return HPX_OK;
}

enum hpx_status hpx_pg_find(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
			    struct hpx_arena *arena, struct hpx_entry *ret_entry,
			    struct hpx_answer **ret_answer)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_answer *answer = NULL;
	struct hpx_entry entry;
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, hpx_span(id->bytes, sizeof(id->bytes)));
	status = hpx_pg_ask(reader, HPX_PG_FIND, &params, &result);
	if (status != HPX_OK)
		return status;
	status = PQntuples(result) == 1 ? read_entry(result, arena, &entry, &answer) :
					  HPX_NOT_FOUND;
	PQclear(result);
	if (status == HPX_OK)
		*ret_entry = entry;
	if (status == HPX_OK && ret_answer != NULL)
		*ret_answer = answer;
	else
		hpx_answer_free(answer);
	return status;
}

enum hpx_status hpx_pg_recipe(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
			      struct hpx_arena *arena, struct hpx_span *ret_text)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_span text = { NULL, 0 };
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, hpx_span(id->bytes, sizeof(id->bytes)));
	status = hpx_pg_ask(reader, HPX_PG_RECIPE, &params, &result);
	if (status != HPX_OK)
		return status;
	status = PQntuples(result) == 1 ? HPX_OK : HPX_NOT_FOUND;
	if (status == HPX_OK) {
		text = hpx_arena_dup(arena, hpx_pg_bytes(result, 0, 0));
		status = text.ptr != NULL ? HPX_OK : HPX_NOMEM;
	}
	PQclear(result);
	if (status == HPX_OK)
		*ret_text = text;
	return status;
}

/* Those that the answer does not name are not in progress any more. */
static void mark_ended(const PGresult *result, const struct hpx_operation_id *ids, size_t count,
		       bool *ended)
{
	struct hpx_operation_id id;

	for (size_t i = 0; i < count; i++)
		ended[i] = true;
	for (int row = 0; row < PQntuples(result); row++) {
		if (!hpx_pg_id_read(result, row, &id))
			continue;
		for (size_t i = 0; i < count; i++)
			ended[i] &= !hpx_operation_id_eq(&ids[i], &id);
	}
}

enum hpx_status hpx_pg_watch(struct hpx_store_reader *reader, const struct hpx_operation_id *ids,
			     size_t count, bool *ret_ended)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA };
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_pg_columns columns;
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_columns_init(&columns, types, 1);
	for (size_t i = 0; i < count; i++)
		hpx_pg_put_bytes(&columns, hpx_span(ids[i].bytes, sizeof(ids[i].bytes)));
	status = hpx_pg_columns_param(&columns, &params);
	if (status == HPX_OK)
		status = hpx_pg_ask(reader, HPX_PG_WATCH, &params, &result);
	if (status == HPX_OK)
		mark_ended(result, ids, count, ret_ended);
	PQclear(result);
	hpx_pg_columns_done(&columns);
	return status;
}
