/* Rules about targets and webhooks. */
#include "config/rule.h"
#include "config/suggestion.h"

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
	hpx_rule_caller(context, &location, "", &target->caller);
	hpx_rule_reconcile(context, &location, &target->reconcile, true);
}

/* What only one scheme has. */
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

static void check_speaker(struct hpx_parse_context *context, const struct hpx_location *location,
			  const struct hpx_webhook *webhook)
{
	const struct hpx_settings *settings = context->settings;
	struct hpx_suggestion suggestion = { 0 };

	if (webhook->target.ptr == NULL) {
		if (webhook->provider_id.ptr != NULL && settings->target_count > 1)
			hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "target",
					    "is missing: the id of one service may be that of "
					    "another's job; say which of targets sends it");
		return;
	}
	for (size_t i = 0; i < settings->target_count; i++) {
		if (hpx_span_eq(webhook->target, settings->targets[i].name))
			return;
		hpx_suggestion_consider(&suggestion, webhook->target, settings->targets[i].name);
	}
	if (suggestion.word.ptr != NULL)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "target",
				    "\"%.*s\" is none of targets; did you mean \"%.*s\"?",
				    HPX_SPAN_ARG(webhook->target), HPX_SPAN_ARG(suggestion.word));
	else
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "target",
				    "\"%.*s\" is none of targets", HPX_SPAN_ARG(webhook->target));
}

static void check_not_applied(struct hpx_parse_context *context, const struct hpx_location *location,
			      const struct hpx_webhook *webhook)
{
	if (webhook->mapping.signs[HPX_RULING_NOT_APPLIED].value_count == 0)
		return;
	if (webhook->settle_after_ms == 0)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "settle_after",
				    "is missing, so that \"not applied\" could be said of a request "
				    "that still runs; give the longest that the service can take, "
				    "e.g. settle_after: 2m");
	else if (webhook->signature.scheme == HPX_SIGNATURE_SCHEME_HMAC_BODY)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, "", "not_applied",
				    "has no effect where scheme is hmac-body, which signs no time, "
				    "so that it could be of any; add a probe to find that out");
}

static void check_webhook(struct hpx_parse_context *context, size_t n)
{
	const struct hpx_webhook *webhook = &context->webhooks[n];
	const struct hpx_verdict_mapping *mapping = &webhook->mapping;
	struct hpx_location location = hpx_location_webhook(context, n);

	check_source(context, &location);
	check_scheme(context, &location, webhook->signature.scheme);
	check_speaker(context, &location, webhook);
	if (webhook->operation.ptr == NULL && webhook->provider_id.ptr == NULL)
		hpx_location_remark(context, &location, HPX_CONFIG_MISTAKE, "", "operation",
				    "is missing, and so is provider_id: nothing says which "
				    "operation it is about; give one, e.g. operation: "
				    "/data/metadata/operation");
	hpx_rule_mapping(context, &location, "", mapping);
	check_not_applied(context, &location, webhook);
}

bool hpx_rule_in_memory(const struct hpx_parse_context *context)
{
	return hpx_span_starts(context->settings->store, HPX_SPAN("memory:"));
}

/* At the place of the map itself. */
static void refuse_map(struct hpx_parse_context *context, const char *word, const char *message)
{
	size_t index = hpx_context_member(context, hpx_span_of(word));
	const struct hpx_yaml_node *node = &context->tree.nodes[index];

	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line, node->column,
			  hpx_span_of(word), "%s", message);
}

/* A job that is gone while its operation is known could be added again. */
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

void hpx_rule_check_services(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;
	static const char stored[] =
		"need a store that outlives hapax; give store: sqlite:PATH or postgres://…";

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
