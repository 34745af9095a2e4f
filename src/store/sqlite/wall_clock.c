/* Whether the wall clock may be believed. Expiry is judged by it, and a record
 * that expires too early lets a payment happen twice, so it is compared with
 * the boot clock, which nobody sets.
 *
 * The clock row is the anchor: in which boot the two were compared, and how
 * far the wall clock was ahead. Both clocks are slewed alike by NTP, so within
 * one boot the difference changes only when somebody (or NTP, after a long
 * outage) sets the wall clock: by more than a minute, and expiry is held. A
 * new boot has no difference to compare with; there, a wall clock that went
 * back behind the latest time seen is held, anything else is taken as it is.
 * Held is held, through restarts, until a person accepts the clock: what was
 * written meanwhile carries times of a clock that was wrong. */
#include <fcntl.h>
#include <unistd.h>

#include "store/sqlite/driver.h"

/* How often the latest wall time is noted. */
#define NOTE_MS 10000

struct anchor {
	bool exists;
	bool same_boot;
	int64_t ahead_ms;
	int64_t seen_ms;
	bool held;
};

void hpx_sqlite_boot_id(char out[HPX_SQLITE_BOOT_ID_SIZE])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t len = 0;

	if (fd >= 0) {
		len = read(fd, out, HPX_SQLITE_BOOT_ID_SIZE - 1);
		close(fd);
	}
	while (len > 0 && out[len - 1] == '\n')
		len--;
	out[len > 0 ? len : 0] = '\0';
}

static enum hpx_status read_anchor(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				   struct anchor *ret_anchor)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_CLOCK);
	struct anchor anchor = { .exists = false };

	if (hpx_sqlite_next(&stmt)) {
		struct hpx_span boot = hpx_sqlite_bytes(&stmt, 0);
		anchor.exists = true;
		anchor.same_boot = boot.len != 0 && hpx_span_eq(boot, hpx_span_of(s->boot_id));
		anchor.ahead_ms = sqlite3_column_int64(stmt.handle, 1);
		anchor.seen_ms = sqlite3_column_int64(stmt.handle, 2);
		anchor.held = sqlite3_column_int64(stmt.handle, 3) != 0;
	}
	enum hpx_status status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK)
		*ret_anchor = anchor;
	return status;
}

static enum hpx_status write_anchor(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				    const struct anchor *anchor)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_CLOCK);

	hpx_sqlite_bind_text(&stmt, hpx_span_of(s->boot_id));
	hpx_sqlite_bind_int(&stmt, anchor->ahead_ms);
	hpx_sqlite_bind_int(&stmt, anchor->seen_ms);
	hpx_sqlite_bind_int(&stmt, anchor->held);
	return hpx_sqlite_finish(&stmt);
}

static struct anchor anchor_now(struct hpx_sqlite_store *s)
{
	struct hpx_moment now = hpx_store_moment(&s->base);

	return (struct anchor){ .exists = true,
				.same_boot = true,
				.ahead_ms = now.wall_ms - now.lease_ms,
				.seen_ms = now.wall_ms };
}

static int64_t distance(int64_t a, int64_t b)
{
	int64_t d;

	/* The anchor is a row of a file: it may hold anything. */
	if (__builtin_sub_overflow(a, b, &d) || d == INT64_MIN)
		return INT64_MAX;
	return d < 0 ? -d : d;
}

/* What the anchor should be after a look at the clocks. */
static struct anchor judge(const struct anchor *known, const struct anchor *now)
{
	struct anchor next = *known;

	if (!known->exists)
		return *now;
	if (known->held)
		return next;
	if (known->same_boot) {
		next.held = distance(known->ahead_ms, now->ahead_ms) > HPX_CLOCK_PARTED_MS;
		return next;
	}
	if (now->seen_ms < known->seen_ms && distance(known->seen_ms, now->seen_ms) > HPX_CLOCK_PARTED_MS) {
		next.held = true;
		return next;
	}
	return *now;
}

enum hpx_status hpx_sqlite_clock_check(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				       bool may_write)
{
	struct anchor known, now, next;
	enum hpx_status status = read_anchor(s, db, &known);

	if (status != HPX_OK)
		return status;
	now = anchor_now(s);
	next = judge(&known, &now);
	atomic_store(&s->base.expiry_held, next.held);
	if (!next.held)
		atomic_store(&s->base.ahead_ms, next.ahead_ms);
	bool same = known.exists && next.held == known.held &&
		    next.same_boot == known.same_boot;
	if (same || !may_write)
		return HPX_OK;
	return write_anchor(s, db, &next);
}

enum hpx_status hpx_sqlite_clock_rebooted(struct hpx_sqlite_store *s, bool *ret_rebooted)
{
	struct anchor known;
	enum hpx_status status = read_anchor(s, &s->writer, &known);

	if (status == HPX_OK)
		*ret_rebooted = known.exists && !known.same_boot && s->boot_id[0] != '\0';
	return status;
}

enum hpx_status hpx_sqlite_clock_accept(struct hpx_sqlite_store *s)
{
	struct anchor now = anchor_now(s);
	enum hpx_status status = write_anchor(s, &s->writer, &now);

	if (status == HPX_OK) {
		atomic_store(&s->base.expiry_held, false);
		atomic_store(&s->base.ahead_ms, now.ahead_ms);
	}
	return status;
}

enum hpx_status hpx_sqlite_clock_note(struct hpx_sqlite_store *s)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct anchor anchor;
	enum hpx_status status;

	if (!s->serve || now.hold_expiry || distance(now.wall_ms, s->seen_ms) < NOTE_MS)
		return HPX_OK;
	status = read_anchor(s, &s->writer, &anchor);
	if (status != HPX_OK || anchor.held || !anchor.same_boot)
		return status;
	anchor.seen_ms = now.wall_ms;
	status = write_anchor(s, &s->writer, &anchor);
	if (status == HPX_OK)
		status = hpx_sqlite_generations_note(s);
	if (status == HPX_OK)
		s->seen_ms = now.wall_ms;
	return status;
}
