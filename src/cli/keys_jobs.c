/* Who is asked about an unknown outcome, and when: the store knows the time, a
 * configuration who it is. */
#include "base/clock.h"
#include "cli/jobs.h"

static const struct hpx_reconcile_settings *settings_of(const struct hpx_settings *settings,
							struct hpx_span route,
							struct hpx_span target)
{
	for (size_t i = 0; target.ptr != NULL && i < settings->target_count; i++)
		if (hpx_span_eq(settings->targets[i].name, target))
			return &settings->targets[i].reconcile;
	for (size_t i = 0; target.ptr == NULL && i < settings->route_count; i++)
		if (hpx_span_eq(settings->routes[i].pattern, route))
			return &settings->routes[i].reconcile;
	return target.ptr == NULL ? &settings->fallback.reconcile : NULL;
}

static const char *asked_by(struct hpx_operator_command *command, struct hpx_span route,
			    struct hpx_span target)
{
	const struct hpx_reconcile_settings *found;

	if (command->settings == NULL)
		return "";
	found = settings_of(command->settings, route, target);
	if (found == NULL || !found->given)
		return "nobody: a webhook, a ledger or a person can tell";
	if (!found->probe.given)
		return "no probe: a webhook, a ledger or a person can tell";
	struct hpx_span text = hpx_arena_printf(&command->arena, "the probe GET %.*s",
						HPX_SPAN_ARG(found->probe.get));
	return text.ptr != NULL ? text.ptr : "the probe";
}

enum hpx_status hpx_keys_question(struct hpx_operator_command *command,
				  const struct hpx_operation_id *id, struct hpx_span route,
				  struct hpx_span target, struct hpx_keys_question *ret_question)
{
	enum hpx_status status = hpx_store_question(command->reader, id, &ret_question->next);

	ret_question->by = asked_by(command, route, target);
	ret_question->known = status == HPX_OK;
	return status == HPX_NOT_FOUND || status == HPX_UNSUPPORTED ? HPX_OK : status;
}

void hpx_keys_print_question(const struct hpx_operator_command *command,
			     const struct hpx_keys_question *question)
{
	char age[HPX_OPERATOR_AGE_SIZE];

	printf("%-10s ", "asked");
	if (question->known && question->next.person) {
		fputs("no more: a person has to settle it", stdout);
	} else if (!question->known || question->next.at_ms == 0) {
		fputs("not scheduled yet (a serving hapax does it within a second)", stdout);
	} else if (question->next.at_ms <= command->now_ms) {
		fputs("now", stdout);
	} else {
		hpx_operator_age(question->next.at_ms - command->now_ms, age);
		printf("next in %s", age);
	}
	if (question->by[0] != '\0' && !question->next.person) {
		fputs(", by ", stdout);
		hpx_operator_print_text(hpx_span_of(question->by), 0);
	}
	putchar('\n');
}

void hpx_keys_json_question(struct hpx_operator_json *json, const struct hpx_keys_question *question)
{
	hpx_operator_json_name(json, "asked");
	hpx_operator_json_open(json, "{");
	hpx_operator_json_time(json, "next", question->known ? question->next.at_ms : 0);
	hpx_operator_json_bool(json, "person", question->known && question->next.person);
	if (question->by[0] != '\0')
		hpx_operator_json_text(json, "by", hpx_span_of(question->by));
	hpx_operator_json_close(json, "}");
}
