/* A change to one operation, written: plain rows where the operation goes the plain
 * way, else its aside row; with its lease, its question and its event. Always inside
 * the batch's transaction.
 *
 *  1. A first attempt is a plain row, its answer another: both are only ever inserted,
 *     and removed as a whole.
 *  2. Whatever else becomes of an operation is written to its aside row, which names the
 *     plain row under it; from then on the plain row counts for nothing.
 *  3. Whoever removes an aside row removes the plain row under it.
 *  4. An attempt in progress has a lease: the server's own in its memory, every other
 *     in hapax_lease. The lease ends with the attempt. */
#include <stdio.h>

#include "store/sqlite/driver.h"

/* An event is for people; whatever somebody typed is cut to what one reads. */
#define ACTOR_BYTES_MAX 128
#define REASON_BYTES_MAX 1024

static const struct hpx_description no_texts = { HPX_SPAN_INIT(""), HPX_SPAN_INIT(""),
						 HPX_SPAN_INIT(""), HPX_SPAN_INIT(""),
						 HPX_SPAN_INIT(""), HPX_SPAN_INIT("") };

static enum hpx_status by_number(struct hpx_sqlite_statement stmt, int64_t number)
{
	hpx_sqlite_bind_int(&stmt, number);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status by_id(struct hpx_sqlite_db *db, enum hpx_sql sql,
			     const struct hpx_operation_id *id)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, sql);

	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status by_token(struct hpx_sqlite_db *db, enum hpx_sql sql,
				const struct hpx_token *token, const struct hpx_operation_id *id)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, sql);

	hpx_sqlite_bind_blob(&stmt, token->bytes, sizeof(token->bytes));
	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	return hpx_sqlite_finish(&stmt);
}

/* HPX_NOT_FOUND: nothing was written. */
static enum hpx_status finish_one(struct hpx_sqlite_statement *stmt)
{
	enum hpx_status status = hpx_sqlite_finish(stmt);

	if (status == HPX_OK && sqlite3_changes64(stmt->db->handle) != 1)
		status = HPX_NOT_FOUND;
	return status;
}

static struct hpx_span whole(struct hpx_span bytes)
{
	return bytes.ptr != NULL ? bytes : HPX_SPAN("");
}

static void bind_texts(struct hpx_sqlite_statement *stmt, const struct hpx_description *d)
{
	hpx_sqlite_bind_text(stmt, d->tenant);
	hpx_sqlite_bind_text(stmt, d->scope);
	hpx_sqlite_bind_text(stmt, d->key);
	hpx_sqlite_bind_text(stmt, d->method);
	hpx_sqlite_bind_text(stmt, d->path);
	hpx_sqlite_bind_text(stmt, d->route);
}

/* ---- leases ---- */

static bool is_own(const struct hpx_sqlite_store *s, const struct hpx_record *record)
{
	return s->serve && record->owner == s->base.owner;
}

static enum hpx_status put_lease(struct hpx_sqlite_db *db, const struct hpx_record *record,
				 int64_t generation)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_LEASE);

	hpx_sqlite_bind_blob(&stmt, record->token.bytes, sizeof(record->token.bytes));
	hpx_sqlite_bind_blob(&stmt, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_bind_int(&stmt, generation);
	hpx_sqlite_bind_int(&stmt, record->lease_until_ms);
	return hpx_sqlite_finish(&stmt);
}

enum hpx_status hpx_sqlite_lease_remove(struct hpx_sqlite_db *db, const struct hpx_token *token,
					const struct hpx_operation_id *id)
{
	return by_token(db, HPX_SQL_REMOVE_LEASE, token, id);
}

static enum hpx_status hold(struct hpx_sqlite_store *s, const struct hpx_record *record,
			    int64_t generation, int64_t number)
{
	if (is_own(s, record))
		return hpx_sqlite_lease_hold(&s->leases, record, generation, number);
	return put_lease(&s->writer, record, generation);
}

static enum hpx_status end_lease(struct hpx_sqlite_store *s, const struct hpx_record *before)
{
	if (before->state != HPX_STATE_IN_PROGRESS)
		return HPX_OK;
	if (is_own(s, before))
		hpx_sqlite_lease_end(&s->leases, &before->token, &before->id);
	/* Also of the server's own: an application may have renewed it. */
	return hpx_sqlite_lease_remove(&s->writer, &before->token, &before->id);
}

/* The renewal of a server's attempt keeps no generation from being settled: the
 * server's memory does. */
