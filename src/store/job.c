/* What a job must be to be stored: the same on every store, and the same that
 * PostgreSQL's own checks say. */
#include "store/store.h"

#define NAME_BYTES_MAX 255
#define METHOD_BYTES_MAX 32
#define PATH_BYTES_MAX 8192
#define HEADER_BYTES_MAX 65536
#define BODY_BYTES_MAX ((size_t)16 << 20)

static bool is_method(struct hpx_span method)
{
	if (method.len == 0 || method.len > METHOD_BYTES_MAX)
		return false;
	for (size_t i = 0; i < method.len; i++)
		if (method.ptr[i] < 'A' || method.ptr[i] > 'Z')
			return false;
	return true;
}

/* A path and nothing else: where it goes is the target's to say. */
static bool is_path(struct hpx_span path)
{
	if (path.len == 0 || path.len > PATH_BYTES_MAX || path.ptr[0] != '/')
		return false;
	for (size_t i = 0; i < path.len; i++)
		if (path.ptr[i] <= ' ' || path.ptr[i] > '~')
			return false;
	return true;
}

static bool is_name(struct hpx_span name)
{
	return name.len > 0 && name.len <= NAME_BYTES_MAX &&
	       memchr(name.ptr, '\0', name.len) == NULL;
}

const char *hpx_job_fault(const struct hpx_job *job)
{
	if (!is_name(job->name))
		return "a job's name is 1 to 255 bytes";
	if (!is_name(job->target))
		return "a job's target is named in the configuration, by 1 to 255 bytes";
	if (!is_method(job->method))
		return "a job's method is 1 to 32 capital letters";
	if (!is_path(job->path))
		return "a job's path begins with '/' and is visible ASCII, at most 8192 bytes";
	if (job->headers.len > HEADER_BYTES_MAX)
		return "a job's headers are at most 64 KiB";
	if (job->body.len > BODY_BYTES_MAX)
		return "a job's body is at most 16 MiB";
	return NULL;
}
