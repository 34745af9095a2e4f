/* The memory driver: the same contract, kept in the process and gone with it. The
 * store suite compares every other driver with it, and tests that need no file use
 * it. This header is what its files share: the table of rows, and the functions
 * between them. */
#ifndef HPX_STORE_MEMORY_MEMORY_H
#define HPX_STORE_MEMORY_MEMORY_H

#include <pthread.h>

#include "store/change.h"

extern const struct hpx_store_driver hpx_store_memory_driver;

/* ---- table.c: operations by id, events, recipes and jobs in order ---- */

#define HPX_MEMORY_BUCKETS 4096

/* One operation; `text` holds what its description points to. */
struct hpx_memory_row {
	struct hpx_memory_row *next;
	uint64_t seq;
	struct hpx_record record;
	struct hpx_description description;
	struct hpx_answer *answer;
	char *text;
	char *data; /* of the recovery point */
	size_t data_len;
};

/* One job, with the bytes its spans point to. */
struct hpx_memory_job {
	struct hpx_memory_job *next;
	struct hpx_operation_id operation;
	struct hpx_mark mark;
	struct hpx_job job;
	char bytes[];
};

struct hpx_memory_event {
	struct hpx_memory_event *next;
	struct hpx_operation_id id;
	struct hpx_event event;
	char text[];
};

struct hpx_memory_recipe {
	struct hpx_memory_recipe *next;
	struct hpx_recipe_id id;
	size_t len;
	char text[];
};

struct hpx_memory_table {
	uint64_t seq;
	struct hpx_memory_row *bucket[HPX_MEMORY_BUCKETS];
	struct hpx_memory_event *events;
	struct hpx_memory_event **events_end;
	struct hpx_memory_recipe *recipes;
	struct hpx_memory_job *jobs;
};

void hpx_memory_table_init(struct hpx_memory_table *table);
void hpx_memory_table_done(struct hpx_memory_table *table);

struct hpx_memory_row *hpx_memory_row_find(struct hpx_memory_table *table,
					   const struct hpx_operation_id *id);
/* NULL when out of memory. */
struct hpx_memory_row *hpx_memory_row_add(struct hpx_memory_table *table,
					  const struct hpx_operation_id *id);
void hpx_memory_row_remove(struct hpx_memory_table *table, struct hpx_memory_row *row);
enum hpx_status hpx_memory_row_describe(struct hpx_memory_row *row,
					const struct hpx_description *description);

enum hpx_status hpx_memory_event_add(struct hpx_memory_table *table,
				     const struct hpx_operation_id *id,
				     const struct hpx_event *event);
/* Whether an event of this name was added since the record was created. */
bool hpx_memory_event_has(const struct hpx_memory_table *table, const struct hpx_record *record,
			  struct hpx_span what);
void hpx_memory_events_reap(struct hpx_memory_table *table, int64_t until_ms);

enum hpx_status hpx_memory_row_save(struct hpx_memory_row *row, struct hpx_span data);

/* HPX_CONFLICT: one of this name is there with other content. */
enum hpx_status hpx_memory_job_add(struct hpx_memory_table *table, const struct hpx_record *record,
				   const struct hpx_job *job);

enum hpx_status hpx_memory_recipe_add(struct hpx_memory_table *table,
				      const struct hpx_recipe_id *id, struct hpx_span text);
const struct hpx_memory_recipe *hpx_memory_recipe_find(const struct hpx_memory_table *table,
						       const struct hpx_recipe_id *id);

/* ---- the store ---- */

struct hpx_memory_store {
	struct hpx_store base;
	pthread_mutex_t mutex;
	struct hpx_memory_table table;
	int64_t event_retention_ms;
	int64_t ahead_ms; /* the wall clock's lead when it was believed last */
};

static inline struct hpx_memory_store *hpx_memory_of(struct hpx_store *store)
{
	return (struct hpx_memory_store *)store;
}

/* `row` NULL: there is none. */
struct hpx_found hpx_memory_found(const struct hpx_memory_row *row);
enum hpx_status hpx_memory_answer_copy(const struct hpx_memory_row *row,
				       struct hpx_answer **ret_answer);

/* reader.c: the driver's slots for readers. */
enum hpx_status hpx_memory_reader_open(struct hpx_store *store,
				       struct hpx_store_reader **ret_reader);
void hpx_memory_reader_close(struct hpx_store_reader *reader);
enum hpx_status hpx_memory_peek(struct hpx_store_reader *reader, const struct hpx_ask *ask,
				const struct hpx_policy *policy, struct hpx_decision *ret_decision,
				struct hpx_answer **ret_replay);
enum hpx_status hpx_memory_find(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				struct hpx_arena *arena, struct hpx_entry *ret_entry,
				struct hpx_answer **ret_answer);
enum hpx_status hpx_memory_list(struct hpx_store_reader *reader, const struct hpx_query *query,
				struct hpx_arena *arena, struct hpx_entry **ret_entries,
				size_t *ret_count,
				struct hpx_looked *ret_looked);
enum hpx_status hpx_memory_events(struct hpx_store_reader *reader,
				  const struct hpx_operation_id *id, struct hpx_arena *arena,
				  struct hpx_event **ret_events, size_t *ret_count);
enum hpx_status hpx_memory_recipe(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
				  struct hpx_arena *arena, struct hpx_span *ret_text);
enum hpx_status hpx_memory_stats(struct hpx_store_reader *reader,
				 struct hpx_store_stats *ret_stats);

#endif
