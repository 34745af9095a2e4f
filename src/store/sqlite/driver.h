/* What the files of the SQLite driver share: the store, and the functions
 * between them. Connections: the writer belongs to whoever calls run() and
 * recover(); the keeper to maintain(), under its mutex; each reader has its
 * own. `reopened` tells readers to open anew. */
#ifndef HPX_STORE_SQLITE_DRIVER_H
#define HPX_STORE_SQLITE_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"
#include "store/id_filter.h"
#include "store/outbox_change.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/statement.h"

#define HPX_SQLITE_BOOT_ID_SIZE 40
/* `kept` of a tombstone: its answer went at its expiry. */
#define HPX_SQLITE_TOMBSTONE 2
/* Of an id, so much is in the index of a generation. */
#define HPX_SQLITE_ID_BYTES 16

/* The lock file. */
struct hpx_sqlite_lock {
	char pid[64]; /* the server's, in digits; for people */
	_Atomic uint64_t removals;
};

/* lease.c: leases of the server's own attempts. */
struct hpx_sqlite_due_lease {
	struct hpx_token token;
	struct hpx_operation_id id;
};
struct hpx_sqlite_held;
struct hpx_sqlite_leases {
	pthread_mutex_t mutex;
	struct hpx_sqlite_held *held;
	size_t room; /* a power of two, or 0 */
	size_t count;
	/* Attempts that end with the batch; the writer's. */
	struct hpx_sqlite_due_lease *ended;
	size_t ended_count;
	size_t ended_room;
};

/* filter.c: which ids each generation may have. */
struct hpx_sqlite_filter {
	int64_t generation;
	/* Of all ids of a closed one; NULL: not made yet. Set once. */
	struct hpx_id_filter *_Atomic stored;
	struct hpx_id_filter *hint; /* of one without it: what this process knows of */
	int64_t read_to;            /* the hint has the rows up to this number */
	_Atomic bool whole;         /* all that were there before this process, too */
};
struct hpx_sqlite_filters {
	pthread_rwlock_t lock; /* for the list; the keeper and the writer change it */
	struct hpx_sqlite_filter *items;
	size_t count;
	int64_t version; /* of the writer's list that it was compared with */
};
/* So much of an id as is in the index. */
struct hpx_sqlite_half_id {
	uint8_t bytes[HPX_SQLITE_ID_BYTES];
};
/* One that is being made; the keeper's. */
struct hpx_sqlite_making {
	int64_t generation;
	struct hpx_id_filter *filter; /* NULL: none is */
	int64_t read_to;
	/* The ids themselves, of the rows up to there; sorted once all are read. */
	struct hpx_sqlite_half_id *ids;
	size_t id_count;
	size_t id_room;
	bool whole;
	/* The next part of the list that is written, and its first id. */
	int64_t part;
	size_t at;
};

/* Of the log: our pages are SQLite's default of 4096 bytes, and a frame's header. */
#define HPX_SQLITE_FRAME_BYTES ((int64_t)(4096 + 24))

/* Whether a generation's index was compared with its table since the start: damage.c. */
struct hpx_sqlite_comparison {
	int64_t generation;
	_Atomic bool done;
	_Atomic bool wanted; /* somebody was refused because it is not */
};

struct hpx_sqlite_store {
	struct hpx_store base;
	char path[PATH_MAX];
	char boot_id[HPX_SQLITE_BOOT_ID_SIZE]; /* "" where the system tells none */
	bool serve;
	bool borrowed;                                                                   /* the writer's connection is an application's */
	int64_t generation_operations;                                                   /* how many a generation takes */
	int64_t generation_ms;                                                           /* how long it is open; 0: by its class */
	void (*lost)(void *user, enum hpx_verb verb, const struct hpx_touched *touched); /* or NULL */
	void *lost_user;
	int lock_fd;                  /* -1: not the server */
	struct hpx_sqlite_lock *lock; /* mapped; NULL: it cannot be */
	bool removed;                 /* the batch has a person's removal in it */
	uint64_t free_bytes_min;
	int64_t event_retention_ms;
	int64_t job_retention_ms;
	int64_t history_retention_ms; /* of a server: what the file is to be told */

