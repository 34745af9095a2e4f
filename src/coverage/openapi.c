/* Descriptions of APIs: OpenAPI 3.x and Swagger 2.0, from the document to the list of
 * state-changing operations, each with its class and where that is known from. */
#include "base/status.h"
#include "coverage/coverage.h"
#include "coverage/key_name.h"

/* The methods that change something, as descriptions write them. */
static const struct {
	const char *member;
	const char *method;
	bool idempotent;
} methods[] = {
	{ "post", "POST", false },
	{ "patch", "PATCH", false },
	{ "put", "PUT", true },
	{ "delete", "DELETE", true },
};

#define METHOD_COUNT (sizeof(methods) / sizeof(methods[0]))

/* One description while it is read. */
struct api_reader {
	struct hpx_coverage *coverage;
	struct hpx_value_at root;
	struct hpx_value_at path_item;
	struct hpx_value_at operation;
	bool swagger; /* 2.0 */
};

static struct hpx_source_place place_of(struct hpx_value_at value)
{
	return (struct hpx_source_place){ value.document->path, hpx_value_line(value) };
}

/* What a `$ref` leads to; a reference that leads nowhere is a finding. */
static struct hpx_value_at resolve(struct api_reader *r, struct hpx_covered_operation *operation,
				   struct hpx_value_at value)
{
	struct hpx_value_at target = hpx_library_resolve(&r->coverage->library, value);

	if (hpx_value_there(value) && !hpx_value_there(target))
		hpx_coverage_find(r->coverage, HPX_RULE_REFERENCE_LOST, operation, place_of(value),
				  "%.*s leads nowhere, so that what it says is not known",
				  HPX_SPAN_ARG(hpx_span_first(
					  hpx_value_member_text(value, "$ref"), 200)));
	return target;
}

/* ---- parameters ---- */

/* OpenAPI 3 has the type in a schema, Swagger 2.0 beside the name. */
static struct hpx_value_at type_of(struct hpx_value_at parameter)
{
	struct hpx_value_at schema = hpx_value_member(parameter, HPX_SPAN("schema"));

	return hpx_value_there(schema) ? schema : parameter;
}

static void take_parameter(struct api_reader *r, struct hpx_value_at parameter,
			   enum hpx_key_where where, enum hpx_key_mark mark,
			   struct hpx_declared_key *key)
{
	bool required = hpx_value_true(hpx_value_member(parameter, HPX_SPAN("required")));
	bool body = where == HPX_WHERE_BODY;
	struct hpx_declared_key given = {
		.class = mark == HPX_MARK_WEAK ? HPX_CLASS_WEAK :
			 body                  ? HPX_CLASS_BODY :
			 required              ? HPX_CLASS_REQUIRED :
						 HPX_CLASS_OPTIONAL,
		.where = where,
		.required = required,
		.name = hpx_value_member_text(parameter, "name"),
		.place = place_of(parameter),
		.reason = mark == HPX_MARK_WEAK ? HPX_SPAN("a name that may be a key, or only a trace") :
			  body                  ? HPX_SPAN("a field of the form") :
			  required              ? HPX_SPAN("a required parameter") :
						  HPX_SPAN("an optional parameter"),
	};

	hpx_schema_read_limits(r->coverage, type_of(parameter), &given);
	if (hpx_declared_key_better(&given, key))
		*key = given;
}

/* A PATCH that must say which version it changes is refused the second time. */
static bool is_precondition(struct hpx_value_at parameter)
{
	return hpx_span_ieq(hpx_value_member_text(parameter, "name"), HPX_SPAN("If-Match")) &&
	       hpx_value_true(hpx_value_member(parameter, HPX_SPAN("required")));
}

static void look_at_parameter(struct api_reader *r, struct hpx_value_at parameter,
			      struct hpx_declared_key *key)
{
	struct hpx_span in = hpx_value_member_text(parameter, "in");
	enum hpx_key_mark mark = hpx_key_mark_of(hpx_value_member_text(parameter, "name"));
	enum hpx_key_where where = hpx_span_eq(in, HPX_SPAN("header"))   ? HPX_WHERE_HEADER :
				   hpx_span_eq(in, HPX_SPAN("query"))    ? HPX_WHERE_QUERY :
				   hpx_span_eq(in, HPX_SPAN("formData")) ? HPX_WHERE_BODY :
									   HPX_WHERE_NONE;

	if (hpx_span_eq(in, HPX_SPAN("body")))
		hpx_schema_find_key(r->coverage, hpx_value_member(parameter, HPX_SPAN("schema")),
				    false, key);
	else if (where == HPX_WHERE_HEADER && is_precondition(parameter) &&
		 !hpx_key_class_covers(key->class))
		*key = (struct hpx_declared_key){ .class = HPX_CLASS_SAFE,
						  .place = place_of(parameter),
						  .reason = HPX_SPAN("If-Match is required") };
	else if (where != HPX_WHERE_NONE && mark != HPX_MARK_NONE &&
		 !hpx_schema_is_switch(r->coverage, type_of(parameter)))
		take_parameter(r, parameter, where, mark, key);
}

