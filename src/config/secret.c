/* Reading secrets. Only a regular file is read: a pipe or a device could keep
 * a start or a reload waiting for ever. */
#include "config/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static enum hpx_status refuse(char problem[HPX_SECRET_PROBLEM_SIZE], const char *text,
			      const char *cause)
{
	snprintf(problem, HPX_SECRET_PROBLEM_SIZE, "%s%s", text, cause);
	return HPX_INVALID;
}

static enum hpx_status cannot_open(char problem[HPX_SECRET_PROBLEM_SIZE])
{
	snprintf(problem, HPX_SECRET_PROBLEM_SIZE,
		 "cannot be opened: %s; name the file that holds the secret, which the user "
		 "that hapax runs as must be able to read",
		 strerror(errno));
	return HPX_INVALID;
}

static enum hpx_status cut(struct hpx_span text, struct hpx_span *ret_secret, char *problem)
{
	while (text.len > 0 &&
	       (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
		text.len--;
	if (text.len == 0)
		return refuse(problem, "is empty; put the secret there", "");
	*ret_secret = text;
	return HPX_OK;
}

/* One byte more than a secret may have, to see that it has no more. */
static enum hpx_status read_bytes(int fd, char *bytes, size_t *ret_len, char *problem)
{
	size_t len = 0;

	*ret_len = 0;
	while (len <= HPX_SECRET_BYTES_MAX) {
		ssize_t n = read(fd, bytes + len, HPX_SECRET_BYTES_MAX + 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return refuse(problem, "cannot be read: ", strerror(errno));
		if (n == 0)
			break;
		len += (size_t)n;
	}
	if (len > HPX_SECRET_BYTES_MAX)
		return refuse(problem, "is larger than 16 KiB, which no secret is", "");
	*ret_len = len;
	return HPX_OK;
}

static enum hpx_status read_open(int fd, struct hpx_arena *arena,
				 struct hpx_span *ret_secret, bool *ret_open, char *problem)
{
	struct stat about;
	struct hpx_span secret;
	char bytes[HPX_SECRET_BYTES_MAX + 1];
	size_t len;

	if (fstat(fd, &about) != 0)
		return refuse(problem, "cannot be read: ", strerror(errno));
	if (!S_ISREG(about.st_mode))
		return refuse(problem, "is no file; name the one that holds the secret", "");
	enum hpx_status status = read_bytes(fd, bytes, &len, problem);
	if (status == HPX_OK)
		status = cut(hpx_span(bytes, len), &secret, problem);
	if (status == HPX_OK) {
		secret = hpx_arena_dup(arena, secret);
		status = secret.ptr != NULL ? HPX_OK : HPX_NOMEM;
	}
	explicit_bzero(bytes, sizeof(bytes));
	if (status != HPX_OK)
		return status;
	*ret_secret = secret;
	*ret_open = (about.st_mode & (S_IROTH | S_IWOTH)) != 0;
	return HPX_OK;
}

enum hpx_status hpx_secret_from_file(const char *path, struct hpx_arena *arena,
				     struct hpx_span *ret_secret, bool *ret_open,
				     char problem[HPX_SECRET_PROBLEM_SIZE])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return cannot_open(problem);
	enum hpx_status status = read_open(fd, arena, ret_secret, ret_open, problem);
	close(fd);
	return status;
}

enum hpx_status hpx_secret_from_env(const char *name, struct hpx_arena *arena,
				    struct hpx_span *ret_secret,
				    char problem[HPX_SECRET_PROBLEM_SIZE])
{
	const char *value = getenv(name);

	if (value == NULL)
		return refuse(problem, "names a variable that is not set; set it where hapax "
				       "is started, or name a file",
			      "");
	struct hpx_span copy = hpx_arena_dup(arena, hpx_span_of(value));
	if (copy.ptr == NULL)
		return HPX_NOMEM;
	return cut(copy, ret_secret, problem);
}
