/* Shows that a multipart body has one canonical form whatever its boundary,
 * and that a body two readers might cut differently is refused. */
#include "../test.h"

#include "core/form.h"

#define TYPE_B "multipart/form-data; boundary=b"

struct row {
	const char *type;
	struct hpx_span body;
	const char *want; /* NULL: refused */
};

#define ROW(type, body, want) \
	{ \
		type, HPX_SPAN_INIT(body), want \
	}
static const struct row bodies[] = {
	ROW(TYPE_B, "--b\r\nA: 1\r\n\r\nx\r\n--b--\r\n", "1:a=1:1;1:x"),
	ROW(TYPE_B, "--b\r\nA: 1\r\n\r\nx\r\n--b--", "1:a=1:1;1:x"),
	/* Another boundary, preamble and epilogue: the same. */
	ROW("multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxk",
	    "------WebKitFormBoundary7MA4YWxk\r\na:1\r\n\r\nx\r\n"
	    "------WebKitFormBoundary7MA4YWxk--\r\n",
	    "1:a=1:1;1:x"),
	ROW(TYPE_B, "pre\r\namble --b\r\n--b\r\nA: 1\r\n\r\nx\r\n--b--\r\nepi\r\nlogue",
	    "1:a=1:1;1:x"),
	/* Header names in lower case and sorted; repeated ones in their order. */
	ROW(TYPE_B, "--b\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; "
		    "name=\"f\"\r\n\r\nx\r\n--b--\r\n",
	    "19:content-disposition=19:form-data; name=\"f\"12:content-type=10:text/plain;1:x"),
	ROW(TYPE_B, "--b\r\nB: 1\r\na:\r\nb: \t2 \r\n\r\n\r\n--b--", "1:a=0:1:b=1:11:b=1:2;0:"),
	/* Parts in their order. */
	ROW(TYPE_B, "--b\r\n\r\n2\r\n--b\r\n\r\n1\r\n--b--", ";1:2;1:1"),
	/* No headers; no content. */
	ROW(TYPE_B, "--b\r\n\r\nx\r\n--b--", ";1:x"),
	ROW(TYPE_B, "--b\r\n\r\n\r\n--b--", ";0:"),
	ROW(TYPE_B, "--b\r\nA: 1\r\n\r\n--b--", "1:a=1:1;0:"),
	ROW(TYPE_B, "--b\r\nA: 1\r\n\r\n\r\n--b--", "1:a=1:1;0:"),
	ROW(TYPE_B, "--b--", ""),
	/* Content with line ends, dashes and the boundary inside a line. */
	ROW(TYPE_B, "--b\r\n\r\n\r\nx\r\n\r\n--b--", ";5:\r\nx\r\n"),
	ROW(TYPE_B, "--b\r\n\r\nx--b\r\ny\r\n--\r\n-b\r\n--b--", ";15:x--b\r\ny\r\n--\r\n-b"),
	/* Transport padding. */
	ROW(TYPE_B, "--b \t\r\n\r\nx\r\n--b-- \r\n", ";1:x"),
	/* Not to be cut with certainty. */
	ROW(TYPE_B, "", NULL),
	ROW(TYPE_B, "x", NULL),
	ROW(TYPE_B, "--b", NULL),
	ROW(TYPE_B, "--b\r\n", NULL),
	ROW(TYPE_B, "--b\r\n\r\nx", NULL),
	ROW(TYPE_B, "--b\r\n\r\nx\r\n--b\r\n", NULL),
	ROW(TYPE_B, "--b\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\n\r\nx\r\n--bc\r\n\r\ny\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\n\r\nx\n--b--", NULL),
	ROW(TYPE_B, "--b\n\nx\n--b--\n", NULL),
	ROW(TYPE_B, "\n--b\r\n\r\nx\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\nA: 1\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\nA 1\r\n\r\nx\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\n: 1\r\n\r\nx\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\nA : 1\r\n\r\nx\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\nA: 1\r\n folded\r\n\r\nx\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\nA: 1\nB: 2\r\n\r\nx\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\nA: 1\rB\r\n\r\nx\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\n\r\nx\r\n--b-- x", NULL),
};

