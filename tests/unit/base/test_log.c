/* Shows how an event is printed as text and as JSON, that no argument adds a field or a line,
 * that with a thread that writes nobody waits for standard error, and that no line is lost
 * when it starts and ends. */
#include "../test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

static char line[4096];

/* What the last event wrote, behind its time. */
#define LOGGED(...) \
	(begin(), hpx_log(__VA_ARGS__), end())

static int pipe_ends[2], stderr_kept;

static void begin(void)
{
	assert_int_equal(pipe(pipe_ends), 0);
	stderr_kept = dup(STDERR_FILENO);
	dup2(pipe_ends[1], STDERR_FILENO);
	close(pipe_ends[1]);
}

static const char *end(void)
{
	dup2(stderr_kept, STDERR_FILENO);
	close(stderr_kept);
	ssize_t n = read(pipe_ends[0], line, sizeof(line) - 1);
	close(pipe_ends[0]);
	line[n > 0 ? n : 0] = '\0';
	const char *rest = strstr(line, "level");
	return rest != NULL ? rest : line;
}

static void as_text(void **state)
{
	(void)state;
	hpx_log_set_format(HPX_LOG_TEXT);
	assert_string_equal(LOGGED(HPX_LOG_WARN, "lost", "op=%s attempt=%u reason=\"%s\"", "ab.c", 2u, "gone"),
			    "level=warn event=lost op=ab.c attempt=2 reason=\"gone\"\n");
	assert_string_equal(LOGGED(HPX_LOG_ERROR, "x", "reason=\"%s\" n=%d", "a \"b\" op=1\n\\", -1),
			    "level=error event=x reason=\"a \\\"b\\\" op=1?\\\\\" n=-1\n");
	assert_string_equal(LOGGED(HPX_LOG_INFO, "x", "reason=\"always\""),
			    "level=info event=x reason=\"always\"\n");
	assert_string_equal(LOGGED(HPX_LOG_DEBUG, "x", "n=%d", 1), "");
}

static void as_json(void **state)
{
	(void)state;
	hpx_log_set_format(HPX_LOG_JSON);
	assert_string_equal(LOGGED(HPX_LOG_WARN, "lost", "op=%s attempt=%u reason=\"%s %d\" to=%.*s", "12", 2u,
				   "\"gone\"", 7, 3, "abcdef"),
			    "level\":\"warn\",\"event\":\"lost\",\"op\":\"12\",\"attempt\":2,"
			    "\"reason\":\"\\\"gone\\\" 7\",\"to\":\"abc\"}\n");
	assert_int_equal(line[0], '{');
	/* Marks in an argument, and a format without fields. */
	assert_string_equal(LOGGED(HPX_LOG_INFO, "x", "op=%s", "a\002\001b"),
			    "level\":\"info\",\"event\":\"x\",\"text\":\"?a??b?\"}\n");
	assert_string_equal(LOGGED(HPX_LOG_INFO, "x", "just %s", "text"),
			    "level\":\"info\",\"event\":\"x\",\"text\":\"just text\"}\n");
	hpx_log_set_format(HPX_LOG_TEXT);
}

/* Too long: it is cut, and still whole for its reader. */
static void long_values(void **state)
{
	static char value[3000];
	(void)state;
	memset(value, '"', sizeof(value) - 1);
	hpx_log_set_format(HPX_LOG_JSON);
	const char *rest = LOGGED(HPX_LOG_INFO, "x", "a=%s b=\"%s\"", value, "never");
	assert_true(strlen(line) < 2400 && strlen(line) > 2000);
	assert_string_equal(rest + strlen(rest) - 5, "\\\"\"}\n");
	assert_null(strstr(rest, "never"));
	hpx_log_set_format(HPX_LOG_TEXT);
}

static void not_started(void **state)
{
	(void)state;
	assert_string_equal((begin(), hpx_log_not_started("hapax", "no \"store\""), end()),
			    "hapax: no \"store\"\n");
	hpx_log_set_format(HPX_LOG_JSON);
	assert_string_equal((begin(), hpx_log_not_started("hapax", "no \"store\""), end()),
			    "level\":\"error\",\"event\":\"not_started\",\"reason\":\"no \\\"store\\\"\"}\n");
	hpx_log_set_format(HPX_LOG_TEXT);
}

/* Nobody reads the pipe: logging goes on. Once it is read, the lines that had room come, and
 * behind them the number of those that are missing there. */
