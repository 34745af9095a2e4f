/* What the verbs of the outbox share: jobs and questions, read under their
 * locks, and what is to be written of them. */
#ifndef HPX_STORE_POSTGRES_OUTBOX_H
#define HPX_STORE_POSTGRES_OUTBOX_H

#include "store/outbox_change.h"
#include "store/postgres/driver.h"

/* Whatever the submitter asks for: one op must not hold rows for long. */
#define HPX_PG_ITEMS_MAX 1000

/* One job, or (number 0) an operation by itself. */
struct hpx_pg_item {
	int64_t number;
	struct hpx_operation_id id;  /* of the operation; of a job: once it was read */
	struct hpx_job_entry *entry; /* NULL: no such job */
	struct hpx_outbox_found found;
	bool locked; /* the job's row is ours */
	int row;     /* in `operations`, -1: the operation is gone */
	bool changed;
	struct hpx_outbox_change change; /* to be written */
};

struct hpx_pg_outbox {
	struct hpx_pg_item *item;
	size_t count;
	size_t max;
	struct hpx_pg_batch batch; /* the operations among it, and events */
	struct hpx_pg_look look;
	PGresult *operations; /* as READ_OPERATIONS gave them */
};

/* outbox.c */
enum hpx_status hpx_pg_outbox_init(struct hpx_pg_outbox *outbox, size_t max);
void hpx_pg_outbox_done(struct hpx_pg_outbox *outbox);
/* Nothing beyond the maximum is added. */
void hpx_pg_outbox_add_job(struct hpx_pg_outbox *outbox, int64_t number);
void hpx_pg_outbox_add_operation(struct hpx_pg_outbox *outbox, const struct hpx_operation_id *id);
/* Locks without waiting, operations before jobs, reads all of it, and asks for
 * the time, in one round trip. */
enum hpx_status hpx_pg_outbox_look(struct hpx_pg_store *s, struct hpx_pg_outbox *outbox,
				   bool bodies, char *problem);
/* Somebody else holds a row that a decision on this item rests on. */
bool hpx_pg_outbox_is_held(struct hpx_pg_outbox *outbox, const struct hpx_pg_item *item);
/* Takes the item's change over, with its events. */
void hpx_pg_outbox_take(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item,
			const struct hpx_store_op *op);
enum hpx_status hpx_pg_outbox_commit(struct hpx_pg_store *s, struct hpx_pg_outbox *outbox,
				     char *problem);

/* job_row.c: between columns and jobs. */
#define HPX_PG_JOB_QUESTION_COLUMN 25
#define HPX_PG_OPERATION_QUESTION_COLUMN (HPX_PG_DESCRIPTION_COLUMN + 6)
/* NULL when out of memory; `readable` false where the row makes no delivery. */
struct hpx_job_entry *hpx_pg_job_read(const PGresult *result, int row);
/* A row that makes no question, or is about another reference, is none. */
void hpx_pg_question_read(const PGresult *result, int row, int column,
			  const struct hpx_mark *mark, struct hpx_outbox_found *found);
/* What is kept as evidence, as the store numbers it. */
int64_t hpx_pg_evidence_number(enum hpx_ruling ruling);

/* delivery.c, unsettled.c, outbox.c: a transaction each. */
enum hpx_status hpx_pg_claim(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);
enum hpx_status hpx_pg_sweep_jobs(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);
/* Pending operations whose time is over: rows of REAP from `from` on. */
enum hpx_status hpx_pg_abandon(struct hpx_pg_store *s, struct hpx_store_op *op,
			       const PGresult *overdue, int from, char *problem);
/* CLAIM_UNKNOWN and ESCALATE. */
enum hpx_status hpx_pg_take_due(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);
/* The JOBs among these, many in one transaction; the others are left alone. */
enum hpx_status hpx_pg_job_updates(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				   char *problem);
/* The RULEs, likewise. */
enum hpx_status hpx_pg_rules(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
			     char *problem);
/* RESOLVE and FORGET. */
enum hpx_status hpx_pg_settle(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);

#endif