	struct hpx_sqlite_db writer;
	bool broken;        /* recover() must open the writer anew */
	int64_t checked_ms; /* boot clock: file and clocks were looked at */
	int64_t space_checked_ms;
	int64_t space_checked_at; /* the log's bytes then */
	int64_t seen_ms;          /* the wall time that the clock row holds */

	_Atomic unsigned reopened; /* how often; readers follow */
	_Atomic int64_t wal_bytes; /* as of the last commit */
	int64_t wal_tried_bytes;   /* how many, when the writer last tried to restart the log */
	pthread_mutex_t keeper_mutex;
	struct hpx_sqlite_db keeper;
	struct hpx_sqlite_filters filters; /* of a server */
	struct hpx_sqlite_making making;
	struct hpx_sqlite_leases leases; /* of a server */
	_Atomic bool damaged;            /* and nobody has accepted it: no new keys */
	_Atomic bool damage_seen;        /* by this process */
	/* Closed generations that were there at the start, newest first; the rest is believed. */
	struct hpx_sqlite_comparison *comparisons;
	size_t comparison_count;
	int64_t damage_version; /* of the list when that was read */
	/* damage.c: how far the keeper has looked in this round; which generation it is at,
	 * 0 none, and its last row; when it looks again. */
	int64_t checked_tables;
	int64_t checked_generation;
	int64_t looking;
	int64_t looked_to;
	int64_t check_at_ms;
	int64_t view_version; /* of the list that the view was made for; the keeper's */
};

static inline struct hpx_sqlite_store *hpx_sqlite_of(struct hpx_store *store)
{
	return (struct hpx_sqlite_store *)store;
}

/* database_file.c: where the file is. */
enum hpx_status hpx_sqlite_file_find(struct hpx_span url, char ret_path[PATH_MAX], char *problem);
enum hpx_status hpx_sqlite_file_lock(const char *path, int *ret_fd, char *problem);
/* For a moment, where nobody serves the file: -1 where somebody does, or it cannot be
 * had. Closing it gives it back. */
int hpx_sqlite_file_lock_try(const char *path);
/* HPX_NOT_FOUND with a remedy where it is absent and `create` is false. */
enum hpx_status hpx_sqlite_file_ensure(const char *path, bool create, char *problem);
/* UINT64_MAX: not known. */
uint64_t hpx_sqlite_file_free_bytes(const char *path);
/* The size of the file, and of the log's, whatever of it is in use; 0 where there is none. */
uint64_t hpx_sqlite_file_bytes(const char *path);
uint64_t hpx_sqlite_file_log_bytes(const char *path);

/* database_file.c: the count of removals. */
void hpx_sqlite_removal_counter_map(struct hpx_sqlite_store *s);
void hpx_sqlite_removal_counter_unmap(struct hpx_sqlite_store *s);
void hpx_sqlite_removal_counter_add(struct hpx_sqlite_store *s);

/* generation.c. The list is read anew where it is another one; inside a transaction,
 * before anything else. */
void hpx_sqlite_generations_init(struct hpx_sqlite_store *s);
enum hpx_status hpx_sqlite_generations_refresh(struct hpx_sqlite_db *db);
void hpx_sqlite_generations_forget(struct hpx_sqlite_db *db);
/* NULL: there is none. */
struct hpx_sqlite_generation *hpx_sqlite_generation_find(struct hpx_sqlite_db *db, int64_t number);
enum hpx_status hpx_sqlite_generation_put(struct hpx_sqlite_db *db,
					  const struct hpx_sqlite_generation *g);
/* The open one that a reservation goes into; opened where there is none, and where the
 * last one is full. NULL on a borrowed connection, where there is none. */
enum hpx_status hpx_sqlite_generation_for(struct hpx_sqlite_store *s, int64_t retention_ms,
					  struct hpx_sqlite_generation **ret_generation);
enum hpx_status hpx_sqlite_generations_close_due(struct hpx_sqlite_store *s);
/* Closed ones without an attempt under way are marked no longer. */
enum hpx_status hpx_sqlite_generations_settle(struct hpx_sqlite_store *s);
enum hpx_status hpx_sqlite_generations_note(struct hpx_sqlite_store *s);

