/* Shows the commands of a description: their end is waited for, their output is shown
 * on failure, a server in the foreground is ended with the run, and one in the
 * background is not. */
#include "helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "verify/run_state.h"

static void serve_all(struct test_server *test_server)
{
	while (test_server_accept(test_server))
		if (test_server_read(test_server))
			test_server_put(test_server, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

struct scene {
	struct test_server test_server;
	struct hpx_verify_spec spec;
	struct hpx_verify *run;
};

static void open_scene(struct scene *scene, const char *kill_command, const char *start)
{
	*scene = (struct scene){ .test_server = { .serve = serve_all } };
	test_server_start(&scene->test_server);
	spec_read(&scene->spec,
		  "url: http://127.0.0.1:%u/p\nlimits: {settle: 2s}\ncrash:\n  kill: '%s'\n  start: "
		  "'%s'\n",
		  scene->test_server.port, kill_command, start);
	assert_status(hpx_verify_new(&scene->spec, &scene->run), HPX_OK);
}

static void close_scene(struct scene *scene)
{
	hpx_verify_free(scene->run);
	test_server_stop(&scene->test_server);
	hpx_verify_spec_done(&scene->spec);
}

static const struct {
	const char *command;
	enum hpx_status status;
	const char *problem;
} crashes[] = {
	{ "true", HPX_OK, "" },
	{ "exit 3", HPX_UNAVAILABLE, "exit code 3" },
	{ "echo no such process >&2; exit 1", HPX_UNAVAILABLE, "exit code 1: no such process" },
	{ "kill -9 $$", HPX_UNAVAILABLE, "ended by signal 9" },
	{ "echo waiting; sleep 600", HPX_TIMEOUT, "still running: waiting" },
};

static void test_crash(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
		char problem[HPX_VERIFY_PROBLEM_SIZE] = "";
		struct scene scene;

		open_scene(&scene, crashes[i].command, "true");
		assert_status(hpx_verify_crash(scene.run, problem), crashes[i].status);
		assert_contains(problem, crashes[i].problem);
		close_scene(&scene);
	}
}

/* The process whose number stands in the file; waits until it is there. */
static pid_t pid_in(const char *path)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + TEST_PATIENCE_MS;
	char text[32] = "";

	while (strchr(text, '\n') == NULL && hpx_clock_boot_ms() < deadline_ms) {
		FILE *file = fopen(path, "r");

		if (file != NULL && fgets(text, sizeof(text), file) == NULL)
			text[0] = '\0';
		if (file != NULL)
			fclose(file);
		poll(NULL, 0, 5);
	}
	return (pid_t)strtol(text, NULL, 10);
}

static bool ends(pid_t pid)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + TEST_PATIENCE_MS;

	while (kill(pid, 0) == 0 && hpx_clock_boot_ms() < deadline_ms)
		poll(NULL, 0, 5);
	return kill(pid, 0) != 0 && errno == ESRCH;
}

/* The test's own server answers; the command only stands for one. */
static void test_foreground_ends_with_the_run(void **state)
{
	char path[64], start[128], problem[HPX_VERIFY_PROBLEM_SIZE];
	struct scene scene;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/hpx-verify-pid-%d", (int)getpid());
	snprintf(start, sizeof(start), "echo $$ > %s; exec sleep 600", path);
	open_scene(&scene, "true", start);
	assert_status(hpx_verify_start_again(scene.run, problem), HPX_OK);
	pid_t first = pid_in(path);
	assert_int_equal(kill(first, 0), 0);
	unlink(path);
	/* Another start takes its place. */
	assert_status(hpx_verify_start_again(scene.run, problem), HPX_OK);
	assert_true(ends(first));
	pid_t second = pid_in(path);
	assert_int_equal(kill(second, 0), 0);
	unlink(path);
	close_scene(&scene);
	assert_true(ends(second));
}

static const struct {
	const char *more;
	const char *asked; /* NULL: nothing but a connection */
} questions[] = {
	{ "effects: {get: '/list?of={{n}}'}", "GET /list?of=" },
	{ "requests: {get: {path: /hours}}", "GET /hours HTTP/1.1" },
	{ "", NULL },
};

