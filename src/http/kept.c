/* Line by line: check, leave out, write. */
#include "http/kept.h"

#include "base/utf8.h"
#include "http/field.h"
#include "http/octet.h"
#include "http/write.h"

/* A line that is left out is checked all the same: what cannot stand in a head
 * is a mistake wherever it stands. */
static enum hpx_status keep(const struct hpx_field_line *line, struct hpx_buffer *out)
{
	if (!hpx_is_token(line->name) || !hpx_octet_all(line->value, HPX_OCTET_VALUE))
		return HPX_INVALID;
	return hpx_field_name_is_kept(line->name) ? hpx_write_field(out, line->name, line->value) :
						    HPX_OK;
}

/* A CR is part of a line's end only with the LF behind it. */
static bool ends_with_bare_cr(struct hpx_span lines)
{
	return lines.len > 0 && lines.ptr[lines.len - 1] == '\r';
}

enum hpx_status hpx_kept_lines(struct hpx_span lines, struct hpx_buffer *out)
{
	size_t before = out->len;
	enum hpx_status status = HPX_OK;
	struct hpx_field_line line;

	if (!hpx_utf8_valid(lines) || ends_with_bare_cr(lines))
		return HPX_INVALID;
	while (status == HPX_OK && hpx_field_line_next(&lines, &line))
		if (line.text.len > 0)
			status = keep(&line, out);
	if (status != HPX_OK)
		out->len = before;
	return status;
}
