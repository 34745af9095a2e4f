/* `hapax keys`: shows operations, and settles those that a person must settle. It works
 * beside a running `hapax serve` and never creates a store. Here are ls, finding one
 * operation, and the table of verbs. */
#include <ctype.h>

#include "base/bytes.h"
#include "base/status.h"
#include "cli/operations.h"

/* The first digits of a reference in a table; as many as `resolve` prints. */
#define SHORT_ID 12
#define REQUEST_WIDTH_MAX 32
#define TENANT_WIDTH_MAX 16

/* The fewest digits of a reference that are searched for. */
#define PREFIX_MIN 6
/* Operations among which they are searched for. */
#define SEARCH_MAX 10000
#define SAME_KEY_MAX 100

/* ---- ls, and the table in which operations are shown ---- */

const char *hpx_keys_state(const struct hpx_entry *entry)
{
	return hpx_state_name(entry->readable ? entry->record.state : HPX_STATE_UNKNOWN);
}

/* "in 23h", "expired", "never" for an unknown outcome, "-" while it is in progress. A
 * pending operation is given up at that time. */
static void print_expiry(const struct hpx_operator_command *command, const struct hpx_record *record)
{
	char age[HPX_OPERATOR_AGE_SIZE];

	if (record->expires_ms == 0) {
		printf("%-7s", record->state == HPX_STATE_IN_PROGRESS ? "-" : "never");
	} else if (record->expires_ms <= command->now_ms) {
		fputs("expired", stdout);
	} else {
		hpx_operator_age(record->expires_ms - command->now_ms, age);
		printf("in %-4s", age);
	}
}

struct key_widths {
	size_t reference;
	size_t state;
	size_t request;
	size_t tenant;
};

static size_t request_len(const struct hpx_entry *entry)
{
	return entry->description.method.len + 1 + entry->description.path.len;
}