static enum hpx_status renew(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
			     const struct hpx_store_op *op, struct hpx_record record)
{
	bool plain = row->place == HPX_SQLITE_PLAIN;

	HPX_ASSERT(op->verb == HPX_VERB_RENEW);
	if (is_own(s, &record))
		return hpx_sqlite_lease_hold(&s->leases, &record, plain ? row->generation : 0,
					     plain ? row->number : 0);
	/* Whatever somebody who is not the server believes of the lease before. */
	record.lease_until_ms = hpx_store_moment(&s->base).lease_ms + op->renew.lease_ms;
	return put_lease(&s->writer, &record, plain && record.owner == 0 ? row->generation : 0);
}

/* ---- plain rows ---- */

static struct hpx_sqlite_statement bind_plain(struct hpx_sqlite_store *s,
					      struct hpx_sqlite_generation *g,
					      const struct hpx_record *record,
					      const struct hpx_description *d)
{
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(&s->writer, g, HPX_GENERATION_SQL_INSERT);
	const uint8_t *id = record->id.bytes;

	hpx_sqlite_bind_blob(&stmt, id, HPX_SQLITE_ID_BYTES);
	hpx_sqlite_bind_blob(&stmt, id + HPX_SQLITE_ID_BYTES, sizeof(record->id.bytes) - HPX_SQLITE_ID_BYTES);
	hpx_sqlite_bind_blob(&stmt, record->token.bytes, sizeof(record->token.bytes));
	hpx_sqlite_bind_blob(&stmt, record->fingerprint, sizeof(record->fingerprint));
	hpx_sqlite_bind_blob(&stmt, record->recipe.bytes, sizeof(record->recipe.bytes));
	hpx_sqlite_bind_blob(&stmt, record->tenant, sizeof(record->tenant));
	hpx_sqlite_bind_int(&stmt, (int64_t)record->owner);
	hpx_sqlite_bind_int(&stmt, record->created_ms);
	hpx_sqlite_bind_int(&stmt, record->retention_ms);
	hpx_sqlite_bind_int(&stmt, record->tombstone_ms);
	hpx_sqlite_bind_int(&stmt, record->when_lost);
	bind_texts(&stmt, d);
	hpx_sqlite_bind_int(&stmt, hpx_sqlite_plain_crc(record, d));
	hpx_sqlite_bind_blob(&stmt, id, sizeof(record->id.bytes));
	return stmt;
}

/* A lease is held before the row is there, so that none is ever without. */
enum hpx_status hpx_sqlite_plain_insert(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
					const struct hpx_record *record,
					const struct hpx_description *description,
					int64_t *ret_number)
{
	const struct hpx_description *d = description != NULL ? description : &no_texts;
	bool own = is_own(s, record);
	bool held = own && hpx_sqlite_lease_until(&s->leases, &record->token, &record->id) != 0;
	struct hpx_sqlite_statement stmt;
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(g->state == HPX_GENERATION_OPEN && record->attempt == 1);
	if (own && !held)
		status = hpx_sqlite_lease_hold(&s->leases, record, g->number, 0);
	if (status != HPX_OK)
		return status;
	stmt = bind_plain(s, g, record, d);
	status = finish_one(&stmt);
	if (status == HPX_NOT_FOUND && own && !held)
		hpx_sqlite_lease_drop(&s->leases, &record->token, &record->id);
	if (status != HPX_OK)
		return status;
	*ret_number = sqlite3_last_insert_rowid(s->writer.handle);
	g->last = *ret_number;
	hpx_sqlite_filter_add(s, g->number, &record->id);
	return hold(s, record, g->number, *ret_number);
}

#define PLAIN_COLUMNS \
	"id, rest, token, fingerprint, recipe, tenant_hash, owner, created, retention, tombstone, " \
	"when_lost, tenant, scope, key, method, path, route, crc"

static int prepare_copy(struct hpx_sqlite_db *db, struct hpx_sqlite_copy *copy, int64_t from, int64_t to)
{
	char sql[768];

	if (copy->handle != NULL && copy->from == from && copy->to == to)
		return SQLITE_OK;
	hpx_sqlite_copy_done(copy);
	*copy = (struct hpx_sqlite_copy){ .from = from, .to = to };
	snprintf(sql, sizeof(sql),
		 "INSERT INTO hapax_operation_%lld (" PLAIN_COLUMNS ") SELECT " PLAIN_COLUMNS
		 " FROM hapax_operation_%lld WHERE seq = ?1 AND id = ?2 ON CONFLICT (id) DO NOTHING",
		 (long long)to, (long long)from);
	return sqlite3_prepare_v2(db->handle, sql, -1, &copy->handle, NULL);
}

