/* Shows the class of an operation, and where it is known from, for each class, version and
 * trap: one small description a row. */
#include "../test.h"

#include "coverage/coverage.h"

static struct hpx_coverage coverage;

/* Every operation as "METHOD PATH class where name required line". */
static void print_operations(struct hpx_buffer *out)
{
	for (size_t i = 0; i < coverage.operation_count; i++) {
		const struct hpx_covered_operation *operation = &coverage.operations[i];
		const struct hpx_declared_key *key = &operation->key;
		assert_status(hpx_buffer_printf(out, "%.*s %.*s %s", HPX_SPAN_ARG(operation->method),
						HPX_SPAN_ARG(operation->path),
						hpx_key_class_name(key->class)),
			      HPX_OK);
		if (key->where != HPX_WHERE_NONE)
			assert_status(hpx_buffer_printf(out, " %s %.*s%s",
							hpx_key_where_name(key->where),
							HPX_SPAN_ARG(key->name),
							key->required ? " required" : ""),
				      HPX_OK);
		assert_status(hpx_buffer_printf(out, " %u\n", key->place.line), HPX_OK);
	}
}

/* Findings as "rule METHOD PATH line". */
static void print_findings(struct hpx_buffer *out)
{
	for (size_t i = 0; i < coverage.finding_count; i++) {
		const struct hpx_coverage_finding *finding = &coverage.findings[i];
		assert_status(hpx_buffer_printf(out, "%s %.*s %.*s %u\n",
						hpx_finding_rule_name(finding->rule),
						HPX_SPAN_ARG(finding->method),
						HPX_SPAN_ARG(finding->path), finding->place.line),
			      HPX_OK);
	}
}

static void read_text(const char *path, const char *text)
{
	const struct hpx_document *document =
		hpx_library_add(&coverage.library, hpx_span_of(path), hpx_span_of(text));

	if (document == NULL)
		fail_msg("%s:%u: %s", path, coverage.library.errors[0].line,
			 coverage.library.errors[0].reason.ptr);
	hpx_coverage_read_api(&coverage, document);
}

static void expect(const char *title, void (*print)(struct hpx_buffer *), const char *want)
{
	struct hpx_buffer got;

	hpx_buffer_init(&got, 1 << 16);
	print(&got);
	if (!hpx_span_eq(hpx_buffer_span(&got), hpx_span_of(want)))
		fail_msg("%s: got\n%.*swant\n%s", title, HPX_SPAN_ARG(hpx_buffer_span(&got)), want);
	hpx_buffer_done(&got);
}

#define OAS "openapi: 3.0.3\npaths:\n  /p:\n    post:\n"
#define HEADER(name, more) \
	"      parameters:\n        - {in: header, name: " name ", schema: {type: string}" more "}\n"
#define BODY(schema) \
	"      requestBody: {content: {application/json: {schema: " schema "}}}\n"

