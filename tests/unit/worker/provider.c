/* See provider.h. */
#include "provider.h"

#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"

struct connection {
	struct provider *provider;
	int fd;
};

/* One whole request, by its Content-Length; false where none comes. */
static bool read_request(int fd, struct provider_seen *seen)
{
	char bytes[4096];
	size_t len = 0;
	char *end = NULL;

	while (len < sizeof(bytes) - 1) {
		ssize_t n = recv(fd, bytes + len, sizeof(bytes) - 1 - len, 0);
		if (n <= 0)
			return false;
		len += (size_t)n;
		bytes[len] = '\0';
		end = strstr(bytes, "\r\n\r\n");
		if (end == NULL)
			continue;
		const char *field = strcasestr(bytes, "\r\nContent-Length: ");
		uint64_t body = 0;
		if (field != NULL && field < end) {
			const char *digits = field + strlen("\r\nContent-Length: ");
			hpx_span_u64(hpx_span(digits, strcspn(digits, "\r")), sizeof(bytes), &body);
		}
		if ((size_t)(bytes + len - end - 4) >= body)
			break;
	}
	if (end == NULL)
		return false;
	snprintf(seen->head, sizeof(seen->head), "%.*s\r\n", (int)(end - bytes), bytes);
	snprintf(seen->body, sizeof(seen->body), "%s", end + 4);
	return true;
}

static bool path_starts(const struct provider_seen *seen, const char *path)
{
	const char *target = strchr(seen->head, ' ');

	return target != NULL && strncmp(target + 1, path, strlen(path)) == 0;
}

static struct provider_reply next_reply(struct provider *provider,
					const struct provider_seen *seen)
{
	for (size_t i = 0; i < provider->reply_count; i++) {
		struct provider_reply *reply = &provider->replies[i];
		if (reply->used || !path_starts(seen, reply->path))
			continue;
		reply->used = !reply->always;
		return *reply;
	}
	return (struct provider_reply){ .status = 200 };
}

static void answer(int fd, const struct provider_reply *reply)
{
	const char *body = reply->body != NULL ? reply->body : "{}";
	char text[8192];
	int len;

	if (reply->status == 0)
		return;
	len = snprintf(text, sizeof(text),
		       "HTTP/1.1 %u X\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n%s",
		       reply->status, strlen(body), reply->headers != NULL ? reply->headers : "",
		       body);
	(void)!send(fd, text, (size_t)len, MSG_NOSIGNAL);
}

static struct provider_reply write_down(struct provider *provider,
					const struct provider_seen *seen)
{
	struct provider_reply reply;

	pthread_mutex_lock(&provider->lock);
	if (provider->seen_count < PROVIDER_SEEN_MAX)
		provider->seen[provider->seen_count++] = *seen;
	if (++provider->running > provider->running_most)
		provider->running_most = provider->running;
	pthread_cond_broadcast(&provider->changed);
	while (provider->held != NULL && path_starts(seen, provider->held))
		pthread_cond_wait(&provider->changed, &provider->lock);
	reply = next_reply(provider, seen);
	provider->running--;
	pthread_mutex_unlock(&provider->lock);
	return reply;
}

static void *serve(void *user)
{
	struct connection *connection = user;
	struct provider_seen *seen = calloc(1, sizeof(*seen));

	if (seen != NULL && read_request(connection->fd, seen)) {
		struct provider_reply reply = write_down(connection->provider, seen);
		answer(connection->fd, &reply);
	}
	close(connection->fd);
	free(seen);
	free(connection);
	return NULL;
}

static void *run(void *user)
{
	struct provider *provider = user;
	int fd;

	while ((fd = accept(provider->listening, NULL, NULL)) >= 0) {
		struct connection *connection = malloc(sizeof(*connection));
		*connection = (struct connection){ provider, fd };
		if (provider->connection_count == PROVIDER_SEEN_MAX ||
		    hpx_thread_start(&provider->connections[provider->connection_count], serve,
				     connection) != HPX_OK)
			abort(); /* the test is larger than its provider */
		provider->connection_count++;
	}
	return NULL;
}

void provider_start(struct provider *provider)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	memset(provider, 0, sizeof(*provider));
	pthread_mutex_init(&provider->lock, NULL);
	assert_status(hpx_cond_init(&provider->changed), HPX_OK);
	provider->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(provider->listening >= 0);
	assert_int_equal(bind(provider->listening, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(provider->listening, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(listen(provider->listening, 128), 0);
	provider->port = ntohs(address.sin_port);
	snprintf(provider->url, sizeof(provider->url), "http://127.0.0.1:%u", provider->port);
	assert_status(hpx_thread_start(&provider->thread, run, provider), HPX_OK);
}

void provider_stop(struct provider *provider)
{
	provider_release(provider);
	shutdown(provider->listening, SHUT_RDWR);
	pthread_join(provider->thread, NULL);
	for (size_t i = 0; i < provider->connection_count; i++)
		pthread_join(provider->connections[i], NULL);
	close(provider->listening);
	pthread_cond_destroy(&provider->changed);
	pthread_mutex_destroy(&provider->lock);
}

void provider_will(struct provider *provider, struct provider_reply reply)
{
	pthread_mutex_lock(&provider->lock);
	assert_true(provider->reply_count < PROVIDER_REPLIES_MAX);
	provider->replies[provider->reply_count++] = reply;
	pthread_mutex_unlock(&provider->lock);
}

void provider_hold(struct provider *provider, const char *path)
{
	pthread_mutex_lock(&provider->lock);
	provider->held = path;
	pthread_cond_broadcast(&provider->changed);
	pthread_mutex_unlock(&provider->lock);
}

void provider_release(struct provider *provider)
{
	provider_hold(provider, NULL);
}

void provider_wait(struct provider *provider, size_t count)
{
	int64_t until_ms = hpx_clock_boot_ms() + TEST_PATIENCE_MS;
	size_t seen;

	pthread_mutex_lock(&provider->lock);
	while (provider->seen_count < count && hpx_clock_boot_ms() < until_ms)
		hpx_cond_wait_until(&provider->changed, &provider->lock, until_ms);
	seen = provider->seen_count;
	pthread_mutex_unlock(&provider->lock);
	if (seen < count)
		fail_msg("%zu requests came, want %zu", seen, count);
}

size_t provider_count(struct provider *provider)
{
	return provider_count_of(provider, "");
}

size_t provider_count_of(struct provider *provider, const char *start)
{
	size_t count = 0;

	pthread_mutex_lock(&provider->lock);
	for (size_t i = 0; i < provider->seen_count; i++)
		count += strncmp(provider->seen[i].head, start, strlen(start)) == 0;
	pthread_mutex_unlock(&provider->lock);
	return count;
}

void provider_field(struct provider *provider, size_t which, const char *name, char out[256])
{
	char start[64];

	snprintf(start, sizeof(start), "\r\n%s: ", name);
	pthread_mutex_lock(&provider->lock);
	assert_true(which < provider->seen_count);
	const char *field = strcasestr(provider->seen[which].head, start);
	const char *value = field != NULL ? field + strlen(start) : "";
	snprintf(out, 256, "%.*s", (int)strcspn(value, "\r"), value);
	pthread_mutex_unlock(&provider->lock);
}

void provider_line(struct provider *provider, size_t which, char out[512])
{
	pthread_mutex_lock(&provider->lock);
	assert_true(which < provider->seen_count);
	const char *head = provider->seen[which].head;
	const char *version = strstr(head, " HTTP/1.1");
	snprintf(out, 512, "%.*s", version != NULL ? (int)(version - head) : 0, head);
	pthread_mutex_unlock(&provider->lock);
}
