/* `hapax keys`: shows operations, and settles those that a person must settle. It works
 * beside a running `hapax serve` and never creates a store. Here are finding one
 * operation, and the table of verbs. */
#include <ctype.h>

#include "base/bytes.h"
#include "base/status.h"
#include "cli/operations.h"
#include "gateway/tenant.h"
#include "http/target.h"

/* The fewest digits of a reference that are searched for. */
#define PREFIX_MIN 6
/* Operations among which they are searched for. */
#define SEARCH_MAX 10000
#define SAME_KEY_MAX 100
/* Operations whose tenants are compared with a --tenant that found nothing. */
#define SUGGEST_AMONG 1000

int hpx_keys_read(struct hpx_operator_command *command, const struct hpx_query *query,
		  struct hpx_arena *arena, struct hpx_entry **ret_entries, size_t *ret_count,
		  struct hpx_looked *ret_looked)
{
	enum hpx_status status = hpx_store_list(command->reader, query, arena, ret_entries,
						ret_count, ret_looked);

	HPX_ASSERT(status != HPX_OK || query->walk != NULL || *ret_count <= query->limit);
	return status == HPX_OK ? HPX_EXIT_OK : hpx_operator_complain_read(command, status);
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

/* A forgotten operation has left its events, which say who removed it and why. False:
 * there are none; true: exit with `*ret_code`. */
static bool tell_removed(struct hpx_operator_command *command, const struct hpx_operation_id *id,
			 int *ret_code)
{
	struct hpx_event *events = NULL;
	size_t count = 0;
	enum hpx_status status =
		hpx_store_events(command->reader, id, &command->arena, &events, &count);

	if (status == HPX_OK && count == 0)
		return false;
	if (status != HPX_OK) {
		*ret_code = hpx_operator_complain_read(command, status);
		return true;
	}
	puts("history");
	for (size_t i = 0; i < count; i++)
		hpx_operator_print_event(&events[i]);
	*ret_code = hpx_operator_complain(command, HPX_EXIT_FAILED,
					  "its record was removed; this is its history");
	return true;
}

static int complain_absent(struct hpx_operator_command *command, const struct hpx_operation_id *id)
{
	int code;

	if (tell_removed(command, id, &code))
		return code;
	return hpx_operator_complain(command, HPX_EXIT_FAILED,
				     "there is no such operation; `hapax keys ls%s` lists those "
				     "that are there",
				     hpx_operator_where(command));
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
	struct hpx_looked looked;
	size_t n = 0;

	HPX_ASSERT(prefix.len >= PREFIX_MIN);
	int code = hpx_keys_read(command, &query, &command->arena, &entries, &n, &looked);
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

/* ---- a tenant's name as people write it ----
 * The store has "header:acme" where a person writes "acme", or copies the beginning of a
 * longer name out of a table. */

/* Whether a tenant's name has the text at its beginning, or after a part of it that ends
 * as "header:" or an issuer's "#". */
static bool has_word(struct hpx_span name, struct hpx_span text)
{
	for (size_t at = 0; at + text.len <= name.len; at++)
		if ((at == 0 || name.ptr[at - 1] == ':' || name.ptr[at - 1] == '#') &&
		    memcmp(name.ptr + at, text.ptr, text.len) == 0)
			return true;
	return false;
}

/* A name of one of these that is like the text; ptr NULL: none is, or one is the same. */
static struct hpx_span tenant_like(struct hpx_span text, const struct hpx_entry *entries, size_t count)
{
	struct hpx_span like = { NULL, 0 };

	for (size_t i = 0; i < count; i++) {
		struct hpx_span name = entries[i].description.tenant;
		if (hpx_span_eq(name, text))
			return (struct hpx_span){ NULL, 0 };
		if (like.ptr == NULL && has_word(name, text))
			like = name;
	}
	return like;
}

void hpx_keys_suggest_tenant(struct hpx_operator_command *command)
{
	struct hpx_span text = hpx_span_of(command->tenant), like = { NULL, 0 };
	struct hpx_query query = { .state = HPX_STATE_COUNT, .limit = SUGGEST_AMONG };
	struct hpx_entry *entries = NULL;
	struct hpx_looked looked;
	struct hpx_arena arena; /* --watch asks again and again */
	size_t count = 0;

	if (text.len == 0)
		return;
	hpx_arena_init(&arena, HPX_OPERATOR_ARENA_MAX);
	/* Only a hint: where it cannot be had, the answer before it stands. */
	if (hpx_store_list(command->reader, &query, &arena, &entries, &count, &looked) == HPX_OK)
		like = tenant_like(text, entries, count);
	if (like.ptr != NULL) {
		fprintf(stderr, "There is no tenant \"%s\" among the newest operations; did you mean ",
			command->tenant);
		hpx_operator_write_text(like, 0, stderr);
		fputs("?\n", stderr);
	}
	hpx_arena_done(&arena);
}

/* The scope of a request, as the configuration has it; without one, by method and path,
 * of the upstream that has no name of its own. */
static enum hpx_status find_scope(struct hpx_operator_command *command, struct hpx_span method,
				  const struct hpx_target *target, struct hpx_span *ret_scope)
{
	const struct hpx_settings *settings = command->settings;
	struct hpx_span path = target->path;
	struct hpx_span host = target->authority.ptr != NULL ? target->authority : HPX_SPAN("");
	const struct hpx_span parts[] = { HPX_SPAN(HPX_UPSTREAM_DEFAULT), HPX_SPAN(" "), method,
					  HPX_SPAN(" "), path };

	if (settings != NULL)
		return hpx_scope_of(settings, hpx_route_match(settings, method, host, path),
				    method, path, &command->arena, ret_scope);
	*ret_scope = hpx_arena_join(&command->arena, parts, 5);
	return ret_scope->ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static int complain_no_request(struct hpx_operator_command *command, const struct hpx_operation_id *id,
			       struct hpx_span scope)
{
	int code;

	if (tell_removed(command, id, &code))
		return code;
	code = hpx_operator_complain(command, HPX_EXIT_FAILED,
				     "no operation has this tenant, key and scope (%.*s)%s", HPX_SPAN_ARG(scope),
				     command->settings != NULL ?
					     "; it may have expired" :
					     "; it may have expired, or the route has another scope: "
					     "--config FILE names it");
	hpx_keys_suggest_tenant(command);
	return code;
}

/* Tenant, method, path and key name an operation: no search. */
static int find_request(struct hpx_operator_command *command, struct hpx_entry *ret_entry)
{
	struct hpx_span method = hpx_span_of(command->method != NULL ? command->method : "POST");
	const char *reason = "it is not the path of a request";
	struct hpx_operation_id id;
	struct hpx_target target;
	struct hpx_span scope;

	if (hpx_target_parse(method, hpx_span_of(command->path), &command->arena, &target, &reason) !=
	    HPX_OK)
		return hpx_operator_complain(command, HPX_EXIT_USAGE, "--path %s: %s", command->path,
					     reason);
	enum hpx_status status = find_scope(command, method, &target, &scope);
	if (status == HPX_OK)
		status = hpx_operation_id(hpx_span_of(command->tenant), scope,
					  hpx_span_of(command->key), &id);
	if (status == HPX_OK)
		status = hpx_store_find(command->reader, &id, &command->arena, ret_entry, NULL);
	if (status == HPX_NOT_FOUND)
		return complain_no_request(command, &id, scope);
	return status == HPX_OK ? HPX_EXIT_OK : hpx_operator_complain_read(command, status);
}

static int complain_no_key(struct hpx_operator_command *command, const struct hpx_looked *looked)
{
	struct hpx_span key = hpx_operator_quote(&command->arena, command->key);
	int code = hpx_operator_complain(command, HPX_EXIT_FAILED, "no operation has the key \"%s\"%s",
					 command->key,
					 looked->all ? " (it may have expired)" :
						       " among those that were looked at; "
						       "--tenant, --method and --path find it "
						       "however old it is");
	if (looked->all && key.ptr != NULL)
		fprintf(stderr, "If it has expired, `hapax history --key %.*s%s` has what is left of it.\n",
			HPX_SPAN_ARG(key), hpx_operator_where(command));
	hpx_keys_print_looked(looked, stderr);
	hpx_keys_suggest_tenant(command);
	return code;
}

/* By the key alone: among the newest. Before anything is changed, among all: another
 * operation may have the same key. */
static int find_key(struct hpx_operator_command *command, struct hpx_entry *ret_entry)
{
	struct hpx_walk walk = { .ended = false };
	struct hpx_query query = { .state = HPX_STATE_COUNT,
				   .key = hpx_span_of(command->key),
				   .tenant = hpx_span_of(command->tenant),
				   .limit = SAME_KEY_MAX,
				   .walk = command->reason != NULL ? &walk : NULL };
	struct hpx_entry *entries = NULL;
	struct hpx_looked looked;
	size_t count = 0;
	int code = hpx_keys_read(command, &query, &command->arena, &entries, &count, &looked);

	if (code != HPX_EXIT_OK)
		return code;
	if (count == 0)
		return complain_no_key(command, &looked);
	if (count > 1) {
		hpx_keys_table(command, entries, count);
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "%zu operations have this key, of several tenants or "
					     "scopes; name one by its reference",
					     count);
	}
	hpx_keys_print_looked(&looked, stderr);
	*ret_entry = entries[0];
	return HPX_EXIT_OK;
}

int hpx_keys_find(struct hpx_operator_command *command, struct hpx_entry *ret_entry)
{
	if ((command->operand == NULL) == (command->key == NULL))
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "name one operation: by its REFERENCE, or by --key KEY");
	if (command->key == NULL &&
	    (command->tenant != NULL || command->method != NULL || command->path != NULL))
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "--tenant, --method and --path go with --key");
	if ((command->method != NULL && command->path == NULL) ||
	    (command->path != NULL && command->tenant == NULL))
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "a request is named by --tenant, --method (default POST) "
					     "and --path together");
	if (command->path != NULL)
		return find_request(command, ret_entry);
	if (command->key != NULL)
		return find_key(command, ret_entry);
	return hpx_keys_find_reference(command, command->operand, ret_entry);
}