static const struct {
	const char *title;
	const char *text;
	const char *want;
} rows[] = {
	{ "required header", OAS HEADER("Idempotency-Key", ", required: true"),
	  "POST /p required header Idempotency-Key required 6\n" },
	{ "optional header", OAS HEADER("X-Idempotency-Key", ""),
	  "POST /p optional header X-Idempotency-Key 6\n" },
	{ "another name", OAS HEADER("PayPal-Request-Id", ""),
	  "POST /p optional header PayPal-Request-Id 6\n" },
	{ "query", OAS "      parameters:\n        - {in: query, name: idempotency_key, required: true}\n",
	  "POST /p required query idempotency_key required 6\n" },
	{ "a parameter of the path is no key",
	  OAS "      parameters:\n        - {in: path, name: idempotency_key, required: true}\n",
	  "POST /p absent 4\n" },
	{ "body, required", OAS BODY("{required: [idempotency_key], properties: {idempotency_key: {}}}"),
	  "POST /p body body /idempotency_key required 5\n" },
	{ "body, optional", OAS BODY("{properties: {idempotency_key: {type: string}}}"),
	  "POST /p body body /idempotency_key 5\n" },
	{ "allOf: required in one part, the property in another",
	  OAS BODY("{allOf: [{required: [idempotencyKey]}, {properties: {idempotencyKey: {}}}]}"),
	  "POST /p body body /idempotencyKey required 5\n" },
	{ "oneOf: one alternative has it, so nothing is required",
	  OAS BODY("{oneOf: [{required: [idempotencyKey], properties: {idempotencyKey: {}}}, {}]}"),
	  "POST /p body body /idempotencyKey 5\n" },
	{ "inside a member", OAS BODY("{properties: {data: {properties: {idempotency_key: {}}}}}"),
	  "POST /p body body /data/idempotency_key 5\n" },
	{ "two levels down is no key",
	  OAS BODY("{properties: {a: {properties: {b: {properties: {idempotency_key: {}}}}}}}"),
	  "POST /p absent 4\n" },
	{ "inside a part of a multipart body",
	  OAS "      requestBody: {content: {multipart/form-data: {schema: "
	      "{properties: {request: {properties: {idempotency_key: {}}}}}}}}\n",
	  "POST /p weak body /request/idempotency_key 5\n" },
	{ "the header wins over an optional member",
	  OAS HEADER("Idempotency-Key", ", required: true") BODY("{properties: {idempotency_key: {}}}"),
	  "POST /p required header Idempotency-Key required 6\n" },
	{ "a required member wins over an optional header",
	  OAS HEADER("Idempotency-Key", "")
		  BODY("{required: [idempotency_key], properties: {idempotency_key: {}}}"),
	  "POST /p body body /idempotency_key required 7\n" },
	{ "weak: X-Request-Id", OAS HEADER("X-Request-Id", ", required: true"),
	  "POST /p weak header X-Request-Id required 6\n" },
	{ "weak: clientToken", OAS BODY("{properties: {clientToken: {type: string}}}"),
	  "POST /p weak body /clientToken 5\n" },
	{ "a key wins over a weak mark",
	  OAS "      parameters:\n        - {in: header, name: X-Request-Id, required: true}\n"
	      "        - {in: header, name: Idempotency-Key}\n",
	  "POST /p optional header Idempotency-Key 7\n" },
	{ "is_idempotent is no key", OAS BODY("{properties: {is_idempotent: {type: boolean}}}"),
	  "POST /p absent 4\n" },
	{ "a switch is no key", OAS BODY("{properties: {idempotency: {type: boolean}}}"),
	  "POST /p absent 4\n" },
	{ "a switch among the headers is no key",
	  OAS "      parameters:\n        - {in: header, name: Idempotency, schema: {type: boolean}}\n",
	  "POST /p absent 4\n" },
	{ "prose: a key", OAS "      description: >\n        Send an\n        Idempotency-Key.\n",
	  "POST /p prose 5\n" },
	{ "prose: of an answer",
	  OAS "      responses:\n        '409':\n          description: The idempotency key is in use.\n",
	  "POST /p prose 7\n" },
	{ "prose: it denies", OAS "      summary: This is not idempotent\n", "POST /p absent 4\n" },
	{ "prose about a weak mark stays weak",
	  OAS HEADER("X-Request-Id", "") "      summary: uses idempotency keys\n",
	  "POST /p weak header X-Request-Id 6\n" },
	{ "absent", OAS "      summary: pays\n", "POST /p absent 4\n" },
	{ "safe: If-Match is required", OAS HEADER("If-Match", ", required: true"), "POST /p safe 6\n" },
	{ "If-Match that may be left out is nothing", OAS HEADER("If-Match", ""), "POST /p absent 4\n" },
	{ "safe: the author says so", OAS "      x-hapax-safe: searches only\n", "POST /p safe 5\n" },
	{ "methods",
	  "openapi: 3.1.0\npaths:\n  /p:\n    get: {}\n    head: {}\n    put: {}\n    patch: {}\n"
	  "    delete: {}\n    options: {}\n    trace: {}\n",
	  "PATCH /p absent 7\nPUT /p safe 6\nDELETE /p safe 8\n" },
	{ "a PUT with a key",
	  "openapi: 3.1.0\npaths:\n  /p:\n    put:\n"
	  "      requestBody: {content: {application/json: {schema: {properties: {idempotency_key: {}}}}}}\n",
	  "PUT /p body body /idempotency_key 5\n" },
	{ "parameters of the path",
	  "openapi: 3.0.0\npaths:\n  /p:\n    parameters:\n      - {in: header, name: Idempotency-Key}\n"
	  "    post: {}\n    patch: {}\n",
	  "POST /p optional header Idempotency-Key 5\nPATCH /p optional header Idempotency-Key 5\n" },
	{ "an operation overrides the path's parameter",
	  "openapi: 3.0.0\npaths:\n  /p:\n    parameters:\n"
	  "      - {in: header, name: Idempotency-Key, required: true}\n    post:\n      parameters:\n"
	  "        - {in: header, name: Idempotency-Key}\n",
	  "POST /p optional header Idempotency-Key 8\n" },
	{ "$ref: parameter, body and schema",
	  "openapi: 3.0.0\npaths:\n  /a:\n    post:\n      parameters: [{$ref: '#/components/parameters/K'}]\n"
	  "  /b:\n    post:\n      requestBody: {$ref: '#/components/requestBodies/B'}\n"
	  "components:\n  parameters:\n    K: {in: header, name: Idempotency-Key, required: true}\n"
	  "  requestBodies:\n    B: {content: {application/json: {schema: {$ref: '#/components/schemas/S'}}}}\n"
	  "  schemas:\n    S:\n      allOf:\n        - $ref: '#/components/schemas/T'\n"
	  "        - $ref: '#/components/schemas/S'\n"
	  "    T:\n      required: [idempotency_key]\n      properties:\n        idempotency_key: {type: string}\n",
	  "POST /a required header Idempotency-Key required 11\n"
	  "POST /b body body /idempotency_key required 22\n" },
	{ "$ref of a whole path",
	  "openapi: 3.0.0\npaths:\n  /a: {$ref: '#/x/p'}\nx:\n  p:\n    post:\n      summary: x\n",
	  "POST /a absent 6\n" },
	{ "the path of the server",
	  "openapi: 3.0.0\nservers: [{url: 'https://api.example.com/v2/'}]\npaths:\n  /a:\n    post: {}\n"
	  "  /b:\n    servers: [{url: /other}]\n    post: {}\n  /c:\n    post:\n"
	  "      servers: [{url: 'https://{host}/x'}]\n",
	  "POST /v2/a absent 5\nPOST /other/b absent 8\nPOST /x/c absent 10\n" },
	{ "webhooks and callbacks are the other way round",
	  "openapi: 3.1.0\nwebhooks:\n  paid:\n    post: {}\npaths:\n  /a:\n    post:\n"
	  "      callbacks: {c: {'{$request.body#/u}': {post: {}}}}\n",
	  "POST /a absent 7\n" },
	{ "Swagger 2.0",
	  "swagger: '2.0'\nbasePath: /v1\nparameters:\n  K: {in: header, name: Idempotency-Key, type: string}\n"
	  "paths:\n  /a:\n    post:\n      parameters: [{$ref: '#/parameters/K'}]\n"
	  "  /b:\n    post:\n      parameters:\n        - {in: body, name: b, schema: {$ref: '#/definitions/B'}}\n"
	  "  /c:\n    post:\n      parameters:\n        - {in: formData, name: idempotency_key, type: string}\n"
	  "definitions:\n  B:\n    required: [idempotency_key]\n    properties:\n      idempotency_key: {type: string}\n",
	  "POST /v1/a optional header Idempotency-Key 4\n"
	  "POST /v1/b body body /idempotency_key required 21\n"
	  "POST /v1/c body body idempotency_key 16\n" },
	{ "an anchor",
	  "openapi: 3.0.0\nx-key: &key {in: header, name: Idempotency-Key}\npaths:\n  /a:\n    post:\n"
	  "      parameters:\n        - *key\n",
	  "POST /a optional header Idempotency-Key 7\n" },
	{ "nothing at all", "openapi: 3.1.0\ninfo: {title: x}\n", "" },
	{ "paths that are none", "openapi: 3.1.0\npaths:\n  x-note: {post: {}}\n  /a: 3\n  /b: {post: 3}\n",
	  "" },
};

