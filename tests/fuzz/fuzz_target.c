/* Searches for targets whose normal form is not normal: not its own normal
 * form, with dot segments or loose bytes left, or one that cannot be sent. */
#include "base/bytes.h"
#include "base/status.h"
#include "http/octet.h"
#include "http/target.h"
#include "http/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_upper_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F');
}

static void check_bytes(struct hpx_span path)
{
	for (size_t i = 0; i < path.len; i++) {
		if (path.ptr[i] == '/' || hpx_octet_is(path.ptr[i], HPX_OCTET_PATH))
			continue;
		HPX_ASSERT(path.ptr[i] == '%' && path.len - i >= 3);
		HPX_ASSERT(is_upper_hex(path.ptr[i + 1]) && is_upper_hex(path.ptr[i + 2]));
		int byte = hpx_hex_digit(path.ptr[i + 1]) * 16 +
			   hpx_hex_digit(path.ptr[i + 2]);
		HPX_ASSERT(!hpx_octet_is((char)byte, HPX_OCTET_UNRESERVED));
		HPX_ASSERT(byte >= 0x20 && byte != 0x7f && byte != '\\');
	}
}

static void check_segments(struct hpx_span path)
{
	struct hpx_span segment;

	while (hpx_span_split(&path, '/', &segment)) {
		HPX_ASSERT(!hpx_span_eq(segment, HPX_SPAN(".")));
		HPX_ASSERT(!hpx_span_eq(segment, HPX_SPAN("..")));
	}
}

static void check(struct hpx_span method, const struct hpx_target *target,
		  struct hpx_arena *arena)
{
	struct hpx_target again;
	struct hpx_buffer out;
	const char *reason;

	HPX_ASSERT(target->authority.ptr == NULL || hpx_host_valid(target->authority));
	hpx_buffer_init(&out, 1 << 20);
	HPX_ASSERT(hpx_write_request_line(&out, method, target->path, target->query) ==
		   HPX_OK);
	hpx_buffer_done(&out);
	if (hpx_span_eq(target->path, HPX_SPAN("*")))
		return;
	HPX_ASSERT(target->path.len > 0 && target->path.ptr[0] == '/');
	check_bytes(target->path);
	check_segments(target->path);
	HPX_ASSERT(hpx_target_parse(method, target->path, arena, &again, &reason) ==
		   HPX_OK);
	HPX_ASSERT(hpx_span_eq(again.path, target->path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hpx_span methods[] = { HPX_SPAN_INIT("POST"),
						   HPX_SPAN_INIT("OPTIONS") };
	struct hpx_target target;
	struct hpx_arena arena;
	const char *reason = NULL;

	hpx_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < 2; i++) {
		enum hpx_status status = hpx_target_parse(methods[i], hpx_span(data, size),
							  &arena, &target, &reason);
		if (status == HPX_OK)
			check(methods[i], &target, &arena);
		else
			HPX_ASSERT(status == HPX_NOMEM || reason != NULL);
	}
	hpx_arena_done(&arena);
	return 0;
}