/* ---- the command ---- */

static const struct hpx_operator_verb verbs[] = {
	{ .name = "ls",
	  .synopsis = "hapax keys ls [--state STATE] [--tenant NAME] [--route PATTERN]\n"
		      "                [--error NAME] [--since TIME] [--key KEY] [--limit N] [--watch]",
	  .about = "Lists operations, those that changed last first. It looks at the newest; if\n"
		   "that is not all of them, it says how far it looked.",
	  .flags = { "state", "key", "tenant", "route", "error", "since", "limit", "watch", "full", "json" },
	  .run = hpx_keys_ls },
	{ .name = "show",
	  .synopsis = "hapax keys show REFERENCE | --key KEY [--tenant NAME --path PATH]",
	  .about = "Shows all that is known of one operation: its record, its jobs, its history and\n"
		   "the stored answer. REFERENCE may be cut to its first 6 or more digits.\n"
		   "--key alone searches the newest operations; with --tenant and --path it needs\n"
		   "no search.",
	  .flags = { "key", "tenant", "method", "path", "body", "json" },
	  .operands_max = 1,
	  .run = hpx_keys_show },
	{ .name = "resolve",
	  .synopsis = "hapax keys resolve REFERENCE (--applied (--response FILE | --status N) |\n"
		      "                          --not-applied) --reason TEXT",
	  .about = "Settles an operation whose outcome is unknown, after you found out what became\n"
		   "of it. Nothing overrides a completed operation. --force is for a record that\n"
		   "cannot be read.",
	  .flags = { "key", "tenant", "method", "path", "applied", "not-applied", "response", "status", "reason", "force",
		     "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_keys_resolve },
	{ .name = "forget",
	  .synopsis = "hapax keys forget REFERENCE --reason TEXT",
	  .about = "Removes the record of an operation: the next request with its key is executed.\n"
		   "An operation that is in progress, unknown or unreadable needs --force: it may\n"
		   "have happened, and would then happen twice.",
	  .flags = { "key", "tenant", "method", "path", "reason", "force", "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_keys_forget },
	{ .name = "extend",
	  .synopsis = "hapax keys extend REFERENCE --until TIME --reason TEXT",
	  .about = "Keeps the answer of a finished operation until TIME, if it would expire "
		   "before;\n"
		   "a later expiry stays as it is. An expired operation cannot be extended.",
	  .flags = { "key", "tenant", "method", "path", "until", "reason", "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_keys_extend },
	{ .name = "accept-clock",
	  .synopsis = "hapax keys accept-clock --reason TEXT",
	  .about = "Confirms that the wall clock is right. After the clock jumped, hapax lets\n"
		   "nothing expire until a person confirms it with this command.",
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
		.verb_names = "ls, show, resolve, forget, extend and accept-clock",
		.name_one = "name one operation: by its REFERENCE, or by --key KEY",
		.verbs = verbs,
		.verb_count = sizeof(verbs) / sizeof(verbs[0]),
	};

	return hpx_operator_run(&command, argc, argv);
}
