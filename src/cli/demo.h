/* Shared by the files of `hapax demo`. The demo plays accidents on two sides:
 *
 *   client ─▶ network ─▶ payments API ─▶ ledger                      (without hapax)
 *   client ─▶ network ─▶ hapax ─▶ network ─▶ payments API ─▶ ledger  (with hapax)
 *
 * The client is libhapax-client. The API and the network stand on one small server over
 * the HTTP reader; hapax is this same program, in a process of its own. */
#ifndef HPX_CLI_DEMO_H
#define HPX_CLI_DEMO_H

#include <limits.h>
#include <pthread.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "core/operation.h"
#include "egress/egress.h"
#include "hapax/client.h"
#include "http/message.h"

/* ---- the server (demo_server.c) ---- */

/* Of a request or an answer: enough for a full ledger. */
#define HPX_DEMO_BODY_MAX ((size_t)1024 * 1024 + 8192)

/* A request as it came; all of it lives until the handler returns. */
struct hpx_demo_request {
	struct hpx_http_head head; /* its spans point into `bytes` */
	struct hpx_buffer bytes;
	struct hpx_buffer body;
	struct hpx_arena arena;
};

/* The server adds the framing. */
struct hpx_demo_answer {
	unsigned status;          /* 0: none; the connection is closed instead */
	struct hpx_buffer fields; /* "Name: value\r\n", each */
	struct hpx_buffer body;
};

/* More than the retry storm needs; past it, new connections are closed. */
#define HPX_DEMO_CONNECTIONS_MAX 192

struct hpx_demo_server {
	uint16_t port;
	/* The rest is the server's own. */
	int fd;
	pthread_t acceptor;
	pthread_mutex_t lock;
	pthread_cond_t quiet; /* no connection is left */
	int fds[HPX_DEMO_CONNECTIONS_MAX];
	unsigned count;
	bool stopping;
	/* On the connection's own thread, one request per connection. */
	void (*handle)(void *user, struct hpx_demo_request *request,
		       struct hpx_demo_answer *answer);
	void *user;
};

/* Listens on 127.0.0.1:`port` where that is free (0, or taken: on any other port). The
 * caller has set `handle` and `user`. */
enum hpx_status hpx_demo_server_start(struct hpx_demo_server *server, uint16_t port);
/* Breaks every connection that is open now, as a proxy that dies would. */
void hpx_demo_server_cut(struct hpx_demo_server *server);
/* Accepts no more connections, breaks the open ones and waits for their threads. */
void hpx_demo_server_stop(struct hpx_demo_server *server);
/* The wanted port if nobody listens there, otherwise a free one; 0: none. */
uint16_t hpx_demo_port(uint16_t wanted);

/* ---- the payments API and its ledger (demo_api.c) ---- */

struct hpx_demo_api {
	struct hpx_demo_server server;
	int ledger_fd;
	size_t ledger_bytes;
	uint64_t payments; /* lines of the ledger */
	bool held;         /* payments are made but not answered */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* `payments` has grown, or `held` is over */
};

enum hpx_status hpx_demo_api_start(struct hpx_demo_api *api, const char *ledger_path);
void hpx_demo_api_stop(struct hpx_demo_api *api);
/* While held, payments are made but not answered: the middle of a payment. */
void hpx_demo_api_hold(struct hpx_demo_api *api, bool held);
/* Waits until one more payment is made than `before`. */
enum hpx_status hpx_demo_api_wait(struct hpx_demo_api *api, uint64_t before, int64_t timeout_ms);
uint64_t hpx_demo_api_payments(struct hpx_demo_api *api);

struct hpx_demo_sum {
	uint64_t payments;
	uint64_t cents;
};
/* The payments that the ledger has for one order. */
enum hpx_status hpx_demo_api_sum(const struct hpx_demo_api *api, const char *order,
				 struct hpx_demo_sum *ret_sum);

/* ---- the flaky network (demo_network.c) ----
 * A hop that passes one exchange on to another port and, where the request says so,
 * loses the answer behind the effect:
 *
 *   X-Demo-Network: lose-answer
 *
 * The header is the network's own and travels no further than one hop. */

#define HPX_DEMO_NETWORK_FIELD "X-Demo-Network"
#define HPX_DEMO_LOSE_ANSWER "lose-answer"

struct hpx_demo_network {
	struct hpx_demo_server server;
	uint16_t to_port;
};

enum hpx_status hpx_demo_network_start(struct hpx_demo_network *network, uint16_t port,
				       uint16_t to_port);
/* GET from 127.0.0.1, one attempt; the caller frees it by hpx_egress_request_done. */
void hpx_demo_get(uint16_t port, const char *target, struct hpx_egress_request *ret_request);

/* ---- the client (demo_client.c) ---- */

struct hpx_demo_order {
	const char *key;
	const char *order;
	uint64_t cents;
	bool lose_answer; /* the network is asked to lose the answer */
};

struct hpx_demo_reply {
	bool answered; /* the rest is the answer's */
	unsigned code;
	bool replayed;
	char payment[32]; /* "pay_1", or empty */
	char problem[64]; /* the problem's code, or empty */
	char operation[HPX_REFERENCE_SIZE];
};

