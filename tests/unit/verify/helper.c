/* See helper.h. */
#include "helper.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"

/* ---- descriptions ---- */

void spec_read(struct hpx_verify_spec *spec, const char *format, ...)
{
	static const struct hpx_verify_flags none;
	struct hpx_config_report report;
	struct hpx_buffer text;
	char yaml[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(yaml, sizeof(yaml), format, args);
	va_end(args);
	hpx_config_report_init(&report);
	hpx_buffer_init(&text, 65536);
	enum hpx_status status = hpx_verify_spec_read(hpx_span_of(yaml), HPX_SPAN(""), &none,
						      &report, spec);
	if (status != HPX_OK) {
		hpx_config_report_print(&report, "description", &text);
		print_error("%.*s", HPX_SPAN_ARG(hpx_buffer_span(&text)));
	}
	hpx_buffer_done(&text);
	hpx_config_report_done(&report);
	assert_status(status, HPX_OK);
}

void spec_mistakes(const char *yaml, const struct hpx_verify_flags *flags, char *out, size_t size)
{
	struct hpx_config_report report;
	struct hpx_verify_spec spec;
	struct hpx_buffer text;

	hpx_config_report_init(&report);
	hpx_buffer_init(&text, 65536);
	enum hpx_status status = hpx_verify_spec_read(hpx_span_of(yaml), HPX_SPAN(""), flags,
						      &report, &spec);
	hpx_config_report_print(&report, "f", &text);
	snprintf(out, size, "%.*s", HPX_SPAN_ARG(hpx_buffer_span(&text)));
	hpx_buffer_done(&text);
	hpx_config_report_done(&report);
	hpx_verify_spec_done(&spec);
	if (status != HPX_INVALID)
		print_error("no mistake in: %s\n", yaml);
	assert_status(status, HPX_INVALID);
}

void assert_contains(const char *in, const char *text)
{
	if (strstr(in, text) != NULL)
		return;
	print_error("got \"%s\", want in it \"%s\"\n", in, text);
	fail();
}

/* ---- a server ---- */

static void *play(void *arg)
{
	struct test_server *server = arg;

	server->serve(server);
	test_server_leave(server);
	return NULL;
}

void test_server_start(struct test_server *server)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(name);

	signal(SIGPIPE, SIG_IGN);
	server->fd = -1;
	server->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(server->listening >= 0);
	assert_int_equal(bind(server->listening, (struct sockaddr *)&name, len), 0);
	assert_int_equal(listen(server->listening, 128), 0);
	assert_int_equal(getsockname(server->listening, (struct sockaddr *)&name, &len), 0);
	server->port = ntohs(name.sin_port);
	assert_status(hpx_thread_start(&server->thread, play, server), HPX_OK);
}

void test_server_wait(struct test_server *server)
{
	pthread_join(server->thread, NULL);
	close(server->listening);
}

/* A server that still waits for a connection is woken. */
void test_server_stop(struct test_server *server)
{
	shutdown(server->listening, SHUT_RDWR);
	test_server_wait(server);
}

void test_server_leave(struct test_server *server)
{
	if (server->ssl != NULL)
		SSL_free(server->ssl);
	server->ssl = NULL;
	if (server->fd >= 0)
		close(server->fd);
	server->fd = -1;
}

bool test_server_accept(struct test_server *server)
{
	test_server_leave(server);
	server->fd = accept(server->listening, NULL, NULL);
	if (server->fd < 0)
		return false;
	server->connections++;
	server->bytes = 0;
	server->reset = false;
	if (server->tls == NULL)
		return true;
	server->ssl = SSL_new(server->tls);
	return SSL_set_fd(server->ssl, server->fd) == 1 && SSL_accept(server->ssl) == 1;
}

static ssize_t get(struct test_server *server, void *bytes, size_t max)
{
	errno = 0;
	if (server->ssl != NULL)
		return SSL_read(server->ssl, bytes, (int)max);
	return recv(server->fd, bytes, max, 0);
}

bool test_server_put_bytes(struct test_server *server, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = server->ssl != NULL ? SSL_write(server->ssl, at, (int)len) : send(server->fd, at, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

bool test_server_put(struct test_server *server, const char *text)
{
	return test_server_put_bytes(server, text, strlen(text));
}

static size_t announced(const char *head)
{
	const char *line = strstr(head, "\r\nContent-Length: ");

	return line == NULL ? 0 : (size_t)strtoull(line + 18, NULL, 10);
}

bool test_server_read(struct test_server *server)
{
	size_t len = 0;
	char byte;

	do {
		if (len + 1 == sizeof(server->head) || get(server, server->head + len, 1) != 1)
			return false;
		server->head[++len] = '\0';
	} while (len < 4 || memcmp(server->head + len - 4, "\r\n\r\n", 4) != 0);
	for (size_t left = announced(server->head); left > 0; left--)
		if (get(server, &byte, 1) != 1)
			return false;
	return true;
}

void test_server_read_end(struct test_server *server)
{
	char bytes[4096];
	ssize_t n;

	while ((n = get(server, bytes, sizeof(bytes))) > 0)
		server->bytes += (size_t)n;
	server->reset = n < 0 && errno == ECONNRESET;
}