void hpx_sqlite_copy_done(struct hpx_sqlite_copy *copy)
{
	sqlite3_finalize(copy->handle);
	copy->handle = NULL;
}

/* With its check: all columns are the same. */
enum hpx_status hpx_sqlite_plain_copy(struct hpx_sqlite_store *s, struct hpx_sqlite_copy *copy,
				      const struct hpx_sqlite_row *row,
				      struct hpx_sqlite_generation *to, int64_t *ret_number)
{
	struct hpx_sqlite_statement stmt = { .db = &s->writer };
	enum hpx_status status;

	HPX_ASSERT(to->state == HPX_GENERATION_OPEN && to->number != row->generation);
	stmt.code = prepare_copy(&s->writer, copy, row->generation, to->number);
	stmt.handle = copy->handle;
	hpx_sqlite_bind_int(&stmt, row->number);
	hpx_sqlite_bind_blob(&stmt, row->found.record.id.bytes, HPX_SQLITE_ID_BYTES);
	status = finish_one(&stmt);
	if (status != HPX_OK)
		return status;
	*ret_number = sqlite3_last_insert_rowid(s->writer.handle);
	to->last = *ret_number;
	hpx_sqlite_filter_add(s, to->number, &row->found.record.id);
	return HPX_OK;
}

enum hpx_status hpx_sqlite_plain_complete(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
					  int64_t number, const struct hpx_change *change)
{
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(&s->writer, g, HPX_GENERATION_SQL_COMPLETE);
	const struct hpx_record *record = &change->record;
	struct hpx_span headers = HPX_SPAN(""), body = HPX_SPAN("");

	if (change->answer != NULL) {
		headers = whole(change->answer->headers);
		body = whole(hpx_change_body(change));
	}
	hpx_sqlite_bind_int(&stmt, number);
	hpx_sqlite_bind_blob(&stmt, record->id.bytes, HPX_SQLITE_ID_BYTES);
	hpx_sqlite_bind_blob(&stmt, record->token.bytes, sizeof(record->token.bytes));
	hpx_sqlite_bind_int(&stmt, record->changed_ms);
	hpx_sqlite_bind_int(&stmt, record->expires_ms);
	hpx_sqlite_bind_int(&stmt, record->status);
	hpx_sqlite_bind_int(&stmt, record->kept);
	hpx_sqlite_bind_blob(&stmt, headers.ptr, headers.len);
	hpx_sqlite_bind_blob(&stmt, body.ptr, body.len);
	hpx_sqlite_bind_int(&stmt, hpx_sqlite_answer_crc(record, false, headers, body));
	hpx_sqlite_bind_blob(&stmt, record->id.bytes, sizeof(record->id.bytes));
	return finish_one(&stmt);
}

/* A generation that is gone, or about to, takes its rows along. */
static enum hpx_status remove_plain(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row)
{
	struct hpx_sqlite_generation *g = hpx_sqlite_generation_find(&s->writer, row->generation);
	struct hpx_sqlite_statement stmt;
	enum hpx_status status;

	if (g == NULL || g->state == HPX_GENERATION_DEAD)
		return HPX_OK;
	status = by_number(hpx_sqlite_generation_statement(&s->writer, g,
							   HPX_GENERATION_SQL_REMOVE_ANSWER),
			   row->number);
	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_generation_statement(&s->writer, g, HPX_GENERATION_SQL_REMOVE);
	hpx_sqlite_bind_int(&stmt, row->number);
	hpx_sqlite_bind_blob(&stmt, row->found.record.id.bytes, HPX_SQLITE_ID_BYTES);
	return hpx_sqlite_finish(&stmt);
}

/* ---- aside rows ---- */

