/* What the files of the memory driver share. */
#ifndef HPX_STORE_MEMORY_DRIVER_H
#define HPX_STORE_MEMORY_DRIVER_H

#include <pthread.h>

#include "store/change.h"
#include "store/memory/memory.h"
#include "store/memory/table.h"

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

/* read.c: the driver's slots for readers. */
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
				size_t *ret_count);
enum hpx_status hpx_memory_events(struct hpx_store_reader *reader,
				  const struct hpx_operation_id *id, struct hpx_arena *arena,
				  struct hpx_event **ret_events, size_t *ret_count);
enum hpx_status hpx_memory_recipe(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
				  struct hpx_arena *arena, struct hpx_span *ret_text);
enum hpx_status hpx_memory_stats(struct hpx_store_reader *reader,
				 struct hpx_store_stats *ret_stats);

#endif
