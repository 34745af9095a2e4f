/* Request targets: the form, then the one normal form of the path. */
#include "http/target.h"

#include <arpa/inet.h>

#include "base/bytes.h"
#include "base/status.h"
#include "http/octet.h"

#define PORT_MAX 65535

/* ---- hosts (RFC 3986 §3.2) ---- */

/* An empty port means the scheme's own (RFC 3986 §3.2.3). */
static bool is_port(struct hpx_span port)
{
	uint64_t value;

	return port.len == 0 || hpx_span_u64(port, PORT_MAX, &value);
}

/* "[" IPv6 "]", without a zone: that means something on one machine only. */
static bool is_ip_literal(struct hpx_span literal)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;
	size_t len = literal.len - 2;

	if (len >= sizeof(text) || memchr(literal.ptr, '\0', literal.len) != NULL)
		return false;
	memcpy(text, literal.ptr + 1, len);
	text[len] = '\0';
	return inet_pton(AF_INET6, text, &address) == 1;
}

static bool is_reg_name(struct hpx_span name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (hpx_octet_is(name.ptr[i], HPX_OCTET_HOST))
			continue;
		if (name.ptr[i] != '%' || name.len - i < 3 ||
		    hpx_hex_digit(name.ptr[i + 1]) < 0 ||
		    hpx_hex_digit(name.ptr[i + 2]) < 0)
			return false;
		i += 2;
	}
	return name.len > 0;
}

bool hpx_host_valid(struct hpx_span host)
{
	bool literal = host.len > 0 && host.ptr[0] == '[';
	size_t end = literal ? hpx_span_index(host, ']') + 1 : hpx_span_index(host, ':');

	if (end > host.len)
		return false;
	struct hpx_span name = hpx_span_first(host, end);
	if (literal ? !is_ip_literal(name) : !is_reg_name(name))
		return false;
	if (end == host.len)
		return true;
	return host.ptr[end] == ':' && is_port(hpx_span_skip(host, end + 1));
}

/* ---- targets ---- */

/* What a path is made of, one byte or one escape at a time. */
struct piece {
	char c;       /* the byte that it stands for */
	bool escaped; /* it must be written as %XX */
	size_t len;   /* bytes of the input */
};

/* Reads the piece at the front. Escapes of unreserved characters become the
 * character (RFC 3986 §6.2.2.2); bytes that may not stand in a path become
 * escapes, so that `{` and `%7B` are one path. Control bytes and `\` are
 * refused however they are written: some servers decode before they route. */
static const char *read_piece(struct hpx_span rest, struct piece *ret_piece)
{
	struct piece piece = { rest.ptr[0], false, 1 };

	if (piece.c == '%') {
		int high = rest.len >= 3 ? hpx_hex_digit(rest.ptr[1]) : -1;
		int low = rest.len >= 3 ? hpx_hex_digit(rest.ptr[2]) : -1;
		if (high < 0 || low < 0)
			return "the path has a % that is not followed by two hexadecimal "
			       "digits";
		piece = (struct piece){ (char)(unsigned char)(high * 16 + low), true, 3 };
	}
	unsigned char byte = (unsigned char)piece.c;
	if (byte < 0x20 || byte == 0x7f)
		return "the path has a control byte";
	if (byte == '\\')
		return "the path has a backslash";
	if (piece.escaped)
		piece.escaped = !hpx_octet_is(piece.c, HPX_OCTET_UNRESERVED);
	else
		piece.escaped = piece.c != '/' && !hpx_octet_is(piece.c, HPX_OCTET_PATH);
	*ret_piece = piece;
	return NULL;
}

static size_t write_piece(char *out, const struct piece *piece)
{
	static const char digits[] = "0123456789ABCDEF";
	unsigned char byte = (unsigned char)piece->c;

	if (!piece->escaped) {
		out[0] = piece->c;
		return 1;
	}
	out[0] = '%';
	out[1] = digits[byte >> 4];
	out[2] = digits[byte & 15];
	return 3;
}

/* `out` holds whole segments up to `len`, the last begun at `begin` (its
 * '/'). A dot segment is taken back, ".." with the one before it. Gives the
 * new length. */
static size_t close_segment(const char *out, size_t begin, size_t len, bool last)
{
	HPX_ASSERT(begin < len && out[begin] == '/');
	struct hpx_span segment = hpx_span(out + begin + 1, len - begin - 1);

	if (hpx_span_eq(segment, HPX_SPAN("."))) {
		len = begin;
	} else if (hpx_span_eq(segment, HPX_SPAN(".."))) {
		len = begin;
		while (len > 0 && out[--len] != '/')
			;
	} else {
		return len;
	}
	/* "/a/." and "/a/b/.." are "/a/": the slash stays. It is still there
	 * in `out`, at begin or at the segment taken back. */
	return last ? len + 1 : len;
}