static void test_classes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hpx_coverage_init(&coverage);
		read_text("api.yaml", rows[i].text);
		assert_int_equal(coverage.library.error_count, 0);
		expect(rows[i].title, print_operations, rows[i].want);
		hpx_coverage_done(&coverage);
	}
}

/* The same in JSON, with the line of the parameter. */
static void test_json(void **state)
{
	(void)state;
	hpx_coverage_init(&coverage);
	read_text("api.json", "{\"openapi\":\"3.0.0\",\"paths\":{\n\"/p\":{\n\"post\":{\"parameters\":[\n"
			      "{\"in\":\"header\",\"name\":\"Idempotency-Key\",\"required\":true}]}}}}");
	expect("JSON", print_operations, "POST /p required header Idempotency-Key required 4\n");
	hpx_coverage_done(&coverage);
}

/* A description in several files of a folder. */
static void test_other_file(void **state)
{
	(void)state;
	hpx_coverage_init(&coverage);
	assert_non_null(hpx_library_add(&coverage.library, HPX_SPAN("f/common.yaml"),
					HPX_SPAN("k: {$ref: 'sub/keys.yaml#/key'}\n")));
	assert_non_null(hpx_library_add(
		&coverage.library, HPX_SPAN("f/sub/keys.yaml"),
		HPX_SPAN("\nkey: {in: header, name: Idempotency-Key, required: true}\n")));
	read_text("f/api.yaml", OAS "      parameters: [{$ref: './common.yaml#/k'}]\n");
	expect("other file", print_operations,
	       "POST /p required header Idempotency-Key required 2\n");
	assert_span(coverage.operations[0].key.place.file, "f/sub/keys.yaml");
	hpx_coverage_done(&coverage);
}