/* lease.c. */
enum hpx_status hpx_sqlite_leases_init(struct hpx_sqlite_leases *leases);
void hpx_sqlite_leases_done(struct hpx_sqlite_leases *leases);
/* Until the record's lease_until_ms; a renewal is the same again. */
enum hpx_status hpx_sqlite_lease_hold(struct hpx_sqlite_leases *leases,
				      const struct hpx_record *record, int64_t generation,
				      int64_t number);
/* 0: there is none. */
int64_t hpx_sqlite_lease_until(struct hpx_sqlite_leases *leases, const struct hpx_token *token,
			       const struct hpx_operation_id *id);
void hpx_sqlite_lease_drop(struct hpx_sqlite_leases *leases, const struct hpx_token *token,
			   const struct hpx_operation_id *id);
/* The attempt ends with the batch; and what became of the batch. */
void hpx_sqlite_lease_end(struct hpx_sqlite_leases *leases, const struct hpx_token *token,
			  const struct hpx_operation_id *id);
void hpx_sqlite_leases_commit(struct hpx_sqlite_leases *leases, bool committed);
size_t hpx_sqlite_leases_due(struct hpx_sqlite_leases *leases, int64_t now_ms,
			     struct hpx_sqlite_due_lease *due, size_t max);
/* The least number of an attempt under way in a generation; INT64_MAX: none is. */
int64_t hpx_sqlite_leases_least(struct hpx_sqlite_leases *leases, int64_t generation);
/* How many attempts are under way in generations. */
uint64_t hpx_sqlite_leases_plain(struct hpx_sqlite_leases *leases);

/* filter.c. */
enum hpx_status hpx_sqlite_filters_init(struct hpx_sqlite_filters *filters);
void hpx_sqlite_filters_done(struct hpx_sqlite_filters *filters);
/* After a refresh of the writer's list: filters of the same generations. */
enum hpx_status hpx_sqlite_filters_sync(struct hpx_sqlite_store *s);
/* A reservation of this process. */
void hpx_sqlite_filter_add(struct hpx_sqlite_store *s, int64_t generation,
			   const struct hpx_operation_id *id);
/* False: that generation, as the caller's connection sees it, has no such row. `*at`: 0
 * at first; whoever asks for one generation after the other keeps it between them. */
bool hpx_sqlite_filter_may_have(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				const struct hpx_sqlite_generation *g,
				const struct hpx_operation_id *id, size_t *at);
/* False: a look would hardly find anything. A hint: it decides nothing. */
bool hpx_sqlite_filter_hint(struct hpx_sqlite_store *s, const struct hpx_operation_id *id);
void hpx_sqlite_making_end(struct hpx_sqlite_store *s);
/* For maintain(): makes and stores what is missing, a bounded part at a time. */
enum hpx_status hpx_sqlite_filters_make(struct hpx_sqlite_store *s);

/* damage.c: for maintain(), one table at a time: HPX_CORRUPT where damage was found.
 * After a refresh of the writer's list: whether there is any that nobody has accepted.
 * And all tables, for hapax repair. */
enum hpx_status hpx_sqlite_damage_look(struct hpx_sqlite_store *s, char *problem);
enum hpx_status hpx_sqlite_damage_start(struct hpx_sqlite_store *s, char *problem);
/* False: that the generation's index does not have an id says nothing yet. */
bool hpx_sqlite_miss_counts(struct hpx_sqlite_store *s, int64_t generation);
enum hpx_status hpx_sqlite_damage_sync(struct hpx_sqlite_store *s);
enum hpx_status hpx_sqlite_repair_store(struct hpx_sqlite_store *s, bool accept,
					struct hpx_store_repair *result);

/* keeper.c: for maintain(). */
enum hpx_status hpx_sqlite_view_make(struct hpx_sqlite_store *s);

/* wal_coalescing.c: the log's frames of one commit in few large writes. Begin and end
 * stand around a COMMIT with synchronous = FULL, and do nothing on a connection
 * that was opened with another VFS. The VFS' name; NULL where it cannot be had,
 * and SQLite's own does. */
const char *hpx_sqlite_wal_vfs(void);
void hpx_sqlite_wal_begin(struct hpx_sqlite_db *db);
/* Takes the status of the COMMIT and gives it back; what one that failed left
 * is dropped. */
enum hpx_status hpx_sqlite_wal_end(struct hpx_sqlite_db *db, enum hpx_status status);

/* connection.c: opening one. `flags`: SQLITE_OPEN_READWRITE or _READONLY;
 * `vfs`: NULL for SQLite's own. */
