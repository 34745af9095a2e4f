/* Pairs of a query or a form: decoded once into one block, sorted by name
 * where that changes nothing for the reader, and written out. */
#include "core/form.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "core/form_text.h"

struct pair {
	struct hpx_span name;
	struct hpx_span value; /* ptr NULL where there was no '=' */
};

struct form {
	struct pair *pairs;
	size_t count;
	char *decoded; /* as long as the text: decoding only shortens */
	size_t decoded_len;
};

enum hpx_status hpx_form_decode(struct hpx_span text, char *out, size_t *ret_len)
{
	size_t len = 0;

	for (size_t i = 0; i < text.len; i++, len++) {
		out[len] = text.ptr[i] == '+' ? ' ' : text.ptr[i];
		if (text.ptr[i] != '%')
			continue;
		if (text.len - i < 3 || !hpx_hex_decode(hpx_span(text.ptr + i + 1, 2), out + len, 1))
			return HPX_INVALID;
		i += 2;
	}
	*ret_len = len;
	return HPX_OK;
}

static enum hpx_status decode(struct form *form, struct hpx_span text, struct hpx_span *ret_text)
{
	char *out = form->decoded + form->decoded_len;
	size_t len = 0;

	enum hpx_status status = hpx_form_decode(text, out, &len);
	if (status != HPX_OK)
		return status;
	form->decoded_len += len;
	*ret_text = hpx_span(out, len);
	return HPX_OK;
}

static enum hpx_status add_pair(struct form *form, struct hpx_span text)
{
	struct pair *pair = &form->pairs[form->count++];
	size_t cut = hpx_span_index(text, '=');

	enum hpx_status status = decode(form, hpx_span_first(text, cut), &pair->name);
	if (status == HPX_OK && cut < text.len)
		status = decode(form, hpx_span_skip(text, cut + 1), &pair->value);
	return status;
}

static size_t count_pairs(struct hpx_span text)
{
	struct hpx_span item;
	size_t count = 0;

	while (hpx_span_split(&text, '&', &item))
		count += item.len > 0;
	return count;
}

static enum hpx_status read_form(struct hpx_span text, struct form *form)
{
	struct hpx_span item;
	size_t count = count_pairs(text);

	if (count > HPX_FORM_PAIRS_MAX)
		return HPX_TOO_LARGE;
	form->pairs = calloc(count + 1, sizeof(*form->pairs));
	form->decoded = malloc(text.len + 1);
	if (form->pairs == NULL || form->decoded == NULL)
		return HPX_NOMEM;
	enum hpx_status status = HPX_OK;
	while (status == HPX_OK && hpx_span_split(&text, '&', &item))
		if (item.len > 0)
			status = add_pair(form, item);
	return status;
}

static int compare_names(const void *a, const void *b)
{
	return hpx_span_cmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

/* Sorts the pairs if that loses nothing: among pairs of one name the order
 * may mean something, and then so may the order of all. */
static enum hpx_status sort_distinct(struct form *form)
{
	struct pair *sorted = calloc(form->count + 1, sizeof(*sorted));
	size_t same = 0;

	if (sorted == NULL)
		return HPX_NOMEM;
	memcpy(sorted, form->pairs, form->count * sizeof(*sorted));
	qsort(sorted, form->count, sizeof(*sorted), compare_names);
	for (size_t i = 1; i < form->count; i++)
		same += hpx_span_eq(sorted[i - 1].name, sorted[i].name);
	if (same == 0)
		memcpy(form->pairs, sorted, form->count * sizeof(*sorted));
	free(sorted);
	return HPX_OK;
}

static enum hpx_status write_pair(const struct pair *pair, struct hpx_buffer *out)
{
	enum hpx_status status = hpx_form_text(out, pair->name);

	if (status != HPX_OK)
		return status;
	if (pair->value.ptr == NULL)
		return hpx_buffer_byte(out, ';');
	status = hpx_buffer_byte(out, '=');
	return status == HPX_OK ? hpx_form_text(out, pair->value) : status;
}

enum hpx_status hpx_form_canonical(struct hpx_span text, struct hpx_buffer *out)
{
	struct form form = { .pairs = NULL };
	size_t len = out->len;

	enum hpx_status status = read_form(text, &form);
	if (status == HPX_OK)
		status = sort_distinct(&form);
	for (size_t i = 0; i < form.count && status == HPX_OK; i++)
		status = write_pair(&form.pairs[i], out);
	if (status != HPX_OK)
		out->len = len;
	free(form.decoded);
	free(form.pairs);
	return status;
}
