/* Rules about external services: targets, webhooks, how a service is asked for
 * an outcome (reconcile), and what its answers mean. */
#include <stdio.h>

#include "base/status.h"
#include "config/parse_context.h"
#include "config/suggestion.h"
#include "store/store.h"

#define PROBE "reconcile.probe."

/* The earlier ruling whose list has this status too; UNCLEAR: none. */
static enum hpx_ruling find_status(const struct hpx_ruling_mapping *mapping,
				   enum hpx_ruling except, unsigned status)
{
	for (enum hpx_ruling r = 0; r < except; r++)
		for (size_t i = 0; i < mapping->signs[r].status_count; i++)
			if (mapping->signs[r].statuses[i] == status)
				return r;
	return HPX_RULING_UNCLEAR;
}

static enum hpx_ruling find_value(const struct hpx_ruling_mapping *mapping,
				  enum hpx_ruling except, struct hpx_span value)
{
	for (enum hpx_ruling r = 0; r < except; r++)
		for (size_t i = 0; i < mapping->signs[r].value_count; i++)
			if (hpx_span_eq(mapping->signs[r].values[i], value))
				return r;
	return HPX_RULING_UNCLEAR;
}

static void check_ruling(struct hpx_parse_context *context, const struct hpx_location *location,
			 const char *group, const struct hpx_ruling_mapping *mapping,
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

static size_t sign_count(const struct hpx_ruling_mapping *mapping, enum hpx_ruling ruling)
{
	return mapping->signs[ruling].status_count + mapping->signs[ruling].value_count;
}

static void check_mapping(struct hpx_parse_context *context, const struct hpx_location *location,
			  const char *group, const struct hpx_ruling_mapping *mapping)
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

/* `copies`: the source has headers of its own, which an answer may have too. */
static void check_answer(struct hpx_parse_context *context, const struct hpx_location *location,
			 const char *group, const struct hpx_answer_rule *answer, bool copies)
{
	bool given = hpx_location_given(location, group, "answer.body")->given ||
		     hpx_location_given(location, group, "answer.headers")->given;

	if (answer->status != 0 && answer->status < 200)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group, "answer.status",
				    "is no status of a success; write e.g. 201");
	if (answer->status == 0 && given)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group, "answer.status",
				    "is missing; say which status a retry gets, e.g. 201");
	if (!hpx_span_eq(answer->body, HPX_SPAN(HPX_ANSWER_WHOLE)) && !hpx_value_is_pointer(answer->body))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group, "answer.body",
				    "is neither answer nor a JSON pointer, e.g. /data/object");
	for (size_t i = 0; i < answer->header_count && !copies; i++)
		if (hpx_span_index(answer->headers[i], ':') == answer->headers[i].len)
			hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group, "answer.headers",
					    "has a name without a value; only a probe's answer has "
					    "headers to copy: write \"Name: value\"");
}

static bool has_word(struct hpx_span get, struct hpx_span want)
{
	struct hpx_span word;

	for (size_t n = 0; (word = hpx_value_probe_word(get, n)).ptr != NULL; n++)
		if (hpx_span_eq(word, want))
			return true;
	return false;
}

bool hpx_rule_probe_needs_key(const struct hpx_probe *probe)
{
	return probe->get.ptr != NULL && has_word(probe->get, HPX_SPAN("key"));
}

/* A probe must ask about one operation, and not the same of every one. */
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
				    "is the same question for every operation; put %s into it",
				    target ? "{operation}, {provider_id} or {key}" : "{operation} or {key}");
	else if (!operation && !target)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, PROBE, "get",
				    "names the client's key alone, which counts only where it "
				    "selects exactly one operation of the route; {operation} always does");
}

static void check_caller(struct hpx_parse_context *context, const struct hpx_location *location,
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

/* Amounts are compared where a client's key names the operation, which may be another's. */
static void check_amounts(struct hpx_parse_context *context, const struct hpx_location *location,
			  const struct hpx_probe *probe, bool target)
{
	bool given = probe->amount.ptr != NULL;

	if (given != (probe->amount_request.ptr != NULL))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, PROBE,
				    given ? "amount_request" : "amount",
				    "is missing; amount (in the probe's answer) and amount_request (in "
				    "the client's request) are compared");
	else if (given && (target || !hpx_rule_probe_needs_key(probe)))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, PROBE, "amount",
				    "has no effect where the probe does not ask by the client's key; "
				    "leave it out%s",
				    target ? "" : ", or put {key} into get");
}

