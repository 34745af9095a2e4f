/* bench-load: sends requests to one server over many kept-alive connections, in a
 * closed loop on one thread, and says what came back as one line of JSON.
 * Not a general tool: it knows the loads of this benchmark and nothing else. */
#include <stdio.h>
#include <stdlib.h>

#include "run.h"

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void print_latency(const char *name, const struct histogram *histogram)
{
	static const struct {
		const char *name;
		double share;
	} points[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 } };
	uint64_t total = histogram->total;

	printf("\"%s\":{\"count\":%llu,\"mean\":%.1f,\"max\":%llu", name,
	       (unsigned long long)total,
	       total != 0 ? (double)histogram->sum_us / (double)total : 0.0,
	       (unsigned long long)histogram->max_us);
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		printf(",\"%s\":%llu", points[i].name,
		       (unsigned long long)histogram_at(histogram, points[i].share));
	fputs(",\"buckets\":", stdout);
	histogram_print(histogram, stdout);
	fputs("},", stdout);
}

static void print_statuses(const struct run *run)
{
	const char *before = "";

	fputs("\"statuses\":{", stdout);
	for (size_t i = 0; i < sizeof(run->statuses) / sizeof(run->statuses[0]); i++) {
		if (run->statuses[i] == 0)
			continue;
		printf("%s\"%zu\":%llu", before, i, (unsigned long long)run->statuses[i]);
		before = ",";
	}
	fputs("},", stdout);
}

/* Where in time the slices are, by CLOCK_MONOTONIC, and the counts of each. */
static void print_slices(const struct run *run)
{
	printf("\"slices\":{\"began_us\":%lld,\"each_us\":%lld,\"buckets\":[",
	       (long long)run->began_us, (long long)run->plan->slice_us);
	for (size_t i = 0; i < run->slice_count; i++) {
		fputs(i > 0 ? "," : "", stdout);
		histogram_print(&run->slices[i], stdout);
	}
	fputs("]},", stdout);
}

static unsigned still_open(const struct run *run)
{
	unsigned open = 0;

	for (unsigned i = 0; i < run->plan->connections; i++)
		open += run->clients[i].fd >= 0;
	return open;
}

/* The CPU time is of the measured part only. */
static void print_result(const struct run *run)
{
	const struct rusage *begin = &run->usage_began;
	const struct rusage *end = &run->usage_ended;
	double cpu = seconds(end->ru_utime) - seconds(begin->ru_utime) +
		     seconds(end->ru_stime) - seconds(begin->ru_stime);

	putchar('{');
	print_latency("latency_us", &run->all);
	if (run->plan->work == WORK_MIXED)
		print_latency("again_us", &run->again);
	if (run->slices != NULL)
		print_slices(run);
	print_statuses(run);
	printf("\"seconds\":%.6f,\"generator_cpu\":%.6f,\"broken\":%llu,\"connected_anew\":%llu,"
	       "\"primed\":%u,\"open\":%u,\"answered\":%llu}\n",
	       (double)(run->ended_us - run->began_us) / 1e6, cpu,
	       (unsigned long long)run->broken, (unsigned long long)run->connected_anew,
	       run->primed, still_open(run), (unsigned long long)run->answered);
}

int main(int argc, char **argv)
{
	struct plan plan;
	struct run *run = calloc(1, sizeof(*run));
	bool opened;

	if (run == NULL || !plan_read(argc, argv, &plan)) {
		free(run);
		return 2;
	}
	opened = run_open(run, &plan);
	if (opened) {
		run_go(run);
		print_result(run);
	}
	run_close(run);
	free(run);
	return opened ? 0 : 1;
}
