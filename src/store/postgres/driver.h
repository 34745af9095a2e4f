/* What the files of the PostgreSQL driver share: the store, and the functions between
 * them. Connections: the writer belongs to whoever calls run() and recover(), and with
 * it the connection for replays; each reader has its own. The next writer is made on a
 * thread of its own, so that nobody waits for a database that is away. */
#ifndef HPX_STORE_POSTGRES_DRIVER_H
#define HPX_STORE_POSTGRES_DRIVER_H

#include <pthread.h>

#include "base/status.h"
#include "store/change.h"
#include "store/postgres/pipeline.h"
#include "store/postgres/postgres.h"

/* connection.c: one connection under way. */
struct hpx_pg_connector {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	pthread_t thread;
	bool started;  /* the thread must be joined */
	bool finished; /* under the mutex, like the rest */
	struct hpx_pg_db db;
	enum hpx_status status;
	char problem[HPX_STORE_PROBLEM_SIZE];
	bool replay_wanted; /* maintain() shall open another connection for replays */
	struct hpx_pg_db replay;
};

struct hpx_pg_store {
	struct hpx_store base;
	char *url;                                   /* with its password: never shown */
	char upstream_name[HPX_STORE_UPSTREAM_SIZE]; /* whose unknowns are ours; "": what is everybody's */
	bool serve;
	int64_t event_retention_ms;
	int64_t job_retention_ms;
	int64_t history_retention_ms;
	struct hpx_pg_db writer;
	/* A commit before now may not be on every node that can become the
	 * primary: nothing is told until a later one certainly is. */
	bool unsure;
	/* Commits are numbered as they begin; the last one that is certain. */
	uint64_t commits_begun;
	uint64_t commit_sure;
	/* Where retries are read, beside the writer's commit (replay.c). */
	struct hpx_pg_db replay;
	uint64_t replay_opened; /* the commits that had begun then */
	struct hpx_pg_connector connector;
};

static inline struct hpx_pg_store *hpx_pg_of(struct hpx_store *store)
{
	return (struct hpx_pg_store *)store;
}

/* connection.c */
enum hpx_status hpx_pg_connect(const char *url, enum hpx_pg_role role, struct hpx_pg_db *db,
			       char *problem);
/* Whether its commits wait for another server. Not in pipeline mode. */
bool hpx_pg_waits_for_standby(struct hpx_pg_db *db);
/* New enough, and UTF8. */
enum hpx_status hpx_pg_check_server(const PGconn *conn, char *problem);
/* "postgres://user@host:port/database": who and where, no password. */
enum hpx_status hpx_pg_describe(const char *url, char *out, size_t size, char *problem);
/* What an operator should know about this server; "" where all is well. */
enum hpx_status hpx_pg_judge_server(struct hpx_pg_db *db, char *warning, size_t size,
				    char *problem);
/* HPX_UNAVAILABLE while the new connection is not there yet. */
enum hpx_status hpx_pg_connector_init(struct hpx_pg_connector *connector);
void hpx_pg_connector_done(struct hpx_pg_connector *connector);
enum hpx_status hpx_pg_recover(struct hpx_store *store, char *problem);
/* To another place: libpq's handle keeps a pointer to where notices go. */
void hpx_pg_db_move(struct hpx_pg_db *to, struct hpx_pg_db *from);

/* schema.c, on a connection that is not in pipeline mode yet. */
struct hpx_pg_schema {
	unsigned from;
	unsigned to;
};
unsigned hpx_pg_schema_number(void);
enum hpx_status hpx_pg_schema_check(struct hpx_pg_db *db, struct hpx_pg_schema *ret_schema,
				    char *problem);
enum hpx_status hpx_pg_schema_migrate(struct hpx_pg_db *db, struct hpx_pg_schema *ret_schema,
				      char *problem);

/* ---- row.c: an operation in memory ---- */

