/* An external service for the worker's tests: answers as it is told, in order
 * and by path, writes down what it was asked, and holds back what it is told to
 * hold back. One thread per connection, one request on each. */
#ifndef HPX_TESTS_WORKER_PROVIDER_H
#define HPX_TESTS_WORKER_PROVIDER_H

#include <pthread.h>

#include "../test.h"

/* Reached only when something that must come does not. */
#define TEST_PATIENCE_MS 60000

#define PROVIDER_REPLIES_MAX 32
#define PROVIDER_SEEN_MAX 512

/* What the next request whose path begins so gets. */
struct provider_reply {
	const char *path;
	unsigned status;     /* 0: the connection is closed without an answer */
	const char *headers; /* "Name: value\r\n"… or NULL */
	const char *body;    /* NULL: "{}" */
	bool always;         /* for all that follow, too */
	bool used;
};

struct provider_seen {
	char head[2048];
	char body[256];
};

struct provider {
	int listening;
	unsigned port;
	char url[64];
	pthread_t thread;
	pthread_t connections[PROVIDER_SEEN_MAX];
	size_t connection_count;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	struct provider_reply replies[PROVIDER_REPLIES_MAX];
	size_t reply_count;
	struct provider_seen seen[PROVIDER_SEEN_MAX];
	size_t seen_count;
	const char *held; /* paths that begin so are not answered; NULL: none */
	unsigned running;
	unsigned running_most;
};

void provider_start(struct provider *provider);
void provider_stop(struct provider *provider);
/* Where nothing fits, the answer is 200 with {}. */
void provider_will(struct provider *provider, struct provider_reply reply);
void provider_hold(struct provider *provider, const char *path);
void provider_release(struct provider *provider);
/* Waits until so many requests were seen; fails the test when they do not come. */
void provider_wait(struct provider *provider, size_t count);
size_t provider_count(struct provider *provider);
/* How many of them began so: "GET /pays/". */
size_t provider_count_of(struct provider *provider, const char *start);
/* A field of the request seen as number `which`; "" where it has none. */
void provider_field(struct provider *provider, size_t which, const char *name, char out[256]);
/* "POST /pay": the line of request number `which` without its version. */
void provider_line(struct provider *provider, size_t which, char out[512]);

#endif
