/* From what was read to findings: gaps of the description, and where description,
 * configuration and traffic say different things. */
#include <inttypes.h>

#include "base/status.h"
#include "coverage/coverage.h"
#include "http/method.h"

/* ---- the description alone ---- */

static void judge_gap(struct hpx_coverage *coverage, const struct hpx_covered_operation *operation)
{
	const struct hpx_declared_key *key = &operation->key;
	enum hpx_finding_rule rule = key->class == HPX_CLASS_WEAK  ? HPX_RULE_KEY_WEAK :
				     key->class == HPX_CLASS_PROSE ? HPX_RULE_KEY_IN_PROSE :
								     HPX_RULE_KEY_ABSENT;

	if (hpx_coverage_is_covered(operation) || !operation->declared)
		return;
	if (key->name.len > 0)
		hpx_coverage_find(coverage, rule, operation, key->place, "%.*s: %.*s",
				  HPX_SPAN_ARG(key->name), HPX_SPAN_ARG(key->reason));
	else
		hpx_coverage_find(coverage, rule, operation, key->place, "%.*s",
				  HPX_SPAN_ARG(key->reason));
}

static void judge_retries(struct hpx_coverage *coverage,
			  const struct hpx_covered_operation *operation)
{
	if (operation->retries.file.ptr == NULL || hpx_coverage_is_covered(operation))
		return;
	hpx_coverage_find(coverage, HPX_RULE_RETRIES_WITHOUT_KEY, operation, operation->retries,
			  "x-speakeasy-retries makes SDKs send it again, and nothing says that "
			  "it is the same one");
}

/* ---- the configuration ---- */

static struct hpx_source_place place_of_route(const struct hpx_coverage *coverage,
					      const struct hpx_route *route)
{
	return (struct hpx_source_place){ coverage->config_path, route->line };
}

static void find_route(struct hpx_coverage *coverage, struct hpx_covered_operation *operation)
{
	const struct hpx_settings *settings = coverage->settings;

	operation->route = hpx_route_match(settings, operation->method, HPX_SPAN(""), operation->path);
	operation->guarded = hpx_route_guards(operation->route, operation->method) &&
			     !settings->observe && !operation->route->observe;
}

/* Whether the route looks where the description says that the key is. */
static bool takes_key(const struct hpx_settings *settings, const struct hpx_route *route,
		      const struct hpx_declared_key *key)
{
	static const enum hpx_key_where wheres[] = { [HPX_KEY_IN_HEADER] = HPX_WHERE_HEADER,
						     [HPX_KEY_IN_BODY] = HPX_WHERE_BODY,
						     [HPX_KEY_IN_QUERY] = HPX_WHERE_QUERY };

	if (route->key_from.count == 0)
		return key->where == HPX_WHERE_HEADER && hpx_span_ieq(key->name, settings->key_header);
	for (size_t i = 0; i < route->key_from.count; i++) {
		const struct hpx_key_source *source = &route->key_from.at[i];
		if (key->where == wheres[source->place] &&
		    (source->place == HPX_KEY_IN_HEADER ? hpx_span_ieq(key->name, source->name) :
							  hpx_span_eq(key->name, source->name)))
			return true;
	}
	return false;
}

/* Why the route does not use the key that the description has; NULL where it does. */
static const char *fault_of_route(const struct hpx_coverage *coverage,
				  const struct hpx_covered_operation *operation)
{
	const struct hpx_route *route = operation->route;
	const struct hpx_declared_key *key = &operation->key;

	if (route->policy.key == HPX_KEY_IGNORE)
		return "its key is `ignore`";
	if (coverage->settings->observe || route->observe)
		return "it only observes";
	if (!operation->guarded)
		return "it does not name the method, and an idempotent one passes";
	return takes_key(coverage->settings, route, key) ? NULL : "it takes keys from elsewhere";
}

