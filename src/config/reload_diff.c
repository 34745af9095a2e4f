/* What a reload cannot change: options whose row says so, targets and webhooks
 * as a whole, the secrets that workers send, and scopes. A scope is part of an
 * operation's id: if it moved while hapax runs, the retry of an executed request
 * would be another operation and run again. */
#include <stdio.h>

#include "base/status.h"
#include "config/config.h"
#include "config/option_parse.h"

/* ---- whether an option has the same value ---- */

/* The pointer of a list, and how many elements it has. */
static const void *list_of(const struct hpx_option *option, const void *base,
			   size_t *ret_count)
{
	const void *list;

	memcpy(&list, (const char *)base + option->offset, sizeof(list));
	memcpy(ret_count, (const char *)base + option->companion_offset, sizeof(*ret_count));
	return list;
}

static bool same_list(const struct hpx_option *option, const void *a, const void *b)
{
	size_t count;
	size_t other_count;
	const void *list = list_of(option, a, &count);
	const void *other = list_of(option, b, &other_count);

	if (count != other_count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (option->kind == HPX_OPTION_NETWORKS) {
			const struct hpx_network *left =
				(const struct hpx_network *)list + i;
			const struct hpx_network *right =
				(const struct hpx_network *)other + i;
			if (left->prefix_bits != right->prefix_bits ||
			    memcmp(left->bytes, right->bytes, sizeof(left->bytes)) != 0)
				return false;
		} else if (!hpx_span_eq(((const struct hpx_span *)list)[i],
					((const struct hpx_span *)other)[i])) {
			return false;
		}
	}
	return true;
}

static bool same_address(const struct hpx_option *option, const void *a, const void *b)
{
	const struct hpx_address *left = hpx_option_const_member(option, a);
	const struct hpx_address *right = hpx_option_const_member(option, b);

	if (option->off &&
	    *((const bool *)a + option->companion_offset) != *((const bool *)b + option->companion_offset))
		return false;
	return strcmp(left->text, right->text) == 0;
}

static bool same_text(const struct hpx_span *a, const struct hpx_span *b)
{
	return hpx_span_eq(*a, *b);
}

static bool same_string(const struct hpx_option *option, const void *a, const void *b)
{
	const char *left;
	const char *right;

	memcpy(&left, (const char *)a + option->offset, sizeof(left));
	memcpy(&right, (const char *)b + option->offset, sizeof(right));
	return left == NULL || right == NULL ? left == right : strcmp(left, right) == 0;
}

static bool same_signs(const struct hpx_option *option, const void *a, const void *b)
{
	const struct hpx_ruling_signs *left =
		hpx_option_const_member(option, a);
	const struct hpx_ruling_signs *right =
		hpx_option_const_member(option, b);

	if (left->status_count != right->status_count ||
	    left->value_count != right->value_count)
		return false;
	for (size_t i = 0; i < left->status_count; i++)
		if (left->statuses[i] != right->statuses[i])
			return false;
	for (size_t i = 0; i < left->value_count; i++)
		if (!hpx_span_eq(left->values[i], right->values[i]))
			return false;
	return true;
}

bool hpx_value_same(const struct hpx_option *option, const void *a, const void *b)
{
	switch (option->kind) {
	case HPX_OPTION_TEXT:
	case HPX_OPTION_TOKEN:
	case HPX_OPTION_NAME:
	case HPX_OPTION_PATTERN:
	case HPX_OPTION_STORE:
	case HPX_OPTION_VARIABLE:
	case HPX_OPTION_PROBE:
	case HPX_OPTION_POINTER:
		return same_text(hpx_option_const_member(option, a),
				 hpx_option_const_member(option, b));
	case HPX_OPTION_ADDRESS:
	case HPX_OPTION_UPSTREAM:
		return same_address(option, a, b);
	case HPX_OPTION_URL:
	case HPX_OPTION_FILE:
	case HPX_OPTION_CUSTOM:
		return same_string(option, a, b);
	case HPX_OPTION_MATCHES:
	case HPX_OPTION_WORDS:
		return same_signs(option, a, b);
	case HPX_OPTION_HEADERS:
	case HPX_OPTION_POINTERS:
	case HPX_OPTION_FIELDS:
	case HPX_OPTION_NETWORKS:
	case HPX_OPTION_ORIGINS:
	case HPX_OPTION_TEXTS:
		return same_list(option, a, b);
	case HPX_OPTION_RATE:
		return memcmp(hpx_option_const_member(option, a), hpx_option_const_member(option, b),
			      sizeof(struct hpx_rate)) == 0;
	default:
		return hpx_option_get_number(option, a) == hpx_option_get_number(option, b);
	}
}