/* The columns of HPX_PG_SQL_RECORD. */
#define HPX_PG_DESCRIPTION_COLUMN 25
#define HPX_PG_ANSWER_COLUMN (HPX_PG_DESCRIPTION_COLUMN + 6)

/* An operation that a batch is about: what the database says of it, and what is to be
 * written. However many ops concern it, it is read once and written once. */
struct hpx_pg_row {
	struct hpx_operation_id id;
	bool stored;                 /* there is a row in the database */
	bool taken;                  /* another operation has the id: its rest is another */
	bool locked;                 /* the row is ours until the commit */
	bool renewed;                /* there is a lease row */
	int64_t revision;            /* of the row as it was read */
	struct hpx_found found;      /* as of the op decided last */
	struct hpx_answer *kept;     /* the stored answer, where it was read */
	enum hpx_status kept_status; /* HPX_CORRUPT: it cannot be read */
	/* To be written. */
	bool changed;                          /* the operation's row */
	const struct hpx_store_op *described;  /* by this op's description */
	const struct hpx_job *job;             /* accepted with it, to be stored */
	const struct hpx_route_key *route_key; /* reserved with it, to be stored */
	const struct hpx_answer *answer;       /* to be stored */
	bool answer_gone;                      /* to be removed */
	bool told;                             /* as it was read, it is used again or forgotten: an entry tells of it */
	bool lease;                            /* the renewal is to be stored */
	bool lease_gone;
	bool lost; /* somebody else inserted it first */
	/* What the next look at the database is to do with it. */
	bool to_lock;
	bool to_read;
	bool to_load; /* its answer */
};

/* Reads columns HPX_PG_SQL_RECORD; `found.readable` false where they make no record. */
void hpx_pg_row_read(const PGresult *result, int row, struct hpx_pg_row *ret_row);
enum hpx_status hpx_pg_description_read(const PGresult *result, int row, struct hpx_arena *arena,
					struct hpx_description *ret_description);
/* HPX_CORRUPT where the column is not this operation's answer; HPX_OK and NULL where
 * there is none and there need not be. */
enum hpx_status hpx_pg_answer_read(const PGresult *result, int row, int column,
				   const struct hpx_record *record,
				   struct hpx_answer **ret_answer);
/* The first two columns of a row. */
bool hpx_pg_id_read(const PGresult *result, int row, struct hpx_operation_id *ret_id);

struct hpx_pg_item; /* outbox.h */

/* One event to be written. */
struct hpx_pg_event {
	struct hpx_record record;
	const struct hpx_store_op *op;
	const char *what;
	struct hpx_span reason;
};

/* Operations, sorted by id. */
struct hpx_pg_batch {
	struct hpx_pg_row *rows;
	size_t row_count;
	size_t row_max; /* how many there is room for */
	struct hpx_pg_event *event;
	size_t event_count;
	size_t event_max;
	bool written;                   /* its transaction wrote something besides */
	const struct hpx_pg_item *item; /* of the outbox; borrowed */
	size_t item_count;
};

/* Room for that many operations and events. */
enum hpx_status hpx_pg_batch_init(struct hpx_pg_batch *batch, size_t rows, size_t events);
void hpx_pg_batch_done(struct hpx_pg_batch *batch);
/* Ids are added unsorted, with repetitions, then sorted once. */
void hpx_pg_batch_add(struct hpx_pg_batch *batch, const struct hpx_operation_id *id);
void hpx_pg_batch_sort(struct hpx_pg_batch *batch);
/* NULL where it is not in it. */
struct hpx_pg_row *hpx_pg_batch_find(struct hpx_pg_batch *batch, const struct hpx_operation_id *id);
/* A row of HPX_PG_SQL_RECORD, into whichever rows of the batch have its id. */
void hpx_pg_batch_take(struct hpx_pg_batch *batch, const PGresult *result, int row);
/* Takes a change over into the row. */
void hpx_pg_row_change(struct hpx_pg_batch *batch, struct hpx_pg_row *row,
		       const struct hpx_change *change, const struct hpx_store_op *op);