/* Options of a probe, given without its `get`. In `defaults` they may be meant for
 * the probes of routes. */
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
	else if (probe->caller.url == NULL && !target && context->without_gateway)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, PROBE, "url",
				    "is missing, and so is upstream, which a probe without a URL asks; give "
				    "one of them: upstream: http://127.0.0.1:9000");
	check_caller(context, location, PROBE, &probe->caller);
	check_mapping(context, location, PROBE, &probe->mapping);
	check_answer(context, location, PROBE, &probe->answer, true);
	check_amounts(context, location, probe, target);
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
				    "is missing: without it, a request that still runs could "
				    "count as \"not applied\"; give the longest time that the "
				    "service can take, e.g. settle_after: 2m");
	if (rule->backoff.base_ms > rule->backoff.cap_ms)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, "reconcile.", "backoff",
				    "is larger than reconcile.backoff_max, which then counts");
}

/* ---- targets and webhooks ---- */

static void check_target(struct hpx_parse_context *context, size_t n)
{
	const struct hpx_job_target *target = &context->targets[n];
	struct hpx_location location = hpx_location_target(context, n);

	if (!hpx_location_given(&location, "", "url")->given)
		hpx_location_remark(context, &location, HPX_CONFIG_MISTAKE, "", "url",
				    "is missing; say where it is, e.g. url: "
				    "https://mail.example/api");
	if (!hpx_rule_is_key_header(target->key_header))
		hpx_location_remark(context, &location, HPX_CONFIG_MISTAKE, "", "key_header",
				    "names a header that means something else; e.g. "
				    "Idempotency-Key");
	if (target->backoff.base_ms > target->backoff.cap_ms)
		hpx_location_remark(context, &location, HPX_CONFIG_WARNING, "", "backoff",
				    "is larger than backoff_max, which then counts");
	if (target->caller.connect_timeout_ms > target->caller.timeout_ms)
		hpx_location_remark(context, &location, HPX_CONFIG_WARNING, "", "connect_timeout",
				    "is larger than timeout: it is never reached");
	if (target->honours_keys_ms > 0 &&
	    target->honours_keys_ms <= target->caller.timeout_ms)
		hpx_location_remark(context, &location, HPX_CONFIG_WARNING, "", "honours_keys",
				    "is not longer than timeout: a job that timed out is never sent "
				    "again");
	check_caller(context, &location, "", &target->caller);
	hpx_rule_reconcile(context, &location, &target->reconcile, true);
}

/* Options that only one scheme has. */
static void check_scheme(struct hpx_parse_context *context, const struct hpx_location *location,
			 enum hpx_signature_scheme scheme)
{
	static const char *const names[] = { "header", "prefix" };
	bool body = scheme == HPX_SIGNATURE_SCHEME_HMAC_BODY;

	if (body && !hpx_location_given(location, "", "header")->given)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "header",
				    "is missing; say which header carries the signature, e.g. "
				    "header: X-Signature");
	for (size_t i = 0; i < 2; i++)
		if (!body && hpx_location_given(location, "", names[i])->given)
			hpx_location_remark(context, location, HPX_CONFIG_WARNING, "", names[i],
					    "has no effect unless scheme is hmac-body");
	if (body && hpx_location_given(location, "", "tolerance")->given)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, "", "tolerance",
				    "has no effect where scheme is hmac-body, which signs no time");
}

static void check_source(struct hpx_parse_context *context, const struct hpx_location *location)
{
	if (!hpx_location_given(location, "", "scheme")->given)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "scheme",
				    "is missing; say how it is signed: stripe, standard-webhooks or "
				    "hmac-body");
	if (!hpx_location_given(location, "", "secret_file")->given &&
	    !hpx_location_given(location, "", "secret_env")->given)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "secret_file",
				    "is missing; name a file with the secret, or a variable by "
				    "secret_env: without it anybody could send it");
}

void hpx_rule_unknown_target(struct hpx_parse_context *context,
			     const struct hpx_location *location, struct hpx_span name,
			     const char *advice)
{
	const struct hpx_settings *settings = context->settings;
	struct hpx_suggestion suggestion = { 0 };

	for (size_t i = 0; i < settings->target_count; i++) {
		HPX_ASSERT(!hpx_span_eq(name, settings->targets[i].name));
		hpx_suggestion_consider(&suggestion, name, settings->targets[i].name);
	}
	if (suggestion.word.ptr != NULL)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "target",
				    "\"%.*s\" is none of targets; did you mean \"%.*s\"?",
				    HPX_SPAN_ARG(name), HPX_SPAN_ARG(suggestion.word));
	else
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "target",
				    "\"%.*s\" is none of targets%s", HPX_SPAN_ARG(name), advice);
}