/* ---- the names of what differs ---- */

static enum hpx_status add_name(struct hpx_buffer *out, const char *option,
				struct hpx_span pattern)
{
	enum hpx_status status = out->len > 0 ? hpx_buffer_text(out, ", ") : HPX_OK;

	if (status == HPX_OK)
		status = hpx_buffer_text(out, option);
	if (status == HPX_OK && pattern.len > 0)
		status = hpx_buffer_printf(out, " (%.*s)", HPX_SPAN_ARG(pattern));
	return status;
}

/* Whether some request could belong to either: each segment fits the other. */
static bool overlap(const struct hpx_route *a, const struct hpx_route *b)
{
	if (a->method.ptr != NULL && b->method.ptr != NULL &&
	    !hpx_span_eq(a->method, b->method))
		return false;
	if (a->host.ptr != NULL && b->host.ptr != NULL && !hpx_span_eq(a->host, b->host))
		return false;
	for (size_t i = 0; i < a->segment_count && i < b->segment_count; i++) {
		const struct hpx_segment *left = &a->segments[i];
		const struct hpx_segment *right = &b->segments[i];
		if (left->kind == HPX_SEGMENT_REST || right->kind == HPX_SEGMENT_REST)
			return true;
		if (left->kind == HPX_SEGMENT_LITERAL &&
		    right->kind == HPX_SEGMENT_LITERAL &&
		    !hpx_span_eq(left->text, right->text))
			return false;
	}
	return a->segment_count == b->segment_count;
}

static bool scope_differs(const struct hpx_route *a, const struct hpx_route *b)
{
	if (a->policy.scope != b->policy.scope)
		return true;
	/* The pattern is the scope. */
	return a->policy.scope == HPX_SCOPE_ROUTE && !hpx_span_eq(a->pattern, b->pattern);
}

static const struct hpx_route *find_same(const struct hpx_settings *settings,
					 const struct hpx_route *route)
{
	for (size_t i = 0; i < settings->route_count; i++)
		if (hpx_route_same(&settings->routes[i], route))
			return &settings->routes[i];
	return NULL;
}

/* Whether requests of the route have another scope in the other settings. Where
 * those have no such route, its requests belong there to another route or to
 * `defaults`. */
static bool moves_scope(const struct hpx_route *route, const struct hpx_settings *other)
{
	const struct hpx_route *same = find_same(other, route);

	if (same != NULL)
		return scope_differs(route, same);
	for (size_t i = 0; i < other->route_count; i++)
		if (overlap(route, &other->routes[i]) &&
		    scope_differs(route, &other->routes[i]))
			return true;
	return scope_differs(route, &other->fallback);
}

static enum hpx_status name_moved_scopes(const struct hpx_settings *settings,
					 const struct hpx_settings *other, bool only_new,
					 struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < settings->route_count && status == HPX_OK; i++) {
		const struct hpx_route *route = &settings->routes[i];
		if (only_new && find_same(other, route) != NULL)
			continue;
		if (moves_scope(route, other))
			status = add_name(out, "routes[].scope", route->pattern);
	}
	return status;
}

/* Options of one place that differ and cannot change while hapax runs. Scopes
 * have their own rules, above. */
