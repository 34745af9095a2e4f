/* `hapax keys ls`, and the table in which operations are shown. */
#include <stdlib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/keys.h"
#include "cli/keys_json.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX 10000
#define SHORT_ID 12
#define REQUEST_WIDTH_MAX 32
#define TENANT_WIDTH_MAX 16

void hpx_keys_age(int64_t ms, char out[HPX_KEYS_AGE_SIZE])
{
	static const struct {
		int64_t ms;
		char unit;
	} units[] = { { 86400000, 'd' }, { 3600000, 'h' }, { 60000, 'm' } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ms >= 2 * units[i].ms) {
			snprintf(out, HPX_KEYS_AGE_SIZE, "%lld%c", (long long)(ms / units[i].ms),
				 units[i].unit);
			return;
		}
	}
	snprintf(out, HPX_KEYS_AGE_SIZE, "%llds", (long long)(ms > 0 ? ms / 1000 : 0));
}

const char *hpx_keys_state(const struct hpx_entry *entry)
{
	return hpx_state_name(entry->readable ? entry->record.state : HPX_STATE_UNKNOWN);
}

/* What was stored came from clients: it must not steer the terminal. */
void hpx_keys_print_text(struct hpx_span text, size_t width)
{
	size_t columns = 0;

	while (text.len > 0 && (width == 0 || columns < width)) {
		size_t n = hpx_utf8_sequence(text);
		unsigned char c = (unsigned char)text.ptr[0];

		if (n > 1 && hpx_utf8_decode(text) >= 0xa0)
			fwrite(text.ptr, 1, n, stdout);
		else
			putchar(n == 1 && c >= 0x20 && c < 0x7f ? c : '?');
		text = hpx_span_skip(text, n > 0 ? n : 1);
		columns++;
	}
	for (; columns < width; columns++)
		putchar(' ');
}

