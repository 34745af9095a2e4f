/* Rules about asking what became of something, and what an answer means. */
#include <stdio.h>

#include "config/rule.h"
#include "config/value_outside.h"

#define PROBE "reconcile.probe."

/* Where the sign is among the signs of another ruling, that ruling. */
static enum hpx_ruling find_status(const struct hpx_verdict_mapping *mapping,
				   enum hpx_ruling except, unsigned status)
{
	for (enum hpx_ruling r = 0; r < except; r++)
		for (size_t i = 0; i < mapping->signs[r].status_count; i++)
			if (mapping->signs[r].statuses[i] == status)
				return r;
	return HPX_RULING_UNCLEAR;
}

static enum hpx_ruling find_value(const struct hpx_verdict_mapping *mapping,
				  enum hpx_ruling except, struct hpx_span value)
{
	for (enum hpx_ruling r = 0; r < except; r++)
		for (size_t i = 0; i < mapping->signs[r].value_count; i++)
			if (hpx_span_eq(mapping->signs[r].values[i], value))
				return r;
	return HPX_RULING_UNCLEAR;
}

static void check_ruling(struct hpx_parse_context *context, const struct hpx_location *location,
			 const char *group, const struct hpx_verdict_mapping *mapping,
			 enum hpx_ruling ruling)
{
	static const char format[] =
		"lists \"%.*s\", which stands in %s too; an answer has one meaning";
	const struct hpx_ruling_signs *signs = &mapping->signs[ruling];
	char number[8];

	for (size_t i = 0; i < signs->status_count; i++) {
		enum hpx_ruling other = find_status(mapping, ruling, signs->statuses[i]);
		snprintf(number, sizeof(number), "%u", signs->statuses[i]);
		if (other != HPX_RULING_UNCLEAR)
			hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group,
					    hpx_ruling_name(ruling), format,
					    HPX_SPAN_ARG(hpx_span_of(number)),
					    hpx_ruling_name(other));
	}
	for (size_t i = 0; i < signs->value_count; i++) {
		enum hpx_ruling other = find_value(mapping, ruling, signs->values[i]);
		if (other != HPX_RULING_UNCLEAR)
			hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group,
					    hpx_ruling_name(ruling), format,
					    HPX_SPAN_ARG(hpx_span_first(signs->values[i], 60)),
					    hpx_ruling_name(other));
	}
}

static size_t sign_count(const struct hpx_verdict_mapping *mapping, enum hpx_ruling ruling)
{
	return mapping->signs[ruling].status_count + mapping->signs[ruling].value_count;
}

void hpx_rule_mapping(struct hpx_parse_context *context, const struct hpx_location *location,
		      const char *group, const struct hpx_verdict_mapping *mapping)
{
	size_t values = 0;

	for (enum hpx_ruling r = 0; r < HPX_RULING_UNCLEAR; r++) {
		check_ruling(context, location, group, mapping, r);
		values += mapping->signs[r].value_count;
	}
	if (sign_count(mapping, HPX_RULING_APPLIED) == 0 &&
	    sign_count(mapping, HPX_RULING_DECLINED) == 0 &&
	    sign_count(mapping, HPX_RULING_NOT_APPLIED) == 0)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group, "applied",
				    "is missing, and so are declined and not_applied: nothing could "
				    "ever be settled; say what the answers mean");
	if (values > 0 && mapping->pointer.ptr == NULL)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group, "verdict",
				    "is missing; say where the words of the lists stand, e.g. "
				    "verdict: /status");
	if (values == 0 && mapping->pointer.ptr != NULL)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, group, "verdict",
				    "has no effect: no list has a word that could stand there");
}

static bool has_word(struct hpx_span get, struct hpx_span want)
{
	struct hpx_span word;

	for (size_t n = 0; (word = hpx_probe_word(get, n)).ptr != NULL; n++)
		if (hpx_span_eq(word, want))
			return true;
	return false;
}

/* Whether the question is about one thing only. */
static void check_get(struct hpx_parse_context *context, const struct hpx_location *location,
		      struct hpx_span get, bool target)
{
	bool operation = has_word(get, HPX_SPAN("operation"));
	bool provider = has_word(get, HPX_SPAN("provider_id"));
	bool key = has_word(get, HPX_SPAN("key"));

