/* One thread and poll: whatever a row waits for, all that is under way moves
 * on meanwhile, so that an answer's time is its own. */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "verify/state.h"

/* Nothing tells when the other side's machine has the bytes: looked at again. */
#define FLUSH_POLL_MS 1
#define POLL_MAX_MS 1000

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How long poll may sleep for this one flight's sake. */
static int64_t patience(const struct hpx_inflight *inflight, int64_t now_ms)
{
	if (inflight->state == HPX_INFLIGHT_FLUSHING)
		return FLUSH_POLL_MS;
	if (inflight->state == HPX_INFLIGHT_DONE || inflight->state == HPX_INFLIGHT_HELD)
		return POLL_MAX_MS;
	return inflight->deadline_ms > now_ms ? inflight->deadline_ms - now_ms : 0;
}

static void note_stop(struct hpx_verify *run, const struct pollfd *stop)
{
	if (stop->fd >= 0 && (stop->revents & POLLIN))
		run->stopped = true;
}

static int sleep_ms(const struct hpx_verify *run, int64_t deadline_ms)
{
	int64_t now_ms = hpx_clock_boot_ms();
	int64_t ms = least(POLL_MAX_MS, deadline_ms > now_ms ? deadline_ms - now_ms : 0);

	for (const struct hpx_inflight *inflight = run->live; inflight != NULL; inflight = inflight->next)
		ms = least(ms, patience(inflight, now_ms));
	return (int)ms;
}

static void wait_once(struct hpx_verify *run, struct pollfd *fds, int64_t deadline_ms)
{
	nfds_t count = 1;

	fds[0] = (struct pollfd){ .fd = run->stopped ? -1 : run->stop_fd, .events = POLLIN };
	for (const struct hpx_inflight *inflight = run->live; inflight != NULL; inflight = inflight->next) {
		short wants = hpx_inflight_wants(inflight);

		fds[count++] = (struct pollfd){ .fd = wants ? inflight->conn.fd : -1,
						.events = wants };
	}
	poll(fds, count, sleep_ms(run, deadline_ms));
	note_stop(run, &fds[0]);
	hpx_shell_trim(&run->server);
}

static void step_all(struct hpx_verify *run)
{
	for (struct hpx_inflight *inflight = run->live; inflight != NULL; inflight = inflight->next) {
		hpx_inflight_step(inflight);
		if (run->stopped)
			hpx_inflight_stop(inflight);
	}
}

void hpx_verify_poll(struct hpx_verify *run, bool (*is_done)(void *user), void *user,
		     int64_t timeout_ms)
{
	int64_t deadline_ms = timeout_ms < 0 ? INT64_MAX : hpx_clock_boot_ms() + timeout_ms;
	struct pollfd *fds = calloc(run->live_count + 1, sizeof(*fds));
	struct pollfd alone;

	/* Without memory only the stop is looked at, and the flights by turns. */
	for (;;) {
		step_all(run);
		if (is_done(user) || hpx_clock_boot_ms() >= deadline_ms)
			break;
		if (fds != NULL) {
			wait_once(run, fds, deadline_ms);
		} else {
			alone = (struct pollfd){ .fd = run->stop_fd, .events = POLLIN };
			poll(&alone, 1, FLUSH_POLL_MS);
			note_stop(run, &alone);
		}
	}
	free(fds);
}

static bool is_over(void *user)
{
	return hpx_verify_stop_reason(user) != NULL;
}

void hpx_verify_poll_for(struct hpx_verify *run, int64_t ms)
{
	hpx_verify_poll(run, is_over, run, ms);
}

void hpx_verify_pause(struct hpx_verify *run, uint64_t ms)
{
	hpx_verify_poll_for(run, (int64_t)ms);
}
