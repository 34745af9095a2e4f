/* The id filter of one database file: the look at a new key, as nearly all are, reads
 * nothing from the file. Each reservation adds its id before the row is written; ids
 * from before are read by maintain(), a bounded number at a time, and until all are
 * read the filter answers "maybe" to everything.
 *
 * The filter is a hint: "not there" only saves the look. A reservation goes by the
 * file, and so finds what another process wrote, or what was written while a new
 * filter was begun. */
#include "store/sqlite/driver.h"

/* Of one call of maintain(), which comes five times a second: a fifth of the time
 * or less. */
#define READ_AT_ONCE 100000

/* Good for eight million ids, and better than nothing for thirty. Always the
 * same, so that a server's memory is what it is from the first minute on. */
#define FILTER_BYTES ((size_t)16 << 20)

enum hpx_status hpx_sqlite_filter_init(struct hpx_sqlite_file_filter *filter)
{
	return pthread_rwlock_init(&filter->lock, NULL) == 0 ? HPX_OK : HPX_NOMEM;
}

void hpx_sqlite_filter_done(struct hpx_sqlite_file_filter *filter)
{
	hpx_id_filter_free(filter->ids);
	hpx_id_filter_free(filter->next);
	pthread_rwlock_destroy(&filter->lock);
}

void hpx_sqlite_filter_add(struct hpx_sqlite_file_filter *filter, const struct hpx_operation_id *id)
{
	pthread_rwlock_rdlock(&filter->lock);
	if (filter->ids != NULL)
		hpx_id_filter_add(filter->ids, id);
	if (filter->next != NULL)
		hpx_id_filter_add(filter->next, id);
	pthread_rwlock_unlock(&filter->lock);
}

bool hpx_sqlite_filter_may_have(struct hpx_sqlite_file_filter *filter, const struct hpx_operation_id *id)
{
	bool may;

	pthread_rwlock_rdlock(&filter->lock);
	may = filter->ids == NULL || hpx_id_filter_may_have(filter->ids, id);
	pthread_rwlock_unlock(&filter->lock);
	return may;
}

/* No more than that many rows are there: numbers go up. */
static enum hpx_status count_rows(struct hpx_sqlite_db *db, int64_t *ret_count)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_SPREAD);

	*ret_count = 0;
	if (hpx_sqlite_next(&stmt))
		hpx_sqlite_int(&stmt, 0, 0, INT64_MAX, ret_count);
	return hpx_sqlite_end(&stmt);
}

static enum hpx_status begin(struct hpx_sqlite_file_filter *filter, struct hpx_sqlite_db *db)
{
	struct hpx_id_filter *next;
	int64_t count;
	enum hpx_status status = count_rows(db, &count);

	HPX_ASSERT(filter->next == NULL);
	if (status != HPX_OK)
		return status;
	next = hpx_id_filter_new(FILTER_BYTES, (uint64_t)count);
	pthread_rwlock_wrlock(&filter->lock);
	filter->next = next;
	pthread_rwlock_unlock(&filter->lock);
	filter->read_to = (struct hpx_operation_id){ 0 };
	return HPX_OK;
}

static void finish(struct hpx_sqlite_file_filter *filter)
{
	struct hpx_id_filter *old;

	HPX_ASSERT(filter->next != NULL);
	pthread_rwlock_wrlock(&filter->lock);
	old = filter->ids;
	filter->ids = filter->next;
	filter->next = NULL;
	pthread_rwlock_unlock(&filter->lock);
	hpx_id_filter_free(old);
}

static enum hpx_status read_some(struct hpx_sqlite_file_filter *filter, struct hpx_sqlite_db *db)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_IDS);
	struct hpx_operation_id id;
	enum hpx_status status;
	unsigned count = 0;

	hpx_sqlite_bind_blob(&stmt, filter->read_to.bytes, sizeof(filter->read_to.bytes));
	hpx_sqlite_bind_int(&stmt, READ_AT_ONCE);
	while (hpx_sqlite_next(&stmt)) {
		if (hpx_sqlite_fixed(&stmt, 0, id.bytes, sizeof(id.bytes))) {
			hpx_id_filter_add(filter->next, &id);
			filter->read_to = id;
		}
		count++;
	}
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK && count < READ_AT_ONCE)
		finish(filter);
	return status;
}

enum hpx_status hpx_sqlite_filter_read(struct hpx_sqlite_file_filter *filter, struct hpx_sqlite_db *db)
{
	enum hpx_status status = HPX_OK;

	if (filter->next == NULL && filter->ids != NULL && !hpx_id_filter_is_full(filter->ids))
		return HPX_OK;
	if (filter->next == NULL)
		status = begin(filter, db);
	/* Without the memory for one, looks read the file. */
	return status == HPX_OK && filter->next != NULL ? read_some(filter, db) : status;
}