static struct key_widths measure(const struct hpx_operator_command *command,
				 const struct hpx_entry *entries, size_t count)
{
	struct key_widths widths = { command->full ? HPX_REFERENCE_LEN : SHORT_ID, 5, 7, 6 };

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

static void print_row(const struct hpx_operator_command *command, const struct hpx_entry *entry,
		      const struct key_widths *widths)
{
	const struct hpx_record *record = &entry->record;
	char reference[HPX_REFERENCE_SIZE], age[HPX_OPERATOR_AGE_SIZE];

	hpx_reference_print(&record->id, &record->mark, reference);
	hpx_operator_age(command->now_ms - record->created_ms, age);
	printf("%.*s  %-*s  %3u  ", (int)widths->reference, reference, (int)widths->state,
	       hpx_keys_state(entry), record->attempt);
	hpx_operator_print_request(entry->description.method, entry->description.path,
				   widths->request);
	if (record->status != 0)
		printf("  %4u  ", record->status);
	else
		fputs("     -  ", stdout);
	hpx_operator_print_text(entry->description.tenant, widths->tenant);
	printf("  %4s  ", age);
	print_expiry(command, record);
	printf("  %s", record->last_error != HPX_LAST_ERROR_NONE ? hpx_last_error_name(record->last_error) : "-");
	fputs(entry->readable ? "\n" : " (the record cannot be read)\n", stdout);
}

static void print_table(const struct hpx_operator_command *command, const struct hpx_entry *entries,
			size_t count)
{
	struct key_widths widths = measure(command, entries, count);

	printf("%-*s  %-*s  TRY  %-*s  HTTP  %-*s   AGE  EXPIRES  LAST ERROR\n", (int)widths.reference,
	       "REFERENCE", (int)widths.state, "STATE", (int)widths.request, "REQUEST",
	       (int)widths.tenant, "TENANT");
	for (size_t i = 0; i < count; i++)
		print_row(command, &entries[i], &widths);
}

static void json_description(struct hpx_json_writer *json, const struct hpx_description *d)
{
	hpx_json_put_string(json, "method", d->method);
	hpx_json_put_string(json, "path", d->path);
	hpx_json_put_string(json, "route", d->route);
	hpx_json_put_string(json, "key", d->key);
	hpx_json_put_string(json, "tenant", d->tenant);
	hpx_json_put_string(json, "scope", d->scope);
}

void hpx_keys_json(struct hpx_json_writer *json, const struct hpx_entry *entry,
		   int64_t now_ms)
{
	const struct hpx_record *record = &entry->record;
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(&record->id, &record->mark, reference);
	hpx_json_put_text(json, "reference", reference);
	hpx_json_put_text(json, "state", hpx_keys_state(entry));
	hpx_json_put_bool(json, "readable", entry->readable);
	hpx_json_put_number(json, "attempt", record->attempt);
	hpx_json_put_number(json, "status", record->status);
	hpx_json_put_bool(json, "kept", record->kept);
	hpx_json_put_text(json, "last_error", hpx_last_error_name(record->last_error));
	json_description(json, &entry->description);
	hpx_json_put_time(json, "created", record->created_ms);
	hpx_json_put_time(json, "changed", record->changed_ms);
	hpx_json_put_time(json, "expires", record->expires_ms);
	hpx_json_put_bool(json, "expired",
			  record->expires_ms != 0 && record->expires_ms <= now_ms);
}

/* An array, an operation a line. */
static int print_json(struct hpx_operator_command *command, const struct hpx_entry *entries,
		      size_t count)
{
	struct hpx_buffer out;
	struct hpx_json_writer json;

	hpx_cli_json_init(&json, &out);
	hpx_json_begin_array(&json, NULL);
	for (size_t i = 0; i < count; i++) {
		hpx_json_break_line(&json);
		hpx_json_begin_object(&json, NULL);
		hpx_keys_json(&json, &entries[i], command->now_ms);
		hpx_json_end_object(&json);
	}
	hpx_json_break_line(&json);
	hpx_json_end_array(&json);
	return hpx_cli_json_print(&json, command->verb,
				  "the list cannot be printed; use a smaller --limit");
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

/* Adds the operations whose key is stored as its hash (key_storage: hash), newest first. */
static enum hpx_status add_hashed(struct hpx_operator_command *command, const struct hpx_query *query,
				  struct hpx_entry **entries, size_t *count)
{
	struct hpx_query hashed = *query;
	struct hpx_entry *more = NULL, *all;
	size_t more_count = 0, n = 0, a = 0, b = 0;
	char text[HPX_KEY_HASH_SIZE];
	enum hpx_status status = hpx_key_hash_print(query->key, text);

	hashed.key = hpx_span_of(text);
	if (status == HPX_OK)
		status = hpx_store_list(command->reader, &hashed, &command->arena, &more, &more_count);
	if (status != HPX_OK || more_count == 0)
		return status;
	all = hpx_arena_zalloc(&command->arena, *count + more_count, sizeof(*all));
	if (all == NULL)
		return HPX_NOMEM;
	while (n < query->limit && (a < *count || b < more_count)) {
		bool first = b == more_count ||
			     (a < *count && (*entries)[a].record.changed_ms >= more[b].record.changed_ms);
		all[n++] = first ? (*entries)[a++] : more[b++];
	}
	*entries = all;
	*count = n;
	return HPX_OK;
}

/* Reads the operations of a query. HPX_EXIT_OK, or the exit code after a message. */
static int read_list(struct hpx_operator_command *command, const struct hpx_query *query,
		     struct hpx_entry **ret_entries, size_t *ret_count)
{
	enum hpx_status status =
		hpx_store_list(command->reader, query, &command->arena, ret_entries, ret_count);

	if (status == HPX_OK && query->key.ptr != NULL)
		status = add_hashed(command, query, ret_entries, ret_count);
	HPX_ASSERT(status != HPX_OK || *ret_count <= query->limit);
	return status == HPX_OK ? HPX_EXIT_OK : hpx_operator_complain_read(command, status);
}

static int list_operations(struct hpx_operator_command *command)
{
	struct hpx_entry *entries = NULL;
	struct hpx_query query;
	size_t count = 0;
	int code = read_query(command, &query);

	if (code == HPX_EXIT_OK)
		code = read_list(command, &query, &entries, &count);
	if (code != HPX_EXIT_OK)
		return code;
	if (command->json != NULL)
		return print_json(command, entries, count);
	if (count == 0) {
		puts("no operations");
		return HPX_EXIT_OK;
	}
	print_table(command, entries, count);
	if (count == query.limit)
		fprintf(stderr, "The %zu newest are shown; --limit N shows more.\n", count);
	return HPX_EXIT_OK;
}

/* ---- finding one operation ----
 * A whole reference is looked up. The beginning of a reference is searched for among
 * the unknown and the newest operations, because those are in the tables that people
 * read. */

static bool is_hex(struct hpx_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!isxdigit((unsigned char)text.ptr[i]))
			return false;
	return true;
}

/* A forgotten operation has left its events, which say who removed it and why. */
static int complain_absent(struct hpx_operator_command *command, const struct hpx_operation_id *id)
{
	struct hpx_event *events = NULL;
	size_t count = 0;
	enum hpx_status status =
		hpx_store_events(command->reader, id, &command->arena, &events, &count);

	if (status != HPX_OK)
		return hpx_operator_complain_read(command, status);
	if (count == 0)
		return hpx_operator_complain(
			command, HPX_EXIT_FAILED,
			"there is no such operation; `hapax keys ls%s` lists those "
			"that are there",
			hpx_operator_where(command));
	puts("history");
	for (size_t i = 0; i < count; i++)
		hpx_operator_print_event(&events[i]);
	return hpx_operator_complain(command, HPX_EXIT_FAILED,
				     "there is no record of it any more; this is what is left");
}

static int find_id(struct hpx_operator_command *command, const struct hpx_operation_id *id,
		   struct hpx_entry *ret_entry)
{
	enum hpx_status status =
		hpx_store_find(command->reader, id, &command->arena, ret_entry, NULL);

	if (status == HPX_NOT_FOUND)
		return complain_absent(command, id);
	return status == HPX_OK ? HPX_EXIT_OK : hpx_operator_complain_read(command, status);
}

static int find_reference(struct hpx_operator_command *command, const struct hpx_operation_id *id,
			  const struct hpx_mark *mark, struct hpx_entry *ret_entry)
{
	char reference[HPX_REFERENCE_SIZE];
	int code = find_id(command, id, ret_entry);

	if (code != HPX_EXIT_OK || !ret_entry->readable ||
	    hpx_mark_eq(mark, &ret_entry->record.mark))
		return code;
	hpx_reference_print(id, &ret_entry->record.mark, reference);
	return hpx_operator_complain(command, HPX_EXIT_FAILED,
				     "that operation has expired or was forgotten, and its key is in "
				     "use again; the present one is\n%s",
				     reference);
}

static bool begins(const struct hpx_entry *entry, struct hpx_span prefix)
{
	char id[2 * HPX_OPERATION_ID_SIZE + 1];

	hpx_hex_encode(entry->record.id.bytes, HPX_OPERATION_ID_SIZE, id);
	return hpx_span_istarts(hpx_span_of(id), prefix);
}

/* Finds operations whose id begins with the prefix. `*found` becomes the last of them;
 * `*count` grows by one for each that is not `*found` already. */
static int search(struct hpx_operator_command *command, enum hpx_state state, struct hpx_span prefix,
		  struct hpx_entry *found, size_t *count)
{
	struct hpx_query query = { .state = state, .limit = SEARCH_MAX };
	struct hpx_entry *entries = NULL;
	size_t n = 0;

	HPX_ASSERT(prefix.len >= PREFIX_MIN);
	int code = read_list(command, &query, &entries, &n);
	if (code != HPX_EXIT_OK)
		return code;
	for (size_t i = 0; i < n; i++) {
		if (!begins(&entries[i], prefix))
			continue;
		if (*count > 0 && hpx_operation_id_eq(&entries[i].record.id, &found->record.id))
			continue;
		*found = entries[i];
		(*count)++;
	}
	return HPX_EXIT_OK;
}

static int find_prefix(struct hpx_operator_command *command, struct hpx_span prefix,
		       struct hpx_entry *ret_entry)
{
	size_t count = 0;
	int code = search(command, HPX_STATE_UNKNOWN, prefix, ret_entry, &count);

	if (code == HPX_EXIT_OK)
		code = search(command, HPX_STATE_COUNT, prefix, ret_entry, &count);
	if (code != HPX_EXIT_OK)
		return code;
	if (count == 1)
		return HPX_EXIT_OK;
	if (count > 1)
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "several operations begin with %.*s; give more of the "
					     "reference (`hapax keys ls --full%s`)",
					     HPX_SPAN_ARG(prefix), hpx_operator_where(command));
	return hpx_operator_complain(
		command, HPX_EXIT_FAILED,
		"none of the %d newest operations begins with %.*s; give the whole "
		"reference for an older one, or --key KEY",
		SEARCH_MAX, HPX_SPAN_ARG(prefix));
}