static enum hpx_status name_options(unsigned place, const void *before,
				    const void *after, const char *prefix,
				    struct hpx_span of, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;
	char path[HPX_OPTION_PATH_SIZE];

	HPX_ASSERT(place < HPX_PLACE_COUNT);
	for (size_t i = 0; i < hpx_config_options.count && status == HPX_OK; i++) {
		const struct hpx_option *option = &hpx_config_options.rows[i];
		if (option->place != place || option->reloadable ||
		    hpx_value_same(option, before, after) ||
		    (place == HPX_PLACE_POLICY && strcmp(option->name, "scope") == 0))
			continue;
		snprintf(path, sizeof(path), "%s%s", prefix, option->name);
		status = add_name(out, path, of);
	}
	return status;
}

/* How a route delivers and reconciles cannot change: workers keep the settings that
 * they began with. A route that only one of the two has is compared with the
 * `defaults` of the other. */
static enum hpx_status name_policies(const struct hpx_route *before,
				     const struct hpx_route *after, const char *prefix,
				     struct hpx_span pattern, struct hpx_buffer *out)
{
	enum hpx_status status =
		name_options(HPX_PLACE_POLICY, before, after, prefix, pattern, out);
	char path[HPX_OPTION_PATH_SIZE];

	snprintf(path, sizeof(path), "%sreconcile.probe.credentials", prefix);
	if (status == HPX_OK && !hpx_span_eq(before->reconcile.probe.caller.headers,
					     after->reconcile.probe.caller.headers))
		status = add_name(out, path, pattern);
	return status;
}

static enum hpx_status name_route_policies(const struct hpx_settings *before,
					   const struct hpx_settings *after,
					   struct hpx_buffer *out)
{
	enum hpx_status status = name_policies(&before->fallback, &after->fallback,
					       "defaults.", HPX_SPAN(""), out);

	for (size_t i = 0; i < after->route_count && status == HPX_OK; i++) {
		const struct hpx_route *route = &after->routes[i];
		const struct hpx_route *old = find_same(before, route);
		status = name_policies(old != NULL ? old : &before->fallback, route,
				       "routes[].", route->pattern, out);
	}
	for (size_t i = 0; i < before->route_count && status == HPX_OK; i++) {
		const struct hpx_route *route = &before->routes[i];
		if (find_same(after, route) == NULL)
			status = name_policies(route, &after->fallback, "routes[].",
					       route->pattern, out);
	}
	return status;
}

static const struct hpx_webhook *find_webhook(const struct hpx_settings *settings,
					      struct hpx_span name)
{
	for (size_t i = 0; i < settings->webhook_count; i++)
		if (hpx_span_eq(settings->webhooks[i].name, name))
			return &settings->webhooks[i];
	return NULL;
}

/* A target or webhook that only one of the two settings has, or its options that
 * differ. */
static enum hpx_status name_service(unsigned place, const char *map,
				    struct hpx_span name, const void *before,
				    const void *after, struct hpx_buffer *out)
{
	char path[HPX_OPTION_PATH_SIZE];

	HPX_ASSERT(before != NULL || after != NULL);
	if (before == NULL || after == NULL) {
		snprintf(path, sizeof(path), "%s.%.*s", map, HPX_SPAN_ARG(name));
		return add_name(out, path, HPX_SPAN(""));
	}
	snprintf(path, sizeof(path), "%s.%.*s.", map, HPX_SPAN_ARG(name));
	return name_options(place, before, after, path, HPX_SPAN(""), out);
}

/* The name of a credential that has changed: a worker keeps the one it began with. */
static enum hpx_status name_secret(const struct hpx_job_target *before,
				   const struct hpx_job_target *after, struct hpx_buffer *out)
{
	char path[HPX_OPTION_PATH_SIZE];

	if (after == NULL ||
	    (hpx_span_eq(before->caller.headers, after->caller.headers) &&
	     hpx_span_eq(before->reconcile.probe.caller.headers,
			 after->reconcile.probe.caller.headers)))
		return HPX_OK;
	snprintf(path, sizeof(path), "targets.%.*s.credentials", HPX_SPAN_ARG(before->name));
	return add_name(out, path, HPX_SPAN(""));
}

