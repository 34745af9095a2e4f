/* Routes: from a pattern to segments, which of them are more specific, and
 * the one that a request belongs to. Matching looks at whole segments of the
 * normalised path, so that no spelling of a path slips past its route. */
#include <stdlib.h>

#include "base/status.h"
#include "http/field.h"
#include "http/method.h"
#include "http/target.h"
#include "settings/settings.h"

/* More than any API's paths have; bounds the work of a match. */
#define SEGMENTS_MAX 64

static enum hpx_status read_method(struct hpx_span name, struct hpx_arena *arena,
				   struct hpx_route *route, const char **ret_reason)
{
	const struct hpx_method *known = hpx_method_find(name);

	route->method = (struct hpx_span){ NULL, 0 };
	if (hpx_span_eq(name, HPX_SPAN("*")))
		return HPX_OK;
	*ret_reason = NULL;
	if (!hpx_is_token(name))
		*ret_reason = "begins with a method or *, then a space: POST /payments";
	else if (known != NULL && !hpx_span_eq(known->name, name)) {
		struct hpx_span text = hpx_arena_printf(
			arena, "has a method in another spelling; it is written %.*s",
			HPX_SPAN_ARG(known->name));
		if (text.ptr == NULL)
			return HPX_NOMEM;
		*ret_reason = text.ptr;
	} else if (known != NULL && known->kind == HPX_METHOD_SAFE)
		*ret_reason = "names a method that is never guarded (GET, HEAD, OPTIONS, TRACE, "
			      "PROPFIND, REPORT, SEARCH, QUERY); such requests pass without a route";
	else if (known != NULL && known->kind == HPX_METHOD_TUNNEL)
		*ret_reason = "names CONNECT, which is always refused";
	if (*ret_reason != NULL)
		return HPX_INVALID;
	route->method = name;
	return HPX_OK;
}

/* The name in a Host field's value: without its port, and without the dot
 * that may end it. */
static struct hpx_span host_name(struct hpx_span host)
{
	bool literal = host.len > 0 && host.ptr[0] == '[';
	size_t end = literal ? hpx_span_index(host, ']') + 1 : hpx_span_index(host, ':');

	host = hpx_span_first(host, end);
	if (!literal && host.len > 1 && host.ptr[host.len - 1] == '.')
		host.len--;
	return host;
}

static enum hpx_status read_host(struct hpx_span host, struct hpx_arena *arena,
				 struct hpx_route *route, const char **ret_reason)
{
	route->host = (struct hpx_span){ NULL, 0 };
	if (host.len == 0)
		return HPX_OK;
	if (!hpx_host_valid(host)) {
		*ret_reason =
			"has a host that is not valid, or a path that does not begin with /";
		return HPX_INVALID;
	}
	struct hpx_span name = host_name(host);
	if (name.len < host.len && host.ptr[host.len - 1] != '.') {
		*ret_reason = "has a host with a port; ports do not matter, leave it out";
		return HPX_INVALID;
	}
	route->host = hpx_arena_lower(arena, name);
	return route->host.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static bool is_name(struct hpx_span text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && c != '_' && c != '-')
			return false;
	}
	return text.len > 0;
}

/* A literal takes the normal form that a request's path will have. */
static enum hpx_status read_literal(struct hpx_span text, struct hpx_arena *arena,
				    struct hpx_segment *segment, const char **ret_reason)
{
	struct hpx_span path = hpx_arena_printf(arena, "/%.*s", HPX_SPAN_ARG(text));
	struct hpx_target target;

	if (path.ptr == NULL)
		return HPX_NOMEM;
	enum hpx_status status =
		hpx_target_parse(HPX_SPAN("POST"), path, arena, &target, ret_reason);
	if (status != HPX_OK)
		return status;
	if (target.path.len == 1 && text.len > 0) {
		*ret_reason = "has a . or .. segment; write the path that they lead to";
		return HPX_INVALID;
	}
	*segment =
		(struct hpx_segment){ HPX_SEGMENT_LITERAL, hpx_span_skip(target.path, 1) };
	return HPX_OK;
}