static void judge_limit(struct hpx_coverage *coverage, const struct hpx_covered_operation *operation)
{
	const struct hpx_declared_key *key = &operation->key;
	uint64_t min = operation->route->key_demand.bytes_min;
	uint64_t max = operation->route->key_demand.bytes_max;

	if (key->bytes_max > 0 && key->bytes_max != max)
		hpx_coverage_find(coverage, HPX_RULE_KEY_LIMIT_DIFFERS, operation, key->place,
				  "keys of up to %" PRIu64 " characters are declared; the route takes "
				  "up to %" PRIu64,
				  key->bytes_max, max);
	if (key->bytes_min > 1 && key->bytes_min != min)
		hpx_coverage_find(coverage, HPX_RULE_KEY_LIMIT_DIFFERS, operation, key->place,
				  "keys of at least %" PRIu64 " characters are declared; the route "
				  "takes %" PRIu64,
				  key->bytes_min, min > 0 ? min : 1);
}

static void judge_route(struct hpx_coverage *coverage, const struct hpx_covered_operation *operation)
{
	const struct hpx_route *route = operation->route;

	if (!operation->declared)
		return;
	if (operation->key.class > HPX_CLASS_BODY) {
		if (operation->guarded)
			hpx_coverage_find(coverage, HPX_RULE_GUARD_UNDOCUMENTED, operation,
					  operation->place,
					  "route %.*s guards it, and the description does not say that "
					  "there is a key",
					  HPX_SPAN_ARG(route->pattern));
		return;
	}
	const char *fault = fault_of_route(coverage, operation);
	if (fault != NULL)
		hpx_coverage_find(coverage, HPX_RULE_KEY_IGNORED, operation,
				  place_of_route(coverage, route),
				  "the key %.*s is declared (%.*s:%u); route %.*s does not use it: %s",
				  HPX_SPAN_ARG(operation->key.name),
				  HPX_SPAN_ARG(operation->key.place.file), operation->key.place.line,
				  HPX_SPAN_ARG(route->pattern), fault);
	else
		judge_limit(coverage, operation);
}

/* ---- traffic ---- */

static bool is_in_a_route(const struct hpx_coverage *coverage,
			  const struct hpx_covered_operation *operation)
{
	return operation->route != NULL && operation->route != &coverage->settings->fallback;
}

/* Descriptions or a configuration were read: what is in neither of them is a surprise. */
static bool has_list(const struct hpx_coverage *coverage)
{
	for (size_t i = 0; i < coverage->operation_count; i++)
		if (coverage->operations[i].declared)
			return true;
	return coverage->settings != NULL;
}

static void judge_seen(struct hpx_coverage *coverage, const struct hpx_covered_operation *operation,
		       bool listed)
{
	const struct hpx_traffic_count *seen = &operation->traffic;

	if (seen->requests == 0 || hpx_method_kind(operation->method) != HPX_METHOD_NEITHER)
		return;
	if (!operation->declared && listed && !is_in_a_route(coverage, operation))
		hpx_coverage_find(coverage, HPX_RULE_UNKNOWN_TRAFFIC, operation, operation->place,
				  "%" PRIu64 " requests, for example %.*s; no description and no route "
				  "has it",
				  seen->requests, HPX_SPAN_ARG(operation->example));
	else if (!operation->declared && seen->unkeyed > 0 && !operation->guarded)
		hpx_coverage_find(coverage, HPX_RULE_UNKEYED_TRAFFIC, operation, operation->place,
				  "%" PRIu64 " of %" PRIu64 " requests had no key", seen->unkeyed,
				  seen->requests);
	else if (operation->declared && seen->unkeyed > 0 && hpx_coverage_is_covered(operation))
		hpx_coverage_find(coverage, HPX_RULE_KEY_LEFT_OUT, operation, operation->place,
				  "%" PRIu64 " of %" PRIu64 " requests had no key", seen->unkeyed,
				  seen->requests);
}

void hpx_coverage_judge(struct hpx_coverage *coverage)
{
	bool listed = has_list(coverage);

	HPX_ASSERT(coverage->finding_count <= HPX_COVERAGE_FINDINGS_MAX);
	for (size_t i = 0; i < coverage->operation_count; i++) {
		struct hpx_covered_operation *operation = &coverage->operations[i];
		if (coverage->settings != NULL)
			find_route(coverage, operation);
		judge_gap(coverage, operation);
		judge_retries(coverage, operation);
		if (coverage->settings != NULL)
			judge_route(coverage, operation);
		judge_seen(coverage, operation, listed);
	}
}
