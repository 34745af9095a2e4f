/* A pretended payment provider, so that one can see what would have been done
 * with real money.
 *
 *   POST /screenings, /authorisations, /captures   does it, once per Idempotency-Key
 *   GET  /ledger                                   what was done, one line each:
 *                                                  kind, key, id, amount, currency, calls
 *
 * It does what providers do: the same key again gives the same answer and no
 * second effect. `calls` counts how often it was asked all the same. An
 * authorisation of 10000.00 or more is declined, a screening from 1000000.00. */
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"

#define KEY_SIZE 256

struct effect {
	struct effect *next;
	const struct kind *kind;
	char key[KEY_SIZE];
	char currency[4];
	json_int_t amount;
	char id[32];
	unsigned calls;
};

static const struct kind {
	const char *path;
	const char *name;
	const char *prefix; /* of its ids */
	json_int_t declined_from;
} KINDS[] = {
	{ "/screenings", "screening", "scr", 100000000 },
	{ "/authorisations", "authorisation", "aut", 1000000 },
	{ "/captures", "capture", "cap", 1000000000000000 },
};

struct provider {
	pthread_mutex_t lock;
	struct effect *newest;
	unsigned count;
	unsigned run; /* so that no id is given again after a restart */
	int listener;
};

static const struct kind *find_kind(const char *path)
{
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
		if (strcmp(KINDS[i].path, path) == 0)
			return &KINDS[i];
	}
	return NULL;
}

/* With the lock held: the effect of this key, made where there is none. */
static struct effect *find_or_do(struct provider *provider, const struct effect *wanted)
{
	struct effect *effect = provider->newest;

	while (effect != NULL && strcmp(effect->key, wanted->key) != 0)
		effect = effect->next;
	if (effect != NULL)
		return effect;
	effect = malloc(sizeof(*effect));
	if (effect == NULL)
		return NULL;
	*effect = *wanted;
	effect->next = provider->newest;
	snprintf(effect->id, sizeof(effect->id), "%s_%08x%u", wanted->kind->prefix, provider->run,
		 ++provider->count);
	provider->newest = effect;
	return effect;
}

static void take_order(struct provider *provider, const struct effect *wanted,
		       struct http_answer *answer)
{
	pthread_mutex_lock(&provider->lock);
	struct effect *effect = find_or_do(provider, wanted);
	if (effect == NULL) {
		http_error(answer, 503, "out of memory");
	} else if (effect->kind != wanted->kind || effect->amount != wanted->amount ||
		   strcmp(effect->currency, wanted->currency) != 0) {
		http_error(answer, 422, "this key was used for another order");
	} else {
		effect->calls++;
		http_error(answer, 201, "");
		answer->body_len = (size_t)snprintf(answer->body, sizeof(answer->body),
						    "{\"id\": \"%s\"}\n", effect->id);
	}
	pthread_mutex_unlock(&provider->lock);
}

static void answer_order(struct provider *provider, const struct kind *kind,
			 const struct http_message *request, struct http_answer *answer)
{
	struct effect wanted = { .kind = kind };
	json_t *document = json_loadb(request->body, request->body_len, 0, NULL);
	const char *currency = json_string_value(json_object_get(document, "currency"));

	wanted.amount = json_integer_value(json_object_get(document, "amount"));
	snprintf(wanted.currency, sizeof(wanted.currency), "%s", currency != NULL ? currency : "");
	json_decref(document);
	if (http_header(request, "Idempotency-Key", wanted.key, sizeof(wanted.key)) != 1)
		http_error(answer, 400, "send one Idempotency-Key");
	else if (wanted.amount < 1)
		http_error(answer, 400, "send an amount");
	else if (wanted.amount >= kind->declined_from)
		http_error(answer, 402, "declined");
	else
		take_order(provider, &wanted, answer);
}

static void show_ledger(struct provider *provider, int fd)
{
	char *text = NULL;
	size_t len = 0;
	FILE *stream = open_memstream(&text, &len);

	if (stream == NULL)
		return;
	pthread_mutex_lock(&provider->lock);
	for (struct effect *effect = provider->newest; effect != NULL; effect = effect->next)
		fprintf(stream, "%s\t%s\t%s\t%lld\t%s\t%u\n", effect->kind->name, effect->key,
			effect->id, (long long)effect->amount, effect->currency, effect->calls);
	pthread_mutex_unlock(&provider->lock);
	if (fclose(stream) == 0)
		http_send(fd, 200, "Content-Type: text/plain\r\n", text, len);
	free(text);
}

static void serve_one(struct provider *provider, int fd, struct http_message *request)
{
	struct http_answer answer;
	char method[8] = "", path[128] = "";

	if (http_read(fd, request))
		http_request_line(request, method, path);
	const struct kind *kind = find_kind(path);
	if (strcmp(method, "GET") == 0 && strcmp(path, "/ledger") == 0) {
		show_ledger(provider, fd);
		return;
	}
	if (strcmp(method, "POST") == 0 && kind != NULL)
		answer_order(provider, kind, request, &answer);
	else
		http_error(&answer, 404, "there are /screenings, /authorisations, /captures, /ledger");
	http_send(fd, answer.status, answer.headers, answer.body, answer.body_len);
}

static void *run_thread(void *arg)
{
	struct provider *provider = arg;
	struct http_message *request = malloc(sizeof(*request));

	while (request != NULL) {
		int fd = accept4(provider->listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			serve_one(provider, fd, request);
			close(fd);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct provider provider = { .lock = PTHREAD_MUTEX_INITIALIZER };
	unsigned long port = argc > 1 ? strtoul(argv[1], NULL, 10) : 9100;
	pthread_t thread;

	provider.listener = port <= UINT16_MAX ? http_listen((uint16_t)port) : -1;
	if (argc > 2 || provider.listener < 0 ||
	    getrandom(&provider.run, sizeof(provider.run), 0) != sizeof(provider.run)) {
		fprintf(stderr, "usage: provider [PORT]; the port must be free\n");
		return 2;
	}
	for (int i = 0; i < 8; i++) {
		if (pthread_create(&thread, NULL, run_thread, &provider) != 0)
			return 1;
	}
	printf("provider: ready on http://127.0.0.1:%lu\n", port);
	fflush(stdout);
	for (;;)
		pause();
}