	if (provider && !target)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, PROBE, "get",
				    "has {provider_id}, which only a job's answer gives; use "
				    "{operation}");
	else if (!operation && !provider && !key)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, PROBE, "get",
				    "asks the same of every operation; put %s into it",
				    target ? "{operation}, {provider_id} or {key}" : "{operation} or {key}");
	else if (!operation && !target)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, PROBE, "get",
				    "names the client's key alone, which counts only where it "
				    "selects exactly one operation; {operation} always does");
}

void hpx_rule_caller(struct hpx_parse_context *context, const struct hpx_location *location,
		     const char *group, const struct hpx_caller *caller)
{
	static const struct hpx_span near[] = { HPX_SPAN_INIT("http://127."),
						HPX_SPAN_INIT("http://localhost"),
						HPX_SPAN_INIT("http://[::1]") };
	struct hpx_span url = hpx_span_of(caller->url);
	bool clear = hpx_span_istarts(url, HPX_SPAN("http://")) && caller->headers.len > 0 &&
		     (hpx_location_given(location, group, "credentials.file")->given ||
		      hpx_location_given(location, group, "credentials.env")->given);

	if (hpx_rule_is_framing(caller->credentials.header))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group,
				    "credentials.header",
				    "names a header that means something else; e.g. Authorization");
	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++)
		clear = clear && !hpx_span_istarts(url, near[i]);
	if (clear)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, group, "url",
				    "is http://, so that the credential travels in the clear; use "
				    "https://");
}

/* What says something, given without the question. In `defaults` it may be
 * meant for the questions of routes. */
static bool is_half_given(const struct hpx_parse_context *context, const struct hpx_location *location,
			  const struct hpx_probe *probe)
{
	size_t signs = 0;

	for (size_t n = 0; n < context->settings->route_count; n++)
		if (location->set == &context->defaults &&
		    context->settings->routes[n].reconcile.probe.given)
			return false;
	for (enum hpx_ruling r = 0; r < HPX_RULING_UNCLEAR; r++)
		signs += sign_count(&probe->mapping, r);
	return signs > 0 || hpx_location_given(location, PROBE, "url")->given ||
	       hpx_location_given(location, PROBE, "verdict")->given ||
	       hpx_location_given(location, PROBE, "credentials.file")->given ||
	       hpx_location_given(location, PROBE, "credentials.env")->given;
}

static void check_probe(struct hpx_parse_context *context, const struct hpx_location *location,
			const struct hpx_probe *probe, bool target)
{
	check_get(context, location, probe->get, target);
	if (probe->caller.url == NULL && !target &&
	    hpx_context_given(context, "upstream", NULL)->given)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, PROBE, "url",
				    "is missing: a probe cannot ask an upstream behind unix:; give "
				    "its http:// or https:// URL");
	hpx_rule_caller(context, location, PROBE, &probe->caller);
	hpx_rule_mapping(context, location, PROBE, &probe->mapping);
}

void hpx_rule_reconcile(struct hpx_parse_context *context, const struct hpx_location *location,
			const struct hpx_reconcile_settings *reconcile, bool target)
{
	const struct hpx_probe *probe = &reconcile->probe;
	const struct hpx_reconcile_rule *rule = &reconcile->rule;

	if (probe->given)
		check_probe(context, location, probe, target);
	else if (is_half_given(context, location, probe))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, PROBE, "get",
				    "is missing; say what to ask, e.g. get: "
				    "\"/payments?operation={operation}\"");
	if (probe->given && sign_count(&probe->mapping, HPX_RULING_NOT_APPLIED) > 0 &&
	    rule->settle_after_ms == 0)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "reconcile.",
				    "settle_after",
				    "is missing, so that \"not applied\" could be said of a request "
				    "that still runs; give the longest that the service can take, "
				    "e.g. settle_after: 2m");
	if (rule->backoff.base_ms > rule->backoff.cap_ms)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, "reconcile.", "backoff",
				    "is larger than reconcile.backoff_max, which then counts");
}
