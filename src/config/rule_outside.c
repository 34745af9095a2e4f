/* Rules about targets and webhooks. */
#include "config/nearest.h"
#include "config/rule.h"

static void check_target(struct hpx_reading *reading, size_t n)
{
	const struct hpx_job_target *target = &reading->targets[n];
	struct hpx_spot spot = hpx_spot_target(reading, n);

	if (!hpx_spot_given(&spot, "", "url")->given)
		hpx_spot_remark(reading, &spot, HPX_CONFIG_MISTAKE, "", "url",
				"is missing; say where it is, e.g. url: "
				"https://mail.example/api");
	if (!hpx_rule_is_key_header(target->key_header))
		hpx_spot_remark(reading, &spot, HPX_CONFIG_MISTAKE, "", "key_header",
				"names a header that means something else; e.g. "
				"Idempotency-Key");
	if (target->backoff.base_ms > target->backoff.cap_ms)
		hpx_spot_remark(reading, &spot, HPX_CONFIG_WARNING, "", "backoff",
				"is larger than backoff_max, which then counts");
	if (target->caller.connect_timeout_ms > target->caller.timeout_ms)
		hpx_spot_remark(reading, &spot, HPX_CONFIG_WARNING, "", "connect_timeout",
				"is larger than timeout: it is never reached");
	if (target->honours_keys_ms > 0 &&
	    target->honours_keys_ms <= target->caller.timeout_ms)
		hpx_spot_remark(reading, &spot, HPX_CONFIG_WARNING, "", "honours_keys",
				"is not longer than timeout: a job that timed out is never sent "
				"again");
	hpx_rule_caller(reading, &spot, "", &target->caller);
	hpx_rule_reconcile(reading, &spot, &target->reconcile, true);
}

/* What only one scheme has. */
static void check_scheme(struct hpx_reading *reading, const struct hpx_spot *spot,
			 enum hpx_signature_scheme scheme)
{
	static const char *const names[] = { "header", "prefix" };
	bool body = scheme == HPX_SIGNATURE_SCHEME_HMAC_BODY;

	if (body && !hpx_spot_given(spot, "", "header")->given)
		hpx_spot_remark(reading, spot, HPX_CONFIG_MISTAKE, "", "header",
				"is missing; say which header carries the signature, e.g. "
				"header: X-Signature");
	for (size_t i = 0; i < 2; i++)
		if (!body && hpx_spot_given(spot, "", names[i])->given)
			hpx_spot_remark(reading, spot, HPX_CONFIG_WARNING, "", names[i],
					"has no effect unless scheme is hmac-body");
	if (body && hpx_spot_given(spot, "", "tolerance")->given)
		hpx_spot_remark(reading, spot, HPX_CONFIG_WARNING, "", "tolerance",
				"has no effect where scheme is hmac-body, which signs no time");
}

static void check_source(struct hpx_reading *reading, const struct hpx_spot *spot)
{
	if (!hpx_spot_given(spot, "", "scheme")->given)
		hpx_spot_remark(reading, spot, HPX_CONFIG_MISTAKE, "", "scheme",
				"is missing; say how it is signed: stripe, standard-webhooks or "
				"hmac-body");
	if (!hpx_spot_given(spot, "", "secret_file")->given &&
	    !hpx_spot_given(spot, "", "secret_env")->given)
		hpx_spot_remark(reading, spot, HPX_CONFIG_MISTAKE, "", "secret_file",
				"is missing; name a file with the secret, or a variable by "
				"secret_env: without it anybody could send it");
}

static void check_speaker(struct hpx_reading *reading, const struct hpx_spot *spot,
			  const struct hpx_webhook *webhook)
{
	const struct hpx_settings *settings = reading->settings;
	struct hpx_nearest nearest = { 0 };

	if (webhook->target.ptr == NULL) {
		if (webhook->provider_id.ptr != NULL && settings->target_count > 1)
			hpx_spot_remark(reading, spot, HPX_CONFIG_MISTAKE, "", "target",
					"is missing: the id of one service may be that of "
					"another's job; say which of targets sends it");
		return;
	}
	for (size_t i = 0; i < settings->target_count; i++) {
		if (hpx_span_eq(webhook->target, settings->targets[i].name))
			return;
		hpx_nearest_try(&nearest, webhook->target, settings->targets[i].name);
	}
	if (nearest.word.ptr != NULL)
		hpx_spot_remark(reading, spot, HPX_CONFIG_MISTAKE, "", "target",
				"\"%.*s\" is none of targets; did you mean \"%.*s\"?",
				HPX_SPAN_ARG(webhook->target), HPX_SPAN_ARG(nearest.word));
	else
		hpx_spot_remark(reading, spot, HPX_CONFIG_MISTAKE, "", "target",
				"\"%.*s\" is none of targets", HPX_SPAN_ARG(webhook->target));
}