/* Whether anything is to be written for it. */
bool hpx_pg_row_dirty(const struct hpx_pg_row *row);

/* What one op makes of a row as it was read. */
/* It will write the row for certain. */
bool hpx_pg_needs_lock(const struct hpx_store_op *op);
/* An attempt that is to begin waits for the end of the run in any case. */
bool hpx_pg_begins(const struct hpx_store_op *op);
/* What a reservation would do, as far as the row can be trusted without its lock:
 * write, or tell what is there and no more. */
bool hpx_pg_would_write(const struct hpx_pg_row *row, const struct hpx_store_op *op,
			const struct hpx_moment *now);
bool hpx_pg_would_only_tell(const struct hpx_pg_row *row, const struct hpx_store_op *op,
			    const struct hpx_moment *now);
/* Fills the op's out part; nothing is to be written where its status is not OK. */
void hpx_pg_decide(const struct hpx_pg_row *row, struct hpx_store_op *op,
		   const struct hpx_moment *now, struct hpx_change *ret_change);

/* ---- row_write.c: the batch's writes, sent down the pipe ---- */

void hpx_pg_send_ids(struct hpx_pg_pipe *pipe, enum hpx_pg_statement statement,
		     const struct hpx_pg_batch *batch, bool (*wanted)(const struct hpx_pg_row *));
/* True: one was sent, and its result is to be taken. */
bool hpx_pg_send_inserts(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch);
/* Rows that somebody else inserted first are marked lost; how many. */
size_t hpx_pg_take_inserts(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch);
/* Everything but the inserts. */
void hpx_pg_send_changes(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch);
/* Sends what the columns hold, if anything, and ends them; false: there was nothing.
 * `more` NULL, or one more parameter behind the arrays. */
bool hpx_pg_send_columns(struct hpx_pg_pipe *pipe, enum hpx_pg_statement statement,
			 struct hpx_pg_columns *columns, const int64_t *more);

/* Bodies go out in parts of about this size. */
#define HPX_PG_BYTES_AT_ONCE (4 << 20)
/* The half that rows are keyed by, and the other one. */
#define HPX_PG_HALF (HPX_OPERATION_ID_SIZE / 2)
void hpx_pg_put_id(struct hpx_pg_columns *columns, const struct hpx_operation_id *id);
void hpx_pg_put_rest(struct hpx_pg_columns *columns, const struct hpx_operation_id *id);
void hpx_pg_put_token(struct hpx_pg_columns *columns, const struct hpx_token *token);
void hpx_pg_put_mark(struct hpx_pg_columns *columns, const struct hpx_mark *mark);
void hpx_pg_add_id(struct hpx_pg_params *params, const struct hpx_operation_id *id);
void hpx_pg_add_rest(struct hpx_pg_params *params, const struct hpx_operation_id *id);
/* An answer as it is stored; NULL: SQL's NULL. */
void hpx_pg_put_answer(struct hpx_pg_columns *columns, const struct hpx_operation_id *id,
		       const struct hpx_answer *answer);
/* PUT_ROUTE_KEYS. */
void hpx_pg_route_keys_init(struct hpx_pg_columns *columns);
void hpx_pg_put_route_key(struct hpx_pg_columns *columns, const struct hpx_record *record,
			  const struct hpx_route_key *key);
/* Six texts; all empty where the op has none. */
void hpx_pg_put_description(struct hpx_pg_columns *columns, const struct hpx_store_op *op);

/* job_row.c: the batch's jobs and questions. */
void hpx_pg_send_items(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch);
/* Whether it can be stored here as it is. */
bool hpx_pg_job_is_text(const struct hpx_job *job);
bool hpx_pg_items_dirty(const struct hpx_pg_batch *batch);

/* ---- batch.c: run(), and the end of a transaction ---- */