static void bind_aside(struct hpx_sqlite_statement *stmt, const struct hpx_sqlite_row *row,
		       const struct hpx_record *record)
{
	hpx_sqlite_bind_blob(stmt, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_bind_int(stmt, row->generation);
	hpx_sqlite_bind_int(stmt, row->number);
	hpx_sqlite_bind_int(stmt, record->state);
	hpx_sqlite_bind_int(stmt, record->attempt);
	hpx_sqlite_bind_blob(stmt, record->token.bytes, sizeof(record->token.bytes));
	hpx_sqlite_bind_blob(stmt, record->mark.bytes, sizeof(record->mark.bytes));
	hpx_sqlite_bind_blob(stmt, record->fingerprint, sizeof(record->fingerprint));
	hpx_sqlite_bind_blob(stmt, record->recipe.bytes, sizeof(record->recipe.bytes));
	hpx_sqlite_bind_blob(stmt, record->tenant, sizeof(record->tenant));
	hpx_sqlite_bind_int(stmt, (int64_t)record->owner);
	hpx_sqlite_bind_int(stmt, record->created_ms);
	hpx_sqlite_bind_int(stmt, record->changed_ms);
	if (record->expires_ms != 0)
		hpx_sqlite_bind_int(stmt, record->expires_ms);
	else
		hpx_sqlite_bind_null(stmt);
	hpx_sqlite_bind_int(stmt, record->retention_ms);
	hpx_sqlite_bind_int(stmt, record->tombstone_ms);
	hpx_sqlite_bind_int(stmt, record->status);
	hpx_sqlite_bind_int(stmt, row->tombstone ? HPX_SQLITE_TOMBSTONE : record->kept);
	hpx_sqlite_bind_int(stmt, record->when_lost);
	hpx_sqlite_bind_int(stmt, record->advanced);
	hpx_sqlite_bind_text(stmt, hpx_span_of(hpx_last_error_name(record->last_error)));
	hpx_sqlite_bind_text(stmt, hpx_span_of(record->point));
	hpx_sqlite_bind_int(stmt, row->text_crc);
	hpx_sqlite_bind_int(stmt, row->point_crc);
	hpx_sqlite_bind_int(stmt, row->answer_crc);
	hpx_sqlite_bind_int(stmt, hpx_sqlite_aside_crc(row, record));
}

static void bind_bytes(struct hpx_sqlite_statement *stmt, bool there, struct hpx_span bytes)
{
	if (there)
		hpx_sqlite_bind_blob(stmt, bytes.ptr, bytes.len);
	else
		hpx_sqlite_bind_null(stmt);
}

static void bind_answer(struct hpx_sqlite_statement *stmt, const struct hpx_change *change)
{
	bool there = change->answer != NULL;

	bind_bytes(stmt, there, there ? whole(change->answer->headers) : HPX_SPAN(""));
	bind_bytes(stmt, there, there ? whole(hpx_change_body(change)) : HPX_SPAN(""));
}

static uint32_t answer_crc(const struct hpx_change *change)
{
	if (change->answer == NULL)
		return 0;
	return hpx_sqlite_bytes_crc(&change->record.id, whole(change->answer->headers),
				    whole(hpx_change_body(change)));
}

static uint32_t point_crc(const struct hpx_change *change)
{
	if (change->data == NULL)
		return 0;
	return hpx_sqlite_bytes_crc(&change->record.id, whole(*change->data), HPX_SPAN(""));
}

/* `under`: the plain row that this one rules over, or none. */
static enum hpx_status insert_aside(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *under,
				    const struct hpx_change *change, const struct hpx_description *d)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_INSERT_ASIDE);
	struct hpx_sqlite_row row = {
		.generation = under->generation,
		.number = under->number,
		.text_crc = hpx_sqlite_text_crc(&change->record.id, d),
		.point_crc = point_crc(change),
		.answer_crc = answer_crc(change),
	};

	HPX_ASSERT(under->place != HPX_SQLITE_ASIDE);
	bind_aside(&stmt, &row, &change->record);
	bind_texts(&stmt, d);
	bind_answer(&stmt, change);
	bind_bytes(&stmt, change->data != NULL, change->data != NULL ? whole(*change->data) : HPX_SPAN(""));
	return hpx_sqlite_finish(&stmt);
}

/* The texts of the plain row are borrowed from its statement while they are written. */
static enum hpx_status cover_plain(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				   const struct hpx_change *change)
{
	struct hpx_sqlite_generation *g = hpx_sqlite_generation_find(&s->writer, row->generation);
	struct hpx_description d = no_texts;
	struct hpx_span *const fields[] = { &d.tenant, &d.scope, &d.key, &d.method, &d.path, &d.route };
	struct hpx_sqlite_statement stmt;
	enum hpx_status status, ended;

	HPX_ASSERT(g != NULL);
	stmt = hpx_sqlite_generation_statement(&s->writer, g, HPX_GENERATION_SQL_TEXTS);
	hpx_sqlite_bind_int(&stmt, row->number);
	if (hpx_sqlite_next(&stmt))
		for (int i = 0; i < (int)(sizeof(fields) / sizeof(fields[0])); i++)
			*fields[i] = whole(hpx_sqlite_bytes(&stmt, i));
	status = insert_aside(s, row, change, &d);
	ended = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : ended;
}