static enum hpx_status read_segment(struct hpx_span text, bool last,
				    struct hpx_arena *arena, struct hpx_segment *segment,
				    const char **ret_reason)
{
	if (last && hpx_span_eq(text, HPX_SPAN("*"))) {
		*segment = (struct hpx_segment){ HPX_SEGMENT_REST, text };
		return HPX_OK;
	}
	if (text.len > 2 && text.ptr[0] == '{' && text.ptr[text.len - 1] == '}') {
		struct hpx_span name = hpx_span(text.ptr + 1, text.len - 2);
		if (is_name(name)) {
			*segment = (struct hpx_segment){ HPX_SEGMENT_ANY, name };
			return HPX_OK;
		}
	}
	*ret_reason = NULL;
	if (hpx_span_index(text, '{') < text.len || hpx_span_index(text, '}') < text.len)
		*ret_reason = "has a { or } that is not a whole segment like {id}";
	else if (hpx_span_index(text, '*') < text.len)
		*ret_reason =
			"has a * that is not the whole last segment; one segment is {x}";
	else if (hpx_span_index(text, '?') < text.len ||
		 hpx_span_index(text, '#') < text.len)
		*ret_reason = "has a query or a fragment; routes match the path only";
	if (*ret_reason != NULL)
		return HPX_INVALID;
	return read_literal(text, arena, segment, ret_reason);
}

static enum hpx_status read_path(struct hpx_span path, struct hpx_arena *arena,
				 struct hpx_route *route, const char **ret_reason)
{
	struct hpx_span rest = hpx_span_skip(path, 1);
	struct hpx_span text;
	size_t count = 1;

	for (size_t i = 0; i < rest.len; i++)
		count += rest.ptr[i] == '/';
	if (count > SEGMENTS_MAX) {
		*ret_reason = "has more than 64 segments";
		return HPX_INVALID;
	}
	struct hpx_segment *segments = hpx_arena_zalloc(arena, count, sizeof(*segments));
	if (segments == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; hpx_span_split(&rest, '/', &text); i++) {
		enum hpx_status status =
			read_segment(text, i + 1 == count, arena, &segments[i], ret_reason);
		if (status != HPX_OK)
			return status;
	}
	route->segments = segments;
	route->segment_count = count;
	return HPX_OK;
}

enum hpx_status hpx_route_parse(struct hpx_span text, struct hpx_arena *arena,
				struct hpx_route *route, const char **ret_reason)
{
	size_t space = hpx_span_index(text, ' ');
	struct hpx_route parsed = *route;

	parsed.pattern = hpx_arena_dup(arena, text);
	if (parsed.pattern.ptr == NULL)
		return HPX_NOMEM;
	enum hpx_status status =
		read_method(hpx_span_first(parsed.pattern, space), arena, &parsed, ret_reason);
	struct hpx_span rest = hpx_span_trim(hpx_span_skip(parsed.pattern, space));
	size_t slash = hpx_span_index(rest, '/');
	if (status == HPX_OK && slash == rest.len) {
		*ret_reason = "has no path that begins with /: POST /payments";
		status = HPX_INVALID;
	}
	if (status == HPX_OK)
		status = read_host(hpx_span_first(rest, slash), arena, &parsed, ret_reason);
	if (status == HPX_OK)
		status = read_path(hpx_span_skip(rest, slash), arena, &parsed, ret_reason);
	if (status == HPX_OK)
		*route = parsed;
	return status;
}

bool hpx_route_same(const struct hpx_route *a, const struct hpx_route *b)
{
	if (a->segment_count != b->segment_count || !hpx_span_eq(a->method, b->method) ||
	    !hpx_span_eq(a->host, b->host))
		return false;
	for (size_t i = 0; i < a->segment_count; i++) {
		if (a->segments[i].kind != b->segments[i].kind)
			return false;
		if (a->segments[i].kind == HPX_SEGMENT_LITERAL &&
		    !hpx_span_eq(a->segments[i].text, b->segments[i].text))
			return false;
	}
	return true;
}

/* Negative where `a` is the more specific: segment by segment a literal
 * before {x} before the rest, then a host before none, a method before any. */