static void check_not_applied(struct hpx_reading *reading, const struct hpx_spot *spot,
			      const struct hpx_webhook *webhook)
{
	if (webhook->mapping.signs[HPX_RULING_NOT_APPLIED].value_count == 0)
		return;
	if (webhook->settle_after_ms == 0)
		hpx_spot_remark(reading, spot, HPX_CONFIG_MISTAKE, "", "settle_after",
				"is missing, so that \"not applied\" could be said of a request "
				"that still runs; give the longest that the service can take, "
				"e.g. settle_after: 2m");
	else if (webhook->signature.scheme == HPX_SIGNATURE_SCHEME_HMAC_BODY)
		hpx_spot_remark(reading, spot, HPX_CONFIG_WARNING, "", "not_applied",
				"has no effect where scheme is hmac-body, which signs no time, "
				"so that it could be of any; add a probe to find that out");
}

static void check_webhook(struct hpx_reading *reading, size_t n)
{
	const struct hpx_webhook *webhook = &reading->webhooks[n];
	const struct hpx_verdict_mapping *mapping = &webhook->mapping;
	struct hpx_spot spot = hpx_spot_webhook(reading, n);

	check_source(reading, &spot);
	check_scheme(reading, &spot, webhook->signature.scheme);
	check_speaker(reading, &spot, webhook);
	if (webhook->operation.ptr == NULL && webhook->provider_id.ptr == NULL)
		hpx_spot_remark(reading, &spot, HPX_CONFIG_MISTAKE, "", "operation",
				"is missing, and so is provider_id: nothing says which "
				"operation it is about; give one, e.g. operation: "
				"/data/metadata/operation");
	hpx_rule_mapping(reading, &spot, "", mapping);
	check_not_applied(reading, &spot, webhook);
}

bool hpx_rule_in_memory(const struct hpx_reading *reading)
{
	return hpx_span_starts(reading->settings->store, HPX_SPAN("memory:"));
}

/* At the place of the map itself. */
static void refuse_map(struct hpx_reading *reading, const char *word, const char *message)
{
	size_t index = hpx_reading_member(reading, hpx_span_of(word));
	const struct hpx_yaml_node *node = &reading->tree.nodes[index];

	hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, node->line, node->column,
			  hpx_span_of(word), "%s", message);
}

/* A job that is gone while its operation is known could be added again. */
static void check_retention(struct hpx_reading *reading)
{
	const struct hpx_settings *settings = reading->settings;
	struct hpx_spot spot = hpx_spot_global(reading);
	const struct hpx_route *longest = &settings->fallback;

	for (size_t n = 0; n < settings->route_count; n++)
		if (settings->routes[n].policy.retention_ms > longest->policy.retention_ms)
			longest = &settings->routes[n];
	if (longest->policy.retention_ms > settings->job_retention_ms)
		hpx_spot_remark(reading, &spot, HPX_CONFIG_MISTAKE, "", "jobs.retention",
				"is shorter than the retention of %.*s: a job could be added a "
				"second time after it was deleted; make it as long",
				HPX_SPAN_ARG(hpx_span_first(longest->pattern, 60)));
}

void hpx_reading_outside_rules(struct hpx_reading *reading)
{
	const struct hpx_settings *settings = reading->settings;
	static const char stored[] =
		"need a store that outlives hapax; give store: sqlite:PATH or postgres://…";

	for (size_t n = 0; n < settings->target_count; n++)
		check_target(reading, n);
	for (size_t n = 0; n < settings->webhook_count; n++)
		check_webhook(reading, n);
	if (settings->target_count > 0)
		check_retention(reading);
	if (settings->target_count > 0 && hpx_rule_in_memory(reading))
		refuse_map(reading, "targets", stored);
	if (settings->webhook_count > 0 && hpx_rule_in_memory(reading))
		refuse_map(reading, "webhooks", stored);
	if (settings->webhook_count > 0 && !settings->own_paths)
		refuse_map(reading, "webhooks",
			   "come in under /.hapax/, which own_paths: false hides; say "
			   "own_paths: true");
}
