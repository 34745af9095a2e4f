/* From what a person types to one operation. A reference is looked up; the
 * beginning of one is looked for among the unknown and the newest operations,
 * because nothing else is within reach of a table that people read. */
#include <ctype.h>

#include "base/bytes.h"
#include "cli/operator_command.h"

#define PREFIX_MIN 6
#define SEARCH_MAX 10000
#define SAME_KEY_MAX 100

static bool is_hex(struct hpx_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!isxdigit((unsigned char)text.ptr[i]))
			return false;
	return true;
}

/* What was forgotten has left its events, which say who did it and why. */
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
			"there is no such operation; `hapax keys ls` lists those "
			"that are there");
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

static int list(struct hpx_operator_command *command, const struct hpx_query *query,
		struct hpx_entry **ret_entries, size_t *ret_count)
{
	enum hpx_status status =
		hpx_store_list(command->reader, query, &command->arena, ret_entries, ret_count);

	return status == HPX_OK ? HPX_EXIT_OK : hpx_operator_complain_read(command, status);
}

static bool begins(const struct hpx_entry *entry, struct hpx_span prefix)
{
	char id[2 * HPX_OPERATION_ID_SIZE + 1];

	hpx_hex_encode(entry->record.id.bytes, HPX_OPERATION_ID_SIZE, id);
	return hpx_span_istarts(hpx_span_of(id), prefix);
}

/* The operation that begins so; `*count` grows by one for each other one. */
static int search(struct hpx_operator_command *command, enum hpx_state state, struct hpx_span prefix,
		  struct hpx_entry *found, size_t *count)
{
	struct hpx_query query = { .state = state, .limit = SEARCH_MAX };
	struct hpx_entry *entries = NULL;
	size_t n = 0;
	int code = list(command, &query, &entries, &n);

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
					     "reference (`hapax keys ls --full`)",
					     HPX_SPAN_ARG(prefix));
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
	int code = list(command, &query, &entries, &count);

	if (code != HPX_EXIT_OK)
		return code;
	if (count == 0)
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "no operation has the key \"%s\" (it may have expired)",
					     command->key);
	if (count > 1) {
		hpx_keys_table(command, entries, count);
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