int hpx_keys_find_reference(struct hpx_operator_command *command, const char *reference,
			    struct hpx_entry *ret_entry)
{
	struct hpx_span text = hpx_span_of(reference);
	struct hpx_operation_id id;
	struct hpx_mark mark;

	if (hpx_reference_parse(text, &id, &mark))
		return find_reference(command, &id, &mark, ret_entry);
	if (hpx_hex_decode(text, id.bytes, sizeof(id.bytes)))
		return find_id(command, &id, ret_entry);
	if (text.len >= PREFIX_MIN && text.len < 2 * HPX_OPERATION_ID_SIZE && is_hex(text))
		return find_prefix(command, text, ret_entry);
	return hpx_operator_complain(
		command, HPX_EXIT_USAGE,
		"\"%s\" is not a reference, nor the first %d or more hexadecimal "
		"digits of one; a client's key is given as --key KEY",
		reference, PREFIX_MIN);
}

static int find_key(struct hpx_operator_command *command, struct hpx_entry *ret_entry)
{
	struct hpx_query query = { .state = HPX_STATE_COUNT,
				   .key = hpx_span_of(command->key),
				   .limit = SAME_KEY_MAX };
	struct hpx_entry *entries = NULL;
	size_t count = 0;
	int code = read_list(command, &query, &entries, &count);

	if (code != HPX_EXIT_OK)
		return code;
	if (count == 0)
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "no operation has the key \"%s\" (it may have expired)",
					     command->key);
	if (count > 1) {
		print_table(command, entries, count);
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "%zu operations have this key, of several tenants or "
					     "scopes; name one by its reference",
					     count);
	}
	*ret_entry = entries[0];
	return HPX_EXIT_OK;
}

