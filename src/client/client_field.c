/* The header fields of a call: given one by one, or read from a file. Those of a
 * resumed call come from the journal, and only its credentials are given again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "client/client.h"
#include "http/field.h"
#include "http/octet.h"

#define FILE_BYTES_MAX 65536

/* ---- credentials ---- */

static bool contains(struct hpx_span name, struct hpx_span word)
{
	for (size_t i = 0; i + word.len <= name.len; i++)
		if (hpx_span_istarts(hpx_span_skip(name, i), word))
			return true;
	return false;
}

/* In doubt a name is a credential's: then one value more must be given again at a
 * resume. */
static bool is_credential(struct hpx_span name)
{
	static const struct hpx_span words[] = {
		HPX_SPAN_INIT("auth"),
		HPX_SPAN_INIT("cookie"),
		HPX_SPAN_INIT("token"),
		HPX_SPAN_INIT("secret"),
		HPX_SPAN_INIT("password"),
		HPX_SPAN_INIT("session"),
		HPX_SPAN_INIT("signature"),
		HPX_SPAN_INIT("credential"),
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (contains(name, words[i]))
			return true;
	return name.len >= 3 &&
	       hpx_span_ieq(hpx_span_skip(name, name.len - 3), HPX_SPAN("key"));
}

/* Names are hashed in lower case, because their case has no meaning. */
static void add_name(struct hpx_sha256 *hash, struct hpx_span name)
{
	char small[256];
	size_t len = name.len < sizeof(small) ? name.len : sizeof(small);

	for (size_t i = 0; i < len; i++)
		small[i] = hpx_lower(name.ptr[i]);
	hpx_sha256_part(hash, hpx_span(small, len));
}

static enum hpx_status hash_value(const uint8_t salt[HPX_SALT_SIZE], struct hpx_span name,
				  struct hpx_span value, uint8_t ret_digest[HPX_SHA256_SIZE])
{
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, hpx_span(salt, HPX_SALT_SIZE));
	add_name(&hash, name);
	hpx_sha256_part(&hash, value);
	return hpx_sha256_done(&hash, ret_digest);
}

static enum hpx_status credential_hash_make(struct hpx_span name, struct hpx_span value,
					    struct hpx_credential_hash *ret_hash)
{
	hpx_random(ret_hash->salt, sizeof(ret_hash->salt));
	return hash_value(ret_hash->salt, name, value, ret_hash->digest);
}

static enum hpx_status credential_hash_check(const struct hpx_credential_hash *hash,
					     struct hpx_span name,
					     struct hpx_span value)
{
	uint8_t got[HPX_SHA256_SIZE];
	enum hpx_status status = hash_value(hash->salt, name, value, got);

	if (status != HPX_OK)
		return status;
	return hpx_bytes_same(got, hash->digest, sizeof(got)) ? HPX_OK : HPX_CONFLICT;
}

/* ---- fields ---- */

/* Where a name comes from, for sentences: values are never in one. */
static enum hapax_result refuse_field(struct hpx_span name, const char *why, char *problem)
{
	char shown[65];
	size_t len = name.len < sizeof(shown) ? name.len : sizeof(shown) - 1;

	for (size_t i = 0; i < len; i++)
		shown[i] = hpx_octet_is(name.ptr[i], HPX_OCTET_TOKEN) ? name.ptr[i] : '?';
	shown[len] = '\0';
	return hpx_client_error(HAPAX_INVALID, problem, "the header field %s %s", shown, why);
}

/* Refuses fields that frame the message or belong to the connection. */
static enum hapax_result check_field(const struct hapax_call *call, struct hpx_span name,
				     struct hpx_span value, char *problem)
{
	static const struct hpx_http_head none;

	if (!hpx_is_token(name))
		return hpx_client_error(HAPAX_INVALID, problem,
					"a header field is written \"Name: value\"");
	if (!hpx_octet_all(value, HPX_OCTET_VALUE))
		return refuse_field(name, "has a value with a control byte", problem);
	if (hpx_span_ieq(name, hpx_span_of(call->key_header)))
		return refuse_field(name, "is the key's, which is given by --key or hapax_call_key",
				    problem);
	if (hpx_field_is_hop(&none, name) || hpx_span_ieq(name, HPX_SPAN("content-length")) ||
	    hpx_span_ieq(name, HPX_SPAN("expect")))
		return refuse_field(name, "belongs to the connection and cannot be given", problem);
	return HAPAX_OK;
}

