/* UNSETTLED: unknowns whose next question is due, given to whoever asks for
 * them; the time of the next question moves on at once, so that nobody else
 * gets the same. Always inside the batch's transaction. */
#include <stdlib.h>

#include "store/sqlite/driver.h"

#define LIMIT_MAX 1000
/* Descriptions of one operation: a path and a handful of names. */
#define DESCRIPTION_BYTES_MAX ((size_t)1 << 20)

struct question {
	struct hpx_operation_id id;
	int64_t number;
};

struct questions {
	struct question *question;
	size_t count;
	size_t max;
};

static enum hpx_status collect(struct hpx_sqlite_db *db, enum hpx_sql sql, int64_t wall_ms,
			       struct questions *list)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, sql);

	hpx_sqlite_bind_int(&call, (int64_t)(list->max - list->count));
	if (sql == HPX_SQL_QUESTIONS_DUE)
		hpx_sqlite_bind_int(&call, wall_ms);
	while (list->count < list->max && hpx_sqlite_next(&call)) {
		struct question *q = &list->question[list->count];
		q->number = sqlite3_column_int64(call.stmt, 1);
		if (hpx_sqlite_fixed(&call, 0, q->id.bytes, sizeof(q->id.bytes)))
			list->count++;
	}
	return hpx_sqlite_end(&call);
}

/* What is due first: what nobody has looked at may be settled by evidence. */
static enum hpx_status collect_all(struct hpx_sqlite_db *db, int64_t wall_ms,
				   struct questions *list)
{
	static const enum hpx_sql statements[] = { HPX_SQL_QUESTIONS_DUE, HPX_SQL_UNASKED_JOBS,
						   HPX_SQL_UNASKED_OPERATIONS };
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < 3 && status == HPX_OK && list->count < list->max; i++)
		status = collect(db, statements[i], wall_ms, list);
	return status;
}

static enum hpx_status read_description(struct hpx_sqlite_db *db, const struct hpx_operation_id *id,
					struct hpx_arena *arena,
					struct hpx_description *ret_description)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_FIND_ENTRY);
	enum hpx_status read = HPX_OK, status;

	hpx_sqlite_bind_blob(&call, id->bytes, sizeof(id->bytes));
	if (hpx_sqlite_next(&call))
		read = hpx_sqlite_description_read(&call, arena, ret_description);
	status = hpx_sqlite_end(&call);
	return status != HPX_OK ? status : read;
}

static void describe(const struct hpx_sqlite_subject *subject, struct hpx_unsettled *unsettled)
{
	const struct hpx_outbox_found *found = &subject->found;

	unsettled->record = found->operation.record;
	unsettled->reconcile = found->reconcile;
	unsettled->evidence = found->evidence;
	unsettled->scheduled = found->scheduled && found->reconcile.ask_at_ms != 0;
	if (unsettled->reconcile.sent_ms == 0)
		unsettled->reconcile.sent_ms = found->job_exists ? found->delivery.changed_ms :
								   found->operation.record.changed_ms;
	if (!found->job_exists)
		return;
	unsettled->delivery = found->delivery;
	unsettled->job_name = subject->entry->job.name;
	unsettled->target = subject->entry->job.target;
	/* Its operation may be gone, or used anew. */
	if (!found->operation.exists ||
	    !hpx_mark_eq(&found->operation.record.mark, &found->delivery.mark))
		unsettled->record = (struct hpx_record){ .id = found->delivery.operation,
							 .mark = found->delivery.mark };
}

/* One that cannot be read is a person's. */
static bool is_readable(const struct hpx_outbox_found *found)
{
	return found->job_exists ? found->job_readable : found->operation.readable;
}

static enum hpx_status give(struct hpx_sqlite_store *s, const struct hpx_sqlite_subject *subject,
			    int64_t ask_at_ms, struct hpx_unsettled ***tail)
{
	struct hpx_unsettled unsettled = { .next = NULL };
	struct hpx_unsettled *copy = NULL;
	struct hpx_reconcile reconcile;
	struct hpx_arena arena;
	enum hpx_status status = HPX_OK;

	hpx_arena_init(&arena, DESCRIPTION_BYTES_MAX);
	describe(subject, &unsettled);
	if (unsettled.record.state != HPX_STATE_NONE)
		status = read_description(&s->writer, &unsettled.record.id, &arena,
					  &unsettled.description);
	if (status == HPX_OK) {
		copy = hpx_unsettled_new(&unsettled);
		status = copy != NULL ? HPX_OK : HPX_NOMEM;
	}
	hpx_arena_done(&arena);
	if (status != HPX_OK)
		return status;
	**tail = copy;
	*tail = &copy->next;
	reconcile = copy->reconcile;
	reconcile.ask_at_ms = ask_at_ms;
	return hpx_sqlite_reconcile_put(&s->writer, subject, subject->found.job_exists, &reconcile,
					subject->found.evidence, subject->found.person);
}

static enum hpx_status give_all(struct hpx_sqlite_store *s, const struct questions *list,
				int64_t ask_at_ms, struct hpx_store_op *op)
{
	struct hpx_unsettled **tail = &op->unsettled;
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < list->count && status == HPX_OK; i++) {
		struct hpx_sqlite_subject subject;
		status = hpx_sqlite_subject_find(&s->writer, &list->question[i].id,
						 list->question[i].number, &subject);
		if (status == HPX_OK && is_readable(&subject.found)) {
			status = give(s, &subject, ask_at_ms, &tail);
			op->count++;
		}
		hpx_sqlite_subject_free(&subject);
	}
	return status;
}

enum hpx_status hpx_sqlite_unsettled(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct questions list = { .max = op->limit < LIMIT_MAX ? op->limit : LIMIT_MAX };
	enum hpx_status status;

	if (op->lease_ms <= 0) {
		op->status = HPX_MISUSE;
		return HPX_OK;
	}
	list.question = calloc(list.max != 0 ? list.max : 1, sizeof(*list.question));
	if (list.question == NULL)
		return HPX_NOMEM;
	status = collect_all(&s->writer, now.wall_ms, &list);
	if (status == HPX_OK)
		status = give_all(s, &list, now.wall_ms + op->lease_ms, op);
	free(list.question);
	return status;
}
