/* A system that refuses, for LD_PRELOAD. Threads: REFUSE_THREAD=n fails the n-th
 * pthread_create, REFUSE_WHILE=path every one while that file is there. Random
 * bytes: REFUSE_RANDOM=1 fails each getrandom. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static int is_refused(unsigned long number)
{
	const char *refused = getenv("REFUSE_THREAD"), *path = getenv("REFUSE_WHILE");

	return (refused != NULL && strtoul(refused, NULL, 10) == number) ||
	       (path != NULL && access(path, F_OK) == 0);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
		   void *user)
{
	static atomic_ulong calls;
	create_function *real = (create_function *)dlsym(RTLD_NEXT, "pthread_create");

	if (is_refused(atomic_fetch_add(&calls, 1) + 1))
		return EAGAIN;
	return real(thread, attributes, run, user);
}

ssize_t getrandom(void *bytes, size_t len, unsigned flags)
{
	if (getenv("REFUSE_RANDOM") == NULL)
		return syscall(SYS_getrandom, bytes, len, flags);
	errno = ENOSYS;
	return -1;
}
