/* The URL of a probe: the template with what identifies the operation or the
 * job. A client's key identifies it only where no other operation has the same
 * (another tenant's, another path's); the key that hapax sent with a job is the
 * job's own. */
#include "core/job.h"
#include "http/octet.h"
#include "worker/probe_call.h"

#define ARENA_BYTES_MAX 65536

static enum hpx_status append_encoded(struct hpx_buffer *out, struct hpx_span text)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < text.len && status == HPX_OK; i++)
		status = hpx_octet_is(text.ptr[i], HPX_OCTET_UNRESERVED) ?
				 hpx_buffer_byte(out, text.ptr[i]) :
				 hpx_buffer_printf(out, "%%%02X", (unsigned char)text.ptr[i]);
	return status;
}

static enum hpx_status append_reference(const struct hpx_question *question,
					struct hpx_buffer *out)
{
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(hpx_question_id(question), hpx_question_mark(question), reference);
	return append_encoded(out, hpx_span_of(reference));
}

static enum hpx_status append_provider_id(const struct hpx_question *question,
					  struct hpx_buffer *out, const char **ret_reason)
{
	const char *id = question->about->delivery.provider_id;

	if (question->about->delivery.number == 0 || id[0] == '\0') {
		*ret_reason = "the provider's id is not known";
		return HPX_NOT_FOUND;
	}
	return append_encoded(out, hpx_span_of(id));
}

/* Whether this is the only operation with its key. */
static enum hpx_status find_unique(const struct hpx_question *question,
				   struct hpx_store_reader *reader, bool *ret_unique)
{
	struct hpx_query query = { .state = HPX_STATE_COUNT,
				   .key = question->about->description.key,
				   .limit = 2 };
	struct hpx_entry *entries;
	struct hpx_arena arena;
	size_t count;

	hpx_arena_init(&arena, ARENA_BYTES_MAX);
	enum hpx_status status = hpx_store_list(reader, &query, &arena, &entries, &count);
	if (status == HPX_OK)
		*ret_unique = count == 1 &&
			      hpx_operation_id_eq(&entries[0].record.id, hpx_question_id(question));
	hpx_arena_done(&arena);
	return status;
}

static enum hpx_status append_key(const struct hpx_question *question,
				  struct hpx_store_reader *reader, struct hpx_buffer *out,
				  const char **ret_reason)
{
	const struct hpx_unsettled *about = question->about;
	char key[HPX_JOB_KEY_SIZE];
	bool unique = false;
	enum hpx_status status;

	if (about->delivery.number != 0) {
		status = hpx_job_key(&about->delivery.operation, &about->delivery.mark,
				     about->job_name, key);
		return status == HPX_OK ? hpx_buffer_text(out, key) : status;
	}
	status = find_unique(question, reader, &unique);
	if (status != HPX_OK)
		return status;
	if (!unique) {
		*ret_reason = "another operation has the same key";
		return HPX_NOT_FOUND;
	}
	return append_encoded(out, about->description.key);
}

static bool take(struct hpx_span *rest, struct hpx_span word)
{
	if (!hpx_span_starts(*rest, word))
		return false;
	*rest = hpx_span_skip(*rest, word.len);
	return true;
}

enum hpx_status hpx_probe_url(const struct hpx_question *question,
			      struct hpx_store_reader *reader, struct hpx_buffer *out,
			      const char **ret_reason)
{
	const struct hpx_probe *probe = &question->how->probe;
	struct hpx_span rest = probe->get;
	enum hpx_status status = hpx_buffer_text(out, probe->caller.url);

	while (rest.len > 0 && status == HPX_OK) {
		if (take(&rest, HPX_SPAN("{operation}"))) {
			status = append_reference(question, out);
		} else if (take(&rest, HPX_SPAN("{provider_id}"))) {
			status = append_provider_id(question, out, ret_reason);
		} else if (take(&rest, HPX_SPAN("{key}"))) {
			status = append_key(question, reader, out, ret_reason);
		} else {
			status = hpx_buffer_byte(out, rest.ptr[0]);
			rest = hpx_span_skip(rest, 1);
		}
	}
	return status == HPX_OK ? hpx_buffer_byte(out, '\0') : status;
}
