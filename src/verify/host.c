/* The one host: its certificates, and its address, looked up once. */
#include <netdb.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "verify/tls.h"

enum hpx_status hpx_verify_host_init(struct hpx_verify_host *host,
				     const struct hpx_verify_spec *spec,
				     char problem[HPX_CONN_PROBLEM_SIZE])
{
	*host = (struct hpx_verify_host){ .port = spec->port };
	snprintf(host->name, sizeof(host->name), "%.*s", HPX_SPAN_ARG(spec->host));
	return spec->tls ? hpx_tls_context(spec, &host->tls, problem) : HPX_OK;
}

void hpx_verify_host_done(struct hpx_verify_host *host)
{
	if (host->tls != NULL)
		SSL_CTX_free(host->tls);
	host->tls = NULL;
}

enum hpx_status hpx_verify_host_try(const struct hpx_verify_host *host, int64_t timeout_ms,
				    char problem[HPX_CONN_PROBLEM_SIZE])
{
	int64_t deadline_ms = hpx_clock_boot_ms() + timeout_ms;
	struct hpx_verify_host plain = *host;
	struct hpx_verify_conn conn;

	plain.tls = NULL;
	enum hpx_status status = hpx_verify_conn_open(&conn, &plain, problem);
	while (status == HPX_OK && (status = hpx_verify_conn_connect(&conn, problem)) == HPX_BUSY) {
		int64_t left_ms = deadline_ms - hpx_clock_boot_ms();
		struct pollfd p = { .fd = conn.fd, .events = POLLOUT };

		status = HPX_OK;
		if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0) {
			snprintf(problem, HPX_CONN_PROBLEM_SIZE, "no connection in time");
			status = HPX_UNAVAILABLE;
		}
	}
	hpx_verify_conn_close(&conn);
	return status;
}

static enum hpx_status pin_one_of(struct hpx_verify_host *host, const struct addrinfo *list,
				  int64_t timeout_ms, char *problem)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + timeout_ms;
	enum hpx_status status = HPX_UNAVAILABLE;

	for (const struct addrinfo *at = list; at != NULL && status != HPX_OK; at = at->ai_next) {
		struct hpx_verify_host tried = *host;

		memcpy(&tried.address, at->ai_addr, at->ai_addrlen);
		tried.address_size = at->ai_addrlen;
		/* A silent address may use up half of what is left. */
		int64_t left_ms = deadline_ms - hpx_clock_boot_ms();
		status = hpx_verify_host_try(&tried, at->ai_next ? left_ms / 2 : left_ms, problem);
		if (status == HPX_OK)
			*host = tried;
	}
	return status;
}

enum hpx_status hpx_verify_host_find(struct hpx_verify_host *host, int64_t timeout_ms,
				     char problem[HPX_CONN_PROBLEM_SIZE])
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	char port[8];

	if (host->address_size > 0)
		return HPX_OK;
	snprintf(port, sizeof(port), "%u", host->port);
	int error = getaddrinfo(host->name, port, &hints, &list);
	if (error != 0) {
		snprintf(problem, HPX_CONN_PROBLEM_SIZE, "the name cannot be looked up: %s",
			 gai_strerror(error));
		return HPX_NOT_FOUND;
	}
	enum hpx_status status = pin_one_of(host, list, timeout_ms, problem);
	freeaddrinfo(list);
	return status;
}