static const char *normalise(struct hpx_span path, char *out, size_t *ret_len)
{
	size_t len = 0;
	size_t begin = 0;
	struct piece piece;

	while (path.len > 0) {
		const char *reason = read_piece(path, &piece);
		if (reason != NULL)
			return reason;
		if (piece.c == '/' && !piece.escaped) {
			if (len > 0)
				len = close_segment(out, begin, len, false);
			begin = len;
		}
		len += write_piece(out + len, &piece);
		path = hpx_span_skip(path, piece.len);
	}
	*ret_len = close_segment(out, begin, len, true);
	return NULL;
}

/* Most paths are in their normal form already: every byte may stand there
 * and no segment begins with a dot. */
static bool is_normal(struct hpx_span path)
{
	for (size_t i = 0; i < path.len; i++) {
		if (path.ptr[i] == '/' ? i + 1 < path.len && path.ptr[i + 1] == '.' : !hpx_octet_is(path.ptr[i], HPX_OCTET_PATH))
			return false;
	}
	return true;
}

static enum hpx_status read_path(struct hpx_span path, struct hpx_arena *arena,
				 struct hpx_span *ret_path, const char **ret_reason)
{
	if (is_normal(path)) {
		*ret_path = path;
		return HPX_OK;
	}
	/* A byte becomes at most three; the bytes of a path are bounded by
	 * those of the head. */
	char *out = path.len <= SIZE_MAX / 3 ? hpx_arena_alloc(arena, path.len * 3) : NULL;
	if (out == NULL)
		return HPX_NOMEM;
	size_t len;
	const char *reason = normalise(path, out, &len);
	if (reason != NULL) {
		*ret_reason = reason;
		return HPX_INVALID;
	}
	*ret_path = hpx_span(out, len);
	return HPX_OK;
}

static enum hpx_status refuse(const char *reason, const char **ret_reason)
{
	*ret_reason = reason;
	return HPX_INVALID;
}

/* Path and query, behind what named the authority. An absent path is "/"
 * (RFC 9110 §4.2.3), but the whole server for OPTIONS (RFC 9112 §3.2.4). */
static enum hpx_status read_rest(struct hpx_span method, struct hpx_span rest,
				 struct hpx_arena *arena, struct hpx_target *target,
				 const char **ret_reason)
{
	size_t end = hpx_span_index(rest, '?');

	if (end < rest.len)
		target->query = hpx_span_skip(rest, end + 1);
	if (end > 0)
		return read_path(hpx_span_first(rest, end), arena, &target->path,
				 ret_reason);
	bool server = rest.len == 0 && hpx_span_eq(method, HPX_SPAN("OPTIONS"));
	target->path = server ? HPX_SPAN("*") : HPX_SPAN("/");
	return HPX_OK;
}

/* The bytes behind "http://" or "https://"; ptr NULL for another form. */
static struct hpx_span after_scheme(struct hpx_span target)
{
	static const struct hpx_span schemes[] = {
		HPX_SPAN_INIT("http://"),
		HPX_SPAN_INIT("https://"),
	};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (hpx_span_istarts(target, schemes[i]))
			return hpx_span_skip(target, schemes[i].len);
	return (struct hpx_span){ NULL, 0 };
}

static size_t authority_length(struct hpx_span rest)
{
	size_t slash = hpx_span_index(rest, '/');
	size_t question = hpx_span_index(rest, '?');

	return slash < question ? slash : question;
}

enum hpx_status hpx_target_parse(struct hpx_span method, struct hpx_span target,
				 struct hpx_arena *arena, struct hpx_target *ret_target,
				 const char **ret_reason)
{
	struct hpx_target parsed = { 0 };
	enum hpx_status status = HPX_OK;

	if (target.len == 0)
		return refuse("the target is empty", ret_reason);
	if (!hpx_octet_all(target, HPX_OCTET_TARGET))
		return refuse("the target has a control byte, a space, a backslash, a # "
			      "or a byte outside ASCII",
			      ret_reason);
	struct hpx_span rest = after_scheme(target);
	if (rest.ptr != NULL) {
		parsed.authority = hpx_span_first(rest, authority_length(rest));
		if (!hpx_host_valid(parsed.authority))
			return refuse("the target's host is malformed", ret_reason);
		rest = hpx_span_skip(rest, parsed.authority.len);
		status = read_rest(method, rest, arena, &parsed, ret_reason);
	} else if (target.ptr[0] == '/') {
		status = read_rest(method, target, arena, &parsed, ret_reason);
	} else if (hpx_span_eq(target, HPX_SPAN("*")) &&
		   hpx_span_eq(method, HPX_SPAN("OPTIONS"))) {
		parsed.path = target;
	} else {
		return refuse("the target is neither a path nor an http address",
			      ret_reason);
	}
	if (status == HPX_OK)
		*ret_target = parsed;
	return status;
}
