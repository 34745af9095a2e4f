/* Which ids the file may have, in memory: so that the look at a key that is new,
 * as nearly all are, reads nothing. Each id that is asked for is noted before it
 * is written; those of before are read by maintain(), a bounded number at a
 * time, and until it is through nobody is told anything.
 *
 * It is a hint: "not there" only saves the look. A reservation goes by the file,
 * and so finds what another process wrote, or what was written while a new sieve
 * was begun. */
#include "store/sqlite/driver.h"

/* Of one call of maintain(), which comes five times a second: a fifth of the time
 * or less. */
#define READ_AT_ONCE 100000

/* Good for eight million ids, and better than nothing for thirty. Always the
 * same, so that a server's memory is what it is from the first minute on. */
#define SIEVE_BYTES ((size_t)16 << 20)

enum hpx_status hpx_sqlite_known_init(struct hpx_sqlite_known *known)
{
	return pthread_rwlock_init(&known->lock, NULL) == 0 ? HPX_OK : HPX_NOMEM;
}

void hpx_sqlite_known_done(struct hpx_sqlite_known *known)
{
	hpx_sieve_free(known->sieve);
	hpx_sieve_free(known->next);
	pthread_rwlock_destroy(&known->lock);
}

void hpx_sqlite_known_add(struct hpx_sqlite_known *known, const struct hpx_operation_id *id)
{
	pthread_rwlock_rdlock(&known->lock);
	if (known->sieve != NULL)
		hpx_sieve_add(known->sieve, id);
	if (known->next != NULL)
		hpx_sieve_add(known->next, id);
	pthread_rwlock_unlock(&known->lock);
}

bool hpx_sqlite_known_may_have(struct hpx_sqlite_known *known, const struct hpx_operation_id *id)
{
	bool may;

	pthread_rwlock_rdlock(&known->lock);
	may = known->sieve == NULL || hpx_sieve_may_have(known->sieve, id);
	pthread_rwlock_unlock(&known->lock);
	return may;
}

/* No more than that many rows are there: numbers go up. */
static enum hpx_status count_rows(struct hpx_sqlite_db *db, int64_t *ret_count)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_SPREAD);

	*ret_count = 0;
	if (hpx_sqlite_next(&call))
		hpx_sqlite_int(&call, 0, 0, INT64_MAX, ret_count);
	return hpx_sqlite_end(&call);
}

static enum hpx_status begin(struct hpx_sqlite_known *known, struct hpx_sqlite_db *db)
{
	struct hpx_sieve *next;
	int64_t count;
	enum hpx_status status = count_rows(db, &count);

	if (status != HPX_OK)
		return status;
	next = hpx_sieve_new(SIEVE_BYTES, (uint64_t)count);
	pthread_rwlock_wrlock(&known->lock);
	known->next = next;
	pthread_rwlock_unlock(&known->lock);
	known->read_to = (struct hpx_operation_id){ 0 };
	return HPX_OK;
}

static void finish(struct hpx_sqlite_known *known)
{
	struct hpx_sieve *old;

	pthread_rwlock_wrlock(&known->lock);
	old = known->sieve;
	known->sieve = known->next;
	known->next = NULL;
	pthread_rwlock_unlock(&known->lock);
	hpx_sieve_free(old);
}

static enum hpx_status read_some(struct hpx_sqlite_known *known, struct hpx_sqlite_db *db)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_IDS);
	struct hpx_operation_id id;
	enum hpx_status status;
	unsigned count = 0;

	hpx_sqlite_bind_blob(&call, known->read_to.bytes, sizeof(known->read_to.bytes));
	hpx_sqlite_bind_int(&call, READ_AT_ONCE);
	while (hpx_sqlite_next(&call)) {
		if (hpx_sqlite_fixed(&call, 0, id.bytes, sizeof(id.bytes))) {
			hpx_sieve_add(known->next, &id);
			known->read_to = id;
		}
		count++;
	}
	status = hpx_sqlite_end(&call);
	if (status == HPX_OK && count < READ_AT_ONCE)
		finish(known);
	return status;
}

enum hpx_status hpx_sqlite_known_read(struct hpx_sqlite_known *known, struct hpx_sqlite_db *db)
{
	enum hpx_status status = HPX_OK;

	if (known->next == NULL && known->sieve != NULL && !hpx_sieve_is_full(known->sieve))
		return HPX_OK;
	if (known->next == NULL)
		status = begin(known, db);
	/* Without the memory for one, looks read the file. */
	return status == HPX_OK && known->next != NULL ? read_some(known, db) : status;
}
