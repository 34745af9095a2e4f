/* bench-disk FILE MILLISECONDS: what the disk itself can do, for comparison.
 * sync: 4 KiB appended and fdatasync, again and again: one commit at a time.
 * append: 64 KiB appended again and again, and one fdatasync at the end.
 * One line of JSON. The file is removed. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/span.h"
#include "load/histogram.h"

#define SYNC_BYTES 4096
#define APPEND_BYTES 65536
/* Enough to see the speed, and not so much that a small disk is full. */
#define APPEND_TOTAL_MAX ((uint64_t)2 << 30)

static bool append(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

static bool measure_sync(int fd, const char *bytes, int64_t for_us, struct histogram *histogram,
			 double *ret_per_second)
{
	int64_t began = hpx_clock_boot_us();
	int64_t now = began;

	while (now < began + for_us) {
		int64_t before = now;

		if (!append(fd, bytes, SYNC_BYTES) || fdatasync(fd) != 0)
			return false;
		now = hpx_clock_boot_us();
		histogram_add(histogram, (uint64_t)(now - before));
	}
	*ret_per_second = (double)histogram->total * 1e6 / (double)(now - began);
	return true;
}

/* Microseconds of this process, in user mode and in the kernel. */
static int64_t cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static bool measure_append(int fd, const char *bytes, int64_t for_us, double *ret_bytes_per_second)
{
	int64_t began = hpx_clock_boot_us();
	uint64_t total = 0;

	while (hpx_clock_boot_us() < began + for_us && total < APPEND_TOTAL_MAX) {
		if (!append(fd, bytes, APPEND_BYTES))
			return false;
		total += APPEND_BYTES;
	}
	if (fdatasync(fd) != 0)
		return false;
	*ret_bytes_per_second = (double)total * 1e6 / (double)(hpx_clock_boot_us() - began);
	return true;
}

int main(int argc, char **argv)
{
	static struct histogram histogram;
	static char bytes[APPEND_BYTES];
	double syncs, appended;
	int64_t used;
	uint64_t ms;
	int fd;
	bool fine;

	if (argc != 3 || !hpx_span_u64(hpx_span_of(argv[2]), 600000, &ms)) {
		fprintf(stderr, "bench-disk FILE MILLISECONDS\n");
		return 2;
	}
	memset(bytes, 'x', sizeof(bytes));
	fd = open(argv[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		perror(argv[1]);
		return 1;
	}
	used = cpu_us();
	fine = measure_sync(fd, bytes, (int64_t)ms * 1000, &histogram, &syncs);
	used = cpu_us() - used;
	fine = fine && measure_append(fd, bytes, (int64_t)ms * 1000, &appended);
	if (!fine)
		perror(argv[1]);
	unlink(argv[1]);
	close(fd);
	if (!fine)
		return 1;
	printf("{\"syncs_per_second\":%.1f,\"sync_p50_us\":%llu,\"sync_p99_us\":%llu,"
	       "\"sync_cpu_us\":%.1f,\"append_bytes_per_second\":%.0f}\n",
	       syncs, (unsigned long long)histogram_at(&histogram, 0.5),
	       (unsigned long long)histogram_at(&histogram, 0.99),
	       (double)used / (double)histogram.total, appended);
	return 0;
}