enum hpx_status hpx_sqlite_connect(const char *path, int flags, const char *vfs, int busy_ms,
				   struct hpx_sqlite_db *db, char *problem);
/* Every commit of the connection notes the log's size; SQLite then checkpoints in none
 * of them. */
void hpx_sqlite_watch_log(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db);
/* How long the writer waits for another process that writes. */
int hpx_sqlite_busy_ms(const struct hpx_sqlite_store *s);
void hpx_sqlite_explain(struct hpx_sqlite_db *db, const char *path, const char *what,
			char *problem);

/* connection.c: whose file it is, and of which version. Checking changes nothing,
 * whosever file it turns out to be. */
struct hpx_sqlite_schema {
	unsigned from;
	unsigned to;
};
/* What may be done about a schema that is missing or old. */
enum hpx_sqlite_migrate {
	HPX_SQLITE_NOT,
	HPX_SQLITE_OWN,    /* bring it up to date in a file that is hapax's, or new */
	HPX_SQLITE_BESIDE, /* also make it beside an application's tables */
};
unsigned hpx_sqlite_schema_number(void);
enum hpx_status hpx_sqlite_schema_check(struct hpx_sqlite_db *db, const char *path,
					enum hpx_sqlite_migrate may,
					struct hpx_sqlite_schema *ret_schema, char *problem);
enum hpx_status hpx_sqlite_schema_migrate(struct hpx_sqlite_db *db, const char *path,
					  enum hpx_sqlite_migrate may,
					  const struct hpx_sqlite_schema *schema, char *problem);

/* The tables of a new generation. */
enum hpx_status hpx_sqlite_generation_make(struct hpx_sqlite_db *db, int64_t number);

/* connection.c again: the writer, checked, and migrated where it may be. */
enum hpx_status hpx_sqlite_writer_open(struct hpx_sqlite_store *s, enum hpx_sqlite_migrate may,
				       struct hpx_sqlite_schema *ret_schema, char *problem);

/* row.c: checks of rows. Numbers count as eight bytes, little end first; texts and
 * BLOBs with their length. */
struct hpx_sqlite_crc {
	unsigned long value;
	size_t len; /* of what is collected */
	unsigned char bytes[512];
};
static inline void hpx_sqlite_crc_init(struct hpx_sqlite_crc *crc)
{
	crc->value = 0;
	crc->len = 0;
}
uint32_t hpx_sqlite_crc_end(struct hpx_sqlite_crc *crc);
void hpx_sqlite_crc_int(struct hpx_sqlite_crc *crc, int64_t value);
void hpx_sqlite_crc_fixed(struct hpx_sqlite_crc *crc, const void *bytes, size_t len);
void hpx_sqlite_crc_span(struct hpx_sqlite_crc *crc, struct hpx_span bytes);

/* row.c: an operation as it is found: a plain row, or the aside row that rules. */
enum hpx_sqlite_place {
	HPX_SQLITE_NOWHERE,
	HPX_SQLITE_PLAIN,
	HPX_SQLITE_ASIDE,
};
struct hpx_sqlite_row {
	enum hpx_sqlite_place place;
	int64_t aside;      /* its number in hapax_aside */
	int64_t generation; /* of the plain row: this one, or the one under an aside row; 0: none */
	int64_t number;
	bool answered;  /* the plain row has an answer */
	bool tombstone; /* nothing but that it happened is left, after its expiry */
	uint32_t text_crc;
	uint32_t point_crc;
	uint32_t answer_crc;
	struct hpx_found found;
};
/* What a look wants besides the record. */
struct hpx_sqlite_want {
	struct hpx_arena *arena; /* for the description; NULL: it is not wanted */
	struct hpx_description *description;
	struct hpx_answer **answer; /* NULL: not wanted. Filled where there is one to be given;
				       * HPX_NOMEM where there is no memory for it */
};
/* Reads the columns HPX_SQL_ASIDE, or HPX_SQL_PLAIN of a generation. `want` may be
 * NULL. */
enum hpx_status hpx_sqlite_aside_read(struct hpx_sqlite_store *s, struct hpx_sqlite_statement *stmt,
				      const struct hpx_sqlite_want *want,
				      struct hpx_sqlite_row *ret_row);