static int compare(const struct hpx_route *a, const struct hpx_route *b)
{
	for (size_t i = 0; i < a->segment_count && i < b->segment_count; i++)
		if (a->segments[i].kind != b->segments[i].kind)
			return (int)b->segments[i].kind - (int)a->segments[i].kind;
	if (a->segment_count != b->segment_count)
		return a->segment_count > b->segment_count ? -1 : 1;
	if ((a->host.ptr != NULL) != (b->host.ptr != NULL))
		return a->host.ptr != NULL ? -1 : 1;
	if ((a->method.ptr != NULL) != (b->method.ptr != NULL))
		return a->method.ptr != NULL ? -1 : 1;
	return 0;
}

static int compare_stably(const void *a, const void *b)
{
	const struct hpx_route *left = a;
	const struct hpx_route *right = b;
	int order = compare(left, right);

	if (order != 0)
		return order;
	return left->number < right->number ? -1 : left->number > right->number;
}

size_t hpx_route_sort(struct hpx_route *routes, size_t count)
{
	if (count == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		routes[i].number = (unsigned)i;
	qsort(routes, count, sizeof(*routes), compare_stably);
	for (size_t i = 0; i < count; i++) {
		routes[i].number = (unsigned)i;
		HPX_ASSERT(i == 0 || compare(&routes[i - 1], &routes[i]) <= 0);
	}
	for (size_t i = 1; i < count; i++)
		for (size_t j = i; j-- > 0 && compare(&routes[j], &routes[i]) == 0;)
			if (hpx_route_same(&routes[j], &routes[i]))
				return i;
	return count;
}

static bool path_matches(const struct hpx_route *route, struct hpx_span path)
{
	struct hpx_span rest = hpx_span_skip(path, 1);
	struct hpx_span text;

	for (size_t i = 0; i < route->segment_count; i++) {
		const struct hpx_segment *segment = &route->segments[i];
		if (!hpx_span_split(&rest, '/', &text))
			return false;
		if (segment->kind == HPX_SEGMENT_REST)
			return true;
		if (segment->kind == HPX_SEGMENT_ANY ? text.len == 0 : !hpx_span_eq(segment->text, text))
			return false;
	}
	return rest.ptr == NULL;
}

const struct hpx_route *hpx_route_match(const struct hpx_settings *settings,
					struct hpx_span method, struct hpx_span host,
					struct hpx_span path)
{
	struct hpx_span name = host_name(host);

	/* OPTIONS * has no path. */
	if (path.len == 0 || path.ptr[0] != '/')
		return &settings->fallback;
	for (size_t i = 0; i < settings->route_count; i++) {
		const struct hpx_route *route = &settings->routes[i];
		if (route->method.ptr != NULL && !hpx_span_eq(route->method, method))
			continue;
		if (route->host.ptr != NULL && !hpx_span_ieq(route->host, name))
			continue;
		if (path_matches(route, path))
			return route;
	}
	return &settings->fallback;
}

struct hpx_span hpx_route_method_meant(const struct hpx_settings *settings,
				       struct hpx_span method)
{
	const struct hpx_method *known = hpx_method_find(method);
	struct hpx_span other = method;

	if (known != NULL)
		return known->name;
	for (size_t i = 0; i < settings->route_count; i++) {
		struct hpx_span named = settings->routes[i].method;
		if (named.ptr != NULL && hpx_span_eq(named, method))
			return method;
		if (named.ptr != NULL && hpx_span_ieq(named, method))
			other = named;
	}
	return other;
}

bool hpx_route_guards(const struct hpx_route *route, struct hpx_span method)
{
	enum hpx_method_kind kind = hpx_method_kind(method);

	if (route->policy.key == HPX_KEY_IGNORE)
		return false;
	if (kind == HPX_METHOD_NEITHER)
		return true;
	return kind == HPX_METHOD_IDEMPOTENT && route->method.ptr != NULL &&
	       hpx_span_eq(route->method, method);
}

bool hpx_route_key_in_body(const struct hpx_route *route)
{
	HPX_ASSERT(route->key_from.count <= HPX_KEY_SOURCES_MAX);
	for (size_t i = 0; i < route->key_from.count; i++)
		if (route->key_from.at[i].place == HPX_KEY_IN_BODY)
			return true;
	return false;
}