static enum hpx_status describe(struct hpx_sqlite_db *db, int64_t aside, const struct hpx_description *d)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_DESCRIBE_ASIDE);

	bind_texts(&stmt, d);
	hpx_sqlite_bind_int(&stmt, aside);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status put_answer(struct hpx_sqlite_db *db, int64_t aside, const struct hpx_change *change)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_ANSWER);

	bind_answer(&stmt, change);
	hpx_sqlite_bind_int(&stmt, aside);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status put_point_data(struct hpx_sqlite_db *db, int64_t aside, const struct hpx_span *data)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_POINT_DATA);

	bind_bytes(&stmt, data != NULL, data != NULL ? whole(*data) : HPX_SPAN(""));
	hpx_sqlite_bind_int(&stmt, aside);
	return hpx_sqlite_finish(&stmt);
}

/* The texts that a row has, where its check is to be made anew: a row that could not be
 * read is being mended. */
static enum hpx_status mend_texts(struct hpx_sqlite_store *s, struct hpx_sqlite_row *row)
{
	struct hpx_description d = no_texts;

	row->text_crc = hpx_sqlite_text_crc(&row->found.record.id, &d);
	return describe(&s->writer, row->aside, &d);
}

/* An expired key used again (`d` is given), or the next state of the same operation: an
 * answer and a point's data that are not brought stay only in the latter. */
static enum hpx_status update_aside(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *found,
				    const struct hpx_change *change, const struct hpx_description *d)
{
	struct hpx_sqlite_row row = *found;
	bool anew = d != NULL || !found->found.readable;
	bool stays = found->found.record.state == HPX_STATE_COMPLETED &&
		     change->record.state == HPX_STATE_COMPLETED;
	bool answers = change->answer != NULL || anew || (!change->record.kept && !stays);
	bool points = change->data != NULL || anew || change->record.point[0] == '\0';
	struct hpx_sqlite_statement stmt;
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(found->place == HPX_SQLITE_ASIDE);
	row.found.record.id = change->record.id;
	row.tombstone = false;
	if (d != NULL) {
		row.text_crc = hpx_sqlite_text_crc(&change->record.id, d);
		status = describe(&s->writer, row.aside, d);
	} else if (anew) {
		status = mend_texts(s, &row);
	}
	if (answers)
		row.answer_crc = answer_crc(change);
	if (status == HPX_OK && answers && (change->answer != NULL || found->answer_crc != 0 || anew))
		status = put_answer(&s->writer, row.aside, change);
	if (points)
		row.point_crc = point_crc(change);
	if (status == HPX_OK && points && (change->data != NULL || found->point_crc != 0 || anew))
		status = put_point_data(&s->writer, row.aside, change->data);
	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_UPDATE_ASIDE);
	bind_aside(&stmt, &row, &change->record);
	hpx_sqlite_bind_int(&stmt, row.aside);
	status = finish_one(&stmt);
	/* The index led to a row of another id: nothing is told that was not written. */
	return status == HPX_NOT_FOUND ? HPX_CORRUPT : status;
}

enum hpx_status hpx_sqlite_aside_bury(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *found)
{
	struct hpx_change nothing = { .answer = NULL };
	struct hpx_sqlite_row row = *found;
	struct hpx_sqlite_statement stmt;
	enum hpx_status status = put_answer(&s->writer, row.aside, &nothing);

	HPX_ASSERT(found->place == HPX_SQLITE_ASIDE && found->found.record.state == HPX_STATE_COMPLETED);
	if (status != HPX_OK)
		return status;
	row.tombstone = true;
	row.answer_crc = 0;
	row.found.record.kept = false;
	stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_UPDATE_ASIDE);
	bind_aside(&stmt, &row, &row.found.record);
	hpx_sqlite_bind_int(&stmt, row.aside);
	status = finish_one(&stmt);
	return status == HPX_NOT_FOUND ? HPX_CORRUPT : status;
}

/* ---- events ---- */