enum hpx_status hpx_sqlite_plain_read(struct hpx_sqlite_store *s, struct hpx_sqlite_statement *stmt,
				      const struct hpx_sqlite_generation *g,
				      const struct hpx_sqlite_want *want,
				      struct hpx_sqlite_row *ret_row);
/* found.exists false where there is none. HPX_CORRUPT: the file cannot be read where the
 * row would be. */
enum hpx_status hpx_sqlite_row_find(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				    const struct hpx_operation_id *id,
				    const struct hpx_sqlite_want *want,
				    struct hpx_sqlite_row *ret_row);
/* Only its plain row, whatever lies over it. */
enum hpx_status hpx_sqlite_plain_find(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				      const struct hpx_operation_id *id,
				      const struct hpx_sqlite_want *want,
				      struct hpx_sqlite_row *ret_row);
/* Whether an aside row lies over the plain row of that number, and rules. */
enum hpx_status hpx_sqlite_row_covered(struct hpx_sqlite_db *db, int64_t generation, int64_t number,
				       bool *ret_covered);
uint32_t hpx_sqlite_plain_crc(const struct hpx_record *record, const struct hpx_description *d);
uint32_t hpx_sqlite_answer_crc(const struct hpx_record *record, bool tombstone,
			       struct hpx_span headers, struct hpx_span body);
uint32_t hpx_sqlite_text_crc(const struct hpx_operation_id *id, const struct hpx_description *d);
uint32_t hpx_sqlite_bytes_crc(const struct hpx_operation_id *id, struct hpx_span first,
			      struct hpx_span second);
/* Of an aside row with this record. */
uint32_t hpx_sqlite_aside_crc(const struct hpx_sqlite_row *row, const struct hpx_record *record);

/* row_write.c: a change to one operation, written. */
enum hpx_status hpx_sqlite_change_write(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
					const struct hpx_change *change,
					const struct hpx_store_op *op);
/* HPX_NOT_FOUND: the id is there already. */
enum hpx_status hpx_sqlite_plain_insert(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
					const struct hpx_record *record,
					const struct hpx_description *description,
					int64_t *ret_number);
/* The operation's row once more, in an open generation; HPX_NOT_FOUND as above. The
 * statement is kept between copies, and ends before the transaction does. */
struct hpx_sqlite_copy {
	int64_t from;
	int64_t to;
	sqlite3_stmt *handle;
};
enum hpx_status hpx_sqlite_plain_copy(struct hpx_sqlite_store *s, struct hpx_sqlite_copy *copy,
				      const struct hpx_sqlite_row *row,
				      struct hpx_sqlite_generation *to, int64_t *ret_number);
void hpx_sqlite_copy_done(struct hpx_sqlite_copy *copy);
/* HPX_NOT_FOUND: the row is not as it was believed to be. */
enum hpx_status hpx_sqlite_plain_complete(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
					  int64_t number, const struct hpx_change *change);
/* What finds the operation by its key, kept under the place of its row. */
enum hpx_status hpx_sqlite_route_key_put(struct hpx_sqlite_db *db, int64_t generation, int64_t number,
					 const struct hpx_record *record,
					 const struct hpx_route_key *key);
/* The row goes with the operation's plain row, which was copied to there. */
enum hpx_status hpx_sqlite_route_key_move(struct hpx_sqlite_db *db, const struct hpx_sqlite_row *row,
					  int64_t generation, int64_t number);
enum hpx_status hpx_sqlite_row_remove(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row);
/* The row becomes a tombstone where it lies; its answer goes. */
enum hpx_status hpx_sqlite_aside_bury(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row);
enum hpx_status hpx_sqlite_lease_remove(struct hpx_sqlite_db *db, const struct hpx_token *token,
					const struct hpx_operation_id *id);
/* The operation is unknown and no job speaks for it: a question is due. */
enum hpx_status hpx_sqlite_question_begin(struct hpx_sqlite_db *db,
					  const struct hpx_operation_id *id);
struct hpx_sqlite_event {
	const struct hpx_operation_id *id;
	int64_t at_ms;
	uint32_t attempt;
	const char *what;
	struct hpx_span reason; /* where the op gives none */
	uint32_t status;
};
enum hpx_status hpx_sqlite_event_put(struct hpx_sqlite_db *db, const struct hpx_sqlite_event *event,
				     const struct hpx_store_op *op);

