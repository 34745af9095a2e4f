/* What the files of the client share: the client, a call, and how results and
 * their sentences are given. */
#ifndef HPX_CLIENT_CLIENT_H
#define HPX_CLIENT_CLIENT_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "core/operation.h"
#include "hapax/client.h"

#define HPX_CALL_FIELDS_MAX 128
#define HPX_CALL_URL_MAX 8192
#define HPX_CALL_BODY_MAX ((size_t)64 << 20)
#define HPX_CALL_METHOD_SIZE 8

struct hpx_journal;

struct hapax_client {
	struct hapax_client_options options; /* with defaults; its texts are the client's own */
	struct hpx_journal *journal;         /* NULL: none */
	int wake_fd;                         /* an eventfd: readable once interrupted */
	atomic_bool interrupted;
};

/* What the journal keeps of a credential: a salted hash, never the value. The hash
 * tells whether a resumed call is given the same credential. With another one the API
 * would take the key for another caller's, and execute the request a second time. */
#define HPX_SALT_SIZE 16
struct hpx_credential_hash {
	uint8_t salt[HPX_SALT_SIZE];
	uint8_t digest[HPX_SHA256_SIZE];
};

/* One header field of a call, in the order of sending. */
struct hpx_call_field {
	char *name;
	char *value; /* NULL: a credential that was not given again yet */
	char *file;  /* the file that the value was read from; NULL: none */
	bool secret;
	struct hpx_credential_hash hash; /* of a secret */
};

struct hapax_call {
	struct hapax_client *client;
	char method[HPX_CALL_METHOD_SIZE];
	char *url;
	struct hpx_call_field fields[HPX_CALL_FIELDS_MAX];
	size_t field_count;
	char *body;
	size_t body_len;
	char key[HPX_KEY_MAX + 1];
	char *key_header;
	bool key_bare;
	bool resumed;
	bool sent;        /* hapax_call_send was called */
	bool unconfirmed; /* done, and the journal does not say so yet */
	/* The state of the call, written down before and after each attempt. */
	int64_t id;   /* 0: not in the journal */
	int claim_fd; /* the lock on the entry; -1: none */
	enum hapax_entry_state state;
	unsigned attempts;
	bool sending; /* an attempt was begun and has not ended */
	bool doubt;
	int64_t created_ms;    /* wall clock */
	int64_t first_ms;      /* of the first attempt that may have happened; 0: none */
	int64_t remembered_ms; /* how long the API remembers its key */
	/* The last whole answer. */
	unsigned status;
	struct hpx_buffer headers_in; /* lines, and a NUL behind them */
	struct hpx_buffer values_in;  /* the same lines, each ended by a NUL */
	struct hpx_buffer body_in;
	bool body_kept;
	struct hapax_outcome outcome;
	char reason[HAPAX_PROBLEM_SIZE];
};

/* ---- client_handle.c ---- */

/* The sentence for people, cut to its size; `problem` may be NULL.
 * Gives the result back, so that a caller can end with it. */
enum hapax_result hpx_client_error(enum hapax_result result, char *problem, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* HAPAX_OK and "". */
enum hapax_result hpx_client_ok(char *problem);
enum hapax_result hpx_client_no_memory(char *problem);

/* ---- client_call.c ---- */

/* An empty call, NULL when out of memory; a field at its end, whose
 * texts become the call's, false (and they are freed) when there is no room. */
struct hapax_call *hpx_call_empty(struct hapax_client *client);
bool hpx_call_append(struct hapax_call *call, struct hpx_call_field field);

/* ---- client_field.c ---- */

/* Whether every credential of a resumed call was given again. */
enum hapax_result hpx_call_is_complete(const struct hapax_call *call, char *problem);
/* Reads the files of a resumed call's fields again. */
enum hapax_result hpx_call_reread(struct hapax_call *call, char *problem);
/* All fields as lines, with those of the client: its key comes last. */
enum hpx_status hpx_call_lines(const struct hapax_call *call, struct hpx_buffer *lines);

/* The key as it is sent, with its quotes unless it is bare. */
#define HPX_KEY_TEXT_SIZE (2 * HPX_KEY_MAX + 3)
void hpx_call_key_print(const struct hapax_call *call, char ret_text[HPX_KEY_TEXT_SIZE]);

/* ---- client_send.c ---- */

/* Whether the call, with all fields as lines, can be sent at all. */
enum hapax_result hpx_call_check(const struct hapax_call *call, struct hpx_span headers,
				 char *problem);

#endif
