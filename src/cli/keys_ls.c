/* `hapax keys ls`, and the table in which operations are shown. */
#include "cli/operator_command.h"
#include "cli/operator_json.h"

#define SHORT_ID 12
#define REQUEST_WIDTH_MAX 32
#define TENANT_WIDTH_MAX 16

const char *hpx_keys_state(const struct hpx_entry *entry)
{
	return hpx_state_name(entry->readable ? entry->record.state : HPX_STATE_UNKNOWN);
}

/* "in 23h", "expired", "never" for an unknown, "-" for what is in progress. Of
 * a pending one it is when it is given up. */
static void print_expiry(const struct hpx_operator_command *command, const struct hpx_record *record)
{
	char age[HPX_OPERATOR_AGE_SIZE];

	if (record->expires_ms == 0) {
		fputs(record->state == HPX_STATE_IN_PROGRESS ? "-" : "never", stdout);
	} else if (record->expires_ms <= command->now_ms) {
		fputs("expired", stdout);
	} else {
		hpx_operator_age(record->expires_ms - command->now_ms, age);
		printf("in %s", age);
	}
}

struct widths {
	size_t reference;
	size_t state;
	size_t request;
	size_t tenant;
};

static size_t request_len(const struct hpx_entry *entry)
{
	return entry->description.method.len + 1 + entry->description.path.len;
}

static struct widths measure(const struct hpx_operator_command *command,
			     const struct hpx_entry *entries, size_t count)
{
	struct widths widths = { command->full ? HPX_REFERENCE_LEN : SHORT_ID, 5, 7, 6 };

	for (size_t i = 0; i < count; i++) {
		widths.state =
			hpx_operator_clamp(strlen(hpx_keys_state(&entries[i])), widths.state, 16);
		widths.request = hpx_operator_clamp(request_len(&entries[i]), widths.request,
						    REQUEST_WIDTH_MAX);
		widths.tenant = hpx_operator_clamp(entries[i].description.tenant.len, widths.tenant,
						   TENANT_WIDTH_MAX);
	}
	return widths;
}

static void print_request(const struct hpx_entry *entry, size_t width)
{
	hpx_operator_print_request(entry->description.method, entry->description.path, width);
}

static void print_row(const struct hpx_operator_command *command, const struct hpx_entry *entry,
		      const struct widths *widths)
{
	const struct hpx_record *record = &entry->record;
	char reference[HPX_REFERENCE_SIZE], age[HPX_OPERATOR_AGE_SIZE];

	hpx_reference_print(&record->id, &record->mark, reference);
	hpx_operator_age(command->now_ms - record->created_ms, age);
	printf("%.*s  %-*s  %3u  ", (int)widths->reference, reference, (int)widths->state,
	       hpx_keys_state(entry), record->attempt);
	print_request(entry, widths->request);
	if (record->status != 0)
		printf("  %4u  ", record->status);
	else
		fputs("     -  ", stdout);
	hpx_operator_print_text(entry->description.tenant, widths->tenant);
	printf("  %4s  ", age);
	print_expiry(command, record);
	fputs(entry->readable ? "\n" : " (the record cannot be read)\n", stdout);
}

void hpx_keys_table(const struct hpx_operator_command *command, const struct hpx_entry *entries,
		    size_t count)
{
	struct widths widths = measure(command, entries, count);

	printf("%-*s  %-*s  TRY  %-*s  HTTP  %-*s   AGE  EXPIRES\n", (int)widths.reference,
	       "REFERENCE", (int)widths.state, "STATE", (int)widths.request, "REQUEST",
	       (int)widths.tenant, "TENANT");
	for (size_t i = 0; i < count; i++)
		print_row(command, &entries[i], &widths);
}

/* An array, an operation a line. */
static int print_json(struct hpx_operator_command *command, const struct hpx_entry *entries,
		      size_t count)
{
	struct hpx_buffer out;
	struct hpx_operator_json json = { .out = &out, .first = true };

	hpx_buffer_init(&out, (size_t)64 * 1024 * 1024);
	hpx_operator_json_open(&json, "[");
	for (size_t i = 0; i < count; i++) {
		hpx_operator_json_name(&json, NULL);
		hpx_operator_json_open(&json, "\n{");
		hpx_operator_json_entry(&json, &entries[i], command->now_ms);
		hpx_operator_json_close(&json, "}");
	}
	hpx_operator_json_close(&json, "\n]\n");
	int code = json.status == HPX_OK ?
			   hpx_cli_write(hpx_buffer_span(&out), stdout) :
			   hpx_operator_complain(command, HPX_EXIT_FAILED,
						 "the list is too large; use a smaller --limit");
	hpx_buffer_done(&out);
	return code;
}

static int read_query(struct hpx_operator_command *command, struct hpx_query *query)
{
	*query = (struct hpx_query){ .state = HPX_STATE_COUNT, .key = hpx_span_of(command->key) };
	int code = hpx_operator_limit(command, &query->limit);
	if (code != HPX_EXIT_OK)
		return code;
	if (command->state == NULL)
		return HPX_EXIT_OK;
	query->state = hpx_state_by_name(hpx_span_of(command->state));
	if (query->state == HPX_STATE_COUNT || query->state == HPX_STATE_NONE)
		return hpx_operator_complain(
			command, HPX_EXIT_USAGE,
			"there is no state \"%s\"; the states are pending, in_progress, "
			"failed_retryable, completed and unknown",
			command->state);
	return HPX_EXIT_OK;
}

int hpx_keys_ls(struct hpx_operator_command *command)
{
	struct hpx_entry *entries = NULL;
	struct hpx_query query;
	size_t count = 0;
	int code = read_query(command, &query);

	if (code != HPX_EXIT_OK)
		return code;
	enum hpx_status status =
		hpx_store_list(command->reader, &query, &command->arena, &entries, &count);
	if (status != HPX_OK)
		return hpx_operator_complain_read(command, status);
	if (command->json != NULL)
		return print_json(command, entries, count);
	if (count == 0) {
		puts("no operations");
		return HPX_EXIT_OK;
	}
	hpx_keys_table(command, entries, count);
	if (count == query.limit)
		fprintf(stderr, "The %zu newest are shown; --limit N shows more.\n", count);
	return HPX_EXIT_OK;
}