enum hpx_status hpx_sqlite_event_put(struct hpx_sqlite_db *db, const struct hpx_sqlite_event *event,
				     const struct hpx_store_op *op)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_EVENT);
	struct hpx_span reason = op->reason.len != 0 ? op->reason : event->reason;

	hpx_sqlite_bind_blob(&stmt, event->id->bytes, sizeof(event->id->bytes));
	hpx_sqlite_bind_int(&stmt, event->at_ms);
	hpx_sqlite_bind_int(&stmt, event->attempt);
	hpx_sqlite_bind_text(&stmt, hpx_span_of(event->what));
	hpx_sqlite_bind_text(&stmt, hpx_span_first(op->actor, ACTOR_BYTES_MAX));
	hpx_sqlite_bind_text(&stmt, hpx_span_first(reason, REASON_BYTES_MAX));
	hpx_sqlite_bind_int(&stmt, event->status);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status has_event(struct hpx_sqlite_db *db, const struct hpx_change *change,
				 bool *ret_has)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_HAS_EVENT);

	hpx_sqlite_bind_blob(&stmt, change->record.id.bytes, sizeof(change->record.id.bytes));
	hpx_sqlite_bind_text(&stmt, hpx_span_of(change->event));
	hpx_sqlite_bind_int(&stmt, change->record.created_ms);
	*ret_has = hpx_sqlite_next(&stmt);
	return hpx_sqlite_end(&stmt);
}

static enum hpx_status put_event(struct hpx_sqlite_db *db, const struct hpx_change *change,
				 const struct hpx_store_op *op)
{
	const struct hpx_record *after = &change->record;
	bool has = false;
	enum hpx_status status = change->event_once ? has_event(db, change, &has) : HPX_OK;
	struct hpx_sqlite_event event = { &after->id, change->at_ms, after->attempt,
					  change->event, change->reason, after->status };

	return status == HPX_OK && !has ? hpx_sqlite_event_put(db, &event, op) : status;
}

/* ---- questions ---- */

/* What was asked about one that was unknown, or said of another reference. */
static bool ends_questions(const struct hpx_sqlite_row *row, const struct hpx_change *change)
{
	return change->write == HPX_WRITE_REPLACE ||
	       (row->found.record.state == HPX_STATE_UNKNOWN &&
		change->record.state != HPX_STATE_UNKNOWN);
}

/* Whoever lost the outcome, and however: a question is due from now on. */
static bool begins_question(const struct hpx_sqlite_row *row, const struct hpx_change *change)
{
	return change->write == HPX_WRITE_UPDATE && change->record.state == HPX_STATE_UNKNOWN &&
	       row->found.record.state != HPX_STATE_UNKNOWN;
}

enum hpx_status hpx_sqlite_question_begin(struct hpx_sqlite_db *db,
					  const struct hpx_operation_id *id)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_BEGIN_QUESTION);

	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	return hpx_sqlite_finish(&stmt);
}

/* ---- the change ---- */

/* An aside row that cannot be read may name another row under it than its own. */
static enum hpx_status remove_under(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row)
{
	struct hpx_sqlite_row plain;
	enum hpx_status status;

	if (row->place == HPX_SQLITE_PLAIN || row->found.readable)
		return row->generation != 0 ? remove_plain(s, row) : HPX_OK;
	status = hpx_sqlite_plain_find(s, &s->writer, &row->found.record.id, NULL, &plain);
	if (status != HPX_OK || !plain.found.exists)
		return status;
	plain.found.record.id = row->found.record.id;
	return remove_plain(s, &plain);
}

/* ---- keys of routes that are matched by them ---- */

enum hpx_status hpx_sqlite_route_key_put(struct hpx_sqlite_db *db, int64_t generation, int64_t number,
					 const struct hpx_record *record,
					 const struct hpx_route_key *key)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_ROUTE_KEY);

	hpx_sqlite_bind_int(&stmt, generation);
	hpx_sqlite_bind_int(&stmt, number);
	hpx_sqlite_bind_blob(&stmt, key->hash, sizeof(key->hash));
	hpx_sqlite_bind_blob(&stmt, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_bind_blob(&stmt, record->mark.bytes, sizeof(record->mark.bytes));
	hpx_sqlite_bind_text(&stmt, whole(key->amount));
	return hpx_sqlite_finish(&stmt);
}

enum hpx_status hpx_sqlite_route_key_move(struct hpx_sqlite_db *db, const struct hpx_sqlite_row *row,
					  int64_t generation, int64_t number)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_MOVE_ROUTE_KEY);

	hpx_sqlite_bind_int(&stmt, row->generation);
	hpx_sqlite_bind_int(&stmt, row->number);
	hpx_sqlite_bind_int(&stmt, generation);
	hpx_sqlite_bind_int(&stmt, number);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status remove_route_key(struct hpx_sqlite_db *db, const struct hpx_sqlite_row *row)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_REMOVE_ROUTE_KEY);

	hpx_sqlite_bind_int(&stmt, row->generation);
	hpx_sqlite_bind_int(&stmt, row->generation != 0 ? row->number : row->aside);
	return hpx_sqlite_finish(&stmt);
}

