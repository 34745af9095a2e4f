/* Reading entries: one as a call that can be sent again, all as a list. A row is
 * input like any other: what does not make sense is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/journal.h"
#include "client/sql.h"

/* A copy; false when out of memory. NULL stays NULL. */
static bool copy(struct hpx_span text, char **ret_copy)
{
	*ret_copy = text.ptr != NULL ? strndup(text.ptr, text.len) : NULL;
	return text.ptr == NULL || *ret_copy != NULL;
}

static bool put(struct hpx_span text, char *out, size_t size)
{
	if (text.len == 0 || text.len >= size || memchr(text.ptr, '\0', text.len) != NULL)
		return false;
	memcpy(out, text.ptr, text.len);
	out[text.len] = '\0';
	return true;
}

static bool read_state(struct hpx_span text, enum hapax_entry_state *ret_state)
{
	for (enum hapax_entry_state state = HAPAX_ENTRY_OPEN; state <= HAPAX_ENTRY_GAVE_UP; state++)
		if (hpx_span_eq(text, hpx_span_of(hpx_entry_state_name(state)))) {
			*ret_state = state;
			return true;
		}
	return false;
}

static bool read_body(struct hpx_span body, struct hapax_call *call)
{
	if (body.len > HPX_CALL_BODY_MAX)
		return false;
	call->body = malloc(body.len + 1);
	if (call->body == NULL)
		return false;
	if (body.len > 0)
		memcpy(call->body, body.ptr, body.len);
	call->body_len = body.len;
	return true;
}

#define CALL_COLUMNS \
	"state, method, url, key, key_header, key_bare, body, attempts, sending, doubt, status," \
	" created_ms, first_ms, remembered_ms"

static bool read_call(struct hpx_sql *row, struct hapax_call *call)
{
	call->key_bare = hpx_sql_int(row, 5) != 0;
	call->attempts = (unsigned)hpx_sql_int(row, 7);
	/* The one who was sending it is gone, or we could not have claimed it. */
	call->doubt = hpx_sql_int(row, 9) != 0 || hpx_sql_int(row, 8) != 0;
	call->status = (unsigned)hpx_sql_int(row, 10);
	call->created_ms = hpx_sql_int(row, 11);
	call->first_ms = hpx_sql_int(row, 12);
	call->remembered_ms = hpx_sql_int(row, 13);
	return read_state(hpx_sql_bytes(row, 0), &call->state) &&
	       put(hpx_sql_bytes(row, 1), call->method, sizeof(call->method)) &&
	       put(hpx_sql_bytes(row, 3), call->key, sizeof(call->key)) &&
	       hpx_sql_bytes(row, 2).len > 0 && copy(hpx_sql_bytes(row, 2), &call->url) &&
	       hpx_sql_bytes(row, 4).len > 0 && copy(hpx_sql_bytes(row, 4), &call->key_header) &&
	       read_body(hpx_sql_bytes(row, 6), call);
}

static bool read_field(struct hpx_sql *row, struct hapax_call *call)
{
	struct hpx_call_field field = { .secret = hpx_sql_bytes(row, 1).ptr == NULL };
	struct hpx_span salt = hpx_sql_bytes(row, 3);
	struct hpx_span digest = hpx_sql_bytes(row, 4);

	if (field.secret) {
		if (salt.len != sizeof(field.seal.salt) || digest.len != sizeof(field.seal.digest))
			return false;
		memcpy(field.seal.salt, salt.ptr, salt.len);
		memcpy(field.seal.digest, digest.ptr, digest.len);
	}
	bool ok = copy(hpx_sql_bytes(row, 0), &field.name);
	ok = copy(hpx_sql_bytes(row, 1), &field.value) && ok;
	ok = copy(hpx_sql_bytes(row, 2), &field.file) && ok;
	return hpx_call_append(call, field) && ok;
}

static enum hapax_result read_all(struct hpx_journal *journal, int64_t id,
				  struct hapax_call *call, char *problem)
{
	struct hpx_sql row =
		hpx_sql(journal->db, "SELECT " CALL_COLUMNS " FROM call WHERE id = ?");
	struct hpx_sql field = hpx_sql(journal->db, "SELECT name, value, file, salt, digest FROM field"
						    " WHERE call = ? ORDER BY place");

	hpx_sql_bind_int(&row, id);
	hpx_sql_bind_int(&field, id);
	bool found = hpx_sql_next(&row);
	bool readable = found && read_call(&row, call);
	while (readable && hpx_sql_next(&field))
		readable = read_field(&field, call);
	int code = hpx_sql_end(&row);
	int field_code = hpx_sql_end(&field);
	if (code != SQLITE_OK || field_code != SQLITE_OK)
		return hpx_journal_blame(journal, "cannot be read", problem);
	if (!found)
		return hpx_client_say(HAPAX_INVALID, problem,
				      "there is no call %lld in the journal %s", (long long)id,
				      journal->path);
	if (!readable)
		return hpx_client_say(HAPAX_UNAVAILABLE, problem,
				      "call %lld in the journal %s cannot be read", (long long)id,
				      journal->path);
	return HAPAX_OK;
}

enum hapax_result hpx_journal_load(struct hpx_journal *journal, int64_t id,
				   struct hapax_call *call, char *problem)
{
	int fd = -1;
	enum hapax_result result = hpx_place_claim(journal->path, id, &fd, problem);