/* Of a resumed call the sentence says which one it is: there may be many. */
static enum hapax_result name_call(const struct hapax_call *call, enum hapax_result result,
				   char *problem)
{
	char sentence[HAPAX_PROBLEM_SIZE - 32];

	if (result == HAPAX_OK || !call->resumed || problem == NULL)
		return result;
	snprintf(sentence, sizeof(sentence), "%.*s", (int)sizeof(sentence) - 1, problem);
	return hpx_client_error(result, problem, "call %lld: %s", (long long)call->id, sentence);
}

static char *copy_text(struct hpx_span text)
{
	return strndup(text.len > 0 ? text.ptr : "", text.len);
}

static enum hapax_result add_field(struct hapax_call *call, struct hpx_span name, struct hpx_span value,
				   const char *file, char *problem)
{
	struct hpx_call_field field = { .secret = file != NULL || is_credential(name) };
	enum hapax_result result = check_field(call, name, value, problem);

	HPX_ASSERT(!call->resumed && !call->sent);
	if (result != HAPAX_OK)
		return result;
	if (call->field_count == HPX_CALL_FIELDS_MAX)
		return hpx_client_error(HAPAX_INVALID, problem,
					"there are more than %d header fields",
					HPX_CALL_FIELDS_MAX);
	if (field.secret && credential_hash_make(name, value, &field.hash) != HPX_OK)
		return hpx_client_no_memory(problem);
	field.name = copy_text(name);
	field.value = copy_text(value);
	field.file = file != NULL ? strdup(file) : NULL;
	if (file != NULL && field.file == NULL) {
		free(field.name);
		field.name = NULL;
	}
	return hpx_call_append(call, field) ? HAPAX_OK : hpx_client_no_memory(problem);
}

/* The field of a resumed call that this is the value of; NULL: there is none.
 * `*ret_named`: one of that name still waits for its value. */
static struct hpx_call_field *find_hashed(struct hapax_call *call, struct hpx_span name,
					  struct hpx_span value, const char *file, bool *ret_named)
{
	HPX_ASSERT(call->resumed && !call->sent);
	*ret_named = false;
	for (size_t i = 0; i < call->field_count; i++) {
		struct hpx_call_field *field = &call->fields[i];

		if (field->value != NULL || !hpx_span_ieq(hpx_span_of(field->name), name))
			continue;
		if (file != NULL && (field->file == NULL || strcmp(field->file, file) != 0))
			continue;
		*ret_named = true;
		if (credential_hash_check(&field->hash, name, value) == HPX_OK)
			return field;
	}
	return NULL;
}

static enum hapax_result refuse_given(struct hpx_span name, bool named, char *problem)
{
	if (named)
		return hpx_client_error(HAPAX_REFUSED, problem,
					"%.*s is another one than this call was sent with: to the API "
					"that is another caller, for whom the key is new, and it would "
					"happen a second time",
					HPX_SPAN_ARG(hpx_span_first(name, 64)));
	return hpx_client_error(HAPAX_REFUSED, problem,
				"this call was sent without the header field %.*s, or has it already: "
				"a resumed call is sent as it was, and only its credentials are given "
				"again",
				HPX_SPAN_ARG(hpx_span_first(name, 64)));
}

static enum hapax_result give_again(struct hapax_call *call, struct hpx_span name,
				    struct hpx_span value, const char *file, char *problem)
{
	bool named;
	struct hpx_call_field *field = find_hashed(call, name, value, file, &named);

	if (field == NULL)
		return refuse_given(name, named, problem);
	field->value = copy_text(value);
	return field->value != NULL ? HAPAX_OK : hpx_client_no_memory(problem);
}

static enum hapax_result take_field(struct hapax_call *call, struct hpx_span name, struct hpx_span value,
				    const char *file, char *problem)
{
	value = hpx_span_trim(value);
	if (call->resumed)
		return give_again(call, name, value, file, problem);
	return add_field(call, name, value, file, problem);
}

enum hapax_result hapax_call_header(struct hapax_call *call, const char *name, const char *value,
				    char *problem)
{
	if (call == NULL || name == NULL || value == NULL || call->sent)
		return hpx_client_error(HAPAX_MISUSE, problem,
					"a header field is given before the call is sent");
	enum hapax_result result =
		take_field(call, hpx_span_of(name), hpx_span_of(value), NULL, problem);
	return result == HAPAX_OK ? hpx_client_ok(problem) : name_call(call, result, problem);
}