static void check_speaker(struct hpx_parse_context *context, const struct hpx_location *location,
			  const struct hpx_webhook *webhook)
{
	const struct hpx_settings *settings = context->settings;

	if (webhook->target.ptr == NULL) {
		if (webhook->provider_id.ptr != NULL && settings->target_count > 1)
			hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "target",
					    "is missing: two services may use the same id; "
					    "name the target that sends this webhook");
		return;
	}
	if (hpx_settings_find_target(settings, webhook->target) == NULL)
		hpx_rule_unknown_target(context, location, webhook->target, "");
}

static void check_not_applied(struct hpx_parse_context *context, const struct hpx_location *location,
			      const struct hpx_webhook *webhook)
{
	if (webhook->mapping.signs[HPX_RULING_NOT_APPLIED].value_count == 0)
		return;
	if (webhook->settle_after_ms == 0)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "settle_after",
				    "is missing: without it, a request that still runs could "
				    "count as \"not applied\"; give the longest time that the "
				    "service can take, e.g. settle_after: 2m");
	else if (webhook->signature.scheme == HPX_SIGNATURE_SCHEME_HMAC_BODY)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, "", "not_applied",
				    "has no effect where scheme is hmac-body: it signs no "
				    "time, so the message may be old; add a probe to find out "
				    "what was not applied");
}

/* Two webhooks, or a webhook and a probe, cannot want different amounts of one request. */
static bool has_other_amount(const struct hpx_settings *settings, const struct hpx_webhook *webhook)
{
	const struct hpx_route *route = hpx_settings_find_route(settings, webhook->route);

	return route != NULL && webhook->amount_request.ptr != NULL &&
	       !hpx_span_eq(route->amount_request, webhook->amount_request);
}

static void check_key(struct hpx_parse_context *context, const struct hpx_location *location,
		      const struct hpx_webhook *webhook)
{
	static const char *const names[] = { "route", "amount", "amount_request" };
	const struct hpx_settings *settings = context->settings;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && webhook->key.ptr == NULL; i++)
		if (hpx_location_given(location, "", names[i])->given)
			hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", names[i],
					    "has no effect without key; say where the message has the "
					    "client's key, e.g. key: /data/metadata/idempotency_key");
	if (webhook->key.ptr == NULL)
		return;
	if (webhook->route.ptr == NULL)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "route",
				    "is missing: a key alone may be that of another route; say which "
				    "it is, e.g. route: POST /payments");
	else if (hpx_settings_find_route(settings, webhook->route) == NULL)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "route",
				    "\"%.*s\" is none of routes; write it as it stands there",
				    HPX_SPAN_ARG(hpx_span_first(webhook->route, 60)));
	if (webhook->target.ptr != NULL)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "target",
				    "does not go with key: a target knows its job's key, and not the "
				    "client's; make two webhooks");
	if ((webhook->amount.ptr == NULL) != (webhook->amount_request.ptr == NULL))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "",
				    webhook->amount.ptr == NULL ? "amount" : "amount_request",
				    "is missing; amount (in the message) and amount_request (in the "
				    "client's request) are compared");
	if (has_other_amount(settings, webhook))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "amount_request",
				    "differs from that of another webhook, or of the probe, of "
				    "the same route; a request has one amount");
}

static void check_webhook(struct hpx_parse_context *context, size_t n)
{
	const struct hpx_webhook *webhook = &context->webhooks[n];
	const struct hpx_ruling_mapping *mapping = &webhook->mapping;
	struct hpx_location location = hpx_location_webhook(context, n);

	check_source(context, &location);
	check_scheme(context, &location, webhook->signature.scheme);
	check_speaker(context, &location, webhook);
	check_key(context, &location, webhook);
	if (webhook->operation.ptr == NULL && webhook->provider_id.ptr == NULL && webhook->key.ptr == NULL)
		hpx_location_remark(context, &location, HPX_CONFIG_MISTAKE, "", "operation",
				    "is missing, and so are provider_id and key: nothing says which "
				    "operation it is about; give one, e.g. operation: "
				    "/data/metadata/operation");
	check_mapping(context, &location, "", mapping);
	check_answer(context, &location, "", &webhook->answer, false);
	check_not_applied(context, &location, webhook);
}