/* "in 23h", "expired", "never" for an unknown, "-" for what is in progress. */
static void print_expiry(const struct hpx_keys *keys, const struct hpx_record *record)
{
	char age[HPX_KEYS_AGE_SIZE];

	if (record->expires_ms == 0) {
		fputs(record->state == HPX_STATE_IN_PROGRESS ? "-" : "never", stdout);
	} else if (record->expires_ms <= keys->now_ms) {
		fputs("expired", stdout);
	} else {
		hpx_keys_age(record->expires_ms - keys->now_ms, age);
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

static size_t clamp(size_t value, size_t least, size_t most)
{
	if (value < least)
		return least;
	return value > most ? most : value;
}

static struct widths measure(const struct hpx_keys *keys, const struct hpx_entry *entries,
			     size_t count)
{
	struct widths widths = { keys->full ? HPX_REFERENCE_LEN : SHORT_ID, 5, 7, 6 };

	for (size_t i = 0; i < count; i++) {
		widths.state = clamp(strlen(hpx_keys_state(&entries[i])), widths.state, 16);
		widths.request = clamp(request_len(&entries[i]), widths.request,
				       REQUEST_WIDTH_MAX);
		widths.tenant = clamp(entries[i].description.tenant.len, widths.tenant,
				      TENANT_WIDTH_MAX);
	}
	return widths;
}

static void print_request(const struct hpx_entry *entry, size_t width)
{
	char text[REQUEST_WIDTH_MAX * 4 + 1];
	const struct hpx_description *d = &entry->description;
	int n = snprintf(text, sizeof(text), "%.*s %.*s", HPX_SPAN_ARG(d->method),
			 HPX_SPAN_ARG(d->path));

	hpx_keys_print_text(hpx_span(text, clamp((size_t)(n > 0 ? n : 0), 0, sizeof(text) - 1)),
			    width);
}

static void print_row(const struct hpx_keys *keys, const struct hpx_entry *entry,
		      const struct widths *widths)
{
	const struct hpx_record *record = &entry->record;
	char reference[HPX_REFERENCE_SIZE], age[HPX_KEYS_AGE_SIZE];

	hpx_reference_print(&record->id, &record->first, reference);
	hpx_keys_age(keys->now_ms - record->created_ms, age);
	printf("%.*s  %-*s  %3u  ", (int)widths->reference, reference, (int)widths->state,
	       hpx_keys_state(entry), record->attempt);
	print_request(entry, widths->request);
	if (record->status != 0)
		printf("  %4u  ", record->status);
	else
		fputs("     -  ", stdout);
	hpx_keys_print_text(entry->description.tenant, widths->tenant);
	printf("  %4s  ", age);
	print_expiry(keys, record);
	fputs(entry->readable ? "\n" : " (the record cannot be read)\n", stdout);
}

void hpx_keys_table(const struct hpx_keys *keys, const struct hpx_entry *entries, size_t count)
{
	struct widths widths = measure(keys, entries, count);

	printf("%-*s  %-*s  TRY  %-*s  HTTP  %-*s   AGE  EXPIRES\n", (int)widths.reference,
	       "REFERENCE", (int)widths.state, "STATE", (int)widths.request, "REQUEST",
	       (int)widths.tenant, "TENANT");
	for (size_t i = 0; i < count; i++)
		print_row(keys, &entries[i], &widths);
}

/* An array, an operation a line. */
static int print_json(struct hpx_keys *keys, const struct hpx_entry *entries, size_t count)
{
	struct hpx_buffer out;
	struct hpx_keys_json json = { .out = &out, .first = true };

	hpx_buffer_init(&out, (size_t)64 * 1024 * 1024);
	hpx_keys_json_open(&json, "[");
	for (size_t i = 0; i < count; i++) {
		hpx_keys_json_name(&json, NULL);
		hpx_keys_json_open(&json, "\n{");
		hpx_keys_json_entry(&json, &entries[i], keys->now_ms);
		hpx_keys_json_close(&json, "}");
	}
	hpx_keys_json_close(&json, "\n]\n");
	int code = json.status == HPX_OK ?
			   hpx_cli_write(hpx_buffer_span(&out), stdout) :
			   hpx_keys_complain(keys, HPX_EXIT_FAILED,
					     "the list is too large; use a smaller --limit");
	hpx_buffer_done(&out);
	return code;
}

static int read_query(struct hpx_keys *keys, struct hpx_query *query)
{
	uint64_t limit = LIMIT_DEFAULT;

	*query = (struct hpx_query){ .state = HPX_STATE_COUNT, .key = hpx_span_of(keys->key) };
	if (keys->limit != NULL &&
	    (!hpx_span_u64(hpx_span_of(keys->limit), LIMIT_MAX, &limit) || limit == 0))
		return hpx_keys_complain(keys, HPX_EXIT_USAGE, "--limit is a number from 1 to %d",
					 LIMIT_MAX);
	query->limit = (unsigned)limit;
	if (keys->state == NULL)
		return HPX_EXIT_OK;
	query->state = hpx_state_by_name(hpx_span_of(keys->state));
	if (query->state == HPX_STATE_COUNT || query->state == HPX_STATE_NONE)
		return hpx_keys_complain(keys, HPX_EXIT_USAGE,
					 "there is no state \"%s\"; the states are in_progress, "
					 "failed_retryable, completed and unknown",
					 keys->state);
	return HPX_EXIT_OK;
}

int hpx_keys_ls(struct hpx_keys *keys)
{
	struct hpx_entry *entries = NULL;
	struct hpx_query query;
	size_t count = 0;
	int code = read_query(keys, &query);

	if (code != HPX_EXIT_OK)
		return code;
	enum hpx_status status =
		hpx_store_list(keys->reader, &query, &keys->arena, &entries, &count);
	if (status != HPX_OK)
		return hpx_keys_complain(keys, HPX_EXIT_FAILED, "the store cannot be read: %s",
					 hpx_status_text(status));
	if (keys->json != NULL)
		return print_json(keys, entries, count);
	if (count == 0) {
		puts("no operations");
		return HPX_EXIT_OK;
	}
	hpx_keys_table(keys, entries, count);
	if (count == query.limit)
		fprintf(stderr, "The %zu newest are shown; --limit N shows more.\n", count);
	return HPX_EXIT_OK;
}