/* fast_path.c: a reservation, or a completion, without a look. HPX_NOT_FOUND: the
 * slow path has to be gone. */
enum hpx_status hpx_sqlite_fast_path(struct hpx_sqlite_store *s, struct hpx_store_op *op);

/* outbox.c: what an application leaves with its operation, or a route that
 * delivers later. A job that is there with other content, or is done:
 * op->status is HPX_CONFLICT. */
enum hpx_status hpx_sqlite_job_put(struct hpx_sqlite_store *s, const struct hpx_change *change,
				   const struct hpx_moment *now, struct hpx_store_op *op);
enum hpx_status hpx_sqlite_read_point(struct hpx_sqlite_db *db, const struct hpx_sqlite_row *row,
				      struct hpx_store_op *op);

/* outbox_rows.c: between columns and jobs. */
/* Reads columns HPX_SQL_JOB into a new entry; NULL when out of memory. One that
 * cannot be read counts as unknown. */
struct hpx_job_entry *hpx_sqlite_delivery_read(struct hpx_sqlite_statement *stmt);
/* Appends what the statement gives at `*tail`, at most `*room`. What cannot be read is put
 * among the unreadable ones, for a person, in the writer's transaction. */
enum hpx_status hpx_sqlite_deliveries(struct hpx_sqlite_db *db, struct hpx_sqlite_statement *stmt,
				      unsigned *room, struct hpx_job_entry ***tail);
uint32_t hpx_sqlite_job_body_crc(const struct hpx_operation_id *operation, const struct hpx_job *job);
uint32_t hpx_sqlite_job_crc(const struct hpx_delivery *delivery, const struct hpx_job *job,
			    uint32_t body_crc);
void hpx_sqlite_job_bind(struct hpx_sqlite_statement *stmt, const struct hpx_operation_id *operation,
			 const struct hpx_mark *mark, const struct hpx_job *job);

/* outbox_rows.c: what an op of the outbox is about: a job, its operation, and what
 * was asked about it. `*ret_rows` is freed whatever comes out. */
struct hpx_sqlite_outbox_rows {
	struct hpx_sqlite_row row;
	struct hpx_outbox_found found;
	struct hpx_job_entry *entry; /* NULL: no job */
};
void hpx_sqlite_outbox_rows_free(struct hpx_sqlite_outbox_rows *rows);
/* By the job's number; 0: the operation, with the job that answers for it. */
enum hpx_status hpx_sqlite_outbox_rows_find(struct hpx_sqlite_store *s,
					    const struct hpx_operation_id *operation, int64_t number,
					    struct hpx_sqlite_outbox_rows *ret_rows);
/* Of a job's entry, which the rows take over. */
enum hpx_status hpx_sqlite_outbox_rows_of_job(struct hpx_sqlite_store *s, struct hpx_job_entry *entry,
					      struct hpx_sqlite_outbox_rows *ret_rows);
/* The job whose answer that operation waits for, if any. */
enum hpx_status hpx_sqlite_outbox_rows_of_operation(struct hpx_sqlite_store *s,
						    const struct hpx_sqlite_row *row,
						    const struct hpx_record *record,
						    struct hpx_sqlite_outbox_rows *ret_rows);
/* Whether a row that cannot be read has a job's columns. One that has not may be another
 * table's, to which a damaged page leads: to remove it would damage that table too. */
enum hpx_status hpx_sqlite_job_shaped(struct hpx_sqlite_db *db, int64_t number, bool *ret_shaped);
enum hpx_status hpx_sqlite_outbox_rows_write(struct hpx_sqlite_store *s,
					     const struct hpx_sqlite_outbox_rows *rows,
					     const struct hpx_outbox_change *change, int64_t at_ms,
					     const struct hpx_store_op *op);
enum hpx_status hpx_sqlite_reconcile_put(struct hpx_sqlite_db *db,
					 const struct hpx_sqlite_outbox_rows *rows, bool of_job,
					 const struct hpx_reconcile *reconcile,
					 enum hpx_ruling evidence, bool person);

