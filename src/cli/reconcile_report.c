/* What was found, kept in groups and told at the end. */
#include <stdarg.h>

#include "cli/operator_json.h"
#include "cli/reconcile.h"

#define TEXT_MAX 512
#define JSON_MAX ((size_t)64 * 1024 * 1024)

static const struct {
	const char *member;
	const char *heading;
} groups[] = {
#define X(name, member, heading) { member, heading },
	HPX_GROUP_LIST(X)
#undef X
};

static struct hpx_difference *keep(struct hpx_reconciliation *run,
				   const struct hpx_difference *difference,
				   const struct hpx_subject *subject, struct hpx_span text)
{
	struct hpx_difference *kept = hpx_arena_alloc(&run->command.arena, sizeof(*kept));

	if (kept == NULL)
		return NULL;
	*kept = *difference;
	kept->next = NULL;
	kept->text = hpx_arena_dup(&run->command.arena, text);
	kept->name = difference->name.ptr != NULL ?
			     hpx_arena_dup(&run->command.arena, difference->name) :
			     difference->name;
	if (kept->text.ptr == NULL || (difference->name.ptr != NULL && kept->name.ptr == NULL))
		return NULL;
	kept->has_reference = subject != NULL;
	if (subject != NULL && subject->job != NULL) {
		kept->job = subject->job->delivery.number;
		hpx_reference_print(&subject->job->delivery.operation,
				    &subject->job->delivery.mark, kept->reference);
	} else if (subject != NULL) {
		hpx_reference_print(&subject->entry.record.id, &subject->entry.record.mark,
				    kept->reference);
	}
	return kept;
}

int hpx_reconcile_note(struct hpx_reconciliation *run, enum hpx_group group,
		       const struct hpx_difference *difference,
		       const struct hpx_subject *subject, const char *format, ...)
{
	struct hpx_group_list *list = &run->groups[group];
	char text[TEXT_MAX];
	va_list args;

	list->count++;
	list->open += difference->settled ? 0 : 1;
	if (list->count > HPX_GROUP_LISTED_MAX)
		return HPX_EXIT_OK;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	struct hpx_difference *kept = keep(run, difference, subject, hpx_span_of(text));
	if (kept == NULL)
		return hpx_operator_complain(&run->command, HPX_EXIT_FAILED, "%s",
					     hpx_status_text(HPX_NOMEM));
	if (list->first == NULL)
		list->end = &list->first;
	*list->end = kept;
	list->end = &kept->next;
	return HPX_EXIT_OK;
}

static void print_difference(const struct hpx_difference *difference)
{
	fputs("  ", stdout);
	if (difference->line > 0)
		printf("line %llu  ", (unsigned long long)difference->line);
	if (difference->name.len > 0 &&
	    !(difference->has_reference &&
	      hpx_span_eq(difference->name, hpx_span_of(difference->reference)))) {
		hpx_operator_print_text(hpx_span_first(difference->name, 64), 0);
		fputs("  ", stdout);
	}
	if (difference->has_reference)
		printf("%.12s  ", difference->reference);
	if (difference->job > 0)
		printf("job %lld  ", (long long)difference->job);
	hpx_operator_print_text(difference->text, 0);
	putchar('\n');
}

static uint64_t count_open(const struct hpx_reconciliation *run)
{
	uint64_t open = 0;

	for (size_t i = 0; i < HPX_GROUP_COUNT; i++)
		open += run->groups[i].open;
	return open;
}

static void print_text(const struct hpx_reconciliation *run)
{
	for (size_t i = 0; i < HPX_GROUP_COUNT; i++) {
		const struct hpx_group_list *list = &run->groups[i];

		if (list->count == 0)
			continue;
		printf("%s: %llu\n", groups[i].heading, (unsigned long long)list->count);
		for (const struct hpx_difference *d = list->first; d != NULL; d = d->next)
			print_difference(d);
		if (list->count > HPX_GROUP_LISTED_MAX)
			printf("  and %llu more\n",
			       (unsigned long long)(list->count - HPX_GROUP_LISTED_MAX));
		putchar('\n');
	}
	printf("%llu rows, %llu of them known here; %llu of ours happened in that time; %llu settled, "
	       "%llu open\n",
	       (unsigned long long)run->rows, (unsigned long long)run->matched,
	       (unsigned long long)run->ours,
	       (unsigned long long)(run->groups[HPX_GROUP_UNKNOWN].count -
				    run->groups[HPX_GROUP_UNKNOWN].open),
	       (unsigned long long)count_open(run));
}

static void json_difference(struct hpx_operator_json *json, const struct hpx_difference *difference)
{
	hpx_operator_json_name(json, NULL);
	hpx_operator_json_open(json, "\n{");
	if (difference->line > 0)
		hpx_operator_json_number(json, "line", difference->line);
	if (difference->name.ptr != NULL)
		hpx_operator_json_text(json, "name", difference->name);
	if (difference->has_reference)
		hpx_operator_json_text(json, "operation", hpx_span_of(difference->reference));
	if (difference->job > 0)
		hpx_operator_json_number(json, "job", (uint64_t)difference->job);
	hpx_operator_json_text(json, "text", difference->text);
	hpx_operator_json_bool(json, "settled", difference->settled);
	hpx_operator_json_close(json, "}");
}

static void json_group(struct hpx_operator_json *json, const char *member,
		       const struct hpx_group_list *list)
{
	hpx_operator_json_name(json, member);
	hpx_operator_json_open(json, "{");
	hpx_operator_json_number(json, "count", list->count);
	hpx_operator_json_number(json, "open", list->open);
	hpx_operator_json_name(json, "listed");
	hpx_operator_json_open(json, "[");
	for (const struct hpx_difference *d = list->first; d != NULL; d = d->next)
		json_difference(json, d);
	hpx_operator_json_close(json, "]");
	hpx_operator_json_close(json, "}");
}

static int print_json(const struct hpx_reconciliation *run)
{
	struct hpx_buffer out;
	struct hpx_operator_json json = { .out = &out };

	hpx_buffer_init(&out, JSON_MAX);
	hpx_operator_json_open(&json, "{");
	hpx_operator_json_number(&json, "rows", run->rows);
	hpx_operator_json_number(&json, "matched", run->matched);
	hpx_operator_json_number(&json, "ours", run->ours);
	hpx_operator_json_number(&json, "open", count_open(run));
	for (size_t i = 0; i < HPX_GROUP_COUNT; i++)
		json_group(&json, groups[i].member, &run->groups[i]);
	hpx_operator_json_close(&json, "}\n");
	int code = json.status == HPX_OK ? hpx_cli_write(hpx_buffer_span(&out), stdout) :
					   hpx_operator_complain(&run->command, HPX_EXIT_FAILED,
								 "it cannot be shown: %s",
								 hpx_status_text(json.status));
	hpx_buffer_done(&out);
	return code;
}

int hpx_reconcile_report(struct hpx_reconciliation *run)
{
	int code = HPX_EXIT_OK;

	if (run->command.json != NULL)
		code = print_json(run);
	else
		print_text(run);
	return code == HPX_EXIT_OK && count_open(run) > 0 ? HPX_EXIT_FAILED : code;
}