static const struct {
	const char *title;
	const char *text;
	const char *want;
} judged[] = {
	{ "absent", OAS "      summary: pays\n", "key_absent POST /p 4\n" },
	{ "prose", OAS "      summary: takes an idempotency key\n", "key_in_prose POST /p 5\n" },
	{ "weak", OAS HEADER("X-Request-Id", ""), "key_weak POST /p 6\n" },
	{ "no gap", OAS HEADER("Idempotency-Key", ""), "" },
	{ "retries without a key", OAS "      x-speakeasy-retries: {strategy: backoff}\n",
	  "key_absent POST /p 4\nretries_without_key POST /p 5\n" },
	{ "retries for all", "x-speakeasy-retries: {strategy: backoff}\n" OAS "      summary: x\n",
	  "key_absent POST /p 5\nretries_without_key POST /p 1\n" },
	{ "retries that the operation turns off",
	  "x-speakeasy-retries: {strategy: backoff}\n" OAS "      x-speakeasy-retries: {strategy: none}\n",
	  "key_absent POST /p 5\n" },
	{ "retries with a key",
	  OAS "      x-speakeasy-retries: {strategy: backoff}\n" HEADER("Idempotency-Key", ""), "" },
	{ "a reference that leads nowhere", OAS "      parameters: [{$ref: '#/components/parameters/K'}]\n",
	  "reference_lost POST /p 5\nkey_absent POST /p 4\n" },
};

static void test_findings(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(judged) / sizeof(judged[0]); i++) {
		hpx_coverage_init(&coverage);
		read_text("api.yaml", judged[i].text);
		hpx_coverage_judge(&coverage);
		expect(judged[i].title, print_findings, judged[i].want);
		hpx_coverage_done(&coverage);
	}
}

static void test_no_description(void **state)
{
	static const struct {
		const char *text;
		unsigned line;
	} none[] = {
		{ "a: 1\n", 1 },
		{ "openapi: 4.0.0\npaths: {}\n", 1 },
		{ "swagger: 1.2\npaths: {}\n", 1 },
		{ "[]", 1 },
		{ "openapi: 3.0.0\npaths: []\n", 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		hpx_coverage_init(&coverage);
		read_text("api.yaml", none[i].text);
		assert_int_equal(coverage.library.error_count, 1);
		assert_int_equal(coverage.library.errors[0].line, none[i].line);
		hpx_coverage_done(&coverage);
	}
}

/* A ratchet: what is listed does not fail, what is listed and gone is stale, what is
 * neither critical nor listed does not fail either. */
static void test_ratchet(void **state)
{
	static const char *const critical[] = { "POST /pay*", NULL };
	static const char *const none[] = { NULL };
	struct hpx_buffer stale;
	size_t stale_count;
	unsigned line;

	(void)state;
	hpx_coverage_init(&coverage);
	hpx_buffer_init(&stale, 4096);
	read_text("api.yaml", "openapi: 3.0.0\npaths:\n  /pay:\n    post: {}\n    patch: {}\n  /note:\n    post: {}\n");
	hpx_coverage_judge(&coverage);
	hpx_coverage_mark_critical(&coverage, none);
	assert_int_equal(hpx_coverage_gaps(&coverage), 3);
	hpx_coverage_mark_critical(&coverage, critical);
	assert_int_equal(hpx_coverage_gaps(&coverage), 1);
	hpx_coverage_mark_critical(&coverage, (const char *const[]){ "*", NULL });
	assert_status(hpx_coverage_mark_known(
			      &coverage,
			      HPX_SPAN("# known\n\nPOST /pay key_absent\nPOST /gone key_absent\n"
				       "PATCH /pay key_weak\n"),
			      &stale, &stale_count, &line),
		      HPX_OK);
	assert_int_equal(hpx_coverage_gaps(&coverage), 2);
	assert_int_equal(stale_count, 2);
	assert_span(hpx_buffer_span(&stale), "POST /gone key_absent\nPATCH /pay key_weak\n");
	assert_status(hpx_coverage_mark_known(&coverage, HPX_SPAN("\nPOST /pay\n"), &stale,
					      &stale_count, &line),
		      HPX_INVALID);
	assert_int_equal(line, 2);
	hpx_buffer_done(&stale);
	hpx_coverage_done(&coverage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_other_file),
		cmocka_unit_test(test_findings),
		cmocka_unit_test(test_no_description),
		cmocka_unit_test(test_ratchet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
