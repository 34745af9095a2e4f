/* Shows that lines reach their file in order and whole, that a file is opened anew, and that
 * what does not fit is dropped and counted while nobody waits. */
#include "../test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/log_writer.h"

static char folder[] = "/tmp/hapax-log-writer-XXXXXX";

static char *path_of(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
	return path;
}

static struct hpx_log_writer *start(const char *path)
{
	struct hpx_log_writer *writer = NULL;
	char problem[HPX_LOG_WRITER_PROBLEM_SIZE];

	assert_status(hpx_log_writer_start("test", path, &writer, problem), HPX_OK);
	return writer;
}

static void add(struct hpx_log_writer *writer, const char *text)
{
	hpx_log_writer_add(writer, hpx_span_of(text), 1);
}

static void assert_file(const char *path, const char *expected)
{
	struct hpx_buffer text;
	unsigned mode;

	hpx_buffer_init(&text, 1 << 20);
	assert_status(hpx_buffer_read_file(&text, path, &mode), HPX_OK);
	assert_status(hpx_buffer_byte(&text, '\0'), HPX_OK);
	assert_string_equal(text.ptr, expected);
	hpx_buffer_done(&text);
}

static void lines_are_appended(void **state)
{
	char *path = path_of("appended");
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct hpx_log_writer *writer = start(path);
		add(writer, "one\n");
		hpx_log_writer_add(writer, HPX_SPAN("two\nthree\n"), 2);
		hpx_log_writer_stop(writer);
	}
	assert_file(path, "one\ntwo\nthree\none\ntwo\nthree\n");
	unlink(path);
	free(path);
}

/* Lines before the reopening are in the old file, those after it in the new one. */
static void opened_anew(void **state)
{
	char *path = path_of("log"), *old = path_of("log.1");
	struct hpx_log_writer *writer = start(path);
	struct stat st;
	(void)state;
	add(writer, "before\n");
	assert_int_equal(rename(path, old), 0);
	assert_status(hpx_log_writer_reopen(writer, path), HPX_OK);
	for (int i = 0; i < 1000 && stat(path, &st) != 0; i++)
		usleep(10000);
	add(writer, "after\n");
	/* A file that cannot be opened: the one that is open stays. */
	assert_status(hpx_log_writer_reopen(writer, "/no/such/folder/log"), HPX_OK);
	hpx_log_writer_stop(writer);
	assert_file(old, "before\n");
	assert_file(path, "after\n");
	unlink(path);
	unlink(old);
	free(path);
	free(old);
}

/* Nobody reads the pipe: adding never waits, every line is kept or counted, and the end does
 * not wait for ever. */
static void a_full_pipe(void **state)
{
	char *path = path_of("pipe");
	char line[HPX_LOG_LINE_MAX + 1];
	const uint64_t count = 2000;
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	struct hpx_log_writer *writer = start(path);
	memset(line, 'x', sizeof(line));
	line[HPX_LOG_LINE_MAX - 1] = '\n';
	line[HPX_LOG_LINE_MAX] = '\0';
	for (uint64_t i = 0; i < count; i++)
		add(writer, line);
	uint64_t dropped = hpx_log_writer_dropped(writer);
	/* Two blocks of 1 MiB and the pipe have room for some 930. */
	assert_in_range(dropped, 800, 1600);
	hpx_log_writer_stop(writer);
	uint64_t got = 0;
	for (ssize_t n; (n = read(reader, line, HPX_LOG_LINE_MAX)) > 0; got++) {
		assert_int_equal(n, HPX_LOG_LINE_MAX);
		assert_int_equal(line[n - 1], '\n');
	}
	assert_in_range(got, 1, 64);
	close(reader);
	unlink(path);
	free(path);
}

static void what_takes_nothing(void **state)
{
	struct hpx_log_writer *writer = start("/dev/full");
	struct hpx_log_writer *none = NULL;
	char problem[HPX_LOG_WRITER_PROBLEM_SIZE];
	(void)state;
	hpx_log_writer_add(writer, HPX_SPAN("one\ntwo\n"), 2);
	for (int i = 0; i < 1000 && hpx_log_writer_dropped(writer) == 0; i++)
		usleep(10000);
	assert_int_equal(hpx_log_writer_dropped(writer), 2);
	hpx_log_writer_stop(writer);
	assert_status(hpx_log_writer_start("test", "/no/such/folder/log", &none, problem), HPX_IO);
	assert_null(none);
	assert_string_equal(problem,
			    "/no/such/folder/log cannot be opened for writing: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_appended),
		cmocka_unit_test(opened_anew),
		cmocka_unit_test(a_full_pipe),
		cmocka_unit_test(what_takes_nothing),
	};

	if (mkdtemp(folder) == NULL)
		return 1;
	int code = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return code;
}