static void nobody_reads(void **state)
{
	static char value[1000];
	const unsigned long count = 5000;
	unsigned long kept = 0, told = 0;
	(void)state;
	memset(value, 'v', sizeof(value) - 1);
	begin();
	assert_status(hpx_log_start_writer(), HPX_OK);
	for (unsigned long i = 0; i < count; i++)
		hpx_log(HPX_LOG_INFO, "x", "a=%s", value);
	/* Two blocks of 1 MiB and the pipe have room for some 2,000. */
	assert_in_range(hpx_log_dropped(), 2000, 4100);
	FILE *reader = fdopen(pipe_ends[0], "r");
	while (kept + told < count && fgets(line, sizeof(line), reader) != NULL) {
		const char *dropped = strstr(line, "event=log_lines_dropped log=events");
		kept += strstr(line, "event=x ") != NULL;
		if (dropped != NULL)
			told += strtoul(strstr(dropped, "lines=") + 6, NULL, 10);
	}
	assert_int_equal(kept + told, count);
	assert_int_equal(told, hpx_log_dropped());
	/* What comes now is written again. */
	hpx_log(HPX_LOG_INFO, "last", "n=%d", 1);
	hpx_log_stop_writer();
	assert_non_null(fgets(line, sizeof(line), reader));
	assert_non_null(strstr(line, "event=last n=1\n"));
	dup2(stderr_kept, STDERR_FILENO);
	close(stderr_kept);
	fclose(reader);
}

/* In a child, whose standard error is the pipe. */
static void fail_an_assertion(bool full)
{
	static char value[1000];

	memset(value, 'v', sizeof(value) - 1);
	if (hpx_log_start_writer() != HPX_OK)
		_exit(1);
	for (int i = 0; i < (full ? 100 : 1); i++)
		hpx_log(HPX_LOG_INFO, "before", "a=%s", value);
	HPX_ASSERT(full && !full);
}

/* A failed assertion loses no line that waits, and ends the process also where nobody reads. */
static void before_an_abort(void **state)
{
	char text[4096];
	(void)state;
	for (int full = 0; full < 2; full++) {
		int status;
		begin();
		pid_t child = fork();
		if (child == 0)
			fail_an_assertion(full);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		dup2(stderr_kept, STDERR_FILENO);
		close(stderr_kept);
		FILE *reader = fdopen(pipe_ends[0], "r");
		assert_non_null(fgets(text, sizeof(text), reader));
		assert_non_null(strstr(text, "event=before"));
		if (!full) {
			assert_non_null(fgets(text, sizeof(text), reader));
			assert_non_null(strstr(text, "event=assert"));
		}
		fclose(reader);
	}
}

#define THREADS 4
#define LINES 2000u

static _Atomic unsigned logged;

static void *log_lines(void *user)
{
	for (unsigned i = 0; i < LINES; i++) {
		hpx_log(HPX_LOG_INFO, "x", "thread=%u n=%u", *(unsigned *)user, i);
		atomic_fetch_add(&logged, 1);
	}
	return NULL;
}

/* Several threads log while the writer starts and ends: each line is there, once and whole. */
static void threads_log_on(void **state)
{
	unsigned numbers[THREADS] = { 0, 1, 2, 3 }, thread, n, count = 0;
	static bool seen[THREADS][LINES];
	pthread_t threads[THREADS];
	FILE *file = tmpfile();
	(void)state;
	assert_non_null(file);
	stderr_kept = dup(STDERR_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_lines, &numbers[i]), 0);
	for (unsigned part = 1; part < 4; part++) {
		while (atomic_load(&logged) < part * THREADS * LINES / 4)
			sched_yield();
		if (part % 2 == 1)
			assert_status(hpx_log_start_writer(), HPX_OK);
		else
			hpx_log_stop_writer();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(hpx_log_dropped(), 0);
	hpx_log_stop_writer();
	dup2(stderr_kept, STDERR_FILENO);
	close(stderr_kept);
	rewind(file);
	for (; fgets(line, sizeof(line), file) != NULL; count++) {
		const char *fields = strstr(line, "event=x ");
		assert_non_null(fields);
		assert_int_equal(sscanf(fields, "event=x thread=%u n=%u\n", &thread, &n), 2);
		assert_true(thread < THREADS && n < LINES && !seen[thread][n]);
		seen[thread][n] = true;
	}
	assert_int_equal(count, THREADS * LINES);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_text),
		cmocka_unit_test(as_json),
		cmocka_unit_test(long_values),
		cmocka_unit_test(not_started),
		cmocka_unit_test(nobody_reads),
		cmocka_unit_test(before_an_abort),
		cmocka_unit_test(threads_log_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