static enum hapax_result read_file(const char *path, struct hpx_buffer *content, char *problem)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;

	if (fd < 0)
		return hpx_client_error(HAPAX_INVALID, problem, "%s: %m", path);
	while (got > 0 && hpx_buffer_reserve(content, 4096) == HPX_OK) {
		got = read(fd, content->ptr + content->len, 4096);
		if (got > 0)
			content->len += (size_t)got;
	}
	int trouble = errno;
	close(fd);
	errno = trouble;
	if (got < 0)
		return hpx_client_error(HAPAX_INVALID, problem, "%s: %m", path);
	if (got > 0)
		return hpx_client_error(HAPAX_INVALID, problem,
					"%s is too large for header fields (%d bytes)", path,
					FILE_BYTES_MAX);
	return HAPAX_OK;
}

/* Each line is a field; empty ones, and those that begin with '#', are none. */
static enum hapax_result take_lines(struct hapax_call *call, struct hpx_span rest,
				    const char *path, char *problem)
{
	enum hapax_result result = HAPAX_OK;
	struct hpx_field_line line;

	while (result == HAPAX_OK && hpx_field_line_next(&rest, &line)) {
		if (line.text.len == 0 || line.text.ptr[0] == '#')
			continue;
		if (line.name.ptr == NULL)
			return hpx_client_error(HAPAX_INVALID, problem,
						"%s has a line that is no header field", path);
		result = take_field(call, line.name, line.value, path, problem);
	}
	return result;
}

static enum hapax_result take_file(struct hapax_call *call, const char *path, char *problem)
{
	struct hpx_buffer content;

	hpx_buffer_init(&content, FILE_BYTES_MAX + 4096);
	enum hapax_result result = read_file(path, &content, problem);
	if (result == HAPAX_OK)
		result = take_lines(call, hpx_buffer_span(&content), path, problem);
	hpx_buffer_done(&content);
	return result;
}

enum hapax_result hapax_call_header_file(struct hapax_call *call, const char *path, char *problem)
{
	if (call == NULL || path == NULL || call->sent)
		return hpx_client_error(HAPAX_MISUSE, problem,
					"a header file is given before the call is sent");
	char *real = realpath(path, NULL);
	if (real == NULL)
		return hpx_client_error(HAPAX_INVALID, problem, "%s: %m", path);
	enum hapax_result result = take_file(call, real, problem);
	free(real);
	return result == HAPAX_OK ? hpx_client_ok(problem) : name_call(call, result, problem);
}

/* The first field that still waits for the content of its file. */
static const char *next_file(const struct hapax_call *call)
{
	for (size_t i = 0; i < call->field_count; i++)
		if (call->fields[i].value == NULL && call->fields[i].file != NULL)
			return call->fields[i].file;
	return NULL;
}

enum hapax_result hpx_call_reread(struct hapax_call *call, char *problem)
{
	const char *file;

	while ((file = next_file(call)) != NULL) {
		enum hapax_result result = take_file(call, file, problem);

		if (result == HAPAX_OK && next_file(call) == file)
			result = hpx_client_error(HAPAX_REFUSED, problem,
						  "%s has not the header fields any more that this "
						  "call was sent with",
						  file);
		if (result != HAPAX_OK)
			return name_call(call, result, problem);
	}
	return HAPAX_OK;
}

enum hapax_result hpx_call_is_complete(const struct hapax_call *call, char *problem)
{
	for (size_t i = 0; i < call->field_count; i++)
		if (call->fields[i].value == NULL)
			return name_call(call,
					 hpx_client_error(HAPAX_REFUSED, problem,
							  "this call was sent with %.64s, which is "
							  "never written down: give it again",
							  call->fields[i].name),
					 problem);
	return HAPAX_OK;
}

static enum hpx_status put_line(struct hpx_buffer *lines, const char *name, const char *value)
{
	enum hpx_status status = hpx_buffer_text(lines, name);

	if (status == HPX_OK)
		status = hpx_buffer_text(lines, ": ");
	if (status == HPX_OK)
		status = hpx_buffer_text(lines, value);
	return status == HPX_OK ? hpx_buffer_text(lines, "\r\n") : status;
}

enum hpx_status hpx_call_lines(const struct hapax_call *call, struct hpx_buffer *lines)
{
	char key[HPX_KEY_TEXT_SIZE];
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < call->field_count && status == HPX_OK; i++) {
		HPX_ASSERT(call->fields[i].value != NULL);
		status = put_line(lines, call->fields[i].name, call->fields[i].value);
	}
	hpx_call_key_print(call, key);
	return status == HPX_OK ? put_line(lines, call->key_header, key) : status;
}