static enum hpx_status name_services(const struct hpx_settings *before,
				     const struct hpx_settings *after, bool only_new,
				     struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < before->target_count && status == HPX_OK; i++) {
		const struct hpx_job_target *one = &before->targets[i];
		const struct hpx_job_target *other = hpx_settings_find_target(after, one->name);
		if (only_new && other != NULL)
			continue;
		status = name_service(HPX_PLACE_TARGET, "targets", one->name, one, other, out);
		if (status == HPX_OK)
			status = name_secret(one, other, out);
	}
	for (size_t i = 0; i < before->webhook_count && status == HPX_OK; i++) {
		const struct hpx_webhook *one = &before->webhooks[i];
		const struct hpx_webhook *other = find_webhook(after, one->name);
		if (!only_new || other == NULL)
			status = name_service(HPX_PLACE_WEBHOOK, "webhooks", one->name, one,
					      other, out);
	}
	return status;
}

/* What of `listen` cannot change while hapax runs: all but the files of TLS. A single
 * address is compared as an option. */
static bool listeners_differ(const struct hpx_settings *before, const struct hpx_settings *after)
{
	bool differ = before->listener_count != after->listener_count;

	for (size_t i = 0; i < before->listener_count && !differ; i++) {
		const struct hpx_listener_settings *a = &before->listeners[i];
		const struct hpx_listener_settings *b = &after->listeners[i];
		differ = strcmp(a->address.text, b->address.text) != 0 ||
			 a->proxy_protocol != b->proxy_protocol ||
			 hpx_tls_given(&a->tls) != hpx_tls_given(&b->tls) ||
			 (a->tls.ca == NULL) != (b->tls.ca == NULL);
	}
	return differ && strcmp(before->listen.text, after->listen.text) == 0;
}

static const char *certificate_name(const struct hpx_settings *settings)
{
	return settings->upstream_tls.name != NULL ? settings->upstream_tls.name : settings->upstream.host;
}

/* Whether the upstream is reached otherwise, and not just elsewhere: a session of TLS that is
 * resumed names no certificate again. */
static bool upstream_differs(const struct hpx_settings *before, const struct hpx_settings *after)
{
	return before->upstream.tls != after->upstream.tls ||
	       (before->upstream.tls && strcmp(certificate_name(before), certificate_name(after)) != 0);
}

enum hpx_status hpx_config_changes(const struct hpx_settings *before,
				   const struct hpx_settings *after, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < hpx_config_options.count && status == HPX_OK; i++) {
		const struct hpx_option *option = &hpx_config_options.rows[i];
		if (option->reloadable || option->place != HPX_PLACE_GLOBAL)
			continue;
		if (!hpx_value_same(option, before, after))
			status = add_name(out, option->name, HPX_SPAN(""));
	}
	if (status == HPX_OK && upstream_differs(before, after))
		status = add_name(out, "upstream (http or https, and the certificate's name)", HPX_SPAN(""));
	if (status == HPX_OK && listeners_differ(before, after))
		status = add_name(out, "listen[]", HPX_SPAN(""));
	if (status == HPX_OK && hpx_tls_given(&before->admin_tls) != hpx_tls_given(&after->admin_tls))
		status = add_name(out, "admin_tls.certificate", HPX_SPAN(""));
	if (status == HPX_OK &&
	    !hpx_span_eq(before->traces.caller.headers, after->traces.caller.headers))
		status = add_name(out, "traces.credentials", HPX_SPAN(""));
	if (status == HPX_OK && scope_differs(&before->fallback, &after->fallback))
		status = add_name(out, "defaults.scope", HPX_SPAN(""));
	if (status == HPX_OK)
		status = name_moved_scopes(before, after, false, out);
	if (status == HPX_OK)
		status = name_moved_scopes(after, before, true, out);
	if (status == HPX_OK)
		status = name_route_policies(before, after, out);
	if (status == HPX_OK)
		status = name_services(before, after, false, out);
	if (status == HPX_OK)
		status = name_services(after, before, true, out);
	return status;
}