/* All with the body of one part, written for the boundary "b". */
#define BODY_B "--b\r\n\r\nx\r\n--b--"
static const struct row types[] = {
	ROW("multipart/form-data; boundary=\"b\"", BODY_B, ";1:x"),
	ROW("multipart/form-data;boundary=b", BODY_B, ";1:x"),
	ROW("Multipart/Mixed ; charset=utf-8 ; BOUNDARY=b ; x=\"a;boundary=c\"", BODY_B, ";1:x"),
	ROW("multipart/form-data; boundary=b;", BODY_B, ";1:x"),
	ROW("multipart/form-data; boundary=\"\\b\"", BODY_B, ";1:x"),
	ROW("multipart/form-data; boundary=\"a b:c\"", "--a b:c\r\n\r\nx\r\n--a b:c--", ";1:x"),
	ROW("multipart/form-data; boundary=a:c=/?", "--a:c=/?\r\n\r\nx\r\n--a:c=/?--", ";1:x"),
	ROW("multipart/form-data", BODY_B, NULL),
	ROW("", BODY_B, NULL),
	ROW("multipart/form-data; boundary=", BODY_B, NULL),
	ROW("multipart/form-data; boundary=\"\"", BODY_B, NULL),
	ROW("multipart/form-data; boundary=\"b", BODY_B, NULL),
	ROW("multipart/form-data; boundary=\"b\\", BODY_B, NULL),
	ROW("multipart/form-data; boundary=\"b \"", BODY_B, NULL),
	ROW("multipart/form-data; boundary=b; boundary=c", BODY_B, NULL),
	ROW("multipart/form-data; boundary = b", BODY_B, NULL),
	ROW("multipart/form-data; boundary", BODY_B, NULL),
	ROW("multipart/form-data; boundary=b c", BODY_B, NULL),
	ROW("multipart/form-data; xboundary=b", BODY_B, NULL),
	ROW("multipart/form-data; boundary=\"\x01\"", BODY_B, NULL),
};

/* The whole body: preamble, parts, '.', epilogue. */
static const struct row wholes[] = {
	ROW(TYPE_B, "--b\r\nA: 1\r\n\r\nx\r\n--b--\r\n", "0:1:a=1:1;1:x.0:"),
	ROW(TYPE_B, "--b\r\nA: 1\r\n\r\nx\r\n--b--", "0:1:a=1:1;1:x.0:"),
	ROW(TYPE_B, "--b--", "0:.0:"),
	ROW(TYPE_B, "pre\r\n--b\r\n\r\nx\r\n--b--\r\nepi\r\nlogue", "5:pre\r\n;1:x.10:epi\r\nlogue"),
	ROW(TYPE_B, "\r\n--b\r\n\r\nx\r\n--b--\r\n\r\n", "2:\r\n;1:x.2:\r\n"),
	/* Some readers go on behind the end. */
	ROW(TYPE_B, "--b\r\n\r\nx\r\n--b--\r\n--b\r\n\r\ny\r\n--b--",
	    "0:;1:x.15:--b\r\n\r\ny\r\n--b--"),
	/* Padding is no boundary to some. */
	ROW(TYPE_B, "--b \r\n\r\nx\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\n\r\nx\r\n--b\t\r\n\r\ny\r\n--b--", NULL),
	ROW(TYPE_B, "--b\r\n\r\nx\r\n--b-- \r\n", NULL),
	ROW(TYPE_B, "--b-- ", NULL),
	ROW(TYPE_B, "x", NULL),
	ROW(TYPE_B, "--b\r\n\r\nx", NULL),
	ROW("multipart/form-data", "--b--", NULL),
};

static void check(enum hpx_multipart_extent extent, const struct row *row)
{
	struct hpx_buffer out;

	hpx_buffer_init(&out, 1000);
	enum hpx_status got =
		hpx_multipart_canonical(extent, hpx_span_of(row->type), row->body, &out);
	if (got != (row->want ? HPX_OK : HPX_INVALID))
		fail_msg("%s <%.*s>: got %s", row->type, HPX_SPAN_ARG(row->body),
			 hpx_status_name(got));
	assert_span(hpx_buffer_span(&out), row->want ? row->want : "");
	hpx_buffer_done(&out);
}

