/* What every unit test includes: cmocka and the headers it needs first. */
#ifndef HPX_TESTS_UNIT_TEST_H
#define HPX_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/span.h"
#include "base/status.h"

/* The exit code of a program of which nothing could be run: Meson counts it as
 * skipped. A line "SKIPPED: why" goes before; tools/test shows it, also of a
 * program that could run a part. */
#define TEST_SKIPPED 77

/* Fails with both values when the span is not that text. */
#define assert_span(span, text) test_assert_span((span), (text), __FILE__, __LINE__)
/* Fails with both names when the status is another one. */
#define assert_status(got, want) test_assert_status((got), (want), __FILE__, __LINE__)

static inline void test_assert_span(struct hpx_span got, const char *want, const char *file,
				    int line)
{
	if (hpx_span_eq(got, hpx_span_of(want)))
		return;
	print_error("got \"%.*s\", want \"%s\"\n", HPX_SPAN_ARG(got), want);
	_fail(file, line);
}

static inline void test_assert_status(enum hpx_status got, enum hpx_status want,
				      const char *file, int line)
{
	if (got == want)
		return;
	print_error("got %s, want %s\n", hpx_status_name(got), hpx_status_name(want));
	_fail(file, line);
}

/* The folder of the published test data, NULL (and a message) where it is
 * missing: HAPAX_CORPORA, or ../shared/corpora beside the source tree. */
static inline const char *test_corpora(void)
{
	const char *folder = getenv("HAPAX_CORPORA");
	FILE *probe;
	char path[4096];

	if (folder == NULL || *folder == '\0')
		folder = "../shared/corpora";
	snprintf(path, sizeof(path), "%s/README.md", folder);
	probe = fopen(path, "r");
	if (probe == NULL) {
		print_message("SKIPPED: no test data in %s (set HAPAX_CORPORA)\n", folder);
		return NULL;
	}
	fclose(probe);
	return folder;
}

#endif