enum hpx_status hpx_sqlite_row_remove(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row)
{
	const struct hpx_record *record = &row->found.record;
	enum hpx_status status = end_lease(s, record);

	if (status == HPX_OK)
		status = remove_under(s, row);
	if (status == HPX_OK)
		status = by_id(&s->writer, HPX_SQL_REMOVE_QUESTION, &record->id);
	if (status == HPX_OK)
		status = remove_route_key(&s->writer, row);
	if (status == HPX_OK && row->place == HPX_SQLITE_ASIDE)
		status = by_id(&s->writer, HPX_SQL_REMOVE_PROVIDER, &record->id);
	if (status == HPX_OK && row->place == HPX_SQLITE_ASIDE)
		status = by_number(hpx_sqlite_statement(&s->writer, HPX_SQL_REMOVE_ASIDE), row->aside);
	return status;
}

/* A first attempt goes into the open generation of its class; where there is none on a
 * borrowed connection, what waits for its job and what was restored is aside from the
 * start. */
static enum hpx_status insert(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
			      const struct hpx_change *change, const struct hpx_description *description)
{
	const struct hpx_record *record = &change->record;
	struct hpx_sqlite_generation *g = NULL;
	enum hpx_status status = HPX_OK;
	int64_t number;

	if (record->state == HPX_STATE_IN_PROGRESS)
		status = hpx_sqlite_generation_for(s, record->retention_ms, &g);
	if (status != HPX_OK)
		return status;
	if (g != NULL) {
		status = hpx_sqlite_plain_insert(s, g, record, description, &number);
		if (status == HPX_OK && change->route_key != NULL)
			status = hpx_sqlite_route_key_put(&s->writer, g->number, number, record,
							  change->route_key);
		/* It was looked for, and was not there. */
		return status == HPX_NOT_FOUND ? HPX_CORRUPT : status;
	}
	status = insert_aside(s, row, change, description != NULL ? description : &no_texts);
	if (status == HPX_OK && change->route_key != NULL)
		status = hpx_sqlite_route_key_put(&s->writer, 0, sqlite3_last_insert_rowid(s->writer.handle),
						  record, change->route_key);
	if (status == HPX_OK && record->state == HPX_STATE_IN_PROGRESS)
		status = hold(s, record, 0, 0);
	return status;
}

static bool completes_plainly(const struct hpx_sqlite_row *row, const struct hpx_change *change,
			      const struct hpx_sqlite_generation *g)
{
	const struct hpx_record *after = &change->record;

	return row->place == HPX_SQLITE_PLAIN && row->found.readable && g != NULL &&
	       row->found.record.state == HPX_STATE_IN_PROGRESS &&
	       after->state == HPX_STATE_COMPLETED && after->attempt == 1 && !after->advanced &&
	       after->point[0] == '\0' && after->expires_ms - after->changed_ms <= g->class_ms;
}

/* The lease of the attempt before ends, and that of the attempt after begins. */
static enum hpx_status move_lease(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				  const struct hpx_record *after)
{
	const struct hpx_record *before = &row->found.record;
	bool goes_on = before->state == HPX_STATE_IN_PROGRESS && row->found.readable &&
		       hpx_token_eq(&before->token, &after->token);
	enum hpx_status status = HPX_OK;

	if (after->state != HPX_STATE_IN_PROGRESS)
		return end_lease(s, before);
	if (!goes_on) {
		status = end_lease(s, before);
		return status == HPX_OK ? hold(s, after, 0, 0) : status;
	}
	/* From now on it is an aside row's. */
	if (is_own(s, after))
		return hpx_sqlite_lease_hold(&s->leases, after, 0, 0);
	return by_token(&s->writer, HPX_SQL_MOVE_LEASE, &after->token, &after->id);
}

/* A change of a completed record that brings no answer: the row that rules from now on
 * holds all of it, so the plain row's answer comes along. */
static enum hpx_status cover_completed(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				       const struct hpx_change *change)
{
	struct hpx_change with_answer = *change;
	struct hpx_answer *answer = NULL;
	struct hpx_sqlite_want want = { .answer = &answer };
	struct hpx_sqlite_row again;
	enum hpx_status status = hpx_sqlite_row_find(s, &s->writer, &change->record.id, &want, &again);

	if (status == HPX_OK && answer == NULL && change->record.kept)
		status = HPX_CORRUPT;
	with_answer.answer = answer;
	if (status == HPX_OK)
		status = cover_plain(s, row, &with_answer);
	hpx_answer_free(answer);
	return status;
}