static void every_body_has_its_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		check(HPX_MULTIPART_PARTS, &bodies[i]);
	for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++)
		check(HPX_MULTIPART_WHOLE, &wholes[i]);
}

static void the_boundary_is_found_in_every_spelling(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		check(HPX_MULTIPART_PARTS, &types[i]);
}

static void boundaries_and_headers_are_bounded(void **state)
{
	struct hpx_buffer out;
	struct hpx_buffer body;
	char type[128] = "multipart/mixed; boundary=";
	size_t at = strlen(type);
	(void)state;

	hpx_buffer_init(&out, 10000);
	hpx_buffer_init(&body, 10000);
	for (size_t n = HPX_MULTIPART_BOUNDARY_MAX; n <= HPX_MULTIPART_BOUNDARY_MAX + 1; n++) {
		memset(type + at, 'y', n);
		hpx_buffer_printf(&body, "--%s\r\n\r\nx\r\n--%s--", type + at, type + at);
		assert_status(hpx_multipart_canonical(HPX_MULTIPART_PARTS, hpx_span_of(type),
						      hpx_buffer_span(&body), &out),
			      n > HPX_MULTIPART_BOUNDARY_MAX ? HPX_INVALID : HPX_OK);
		body.len = 0;
	}
	for (size_t n = HPX_MULTIPART_HEADERS_MAX; n <= HPX_MULTIPART_HEADERS_MAX + 1; n++) {
		hpx_buffer_text(&body, "--b\r\n");
		for (size_t i = 0; i < n; i++)
			hpx_buffer_text(&body, "a: 1\r\n");
		hpx_buffer_text(&body, "\r\nx\r\n--b--");
		assert_status(hpx_multipart_canonical(HPX_MULTIPART_WHOLE, HPX_SPAN(TYPE_B),
						      hpx_buffer_span(&body), &out),
			      n > HPX_MULTIPART_HEADERS_MAX ? HPX_INVALID : HPX_OK);
		body.len = 0;
	}
	hpx_buffer_done(&body);
	hpx_buffer_done(&out);
}

/* `size` is that of the canonical form. */
static void cut_everywhere(enum hpx_multipart_extent extent, struct hpx_span sample, size_t size)
{
	struct hpx_buffer out;

	for (size_t n = 0; n < sample.len; n++) {
		char *prefix = malloc(n + 1);
		memcpy(prefix, sample.ptr, n);
		hpx_buffer_init(&out, 1000);
		assert_status(hpx_multipart_canonical(extent, HPX_SPAN(TYPE_B),
						      hpx_span(prefix, n), &out),
			      HPX_INVALID);
		assert_int_equal(out.len, 0);
		hpx_buffer_done(&out);
		free(prefix);
	}
	for (size_t max = 0; max <= size; max++) {
		hpx_buffer_init(&out, max);
		assert_status(hpx_multipart_canonical(extent, HPX_SPAN(TYPE_B), sample, &out),
			      max < size ? HPX_TOO_LARGE : HPX_OK);
		assert_int_equal(out.len, max < size ? 0 : size);
		hpx_buffer_done(&out);
	}
}

static void every_prefix_and_small_buffer_is_survived(void **state)
{
	(void)state;
	cut_everywhere(HPX_MULTIPART_PARTS,
		       HPX_SPAN("p\r\n--b \r\nA: 1\r\nb: 2\r\n\r\nx\r\n--b\r\n\r\n\r\n--b--"),
		       sizeof("1:a=1:11:b=1:2;1:x;0:") - 1);
	cut_everywhere(HPX_MULTIPART_WHOLE,
		       HPX_SPAN("p\r\n--b\r\nA: 1\r\nb: 2\r\n\r\nx\r\n--b\r\n\r\n\r\n--b--"),
		       sizeof("3:p\r\n1:a=1:11:b=1:2;1:x;0:.0:") - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_body_has_its_form),
		cmocka_unit_test(the_boundary_is_found_in_every_spelling),
		cmocka_unit_test(boundaries_and_headers_are_bounded),
		cmocka_unit_test(every_prefix_and_small_buffer_is_survived),
	};
	return cmocka_run_group_tests_name("multipart", tests, NULL, NULL);
}
