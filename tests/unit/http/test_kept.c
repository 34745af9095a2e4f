/* Shows which header lines of an application are stored, and in which form. */
#include "../test.h"

#include "http/kept.h"
#include "kept_vectors.h"

static void lines_are_kept_or_refused(void **state)
{
	struct hpx_buffer out;

	(void)state;
	for (size_t i = 0; i < KEPT_VECTORS; i++) {
		hpx_buffer_init(&out, HPX_KEPT_BYTES_MAX);
		enum hpx_status status = hpx_kept_lines(hpx_span_of(kept_vectors[i].lines), &out);
		assert_status(status, kept_vectors[i].kept != NULL ? HPX_OK : HPX_INVALID);
		assert_span(hpx_buffer_span(&out), kept_vectors[i].kept != NULL ? kept_vectors[i].kept : "");
		hpx_buffer_done(&out);
	}
}

/* What is left out does not count towards the bound; what is kept does. */
static void the_bound_is_on_what_is_kept(void **state)
{
	static char lines[HPX_KEPT_BYTES_MAX + 64];
	struct hpx_buffer out;
	int n;

	(void)state;
	hpx_buffer_init(&out, HPX_KEPT_BYTES_MAX);
	n = snprintf(lines, sizeof(lines), "Date: ");
	memset(lines + n, 'x', HPX_KEPT_BYTES_MAX);
	assert_status(hpx_kept_lines(hpx_span_of(lines), &out), HPX_OK);
	assert_int_equal(out.len, 0);
	memcpy(lines, "Dote: ", 6);
	assert_status(hpx_kept_lines(hpx_span_of(lines), &out), HPX_TOO_LARGE);
	assert_int_equal(out.len, 0);
	lines[HPX_KEPT_BYTES_MAX - 2] = '\0';
	assert_status(hpx_kept_lines(hpx_span_of(lines), &out), HPX_OK);
	assert_int_equal(out.len, HPX_KEPT_BYTES_MAX);
	hpx_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_kept_or_refused),
		cmocka_unit_test(the_bound_is_on_what_is_kept),
	};
	return cmocka_run_group_tests_name("kept", tests, NULL, NULL);
}
