/* Shows how secrets are read: from which files, with which complaints, and
 * that no complaint says what stands in them. */
#include "config_test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define UP "upstream: http://127.0.0.1:9000\nstore: sqlite:/s\n"

static char folder[] = "/tmp/hpx_test_secret_XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static void path_of(const char *name, char out[64])
{
	snprintf(out, 64, "%s/%s", folder, name);
}

static void write_file(const char *path, const char *bytes, size_t len, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

struct row {
	struct hpx_span bytes; /* ptr NULL: 16 KiB and one */
	mode_t mode;
	const char *headers; /* NULL: it is a mistake */
	const char *report;
};

/* The row's file as the credential of a target. */
static void check_row(const struct row *row)
{
	static char large[(16 << 10) + 1];
	struct hpx_settings *settings = NULL;
	struct hpx_buffer out;
	char path[64];
	char text[300];

	memset(large, 'x', sizeof(large));
	path_of("credential", path);
	write_file(path, row->bytes.ptr ? row->bytes.ptr : large,
		   row->bytes.ptr ? row->bytes.len : sizeof(large), row->mode);
	snprintf(text, sizeof(text),
		 UP "targets: {t: {url: 'https://t', credentials: {file: %s}}}\n", path);
	hpx_buffer_init(&out, 4096);
	enum hpx_status status = test_read(text, NULL, &out, &settings);
	assert_int_equal(unlink(path), 0);
	if (!hpx_span_eq(hpx_buffer_span(&out), hpx_span_of(row->report)))
		fail_msg("got \"%.*s\", want \"%s\"", HPX_SPAN_ARG(hpx_buffer_span(&out)),
			 row->report);
	assert_status(status, row->headers != NULL ? HPX_OK : HPX_INVALID);
	if (row->headers != NULL)
		assert_span(settings->targets[0].caller.headers, row->headers);
	hpx_settings_unref(settings);
	hpx_buffer_done(&out);
}

#define AT "f:3:47: targets.t.credentials.file: "
#define OPEN \
	"f:3:47: warning: targets.t.credentials.file: can be read or written by every " \
	"user; chmod 600 it, as the user that hapax runs as\n"
#define NO_FIELD \
	AT "must hold one line of ASCII: the whole value of the header that carries it\n"

static void files(void **state)
{
	static const struct row rows[] = {
		{ HPX_SPAN_INIT("Bearer a"), 0600, "Authorization: Bearer a\r\n", "" },
		{ HPX_SPAN_INIT("Bearer a\n"), 0640, "Authorization: Bearer a\r\n", "" },
		{ HPX_SPAN_INIT("Bearer a\r\n\n"), 0600, "Authorization: Bearer a\r\n", "" },
		{ HPX_SPAN_INIT("Bearer a\n"), 0644, "Authorization: Bearer a\r\n", OPEN },
		{ HPX_SPAN_INIT("Bearer a\n"), 0602, "Authorization: Bearer a\r\n", OPEN },
		{ HPX_SPAN_INIT(""), 0600, NULL, AT "is empty; put the secret there\n" },
		{ HPX_SPAN_INIT("\n\r\n"), 0600, NULL, AT "is empty; put the secret there\n" },
		{ HPX_SPAN_INIT("a\nX-Other: b"), 0600, NULL, NO_FIELD },
		{ HPX_SPAN_INIT("a\0b"), 0600, NULL, NO_FIELD },
		{ HPX_SPAN_INIT("caf\xc3\xa9"), 0600, NULL, NO_FIELD },
		{ HPX_SPAN_INIT(" a"), 0600, NULL, NO_FIELD },
		{ { NULL, 0 }, 0600, NULL, AT "is larger than 16 KiB, the most that a secret "
					      "may have\n" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		check_row(&rows[i]);
}

/* Nobody ever writes into the pipe: reading it would take for ever. */
static void what_is_no_file(void **state)
{
	char path[64];
	char text[300];
	(void)state;

	test_report(UP "targets: {t: {url: 'https://t', credentials: {file: /nowhere}}}\n",
		    NULL, HPX_INVALID,
		    AT "cannot be opened: No such file or directory; name the file that holds "
		       "the secret, which the user that hapax runs as must be able to read\n");
	test_report(UP "targets: {t: {url: 'https://t', credentials: {file: /}}}\n", NULL,
		    HPX_INVALID, AT "is not a file; name the file that holds the secret\n");
	path_of("pipe", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(text, sizeof(text),
		 UP "targets: {t: {url: 'https://t', credentials: {file: %s}}}\n", path);
	test_report(text, NULL, HPX_INVALID,
		    AT "is not a file; name the file that holds the secret\n");
	assert_int_equal(unlink(path), 0);
}

static void the_environment(void **state)
{
	static const char text[] =
		UP "targets: {t: {url: 'https://t', credentials: {env: HPX_TEST_SECRET}}}\n";
	(void)state;

	unsetenv("HPX_TEST_SECRET");
	test_report(text, NULL, HPX_INVALID,
		    "f:3:47: targets.t.credentials.env: names a variable that is not set; set "
		    "it where hapax is started, or name a file\n");
	setenv("HPX_TEST_SECRET", "", 1);
	test_report(text, NULL, HPX_INVALID,
		    "f:3:47: targets.t.credentials.env: is empty; put the secret there\n");
	setenv("HPX_TEST_SECRET", "a", 1);
	test_report(text, NULL, HPX_OK, "");
	test_report(UP "targets: {t: {url: 'https://t', credentials: {env: HPX_TEST_SECRET, "
		       "file: /x}}}\n",
		    NULL, HPX_INVALID,
		    "f:3:47: targets.t.credentials.env: is given beside credentials.file; leave "
		    "one out\n");
	/* The secret itself, written where its source should stand. */
	test_report(UP "targets: {t: {url: 'https://t', credentials: {env: 'Bearer s3cret'}}}\n",
		    NULL, HPX_INVALID,
		    "f:3:52: targets.t.credentials.env: is no name of a variable: letters, "
		    "digits and _, e.g. MAILER_CREDENTIAL; the secret itself never stands "
		    "here\n");
}

/* Who only looks into the store has neither the variable nor the right to read
 * the file; what else is wrong is told as ever. */
static void nobody_needs_them(void **state)
{
	static const struct hpx_config_flags flags = { .without_secrets = true };
	(void)state;

	unsetenv("HPX_TEST_SECRET");
	test_report(UP "targets: {t: {url: 'https://t', credentials: {env: HPX_TEST_SECRET}},\n"
		       "  u: {url: 'https://u', credentials: {file: /nowhere}}}\n"
		       "webhooks: {w: {scheme: stripe, operation: /o, verdict: /v, "
		       "applied: [ok], secret_file: /nowhere}}\n",
		    &flags, HPX_OK, "");
	test_report(UP "targets: {t: {url: 'https://t', credentials: {env: HPX_TEST_SECRET, "
		       "file: /x}}}\n",
		    &flags, HPX_INVALID,
		    "f:3:47: targets.t.credentials.env: is given beside credentials.file; leave "
		    "one out\n");
}

#define LONG "0123456789abcdef"

/* Several secrets, one per line, and those that are none. */
static void webhooks(void **state)
{
	static const struct {
		const char *scheme;
		const char *secrets;
		size_t count; /* 0: it is a mistake */
		const char *report;
	} rows[] = {
		{ "stripe", "whsec_one_0123456789", 1, "" },
		{ "stripe", "whsec_one_0123456789\nwhsec_two_0123456789\n", 2, "" },
		{ "stripe", "\r\n\nwhsec_one_0123456789\r\n\n", 1, "" },
		{ "standard-webhooks", "whsec_MDEyMzQ1Njc4OWFiY2RlZg==\nplain-0123456789ab", 2, "" },
		{ "standard-webhooks", "whsec_MDEyMzQ1Njc4OWFiY2RlZg==\nwhsec_not base64", 0,
		  "webhooks.w.secret_env: line 2 is not a secret: the text "
		  "after whsec_ must be base64\n" },
		{ "stripe", "1" LONG "\n"
			    "2" LONG "\n"
			    "3" LONG "\n"
			    "4" LONG "\n"
			    "5" LONG "\n"
			    "6" LONG "\n"
			    "7" LONG "\n"
			    "8" LONG,
		  8, "" },
		{ "stripe", "1" LONG "\n"
			    "2" LONG "\n"
			    "3" LONG "\n"
			    "4" LONG "\n"
			    "5" LONG "\n"
			    "6" LONG "\n"
			    "7" LONG "\n"
			    "8" LONG "\n"
			    "9" LONG,
		  0,
		  "webhooks.w.secret_env: holds more than 8 secrets; remove the old "
		  "ones\n" },
	};
	char text[300];
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		setenv("HPX_TEST_SECRETS", rows[i].secrets, 1);
		snprintf(text, sizeof(text),
			 UP "webhooks: {w: {scheme: %s, operation: /o, "
			    "verdict: /v, applied: [ok], secret_env: HPX_TEST_SECRETS}}\n",
			 rows[i].scheme);
		struct hpx_settings *settings = NULL;
		struct hpx_buffer out;
		hpx_buffer_init(&out, 4096);
		enum hpx_status status = test_read(text, NULL, &out, &settings);
		assert_status(status, rows[i].count > 0 ? HPX_OK : HPX_INVALID);
		if (rows[i].count > 0)
			assert_int_equal(settings->webhooks[0].signature.key_count,
					 rows[i].count);
		assert_status(hpx_buffer_byte(&out, '\0'), HPX_OK);
		/* Where on the line depends on the scheme. */
		const char *got = strstr(out.ptr, "webhooks.w");
		if (strcmp(got != NULL ? got : "", rows[i].report) != 0)
			fail_msg("got \"%s\", want \"%s\"", out.ptr, rows[i].report);
		hpx_buffer_done(&out);
		hpx_settings_unref(settings);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),
		cmocka_unit_test(what_is_no_file),
		cmocka_unit_test(the_environment),
		cmocka_unit_test(nobody_needs_them),
		cmocka_unit_test(webhooks),
	};
	return cmocka_run_group_tests_name("secret", tests, make_folder, remove_folder);
}
