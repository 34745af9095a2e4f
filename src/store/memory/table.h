/* The memory driver's rows: operations by id, events and recipes in order. */
#ifndef HPX_STORE_MEMORY_TABLE_H
#define HPX_STORE_MEMORY_TABLE_H

#include "store/store.h"

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
void hpx_memory_events_reap(struct hpx_memory_table *table, int64_t until_ms);

enum hpx_status hpx_memory_row_save(struct hpx_memory_row *row, struct hpx_span data);

/* HPX_CONFLICT: one of this name is there with other content. */
enum hpx_status hpx_memory_job_add(struct hpx_memory_table *table, const struct hpx_record *record,
				   const struct hpx_job *job);

enum hpx_status hpx_memory_recipe_add(struct hpx_memory_table *table,
				      const struct hpx_recipe_id *id, struct hpx_span text);
const struct hpx_memory_recipe *hpx_memory_recipe_find(const struct hpx_memory_table *table,
						       const struct hpx_recipe_id *id);

#endif
