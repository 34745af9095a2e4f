/* Entries of the history as a driver finds them, in whatever order: those that are asked
 * for are kept, the newest of them are given. */
#ifndef HPX_STORE_HISTORY_LIST_H
#define HPX_STORE_HISTORY_LIST_H

#include "store/store.h"

struct hpx_history_list {
	const struct hpx_history_query *query;
	struct hpx_arena *arena; /* strings of entries that are kept are copied into it */
	struct hpx_history found;
	size_t room;
	size_t reaped;               /* entries of reaped operations among those kept */
	size_t looked_before_reaped; /* and one; 0: none of those was looked at */
};

void hpx_history_list_init(struct hpx_history_list *list, const struct hpx_history_query *query,
			   struct hpx_arena *arena);
/* Of an operation that is there; its strings are borrowed. */
void hpx_history_of_record(const struct hpx_record *record, const struct hpx_description *description,
			   struct hpx_history_entry *ret_entry);
/* One that was looked at, kept if it is asked for. */
enum hpx_status hpx_history_take(struct hpx_history_list *list, const struct hpx_history_entry *entry);
/* Whether the next row of an operation is to be looked at; if not, so it is noted. */
bool hpx_history_looks_on(struct hpx_history_list *list);
/* The same of entries of reaped operations, which come newest first. */
bool hpx_history_reads_on(struct hpx_history_list *list);
/* Sorted and cut to the limit. */
void hpx_history_list_end(struct hpx_history_list *list, struct hpx_history *ret_history);

#endif
