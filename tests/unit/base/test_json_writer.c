/* Shows what the JSON writer prints, and that a document that does not fit is taken
 * back. */
#include "../test.h"

#include "base/json_writer.h"

static enum hpx_status print_all(struct hpx_buffer *out)
{
	struct hpx_json_writer json;

	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_text(&json, "text", "a\"\n\x01");
	hpx_json_put_string(&json, "empty", (struct hpx_span){ NULL, 0 });
	hpx_json_put_number(&json, "number", UINT64_MAX);
	hpx_json_begin_array(&json, "list");
	hpx_json_begin_array(&json, NULL);
	hpx_json_end_array(&json);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_bool(&json, "yes", true);
	hpx_json_put_bool(&json, "no", false);
	hpx_json_end_object(&json);
	hpx_json_put_number(&json, NULL, 0);
	hpx_json_end_array(&json);
	hpx_json_put_time(&json, "never", 0);
	hpx_json_put_time(&json, "at", 1001);
	hpx_json_put_seconds(&json, "whole", 2000);
	hpx_json_put_seconds(&json, "part", 1500);
	hpx_json_put_bytes(&json, "body", HPX_SPAN("\xc3\xa9"));
	hpx_json_put_bytes(&json, "body", HPX_SPAN("\xff\x00"));
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}

static const char all[] =
	"before "
	"{\"text\":\"a\\\"\\n\\u0001\",\"empty\":\"\",\"number\":18446744073709551615,"
	"\"list\":[[],{\"yes\":true,\"no\":false},0],"
	"\"never\":null,\"at\":\"1970-01-01T00:00:01.001Z\",\"whole\":2,\"part\":1.5,"
	"\"body\":\"\xc3\xa9\",\"body_base64\":\"/wA=\"}\n";

static void every_kind_of_value(void **state)
{
	struct hpx_buffer out;

	(void)state;
	hpx_buffer_init(&out, 1000);
	assert_status(hpx_buffer_text(&out, "before "), HPX_OK);
	assert_status(print_all(&out), HPX_OK);
	assert_span(hpx_buffer_span(&out), all);
	hpx_buffer_done(&out);
}

static void lines_where_asked(void **state)
{
	struct hpx_json_writer json;
	struct hpx_buffer out;

	(void)state;
	hpx_buffer_init(&out, 1000);
	hpx_json_writer_init(&json, &out);
	hpx_json_begin_array(&json, NULL);
	for (uint64_t i = 0; i < 2; i++) {
		hpx_json_break_line(&json);
		hpx_json_begin_array(&json, NULL);
		hpx_json_put_number(&json, NULL, i);
		hpx_json_put_number(&json, NULL, i);
		hpx_json_end_array(&json);
	}
	hpx_json_begin_array(&json, NULL);
	hpx_json_break_line(&json);
	hpx_json_end_array(&json);
	hpx_json_break_line(&json);
	hpx_json_end_array(&json);
	assert_status(hpx_json_writer_finish(&json), HPX_OK);
	assert_span(hpx_buffer_span(&out), "[\n[0,0],\n[1,1],[\n]\n]\n");
	hpx_buffer_done(&out);
}

static void indented_and_in_ascii(void **state)
{
	struct hpx_json_writer json;
	struct hpx_buffer out;

	(void)state;
	hpx_buffer_init(&out, 1000);
	hpx_json_writer_init(&json, &out);
	json.indent = 2;
	json.ascii = true;
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_text(&json, "text", "\"\xc3\xa9\xff\xf0\x9f\x98\x80\x1b");
	hpx_json_begin_array(&json, "list");
	hpx_json_put_number(&json, NULL, 1);
	hpx_json_begin_object(&json, NULL);
	hpx_json_end_object(&json);
	hpx_json_end_array(&json);
	hpx_json_end_object(&json);
	assert_status(hpx_json_writer_finish(&json), HPX_OK);
	assert_span(hpx_buffer_span(&out), "{\n  \"text\": \"\\\"\\u00e9\\ufffd\\ud83d\\ude00\\u001b\",\n"
					   "  \"list\": [\n    1,\n    {}\n  ]\n}\n");
	hpx_buffer_done(&out);
}

static void too_large_a_document_is_taken_back(void **state)
{
	(void)state;
	for (size_t max = sizeof("before ") - 1; max < sizeof(all) - 1; max++) {
		struct hpx_buffer out;

		hpx_buffer_init(&out, max);
		assert_status(hpx_buffer_text(&out, "before "), HPX_OK);
		assert_status(print_all(&out), HPX_TOO_LARGE);
		assert_span(hpx_buffer_span(&out), "before ");
		hpx_buffer_done(&out);
	}
}

static void strings_are_always_valid(void **state)
{
	struct hpx_json_writer json;
	struct hpx_buffer out;

	(void)state;
	hpx_buffer_init(&out, 1000);
	hpx_json_writer_init(&json, &out);
	hpx_json_put_string(&json, NULL, HPX_SPAN("a\"\\\n\x01\xc3\xa9\xff\xed\xa0\x80"));
	assert_status(hpx_json_writer_finish(&json), HPX_OK);
	assert_span(hpx_buffer_span(&out),
		    "\"a\\\"\\\\\\n\\u0001\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n");
	hpx_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_value),
		cmocka_unit_test(lines_where_asked),
		cmocka_unit_test(indented_and_in_ascii),
		cmocka_unit_test(too_large_a_document_is_taken_back),
		cmocka_unit_test(strings_are_always_valid),
	};
	return cmocka_run_group_tests_name("json_writer", tests, NULL, NULL);
}
