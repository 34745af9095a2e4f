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
	struct guest *guest = arg;

	guest->serve(guest);
	guest_leave(guest);
	return NULL;
}

void guest_start(struct guest *guest)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(name);

	signal(SIGPIPE, SIG_IGN);
	guest->fd = -1;
	guest->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(guest->listening >= 0);
	assert_int_equal(bind(guest->listening, (struct sockaddr *)&name, len), 0);
	assert_int_equal(listen(guest->listening, 128), 0);
	assert_int_equal(getsockname(guest->listening, (struct sockaddr *)&name, &len), 0);
	guest->port = ntohs(name.sin_port);
	assert_status(hpx_thread_start(&guest->thread, play, guest), HPX_OK);
}

void guest_wait(struct guest *guest)
{
	pthread_join(guest->thread, NULL);
	close(guest->listening);
}

/* Whoever still waits for a connection is woken. */
void guest_stop(struct guest *guest)
{
	shutdown(guest->listening, SHUT_RDWR);
	guest_wait(guest);
}

void guest_leave(struct guest *guest)
{
	if (guest->ssl != NULL)
		SSL_free(guest->ssl);
	guest->ssl = NULL;
	if (guest->fd >= 0)
		close(guest->fd);
	guest->fd = -1;
}

bool guest_accept(struct guest *guest)
{
	guest_leave(guest);
	guest->fd = accept(guest->listening, NULL, NULL);
	if (guest->fd < 0)
		return false;
	guest->connections++;
	guest->bytes = 0;
	guest->reset = false;
	if (guest->tls == NULL)
		return true;
	guest->ssl = SSL_new(guest->tls);
	return SSL_set_fd(guest->ssl, guest->fd) == 1 && SSL_accept(guest->ssl) == 1;
}

static ssize_t get(struct guest *guest, void *bytes, size_t max)
{
	errno = 0;
	if (guest->ssl != NULL)
		return SSL_read(guest->ssl, bytes, (int)max);
	return recv(guest->fd, bytes, max, 0);
}

bool guest_put_bytes(struct guest *guest, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = guest->ssl != NULL ? SSL_write(guest->ssl, at, (int)len) : send(guest->fd, at, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

bool guest_put(struct guest *guest, const char *text)
{
	return guest_put_bytes(guest, text, strlen(text));
}

static size_t announced(const char *head)
{
	const char *line = strstr(head, "\r\nContent-Length: ");

	return line == NULL ? 0 : (size_t)strtoull(line + 18, NULL, 10);
}

bool guest_read(struct guest *guest)
{
	size_t len = 0;
	char byte;

	do {
		if (len + 1 == sizeof(guest->head) || get(guest, guest->head + len, 1) != 1)
			return false;
		guest->head[++len] = '\0';
	} while (len < 4 || memcmp(guest->head + len - 4, "\r\n\r\n", 4) != 0);
	for (size_t left = announced(guest->head); left > 0; left--)
		if (get(guest, &byte, 1) != 1)
			return false;
	return true;
}

void guest_read_end(struct guest *guest)
{
	char bytes[4096];
	ssize_t n;

	while ((n = get(guest, bytes, sizeof(bytes))) > 0)
		guest->bytes += (size_t)n;
	guest->reset = n < 0 && errno == ECONNRESET;
}