enum hpx_status hpx_pg_run(struct hpx_store *store, struct hpx_store_op **ops, size_t count,
			   char *problem);
/* One op about one operation, alone. */
enum hpx_status hpx_pg_run_row(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);
/* What a look at the database found besides rows. */
struct hpx_pg_look {
	bool begun; /* a transaction is open */
	struct hpx_moment now;
};
enum hpx_status hpx_pg_commit(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
			      const struct hpx_pg_look *look, char *problem);
/* One call more in the transaction that is open, and its end. */
enum hpx_status hpx_pg_commit_call(struct hpx_pg_store *s, enum hpx_pg_statement statement,
				   const struct hpx_pg_params *params, char *problem);
/* Around every commit: its number, and what its end means for the store. */
uint64_t hpx_pg_commit_begins(struct hpx_pg_store *s);
enum hpx_status hpx_pg_believe(struct hpx_pg_store *s, uint64_t commit, enum hpx_status status,
			       char *problem);
/* Whatever was begun is undone; the status given is given back. */
enum hpx_status hpx_pg_undo(struct hpx_pg_store *s, enum hpx_status status);

/* fast_path.c: what needs no lock is written at once, in one round trip, and retries of
 * what is there are told before its commit. Of each op that is done, `todo` becomes
 * false; every other one was left as it came. */
enum hpx_status hpx_pg_fast_path(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				 bool *todo, char *problem);

/* slow_path.c: the ops that are still to do, under locks. */
enum hpx_status hpx_pg_slow_path(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				 bool *todo, char *problem);
/* Locks and reads the rows that are marked so, and asks for the time. */
enum hpx_status hpx_pg_look(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
			    struct hpx_pg_look *look, char *problem);
enum hpx_status hpx_pg_look_time(struct hpx_pg_store *s, struct hpx_moment *ret_now, char *problem);
/* The result of a CLOCK that was sent. */
void hpx_pg_take_time(struct hpx_pg_store *s, struct hpx_pg_pipe *pipe, struct hpx_moment *ret_now);

/* replay.c: rows read on a connection of their own, while the writer commits. Those that
 * were found, with their answers, become `stored` in the batch; none where what is read
 * there may not be told. `*ret_now` is the time of the look. */
void hpx_pg_read_replays(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
			 struct hpx_moment *ret_now);
void hpx_pg_replay_open(struct hpx_pg_store *s);
/* Opens what run() found missing, on maintain()'s thread. */
void hpx_pg_replay_maintain(struct hpx_pg_store *s);

/* sweep_reap.c: verbs about many operations, a transaction each. */
enum hpx_status hpx_pg_sweep(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);
enum hpx_status hpx_pg_reap(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);
enum hpx_status hpx_pg_put_recipe(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);
enum hpx_status hpx_pg_put_lane(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);

/* application.c: ADVANCE, ENQUEUE and READ_POINT, and NOTE_MISUSE, a transaction each. */
enum hpx_status hpx_pg_note_misuse(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);
enum hpx_status hpx_pg_application(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);
enum hpx_status hpx_pg_settle_by_function(struct hpx_pg_store *s, struct hpx_store_op *op,
					  char *problem);
/* What hapax.settle gave. */
enum hpx_status hpx_pg_settlement_read(const PGresult *result, struct hpx_store_op *op);
bool hpx_pg_is_settlers_own(enum hpx_status status);
bool hpx_pg_is_ops_own(enum hpx_status status);
/* A recovery point and, in the next column, what was saved there, of the first row, into
 * the op's results. */
enum hpx_status hpx_pg_point_read(const PGresult *result, int column, struct hpx_store_op *op);

/* ---- reader.c: the driver's slots for readers ---- */