/* outbox.c: the verbs about one job or one unknown, and many lost claims. */
enum hpx_status hpx_sqlite_claim(struct hpx_sqlite_store *s, struct hpx_store_op *op);
enum hpx_status hpx_sqlite_job_update(struct hpx_sqlite_store *s, struct hpx_store_op *op);
enum hpx_status hpx_sqlite_rule(struct hpx_sqlite_store *s, struct hpx_store_op *op);
enum hpx_status hpx_sqlite_put_lane(struct hpx_sqlite_store *s, struct hpx_store_op *op);
/* A RESOLVE or FORGET takes the answering job with it. */
enum hpx_status hpx_sqlite_conclude(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				    const struct hpx_change *change, const struct hpx_moment *now,
				    struct hpx_store_op *op);

/* unsettled.c: what is due, for a reader, and the verbs that take it. */
enum hpx_status hpx_sqlite_lanes(struct hpx_store_reader *reader, struct hpx_arena *arena,
				 struct hpx_lane_due **ret_lanes, size_t *ret_count);
enum hpx_status hpx_sqlite_due(struct hpx_store_reader *reader, struct hpx_span lane,
			       int64_t from_ms, struct hpx_due *due, size_t max,
			       size_t *ret_count);
enum hpx_status hpx_sqlite_claim_unknown(struct hpx_sqlite_store *s, struct hpx_store_op *op);
enum hpx_status hpx_sqlite_escalate(struct hpx_sqlite_store *s, struct hpx_store_op *op);

/* sweep.c, reap.c: many operations at once. */
enum hpx_sqlite_lost {
	HPX_SQLITE_RAN_OUT,  /* leases that ran out */
	HPX_SQLITE_ORPHANED, /* of other server processes: there can be only one */
	HPX_SQLITE_REBOOTED, /* all of them: nobody of an earlier boot lives */
};
enum hpx_status hpx_sqlite_sweep(struct hpx_sqlite_store *s, struct hpx_store_op *op,
				 enum hpx_sqlite_lost lost);
enum hpx_status hpx_sqlite_reap(struct hpx_sqlite_store *s, struct hpx_store_op *op);
enum hpx_status hpx_sqlite_sweep_jobs(struct hpx_sqlite_store *s, struct hpx_store_op *op,
				      enum hpx_sqlite_lost lost);
/* At start: what the dead left, in transactions of its own. */
enum hpx_status hpx_sqlite_sweep_dead(struct hpx_sqlite_store *s, enum hpx_sqlite_lost lost);
/* Inside a transaction: a reservation by somebody who is not the server counts
 * on a lease of this boot; what is left of an earlier one is lost first. */
enum hpx_status hpx_sqlite_settle_boot(struct hpx_sqlite_store *s);

/* history.c: what is left of finished operations. */
/* How long entries stay; 0: none is written. */
enum hpx_status hpx_sqlite_history_rule(struct hpx_sqlite_db *db, int64_t *ret_retention_ms);
/* At start, by the server: as it was told. */
enum hpx_status hpx_sqlite_history_settle(struct hpx_sqlite_store *s);
/* An entry for a row that is about to go, or to be used again; nothing where none is to
 * be written. In the transaction that removes the row. */
enum hpx_status hpx_sqlite_history_keep(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
					int64_t retention_ms);
enum hpx_status hpx_sqlite_history_reap(struct hpx_sqlite_store *s, int64_t wall_ms);
enum hpx_status hpx_sqlite_history(struct hpx_store_reader *reader,
				   const struct hpx_history_query *query, struct hpx_arena *arena,
				   struct hpx_history *ret_history);

/* wall_clock.c: whether wall clock and boot clock still agree. */
void hpx_sqlite_boot_id(char out[HPX_SQLITE_BOOT_ID_SIZE]);
enum hpx_status hpx_sqlite_clock_check(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				       bool may_write);
/* Whether the machine was started anew since the clocks were compared. */
enum hpx_status hpx_sqlite_clock_rebooted(struct hpx_sqlite_store *s, bool *ret_rebooted);
enum hpx_status hpx_sqlite_clock_accept(struct hpx_sqlite_store *s);
/* Notes the wall time now and then, in a transaction that writes anyway. */
enum hpx_status hpx_sqlite_clock_note(struct hpx_sqlite_store *s);

/* batch.c: one op about one operation, inside a transaction whose list is fresh. */
enum hpx_status hpx_sqlite_run_one(struct hpx_sqlite_store *s, struct hpx_store_op *op);

