/* The command line: each option has a value, and all but the address a default. */
#include "plan.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/span.h"

static const char *const work_names[] = {
#define X(name, text) text,
	WORK_LIST(X)
#undef X
};

#define CONNECTIONS_MAX 60000
#define KEYS_MAX 1000000
#define CALLERS_MAX 60000
#define BODY_MAX ((uint64_t)16 << 20)
#define SLICES_MAX 10000
#define MS_MAX ((uint64_t)24 * 3600 * 1000)

static bool number(const char *text, uint64_t max, uint64_t *ret_value)
{
	return hpx_span_u64(hpx_span_of(text), max, ret_value);
}

/* "127.0.0.1:8080" */
static bool read_address(const char *text, struct sockaddr_in *ret_to)
{
	struct hpx_span all = hpx_span_of(text);
	size_t colon = hpx_span_index(all, ':');
	char host[INET_ADDRSTRLEN];
	uint64_t port;

	if (colon >= sizeof(host) || colon == all.len ||
	    !hpx_span_u64(hpx_span_skip(all, colon + 1), 65535, &port))
		return false;
	memcpy(host, text, colon);
	host[colon] = '\0';
	*ret_to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	return inet_pton(AF_INET, host, &ret_to->sin_addr) == 1;
}

static bool read_work(const char *text, enum work *ret_work)
{
	for (unsigned i = 0; i < WORK_COUNT; i++) {
		if (strcmp(text, work_names[i]) == 0) {
			*ret_work = (enum work)i;
			return true;
		}
	}
	return false;
}

static bool take(struct plan *plan, const char *name, const char *value)
{
	uint64_t n = 0;

	if (strcmp(name, "--to") == 0)
		return read_address(value, &plan->to);
	if (strcmp(name, "--work") == 0)
		return read_work(value, &plan->work);
	if (strcmp(name, "--path") == 0)
		return (plan->path = value)[0] == '/' && strlen(value) < 512;
	if (strcmp(name, "--run") == 0)
		return strlen(plan->run = value) < 64;
	if (strcmp(name, "--tls") == 0)
		return (plan->tls = value)[0] != '\0';
	if (strcmp(name, "--header") == 0)
		return strlen(plan->header = value) < 512;
	if (strcmp(name, "--connections") == 0 && number(value, CONNECTIONS_MAX, &n) && n > 0)
		return (plan->connections = (unsigned)n);
	if (strcmp(name, "--callers") == 0 && number(value, CALLERS_MAX, &n) && n > 0)
		return (plan->callers = (unsigned)n);
	if (strcmp(name, "--pause-ms") == 0 && number(value, MS_MAX, &n))
		return (plan->pause_us = (int64_t)n * 1000) >= 0;
	if (strcmp(name, "--keys") == 0 && number(value, KEYS_MAX, &n) && n > 0)
		return (plan->keys = (unsigned)n);
	if (strcmp(name, "--warm-ms") == 0 && number(value, MS_MAX, &n))
		return (plan->warm_us = (int64_t)n * 1000) >= 0;
	if (strcmp(name, "--measure-ms") == 0 && number(value, MS_MAX, &n))
		return (plan->measure_us = (int64_t)n * 1000) > 0;
	if (strcmp(name, "--slice-ms") == 0 && number(value, MS_MAX, &n))
		return (plan->slice_us = (int64_t)n * 1000) > 0;
	if (strcmp(name, "--body") == 0 && number(value, BODY_MAX, &n))
		return (plan->body_bytes = (size_t)n) > 0;
	return false;
}

bool plan_read(int argc, char **argv, struct plan *ret_plan)
{
	struct plan plan = {
		.connections = 1,
		.keys = 1000,
		.warm_us = 1000000,
		.measure_us = 5000000,
		.body_bytes = 100,
		.path = "/payments",
		.run = "run",
	};

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc || !take(&plan, argv[i], argv[i + 1])) {
			fprintf(stderr, "bench-load: %s %s is not understood\n", argv[i],
				i + 1 < argc ? argv[i + 1] : "");
			return false;
		}
	}
	if (plan.to.sin_port == 0) {
		fprintf(stderr, "bench-load: give --to ADDRESS:PORT\n");
		return false;
	}
	if (plan.slice_us > 0 && plan.measure_us / plan.slice_us >= SLICES_MAX) {
		fprintf(stderr, "bench-load: more than %d slices\n", SLICES_MAX);
		return false;
	}
	*ret_plan = plan;
	return true;
}