int hpx_keys_find(struct hpx_operator_command *command, struct hpx_entry *ret_entry)
{
	if ((command->operand == NULL) == (command->key == NULL))
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "name one operation: by its REFERENCE, or by --key KEY");
	if (command->key != NULL)
		return find_key(command, ret_entry);
	return hpx_keys_find_reference(command, command->operand, ret_entry);
}

/* ---- the command ---- */

static const struct hpx_operator_verb verbs[] = {
	{ .name = "ls",
	  .synopsis = "hapax keys ls [--state STATE] [--key KEY] [--limit N]",
	  .about = "Lists operations, those that changed last first.",
	  .flags = { "state", "key", "limit", "full", "json" },
	  .run = list_operations },
	{ .name = "show",
	  .synopsis = "hapax keys show REFERENCE | --key KEY",
	  .about = "Shows all that is known of one operation: its record, its jobs, its history and\n"
		   "the stored answer. REFERENCE may be cut to its first 6 or more digits.",
	  .flags = { "key", "body", "json" },
	  .operands_max = 1,
	  .run = hpx_keys_show },
	{ .name = "resolve",
	  .synopsis = "hapax keys resolve REFERENCE (--applied (--response FILE | --status N) |\n"
		      "                          --not-applied) --reason TEXT",
	  .about = "Settles an operation whose outcome is unknown, after you found out what became\n"
		   "of it. Nothing overrides a completed operation. --force is for a record that\n"
		   "cannot be read.",
	  .flags = { "key", "applied", "not-applied", "response", "status", "reason", "force",
		     "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_keys_resolve },
	{ .name = "forget",
	  .synopsis = "hapax keys forget REFERENCE --reason TEXT",
	  .about = "Removes the record of an operation: the next request with its key is executed.\n"
		   "An operation that is in progress, unknown or unreadable needs --force: it may\n"
		   "have happened, and would then happen twice.",
	  .flags = { "key", "reason", "force", "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_keys_forget },
	{ .name = "accept-clock",
	  .synopsis = "hapax keys accept-clock --reason TEXT",
	  .about = "Says that the wall clock is right as it is now. When the clock was set, hapax\n"
		   "lets nothing expire until a person has said so with this command.",
	  .flags = { "reason", "json" },
	  .writes = true,
	  .run = hpx_keys_accept_clock },
};

int hpx_cli_keys(int argc, char **argv)
{
	static const struct hpx_operator_verbs command = {
		.name = "keys",
		.about =
			"Lists and shows the operations in the store, and settles those that a person\n"
			"must settle. Works beside a running hapax serve.",
		.verb_names = "ls, show, resolve, forget and accept-clock",
		.verbs = verbs,
		.verb_count = sizeof(verbs) / sizeof(verbs[0]),
	};

	return hpx_operator_run(&command, argc, argv);
}