/* batch.c, keeper.c, reader.c, list.c: the driver's slots. */
enum hpx_status hpx_sqlite_run(struct hpx_store *store, struct hpx_store_op **ops, size_t count,
			       char *problem);
enum hpx_status hpx_sqlite_recover(struct hpx_store *store, char *problem);
enum hpx_status hpx_sqlite_maintain(struct hpx_store *store, char *problem);
/* Free space, looked at now and then by whoever writes. */
void hpx_sqlite_space_check(struct hpx_sqlite_store *s);
/* The disk is full: gives back what the log's file has, where that can be done now. */
void hpx_sqlite_log_cut(struct hpx_sqlite_store *s);
/* The last resort where nobody maintains. */
void hpx_sqlite_wal_bound(struct hpx_sqlite_store *s);

/* reader.c: the newest event that a reader has heard of; seq 0: there was none. */
struct hpx_sqlite_last_event {
	bool begun; /* on this connection */
	int64_t seq;
	int64_t at_ms;
	struct hpx_operation_id id;
};

struct hpx_sqlite_reader {
	struct hpx_store_reader base;
	unsigned reopened; /* as of when it was opened */
	struct hpx_sqlite_db db;
	struct hpx_sqlite_last_event last;
};
enum hpx_status hpx_sqlite_reader_open(struct hpx_store *store,
				       struct hpx_store_reader **ret_reader);
void hpx_sqlite_reader_close(struct hpx_store_reader *reader);
/* The reader's connection, opened anew if the store was. */
enum hpx_status hpx_sqlite_reader_db(struct hpx_store_reader *reader,
				     struct hpx_sqlite_db **ret_db);
/* The end of a read transaction; the status given, or why it could not end. */
enum hpx_status hpx_sqlite_end_read(struct hpx_sqlite_db *db, enum hpx_status status);
enum hpx_status hpx_sqlite_peek(struct hpx_store_reader *reader, const struct hpx_ask *ask,
				const struct hpx_policy *policy, struct hpx_decision *ret_decision,
				struct hpx_answer **ret_replay);
enum hpx_status hpx_sqlite_find(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				struct hpx_arena *arena, struct hpx_entry *ret_entry,
				struct hpx_answer **ret_answer);
enum hpx_status hpx_sqlite_list(struct hpx_store_reader *reader, const struct hpx_query *query,
				struct hpx_arena *arena, struct hpx_entry **ret_entries,
				size_t *ret_count,
				struct hpx_looked *ret_looked);
enum hpx_status hpx_sqlite_events(struct hpx_store_reader *reader,
				  const struct hpx_operation_id *id, struct hpx_arena *arena,
				  struct hpx_event **ret_events, size_t *ret_count);
enum hpx_status hpx_sqlite_recipe(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
				  struct hpx_arena *arena, struct hpx_span *ret_text);
enum hpx_status hpx_sqlite_stats(struct hpx_store_reader *reader,
				 struct hpx_store_stats *ret_stats);
enum hpx_status hpx_sqlite_provided(struct hpx_store_reader *reader, struct hpx_span provider_id,
				    struct hpx_reference *references, size_t max, size_t *ret_count);
enum hpx_status hpx_sqlite_keyed(struct hpx_store_reader *reader, const struct hpx_key_query *query,
				 struct hpx_key_matches *ret_matches, int64_t *ret_since_ms);
enum hpx_status hpx_sqlite_unkeyed(struct hpx_store_reader *reader, const struct hpx_key_query *query,
				   int64_t since_ms, bool *ret_any);
enum hpx_status hpx_sqlite_jobs(struct hpx_store_reader *reader, const struct hpx_job_query *query,
				struct hpx_job_entry **ret_jobs);
enum hpx_status hpx_sqlite_question(struct hpx_store_reader *reader,
				    const struct hpx_operation_id *id,
				    struct hpx_next_question *ret_question);
enum hpx_status hpx_sqlite_removals(struct hpx_store_reader *reader,
				    struct hpx_removals *ret_removals);

/* driver.c: the driver's slots for a connection that stays the application's. */
enum hpx_status hpx_sqlite_borrow(void *connection, struct hpx_store **ret_store, char *problem);
enum hpx_status hpx_sqlite_install(void *connection, char *problem);

#endif