/* Whether an operation has a parameter of its own with that name and place. */
static bool is_overridden(struct api_reader *r, struct hpx_value_at parameter)
{
	struct hpx_value_at own = hpx_value_member(r->operation, HPX_SPAN("parameters"));

	for (struct hpx_value_at one = hpx_value_first(own); hpx_value_there(one);
	     one = hpx_value_next(one)) {
		struct hpx_value_at other = hpx_library_resolve(&r->coverage->library, one);
		if (hpx_span_eq(hpx_value_member_text(other, "name"),
				hpx_value_member_text(parameter, "name")) &&
		    hpx_span_eq(hpx_value_member_text(other, "in"),
				hpx_value_member_text(parameter, "in")))
			return true;
	}
	return false;
}

static void look_at_parameters(struct api_reader *r, struct hpx_covered_operation *operation,
			       struct hpx_value_at holder)
{
	struct hpx_value_at list = hpx_value_member(holder, HPX_SPAN("parameters"));
	bool shared = holder.node != r->operation.node;

	if (!hpx_value_is(list, HPX_JSON_ARRAY))
		return;
	for (struct hpx_value_at one = hpx_value_first(list); hpx_value_there(one);
	     one = hpx_value_next(one)) {
		struct hpx_value_at parameter = resolve(r, operation, one);
		if (hpx_value_is(parameter, HPX_JSON_OBJECT) &&
		    !(shared && is_overridden(r, parameter)))
			look_at_parameter(r, parameter, &operation->key);
	}
}

static void look_at_body(struct api_reader *r, struct hpx_covered_operation *operation)
{
	struct hpx_value_at body =
		resolve(r, operation, hpx_value_member(r->operation, HPX_SPAN("requestBody")));
	struct hpx_value_at content = hpx_value_member(body, HPX_SPAN("content"));

	if (!hpx_value_is(content, HPX_JSON_OBJECT))
		return;
	for (struct hpx_value_at one = hpx_value_first(content); hpx_value_there(one);
	     one = hpx_value_next(one))
		hpx_schema_find_key(r->coverage,
				    resolve(r, operation, hpx_value_member(one, HPX_SPAN("schema"))),
				    hpx_span_istarts(hpx_value_name(one), HPX_SPAN("multipart/")),
				    &operation->key);
}

/* ---- prose ---- */

static void look_at_text(struct hpx_value_at text, struct hpx_declared_key *key)
{
	enum hpx_key_prose prose = hpx_key_prose_of(hpx_value_text(text));
	struct hpx_declared_key given = {
		.class = HPX_CLASS_PROSE,
		.place = { { NULL, 0 }, 0 },
		.reason = prose == HPX_PROSE_KEY ? HPX_SPAN("the text speaks of a key") :
						   HPX_SPAN("the text says idempotent, and names no key"),
	};

	if (prose == HPX_PROSE_NONE || !hpx_declared_key_better(&given, key))
		return;
	given.place = place_of(text);
	*key = given;
}

static void look_at_prose(struct api_reader *r, struct hpx_declared_key *key)
{
	struct hpx_value_at responses = hpx_value_member(r->operation, HPX_SPAN("responses"));

	look_at_text(hpx_value_member(r->operation, HPX_SPAN("description")), key);
	look_at_text(hpx_value_member(r->operation, HPX_SPAN("summary")), key);
	look_at_text(hpx_value_follow(r->operation, HPX_SPAN("/requestBody/description")), key);
	look_at_text(hpx_value_member(r->path_item, HPX_SPAN("description")), key);
	for (struct hpx_value_at one = hpx_value_first(responses); hpx_value_there(one);
	     one = hpx_value_next(one))
		look_at_text(hpx_value_member(hpx_library_resolve(&r->coverage->library, one),
					      HPX_SPAN("description")),
			     key);
}

/* ---- paths ---- */

/* The path of a server's URL, without the slash at its end; "" where it has none, or
 * where it is not known before variables are. */
static struct hpx_span path_of_url(struct hpx_span url)
{
	static const struct hpx_span scheme = HPX_SPAN_INIT("://");

	for (size_t i = 0; i + scheme.len <= url.len; i++)
		if (hpx_span_starts(hpx_span_skip(url, i), scheme)) {
			url = hpx_span_skip(url, i + scheme.len);
			url = hpx_span_skip(url, hpx_span_index(url, '/'));
			break;
		}
	url = hpx_span_first(url, hpx_span_index(url, '?'));
	while (url.len > 0 && url.ptr[url.len - 1] == '/')
		url.len--;
	if (url.len == 0 || url.ptr[0] != '/' || hpx_span_index(url, '{') < url.len)
		return HPX_SPAN("");
	return url;
}

static struct hpx_span base_path(struct api_reader *r)
{
	struct hpx_value_at holders[] = { r->operation, r->path_item, r->root };