/* `attempts`: how often a payment is sent at most while its outcome is not definite. */
enum hpx_status hpx_demo_client_open(unsigned attempts, struct hapax_client **ret_client);
void hpx_demo_pay(struct hapax_client *client, uint16_t port, const struct hpx_demo_order *order,
		  struct hpx_demo_reply *ret_reply);

/* A payment on a thread of its own. */
struct hpx_demo_payer {
	struct hapax_client *client;
	uint16_t port;
	const struct hpx_demo_order *order;
	struct hpx_demo_reply reply;
	pthread_t thread;
};
enum hpx_status hpx_demo_payer_start(struct hpx_demo_payer *payer);
void hpx_demo_payer_join(struct hpx_demo_payer *payer);

/* ---- the stage: everything that runs, and its folder (demo_stage.c) ---- */

/* One way to the API: the network that the client connects to, and the API. */
struct hpx_demo_side {
	const char *name;
	bool guarded; /* by hapax */
	struct hpx_demo_network network;
	struct hpx_demo_api api;
};

/* `hapax serve`, in a process of its own, so that it can be killed. */
struct hpx_demo_child {
	uint16_t port;
	uint16_t admin_port;
	pid_t pid;  /* 0: not running */
	bool ended; /* never to be started again */
	pthread_mutex_t lock;
};

struct hpx_demo_stage {
	char folder[PATH_MAX - 64];
	int folder_fd; /* locked while this demo runs; -1: the folder has no known name */
	int ports_fd;  /* held while the known ports are this demo's; or -1 */
	char config_path[PATH_MAX];
	char log_path[PATH_MAX];
	char store_url[PATH_MAX];
	struct hapax_client *client;   /* sends again until it knows the outcome */
	struct hapax_client *one_shot; /* sends once */
	struct hpx_demo_side without;
	struct hpx_demo_side with;
	struct hpx_demo_network behind; /* between hapax and the API */
	struct hpx_demo_child hapax;
	unsigned built; /* how many parts stand */
};

/* `known`: the ports 8080 and its like and the folder hapax-demo, where they are free,
 * so that the README can name them; otherwise whatever is free. On failure `problem`
 * says what is wrong and what to do, and nothing is left behind. */
enum hpx_status hpx_demo_stage_open(struct hpx_demo_stage *stage, bool known, char *problem,
				    size_t problem_size);
/* Ends hapax and removes the folder; from any thread, more than once. */
void hpx_demo_stage_sweep(struct hpx_demo_stage *stage);
/* The same, and ends the threads too. */
void hpx_demo_stage_close(struct hpx_demo_stage *stage);

/* Starts hapax and waits until it is ready. HPX_CLOSED: it ended instead (its log says
 * why); HPX_TIMEOUT. */
enum hpx_status hpx_demo_hapax_start(struct hpx_demo_stage *stage);
/* kill -9: to everybody else the same as a power cut. */
void hpx_demo_hapax_kill(struct hpx_demo_stage *stage);
/* Runs `hapax` with these arguments (the first is the subcommand, NULL ends them) and
 * collects what it prints; its exit code, -1: it could not be run or took too long. */
int hpx_demo_run(const char *const *arguments, struct hpx_buffer *out);

/* ---- the report: everything that the demo prints of its story (demo_report.c) ----
 * Calm, within 80 columns, coloured only on a terminal and not where NO_COLOR is set. */

#define HPX_DEMO_STEPS_MAX 8

struct hpx_demo_result {
	const char *title;
	struct hpx_demo_sum intended;
	struct hpx_demo_sum without;
	struct hpx_demo_sum with;
	bool right; /* both sides came out as they should */
};

struct hpx_demo_report {
	bool colour;
	struct hpx_demo_result results[HPX_DEMO_STEPS_MAX];
	unsigned count;
};

void hpx_demo_report_init(struct hpx_demo_report *report);
/* "1  A double click" */
void hpx_demo_report_title(const struct hpx_demo_report *report, unsigned number,
			   const char *title);
/* Lines of the story, indented; `text` may hold line ends. */
void hpx_demo_report_text(const char *text);
/* A command as one would type it, and what it printed. */
void hpx_demo_report_command(const struct hpx_demo_report *report, const char *command);
void hpx_demo_report_output(struct hpx_span output);
/* One side of a step: what the client saw, and what the ledger says. */
void hpx_demo_report_side(const struct hpx_demo_report *report, const char *name,
			  const char *saw, const struct hpx_demo_sum *intended,
			  const struct hpx_demo_sum *sum);
/* Something went wrong that is not part of the story. */
void hpx_demo_report_trouble(const struct hpx_demo_report *report, const char *what);
/* The ledgers side by side; true where every step came out right. */
bool hpx_demo_report_table(const struct hpx_demo_report *report);

/* ---- the story (demo_story.c) ---- */

/* Plays it all and fills the report. */
void hpx_demo_story(struct hpx_demo_stage *stage, struct hpx_demo_report *report);

#endif