/* A GET of the request's own path might do something. */
static void test_what_is_asked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		struct scene scene = { .test_server = { .serve = serve_all } };
		char problem[HPX_VERIFY_PROBLEM_SIZE];

		test_server_start(&scene.test_server);
		spec_read(&scene.spec, "url: http://127.0.0.1:%u/p\ncrash: {kill: 'true', start: 'true'}\n%s\n",
			  scene.test_server.port, questions[i].more);
		assert_status(hpx_verify_new(&scene.spec, &scene.run), HPX_OK);
		assert_status(hpx_verify_start_again(scene.run, problem), HPX_OK);
		assert_int_equal(scene.run->requests, questions[i].asked != NULL ? 1 : 0);
		test_server_stop(&scene.test_server);
		if (questions[i].asked != NULL)
			assert_contains(scene.test_server.head, questions[i].asked);
		hpx_verify_free(scene.run);
		hpx_verify_spec_done(&scene.spec);
	}
}

/* The shell ends at once on SIGTERM; the server that it waits for does not, and
 * would hold the port. */
static void test_group_ends_with_the_run(void **state)
{
	char path[64], start[192], problem[HPX_VERIFY_PROBLEM_SIZE];
	struct scene scene;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/hpx-verify-group-%d", (int)getpid());
	snprintf(start, sizeof(start),
		 "sh -c \"trap : TERM; echo \\$\\$ > %s; while :; do sleep 0.05; done\"; true", path);
	open_scene(&scene, "true", start);
	assert_status(hpx_verify_start_again(scene.run, problem), HPX_OK);
	pid_t server = pid_in(path);
	assert_int_equal(kill(server, 0), 0);
	unlink(path);
	close_scene(&scene);
	assert_true(ends(server));
}

static void test_background_stays(void **state)
{
	char path[64], start[160], problem[HPX_VERIFY_PROBLEM_SIZE];
	struct scene scene;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/hpx-verify-bg-%d", (int)getpid());
	snprintf(start, sizeof(start), "sleep 600 & echo $! > %s", path);
	open_scene(&scene, "true", start);
	assert_status(hpx_verify_start_again(scene.run, problem), HPX_OK);
	pid_t pid = pid_in(path);
	unlink(path);
	close_scene(&scene);
	assert_int_equal(kill(pid, 0), 0);
	kill(pid, SIGKILL);
}

static void test_start_that_fails(void **state)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	struct scene scene;

	(void)state;
	open_scene(&scene, "true", "echo no port; exit 7");
	/* Nobody listens; the command has ended before or while that is seen. */
	test_server_stop(&scene.test_server);
	assert_status(hpx_verify_start_again(scene.run, problem), HPX_UNAVAILABLE);
	assert_contains(problem, "exit code 7: no port");
	hpx_verify_free(scene.run);
	hpx_verify_spec_done(&scene.spec);
}

static void test_start_that_never_listens(void **state)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	struct scene scene;

	(void)state;
	open_scene(&scene, "true", "true");
	test_server_stop(&scene.test_server);
	assert_status(hpx_verify_start_again(scene.run, problem), HPX_UNAVAILABLE);
	assert_contains(problem, "took no connection in time");
	hpx_verify_free(scene.run);
	hpx_verify_spec_done(&scene.spec);
}

/* However much is printed, little is kept. */
static void test_output_is_bounded(void **state)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + TEST_PATIENCE_MS;
	struct hpx_shell shell;
	char text[400];

	(void)state;
	assert_status(hpx_shell_start(&shell, HPX_SPAN("yes | head -c 5000000; echo; echo end")),
		      HPX_OK);
	while (hpx_shell_runs(&shell) && hpx_clock_boot_ms() < deadline_ms)
		poll(NULL, 0, 5);
	assert_true(hpx_shell_is_good(&shell));
	hpx_shell_explain(&shell, text, sizeof(text));
	assert_contains(text, "end");
	assert_true(lseek(shell.output, 0, SEEK_END) > 4000000);
	hpx_shell_trim(&shell);
	assert_int_equal(lseek(shell.output, 0, SEEK_END), 0);
	hpx_shell_end(&shell);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_foreground_ends_with_the_run),
		cmocka_unit_test(test_what_is_asked),
		cmocka_unit_test(test_group_ends_with_the_run),
		cmocka_unit_test(test_background_stays),
		cmocka_unit_test(test_start_that_fails),
		cmocka_unit_test(test_start_that_never_listens),
		cmocka_unit_test(test_output_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
