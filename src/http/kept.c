/* Line by line: check, leave out, write. */
#include "http/kept.h"

#include "base/utf8.h"
#include "http/field.h"
#include "http/octet.h"
#include "http/write.h"

/* A line that was not the last one had a LF behind it, and loses a CR. */
static struct hpx_span without_cr(struct hpx_span line, bool last)
{
	if (!last && line.len > 0 && line.ptr[line.len - 1] == '\r')
		line.len--;
	return line;
}

/* A line that is left out is checked all the same: what cannot stand in a head
 * is a mistake wherever it stands. */
static enum hpx_status keep(struct hpx_span line, struct hpx_buffer *out)
{
	size_t colon = hpx_span_index(line, ':');

	if (colon == line.len)
		return HPX_INVALID;
	struct hpx_span name = hpx_span_first(line, colon);
	struct hpx_span value = hpx_span_trim(hpx_span_skip(line, colon + 1));
	if (!hpx_is_token(name) || !hpx_octet_all(value, HPX_OCTET_VALUE))
		return HPX_INVALID;
	return hpx_field_name_is_kept(name) ? hpx_write_field(out, name, value) : HPX_OK;
}

enum hpx_status hpx_kept_lines(struct hpx_span lines, struct hpx_buffer *out)
{
	size_t before = out->len;
	enum hpx_status status = HPX_OK;

	if (!hpx_utf8_valid(lines))
		return HPX_INVALID;
	while (lines.len > 0 && status == HPX_OK) {
		size_t end = hpx_span_index(lines, '\n');
		bool last = end == lines.len;
		struct hpx_span line = without_cr(hpx_span_first(lines, end), last);
		lines = last ? hpx_span_skip(lines, end) : hpx_span_skip(lines, end + 1);
		if (line.len > 0)
			status = keep(line, out);
	}
	if (status != HPX_OK)
		out->len = before;
	return status;
}