struct hpx_pg_last_removals;
struct hpx_pg_reader {
	struct hpx_store_reader base;
	struct hpx_pg_db db;
	int64_t failed_ms;                 /* boot clock: when it last could not connect */
	unsigned connections;              /* how many it has opened */
	struct hpx_pg_last_removals *last; /* NULL: was never asked */
};
enum hpx_status hpx_pg_reader_open(struct hpx_store *store, struct hpx_store_reader **ret_reader);
void hpx_pg_reader_close(struct hpx_store_reader *reader);
/* One statement of a reader; the result is the caller's to clear. */
enum hpx_status hpx_pg_ask(struct hpx_store_reader *reader, enum hpx_pg_statement statement,
			   const struct hpx_pg_params *params, PGresult **ret_result);
enum hpx_status hpx_pg_find(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
			    struct hpx_arena *arena, struct hpx_entry *ret_entry,
			    struct hpx_answer **ret_answer);
enum hpx_status hpx_pg_recipe(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
			      struct hpx_arena *arena, struct hpx_span *ret_text);
enum hpx_status hpx_pg_watch(struct hpx_store_reader *reader, const struct hpx_operation_id *ids,
			     size_t count, bool *ret_ended);
enum hpx_status hpx_pg_removals(struct hpx_store_reader *reader,
				struct hpx_removals *ret_removals);
enum hpx_status hpx_pg_list(struct hpx_store_reader *reader, const struct hpx_query *query,
			    struct hpx_arena *arena, struct hpx_entry **ret_entries,
			    size_t *ret_count,
			    struct hpx_looked *ret_looked);
enum hpx_status hpx_pg_events(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
			      struct hpx_arena *arena, struct hpx_event **ret_events,
			      size_t *ret_count);
enum hpx_status hpx_pg_stats(struct hpx_store_reader *reader, struct hpx_store_stats *ret_stats);
enum hpx_status hpx_pg_provided(struct hpx_store_reader *reader, struct hpx_span provider_id,
				struct hpx_reference *references, size_t max, size_t *ret_count);
enum hpx_status hpx_pg_keyed(struct hpx_store_reader *reader, const struct hpx_key_query *query,
			     struct hpx_key_matches *ret_matches, int64_t *ret_since_ms);
enum hpx_status hpx_pg_unkeyed(struct hpx_store_reader *reader, const struct hpx_key_query *query,
			       int64_t since_ms, bool *ret_any);
enum hpx_status hpx_pg_jobs(struct hpx_store_reader *reader, const struct hpx_job_query *query,
			    struct hpx_job_entry **ret_jobs);
enum hpx_status hpx_pg_question(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				struct hpx_next_question *ret_question);
/* unsettled.c */
enum hpx_status hpx_pg_lanes(struct hpx_store_reader *reader, struct hpx_arena *arena,
			     struct hpx_lane_due **ret_lanes, size_t *ret_count);
enum hpx_status hpx_pg_due(struct hpx_store_reader *reader, struct hpx_span lane, int64_t from_ms,
			   struct hpx_due *due, size_t max, size_t *ret_count);

/* history.c: what is left of finished operations. The rule is written at start, as a server
 * was told. */
enum hpx_status hpx_pg_history_settle(struct hpx_pg_store *s, char *problem);
enum hpx_status hpx_pg_history(struct hpx_store_reader *reader, const struct hpx_history_query *query,
			       struct hpx_arena *arena, struct hpx_history *ret_history);

/* borrow.c and schema.c: the driver's slots for a connection that stays the application's.
 * run() takes one op (RESERVE, COMPLETE, FAIL, ADVANCE, ENQUEUE, READ_POINT), calls the SQL
 * function that does it, and waits like any statement of the application's transaction. */
enum hpx_status hpx_pg_borrow(void *connection, struct hpx_store **ret_store, char *problem);
enum hpx_status hpx_pg_install(void *connection, char *problem);
/* Whether a connection of somebody else's can take a statement now, and what a failed one
 * means. */
enum hpx_status hpx_pg_judge_borrowed(PGconn *conn, char *problem);
enum hpx_status hpx_pg_borrowed_fault(PGconn *conn, const PGresult *result, char *problem);

#endif
