/* A small payments API.
 *
 *   POST /payments        {"customer": "cus_1", "amount": 1250, "currency": "EUR"}
 *   GET  /payments/<id>
 *
 * Some threads, each with a connection of its own to the database, take one
 * request after the other. Read payment.c for what this example is about. */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admission.h"
#include "payment.h"

#define THREADS 8
#define TIDY_S 5

struct service {
	const char *store;
	uint16_t port;
	uint16_t bank_port;
	int64_t lease_ms;
	bool behind_gateway;
	struct hapax *hapax; /* reserves keys; NULL where the gateway does */
	int listener;
};

static void make_payment(struct service *service, struct db *db, const struct http_message *request,
			 const char *merchant, struct http_answer *ret_answer)
{
	struct payment_order order = { .merchant = merchant };
	struct payment_attempt attempt = { 0 };

	if (!admission_order(request, &order, ret_answer))
		return;
	bool execute = service->behind_gateway ?
			       admission_by_lease(db, request, &attempt, ret_answer) :
			       admission_by_key(service->hapax, request, merchant, service->lease_ms,
						&attempt, ret_answer);
	if (!execute)
		return;
	switch (payment_run(db, service->bank_port, &order, &attempt, ret_answer)) {
	case PAYMENT_ANSWERED:
		return;
	case PAYMENT_OVERTAKEN:
		http_error(ret_answer, 409, "another attempt makes this payment; ask again");
		return;
	case PAYMENT_CUT_SHORT:
		/* So that a retry need not wait for the lease to run out. Where even
		 * this fails, it does. */
		if (!service->behind_gateway)
			hapax_lose(service->hapax, attempt.lease, NULL);
		http_error(ret_answer, 503, "not finished; ask again with the same key");
		return;
	}
}

static void answer_request(struct service *service, struct db *db,
			   const struct http_message *request, struct http_answer *ret_answer)
{
	static const char one[] = "/payments/";
	char method[8], path[128];

	http_request_line(request, method, path);
	const char *merchant = admission_merchant(request, ret_answer);
	if (merchant == NULL)
		return;
	if (!db_ready(db, service->store))
		http_error(ret_answer, 503, "the database cannot be reached; nothing happened");
	else if (strcmp(method, "POST") == 0 && strcmp(path, "/payments") == 0)
		make_payment(service, db, request, merchant, ret_answer);
	else if (strcmp(method, "GET") != 0 || strncmp(path, one, strlen(one)) != 0)
		http_error(ret_answer, 404, "there are POST /payments and GET /payments/<id>");
	else if (!payment_show(db, merchant, path + strlen(one), ret_answer))
		http_error(ret_answer, 503, "the database cannot be asked");
}

/* ---- The process ---- */

static void serve_one(struct service *service, struct db *db, int fd, struct http_message *request)
{
	struct http_answer answer;
	bool is_read = http_read(fd, request);

	if (is_read)
		answer_request(service, db, request, &answer);
	else
		http_error(&answer, 400, "not a request that is understood here");
	/* Where the client is gone, its retry gets this answer. */
	http_send(fd, answer.status, answer.headers, answer.body, answer.body_len);
	if (is_read)
		close(fd);
	else
		http_hang_up(fd);
}

static void *run_thread(void *arg)
{
	struct service *service = arg;
	struct http_message *request = malloc(sizeof(*request));
	struct db db = { 0 };

	while (request != NULL) {
		int fd = accept4(service->listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			serve_one(service, &db, fd, request);
	}
	return NULL;
}

/* Finds leases that were lost and removes what has expired. Behind a gateway
 * that is the gateway's work. */
static void *run_tidy(void *arg)
{
	struct service *service = arg;
	char problem[HAPAX_PROBLEM_SIZE];

	for (;;) {
		sleep(TIDY_S);
		if (hapax_tidy(service->hapax, problem) != HAPAX_OK)
			fprintf(stderr, "payments: %s\n", problem);
	}
	return NULL;
}

static bool start_thread(void *(*run)(void *arg), struct service *service)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, run, service) == 0 && pthread_detach(thread) == 0;
}

static bool install(struct service *service)
{
	struct hapax_options options = { .size = sizeof(options), .install = 1 };
	char problem[HAPAX_PROBLEM_SIZE];
	struct db db;

	if (!service->behind_gateway &&
	    hapax_open(service->store, &options, &service->hapax, problem) != HAPAX_OK) {
		fprintf(stderr, "payments: %s\n", problem);
		return false;
	}
	bool done = db_open(&db, service->store) && db_install(&db);
	db_close(&db);
	return done;
}

static int serve(struct service *service)
{
	if (!install(service))
		return 1;
	service->listener = http_listen(service->port);
	if (service->listener < 0) {
		perror("payments: cannot listen");
		return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		if (!start_thread(run_thread, service))
			return 1;
	}
	if (!service->behind_gateway && !start_thread(run_tidy, service))
		return 1;
	printf("payments: ready on http://127.0.0.1:%u\n", (unsigned)service->port);
	fflush(stdout);
	/* It ends by being killed, at any moment: that is the point. */
	for (;;)
		pause();
}

static int usage(void)
{
	fputs("usage: payments [options] STORE\n"
	      "  STORE              sqlite:PATH or postgres://…\n"
	      "  --port PORT        where it listens (9000)\n"
	      "  --provider PORT    where the provider listens (9100)\n"
	      "  --lease SECONDS    how long an attempt may take (30)\n"
	      "  --behind-gateway   keys are reserved by a hapax in front of this service;\n"
	      "                     nobody else may reach it\n",
	      stderr);
	return 2;
}

/* 1 to 65535; 0: not a number like that. */
static uint16_t number_of(const char *text)
{
	unsigned value = 0;

	for (const char *at = text; *at != '\0'; at++) {
		if (*at < '0' || *at > '9' || value > UINT16_MAX)
			return 0;
		value = value * 10 + (unsigned)(*at - '0');
	}
	return value <= UINT16_MAX ? (uint16_t)value : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "provider", required_argument, NULL, 'b' },
		{ "lease", required_argument, NULL, 'l' },
		{ "behind-gateway", no_argument, NULL, 'g' },
		{ 0 },
	};
	struct service service = { .port = 9000, .bank_port = 9100, .lease_ms = 30000 };

	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		uint16_t number = optarg != NULL ? number_of(optarg) : 1;

		if (option == '?' || number == 0)
			return usage();
		if (option == 'p')
			service.port = number;
		else if (option == 'b')
			service.bank_port = number;
		else if (option == 'l')
			service.lease_ms = number * INT64_C(1000);
		else
			service.behind_gateway = true;
	}
	if (optind != argc - 1)
		return usage();
	service.store = argv[optind];
	return serve(&service);
}