	if (result != HAPAX_OK)
		return result;
	pthread_mutex_lock(&journal->mutex);
	result = read_all(journal, id, call, problem);
	pthread_mutex_unlock(&journal->mutex);
	if (result != HAPAX_OK) {
		close(fd);
		return result;
	}
	call->id = id;
	call->claim_fd = fd;
	return HAPAX_OK;
}

/* The entries and their texts are one piece of memory each: the array, and
 * behind it what it points to, freed together. */
struct listing {
	struct hapax_entry *entries;
	size_t count;
	size_t cap;
	struct hpx_buffer text; /* each with its NUL */
};

/* Places in `text` until it does not move any more. */
static const char *keep(struct listing *list, struct hpx_span text, enum hpx_status *status)
{
	size_t at = list->text.len;

	if (*status == HPX_OK)
		*status = hpx_buffer_append(&list->text, text);
	if (*status == HPX_OK)
		*status = hpx_buffer_byte(&list->text, '\0');
	return (const char *)(uintptr_t)at;
}

static bool grow(struct listing *list)
{
	if (list->count < list->cap)
		return true;
	size_t cap = list->cap > 0 ? list->cap * 2 : 16;
	struct hapax_entry *more = reallocarray(list->entries, cap, sizeof(*more));
	if (more == NULL)
		return false;
	list->entries = more;
	list->cap = cap;
	return true;
}

static enum hpx_status list_row(struct hpx_journal *journal, struct hpx_sql *row,
				struct listing *list)
{
	enum hpx_status status = HPX_OK;
	struct hapax_entry entry = {
		.size = sizeof(entry),
		.id = hpx_sql_int(row, 0),
		.attempts = (unsigned)hpx_sql_int(row, 2),
		.status = (unsigned)hpx_sql_int(row, 5),
		.created_ms = hpx_sql_int(row, 6),
		.changed_ms = hpx_sql_int(row, 7),
	};
	bool sending = hpx_sql_int(row, 3) != 0;

	if (!read_state(hpx_sql_bytes(row, 1), &entry.state))
		return HPX_CORRUPT;
	entry.busy = entry.state != HAPAX_ENTRY_DONE &&
		     hpx_place_is_claimed(journal->path, entry.id);
	entry.doubt = hpx_sql_int(row, 4) != 0 || sending;
	entry.method = keep(list, hpx_sql_bytes(row, 8), &status);
	entry.url = keep(list, hpx_sql_bytes(row, 9), &status);
	entry.key = keep(list, hpx_sql_bytes(row, 10), &status);
	if (status == HPX_OK && !grow(list))
		status = HPX_NOMEM;
	if (status == HPX_OK)
		list->entries[list->count++] = entry;
	return status;
}

/* Moves the texts behind the array, and lets the entries point there and to each
 * other. NULL: out of memory. */
static struct hapax_entry *pack(struct listing *list)
{
	size_t size = list->count * sizeof(*list->entries);
	char *memory = malloc(size + list->text.len);

	if (memory == NULL)
		return NULL;
	struct hapax_entry *entries = (struct hapax_entry *)(void *)memory;
	memcpy(memory, list->entries, size);
	if (list->text.len > 0)
		memcpy(memory + size, list->text.ptr, list->text.len);
	for (size_t i = 0; i < list->count; i++) {
		entries[i].next = i + 1 < list->count ? &entries[i + 1] : NULL;
		entries[i].method = memory + size + (uintptr_t)entries[i].method;
		entries[i].url = memory + size + (uintptr_t)entries[i].url;
		entries[i].key = memory + size + (uintptr_t)entries[i].key;
	}
	return entries;
}

static enum hapax_result read_list(struct hpx_journal *journal, bool all, struct listing *list,
				   char *problem)
{
	struct hpx_sql row = hpx_sql(journal->db,
				     "SELECT id, state, attempts, sending, doubt, status, created_ms, changed_ms, method,"
				     " url, key FROM call WHERE ? OR state <> 'done' ORDER BY state = 'done', id LIMIT ?");
	enum hpx_status status = HPX_OK;

	hpx_sql_bind_int(&row, all);
	hpx_sql_bind_int(&row, HPX_JOURNAL_LIST_MAX);
	while (status == HPX_OK && hpx_sql_next(&row))
		status = list_row(journal, &row, list);
	if (hpx_sql_end(&row) != SQLITE_OK)
		return hpx_journal_blame(journal, "cannot be read", problem);
	if (status == HPX_CORRUPT)
		return hpx_client_say(HAPAX_UNAVAILABLE, problem,
				      "the journal %s has a row that cannot be read", journal->path);
	return status == HPX_OK ? HAPAX_OK : hpx_client_nomem(problem);
}

enum hapax_result hpx_journal_list(struct hpx_journal *journal, bool all,
				   struct hapax_entry **ret_entries, size_t *ret_count,
				   char *problem)
{
	struct listing list = { .count = 0 };
	struct hapax_entry *entries = NULL;

	hpx_buffer_init(&list.text, (size_t)HPX_JOURNAL_LIST_MAX * 2 * HPX_CALL_URL_MAX);
	pthread_mutex_lock(&journal->mutex);
	enum hapax_result result = read_list(journal, all, &list, problem);
	pthread_mutex_unlock(&journal->mutex);
	if (result == HAPAX_OK && list.count > 0) {
		entries = pack(&list);
		if (entries == NULL)
			result = hpx_client_nomem(problem);
	}
	if (result == HAPAX_OK) {
		*ret_entries = entries;
		*ret_count = list.count;
	}
	hpx_buffer_done(&list.text);
	free(list.entries);
	return result;
}