bool hpx_rule_in_memory(const struct hpx_parse_context *context)
{
	return !hpx_store_url_can(context->settings->store, HPX_STORE_OUTBOX);
}

/* A mistake at `targets` or `webhooks` itself. */
static void refuse_map(struct hpx_parse_context *context, const char *word, const char *message)
{
	size_t index = hpx_yaml_member(&context->tree, hpx_span_of(word));
	const struct hpx_yaml_node *node = &context->tree.nodes[index];

	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line, node->column,
			  hpx_span_of(word), "%s", message);
}

/* A job that is deleted while its operation is known could be added again. */
static void check_retention(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;
	struct hpx_location location = hpx_location_global(context);
	const struct hpx_route *longest = &settings->fallback;

	for (size_t n = 0; n < settings->route_count; n++)
		if (settings->routes[n].policy.retention_ms > longest->policy.retention_ms)
			longest = &settings->routes[n];
	if (longest->policy.retention_ms > settings->job_retention_ms)
		hpx_location_remark(context, &location, HPX_CONFIG_MISTAKE, "", "jobs.retention",
				    "is shorter than the retention of %.*s: a job could be added a "
				    "second time after it was deleted; make it as long",
				    HPX_SPAN_ARG(hpx_span_first(longest->pattern, 60)));
}

/* Link-local addresses are where clouds answer with credentials of the machine. */
static bool is_link_local(const char *url)
{
	static const struct hpx_span hosts[] = { HPX_SPAN_INIT("169.254."), HPX_SPAN_INIT("[fe80:"),
						 HPX_SPAN_INIT("[fd00:ec2:"), HPX_SPAN_INIT("metadata.google.internal") };
	struct hpx_span rest = hpx_span_of(url);
	char *host = url != NULL ? strstr(url, "://") : NULL;

	if (host == NULL)
		return false;
	rest = hpx_span_of(host + 3);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (hpx_span_istarts(rest, hosts[i]))
			return true;
	return false;
}

static void warn_of_link_local(struct hpx_parse_context *context, const struct hpx_location *location,
			       const char *group, const char *name, const char *url)
{
	if (is_link_local(url))
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, group, name,
				    "is a link-local address, where clouds give out the machine's own "
				    "credentials; name the service's address, if this is not what you mean");
}

static void check_addresses(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;
	struct hpx_location global = hpx_location_global(context);

	warn_of_link_local(context, &global, "tenant.", "url", settings->tenant.subrequest.caller.url);
	warn_of_link_local(context, &global, "tenant.", "keys", settings->tenant.jwt.keys);
	for (size_t n = 0; n < settings->target_count; n++) {
		struct hpx_location location = hpx_location_target(context, n);
		warn_of_link_local(context, &location, "", "url", settings->targets[n].caller.url);
	}
}

/* What a process keeps in memory leaves nothing behind. */
static void check_history(struct hpx_parse_context *context)
{
	struct hpx_location location = hpx_location_global(context);

	if (context->settings->history_retention_ms > 0 &&
	    !hpx_store_url_can(context->settings->store, HPX_STORE_PERSISTS))
		hpx_location_remark(context, &location, HPX_CONFIG_MISTAKE, "", "history.retention",
				    "needs a store that outlives hapax; give store: sqlite:PATH or "
				    "postgres://…");
}

void hpx_rule_check_services(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;
	static const char stored[] =
		"need a store that outlives hapax; give store: sqlite:PATH or postgres://…";

	check_addresses(context);
	check_history(context);
	for (size_t n = 0; n < settings->target_count; n++)
		check_target(context, n);
	for (size_t n = 0; n < settings->webhook_count; n++)
		check_webhook(context, n);
	if (settings->target_count > 0)
		check_retention(context);
	if (settings->target_count > 0 && hpx_rule_in_memory(context))
		refuse_map(context, "targets", stored);
	if (settings->webhook_count > 0 && hpx_rule_in_memory(context))
		refuse_map(context, "webhooks", stored);
	if (settings->webhook_count > 0 && !settings->own_paths)
		refuse_map(context, "webhooks",
			   "come in under /.hapax/, which own_paths: false hides; say "
			   "own_paths: true");
}
