/* Shows how an event is printed as text and as JSON, and that no argument adds a field or a
 * line. */
#include "../test.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_text),
		cmocka_unit_test(as_json),
		cmocka_unit_test(long_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
