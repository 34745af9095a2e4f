/* The phases of a run, and what is counted in them. */
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>

#define EVENTS_MAX 256
/* Keys that are not all executed by then never will be. */
#define PRIME_US_MAX 60000000
#define DRAIN_US_MAX 2000000
#define TICK_MS 10
#define PAUSE_TICK_US 5000
/* IDLE: connections that are being used at once. */
#define IDLE_WINDOW 64

int64_t run_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool primes(const struct plan *plan)
{
	return plan->work == WORK_REPLAY || plan->work == WORK_IDLE;
}

static unsigned prime_count(const struct plan *plan)
{
	return plan->work == WORK_IDLE ? plan->connections : plan->keys;
}

bool run_open(struct run *run, const struct plan *plan)
{
	memset(run, 0, sizeof(*run));
	run->plan = plan;
	run->phase = primes(plan) ? PHASE_PRIME : PHASE_WARM;
	run->clients = calloc(plan->connections, sizeof(*run->clients));
	run->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (plan->slice_us > 0) {
		run->slice_count = (size_t)(plan->measure_us / plan->slice_us) + 1;
		run->slices = calloc(run->slice_count, sizeof(*run->slices));
	}
	if (run->clients == NULL || run->epoll < 0 || (run->slice_count > 0 && run->slices == NULL)) {
		perror("bench-load");
		return false;
	}
	if (plan->tls != NULL && (run->tls = client_tls(plan->tls)) == NULL) {
		fprintf(stderr, "bench-load: --tls %s: it must hold certificates in PEM form\n", plan->tls);
		return false;
	}
	for (unsigned i = 0; i < plan->connections; i++)
		run->clients[i].fd = -1;
	for (unsigned i = 0; i < plan->connections; i++) {
		run->clients[i].caller = plan->callers > 0 ? 1 + i % plan->callers : 0;
		if (!request_make(&run->clients[i].request, plan, run->clients[i].caller) ||
		    !client_connect(run, &run->clients[i])) {
			fprintf(stderr, "bench-load: connection %u: %m\n", i + 1);
			return false;
		}
	}
	return true;
}

void run_close(struct run *run)
{
	for (unsigned i = 0; run->clients != NULL && i < run->plan->connections; i++) {
		request_free(&run->clients[i].request);
		client_close(&run->clients[i]);
	}
	SSL_CTX_free(run->tls);
	free(run->clients);
	free(run->slices);
	if (run->epoll >= 0)
		close(run->epoll);
}

static void send_next_idle(struct run *run)
{
	if (run->primes_sent < run->plan->connections)
		client_send(run, &run->clients[run->primes_sent++]);
}

static void send_all(struct run *run)
{
	if (run->plan->work == WORK_IDLE) {
		for (unsigned i = 0; i < IDLE_WINDOW; i++)
			send_next_idle(run);
		return;
	}
	for (unsigned i = 0; i < run->plan->connections; i++) {
		if (run->clients[i].fd >= 0 && !run->clients[i].waiting)
			client_send(run, &run->clients[i]);
	}
}

static void add_to_slice(struct run *run, int64_t now_us, uint64_t took_us)
{
	size_t number = (size_t)((now_us - run->began_us) / run->plan->slice_us);

	if (number < run->slice_count)
		histogram_add(&run->slices[number], took_us);
}

void run_answered(struct run *run, struct client *client, int64_t now_us)
{
	unsigned status = client->response.status;

	run->answered += status < 300;
	if (run->phase == PHASE_PRIME) {
		run->primed += status < 300;
		if (run->plan->work == WORK_IDLE)
			send_next_idle(run);
		return;
	}
	if (run->phase != PHASE_MEASURE)
		return;
	run->statuses[status < 600 ? status : 0]++;
	histogram_add(&run->all, (uint64_t)(now_us - client->sent_us));
	if (run->slices != NULL)
		add_to_slice(run, now_us, (uint64_t)(now_us - client->sent_us));
	if (client->retry)
		histogram_add(&run->again, (uint64_t)(now_us - client->sent_us));
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

/* Those whose pause is over send their next request. */
static void end_pauses(struct run *run)
{
	int64_t now_us = run_now_us();

	if (run->plan->pause_us == 0 || now_us - run->pauses_seen_us < PAUSE_TICK_US)
		return;
	run->pauses_seen_us = now_us;
	for (unsigned i = 0; i < run->plan->connections; i++) {
		struct client *client = &run->clients[i];

		if (client->fd >= 0 && client->due_us != 0 && client->due_us <= now_us)
			client_send(run, client);
	}
}

/* One look at the sockets. */
static void step(struct run *run)
{
	struct epoll_event events[EVENTS_MAX];
	int count = epoll_wait(run->epoll, events, EVENTS_MAX,
			       run->plan->pause_us > 0 ? PAUSE_TICK_US / 1000 : TICK_MS);

	for (int i = 0; i < count; i++) {
		struct client *client = events[i].data.ptr;

		if (client->fd >= 0 && events[i].events & EPOLLOUT)
			client_write(run, client);
		if (client->fd >= 0 && events[i].events & ~(uint32_t)EPOLLOUT)
			client_read(run, client);
	}
	end_pauses(run);
}

static volatile sig_atomic_t ended_early;

static void end_early(int number)
{
	(void)number;
	ended_early = 1;
}

/* SIGTERM ends warming and measuring, and what was measured until then counts. */
static void catch_term(void)
{
	struct sigaction action = { .sa_handler = end_early };

	sigaction(SIGTERM, &action, NULL);
}

static void until(struct run *run, int64_t end_us)
{
	while (run_now_us() < end_us && !ended_early)
		step(run);
}

static bool anybody_waits(const struct run *run)
{
	for (unsigned i = 0; i < run->plan->connections; i++) {
		if (run->clients[i].waiting && run->clients[i].fd >= 0)
			return true;
	}
	return false;
}

void run_go(struct run *run)
{
	int64_t end_us = run_now_us() + PRIME_US_MAX;

	catch_term();
	send_all(run);
	while (run->phase == PHASE_PRIME && run->primed < prime_count(run->plan) &&
	       run->broken == 0 && run_now_us() < end_us)
		step(run);
	run->phase = PHASE_WARM;
	if (run->plan->work != WORK_IDLE)
		send_all(run);
	until(run, run_now_us() + run->plan->warm_us);
	say("begin");
	run->phase = PHASE_MEASURE;
	getrusage(RUSAGE_SELF, &run->usage_began);
	run->began_us = run_now_us();
	until(run, run->began_us + run->plan->measure_us);
	run->ended_us = run_now_us();
	getrusage(RUSAGE_SELF, &run->usage_ended);
	run->phase = PHASE_OVER;
	say("end");
	end_us = run_now_us() + DRAIN_US_MAX;
	while (anybody_waits(run) && run_now_us() < end_us)
		step(run);
}