static enum hpx_status update(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
			      const struct hpx_change *change, const struct hpx_description *d)
{
	struct hpx_sqlite_generation *g = hpx_sqlite_generation_find(&s->writer, row->generation);
	enum hpx_status status = HPX_NOT_FOUND;

	if (d == NULL && completes_plainly(row, change, g))
		status = hpx_sqlite_plain_complete(s, g, row->number, change);
	if (status == HPX_NOT_FOUND && row->place == HPX_SQLITE_ASIDE)
		status = update_aside(s, row, change, d);
	else if (status == HPX_NOT_FOUND && d != NULL)
		status = insert_aside(s, row, change, d);
	else if (status == HPX_NOT_FOUND && change->answer == NULL &&
		 row->found.record.state == HPX_STATE_COMPLETED)
		status = cover_completed(s, row, change);
	else if (status == HPX_NOT_FOUND)
		status = cover_plain(s, row, change);
	if (status == HPX_OK && change->route_key != NULL)
		status = hpx_sqlite_route_key_put(&s->writer, row->generation,
						  row->generation != 0 ? row->number : row->aside,
						  &change->record, change->route_key);
	return status == HPX_OK ? move_lease(s, row, &change->record) : status;
}

static enum hpx_status move_question(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				     const struct hpx_change *change)
{
	const struct hpx_operation_id *id = &change->record.id;
	enum hpx_status status = HPX_OK;

	if (ends_questions(row, change))
		status = by_id(&s->writer, HPX_SQL_REMOVE_QUESTION, id);
	if (status == HPX_OK && change->write == HPX_WRITE_UPDATE &&
	    change->record.attempt != row->found.record.attempt)
		status = by_id(&s->writer, HPX_SQL_REMOVE_DECLINED, id);
	if (status == HPX_OK && begins_question(row, change))
		status = hpx_sqlite_question_begin(&s->writer, id);
	return status;
}

/* The operation that the key stood for until now is over, and the reaper never sees it: the
 * key is used again, or a person forgets it. */
static enum hpx_status keep_unreaped(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row)
{
	int64_t retention_ms = 0;
	enum hpx_status status = hpx_sqlite_history_rule(&s->writer, &retention_ms);

	return status == HPX_OK ? hpx_sqlite_history_keep(s, row, retention_ms) : status;
}

static enum hpx_status write_rows(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				  const struct hpx_change *change, const struct hpx_store_op *op)
{
	bool anew = change->write == HPX_WRITE_INSERT || change->write == HPX_WRITE_REPLACE;
	const struct hpx_description *d = NULL;
	enum hpx_status status;

	HPX_ASSERT(change->write == HPX_WRITE_NOTHING ||
		   row->found.exists == (change->write != HPX_WRITE_INSERT));
	if (anew)
		d = hpx_op_description(op);
	if (anew && d == NULL)
		d = &no_texts;
	switch (change->write) {
	case HPX_WRITE_INSERT:
		return insert(s, row, change, d);
	case HPX_WRITE_LEASE:
		return renew(s, row, op, change->record);
	case HPX_WRITE_REMOVE:
		status = op->verb == HPX_VERB_FORGET ? keep_unreaped(s, row) : HPX_OK;
		return status == HPX_OK ? hpx_sqlite_row_remove(s, row) : status;
	case HPX_WRITE_REPLACE:
	case HPX_WRITE_UPDATE:
		status = change->write == HPX_WRITE_REPLACE ? keep_unreaped(s, row) : HPX_OK;
		if (status == HPX_OK)
			status = update(s, row, change, d);
		return status == HPX_OK ? move_question(s, row, change) : status;
	case HPX_WRITE_NOTHING:
		break;
	}
	return HPX_OK;
}

static enum hpx_status put_provider_id(struct hpx_sqlite_db *db, const struct hpx_change *change)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_PROVIDER);

	hpx_sqlite_bind_blob(&stmt, change->record.id.bytes, sizeof(change->record.id.bytes));
	hpx_sqlite_bind_blob(&stmt, change->record.mark.bytes, sizeof(change->record.mark.bytes));
	hpx_sqlite_bind_text(&stmt, *change->provider_id);
	return hpx_sqlite_finish(&stmt);
}

enum hpx_status hpx_sqlite_change_write(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
					const struct hpx_change *change,
					const struct hpx_store_op *op)
{
	enum hpx_status status = write_rows(s, row, change, op);

	if (status == HPX_OK && change->provider_id != NULL)
		status = put_provider_id(&s->writer, change);

	if (status == HPX_OK && change->event != NULL)
		status = put_event(&s->writer, change, op);
	return status;
}