	if (r->swagger)
		return path_of_url(hpx_value_member_text(r->root, "basePath"));
	for (size_t i = 0; i < 3; i++) {
		struct hpx_value_at server =
			hpx_value_first(hpx_value_member(holders[i], HPX_SPAN("servers")));
		if (hpx_value_there(server))
			return path_of_url(hpx_value_member_text(server, "url"));
	}
	return HPX_SPAN("");
}

static struct hpx_source_place retries_of(struct api_reader *r)
{
	static const struct hpx_span name = HPX_SPAN_INIT("x-speakeasy-retries");
	struct hpx_value_at retries = hpx_value_member(r->operation, name);

	if (!hpx_value_there(retries))
		retries = hpx_value_member(r->root, name);
	if (!hpx_value_there(retries) ||
	    hpx_span_eq(hpx_value_member_text(retries, "strategy"), HPX_SPAN("none")))
		return (struct hpx_source_place){ { NULL, 0 }, 0 };
	return place_of(retries);
}

static bool says_safe(struct api_reader *r, struct hpx_declared_key *key)
{
	struct hpx_value_at safe = hpx_value_member(r->operation, HPX_SPAN("x-hapax-safe"));
	struct hpx_span text = hpx_value_text(safe);

	if (text.len == 0 || hpx_span_eq(text, HPX_SPAN("false")))
		return false;
	*key = (struct hpx_declared_key){
		.class = HPX_CLASS_SAFE,
		.place = place_of(safe),
		.reason = hpx_value_true(safe) ? HPX_SPAN("x-hapax-safe") : text,
	};
	return true;
}

static void classify(struct api_reader *r, struct hpx_covered_operation *operation, bool idempotent)
{
	look_at_parameters(r, operation, r->path_item);
	look_at_parameters(r, operation, r->operation);
	look_at_body(r, operation);
	if (hpx_key_class_covers(operation->key.class) || says_safe(r, &operation->key))
		return;
	if (idempotent)
		operation->key = (struct hpx_declared_key){
			.class = HPX_CLASS_SAFE,
			.place = operation->place,
			.reason = HPX_SPAN("the method is idempotent"),
		};
	else
		look_at_prose(r, &operation->key);
	if (operation->key.class == HPX_CLASS_ABSENT) {
		operation->key.place = operation->place;
		operation->key.reason = HPX_SPAN("no key is declared");
	}
}

static void read_operation(struct api_reader *r, struct hpx_span path, size_t method)
{
	struct hpx_covered_operation *operation = hpx_coverage_add(r->coverage);
	struct hpx_span parts[] = { base_path(r), path };

	if (operation == NULL)
		return;
	operation->declared = true;
	operation->method = hpx_span_of(methods[method].method);
	operation->path = hpx_arena_join(&r->coverage->arena, parts, 2);
	if (operation->path.ptr == NULL) {
		operation->path = path;
		r->coverage->full = true;
	}
	operation->place = place_of(r->operation);
	operation->retries = retries_of(r);
	struct hpx_span tag =
		hpx_value_text(hpx_value_first(hpx_value_member(r->operation, HPX_SPAN("tags"))));
	if (tag.ptr != NULL)
		operation->tag = tag;
	classify(r, operation, methods[method].idempotent);
}

static void read_path(struct api_reader *r, struct hpx_value_at path)
{
	struct hpx_span name = hpx_value_name(path);

	r->path_item = hpx_library_resolve(&r->coverage->library, path);
	if (name.len == 0 || name.ptr[0] != '/')
		return;
	for (size_t i = 0; i < METHOD_COUNT; i++) {
		r->operation = hpx_value_member(r->path_item, hpx_span_of(methods[i].member));
		if (hpx_value_is(r->operation, HPX_JSON_OBJECT))
			read_operation(r, name, i);
	}
}

/* Swagger 2.0, or any OpenAPI 3. */
static bool knows_version(struct api_reader *r)
{
	struct hpx_span openapi = hpx_value_member_text(r->root, "openapi");
	struct hpx_span swagger = hpx_value_member_text(r->root, "swagger");

	r->swagger = hpx_span_eq(swagger, HPX_SPAN("2.0"));
	return r->swagger || hpx_span_starts(openapi, HPX_SPAN("3."));
}

void hpx_coverage_read_api(struct hpx_coverage *coverage, const struct hpx_document *document)
{
	struct api_reader r = { .coverage = coverage, .root = hpx_document_root(document) };
	struct hpx_value_at paths = hpx_value_member(r.root, HPX_SPAN("paths"));

	if (!knows_version(&r)) {
		hpx_library_error(&coverage->library, document->path, 1,
				  "is no description of an API: neither `openapi: 3.…` nor "
				  "`swagger: \"2.0\"` is there");
		return;
	}
	if (hpx_value_there(paths) && !hpx_value_is(paths, HPX_JSON_OBJECT)) {
		hpx_library_error(&coverage->library, document->path, hpx_value_line(paths),
				  "`paths` is no object");
		return;
	}
	for (struct hpx_value_at path = hpx_value_first(paths); hpx_value_there(path);
	     path = hpx_value_next(path))
		read_path(&r, path);
}
