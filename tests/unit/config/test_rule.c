/* Shows what does not go together, with the remedy, and what is only warned
 * of. */
#include "config_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOOD "upstream: http://127.0.0.1:9000\nstore: sqlite:/s.db\n"

struct row {
	const char *text;
	const char *report;
};

#define RESUMES \
	"is resume, but an earlier attempt may still be running, and its work would be done " \
	"twice; add fenced: yes or honours_keys if the service prevents that, or write " \
	"on_lost: unknown\n"
#define FORGETS \
	"is shorter than retention: a retry could come after the service forgot the key; " \
	"make retention shorter\n"
#define COMPLETES \
	"is application, which needs the store in the application's own database; give " \
	"store: postgres://… or sqlite:PATH\n"
#define UNNAMED \
	"f: upstream_name: is missing; several services may share a PostgreSQL, and a key " \
	"belongs to one of them: write e.g. upstream_name: payments, or --upstream-name " \
	"payments on the command line; the same name for all gateways of one service, " \
	"whatever its address, and another name for another service\n"
#define SHORT \
	"is below one hour: a retry that comes later is executed again; 24h is usual, and " \
	"expired: refuse with a tombstone refuses it\n"
#define IN_MEMORY "upstream: http://127.0.0.1:9000\nstore: 'memory:'\n"
#define FORGETFUL \
	"f:2:1: warning: store: keeps operations in memory: after a restart, every key is " \
	"executed again\n"

#define NOT_FORWARDED \
	"names a header that does not reach the service as the client sent it: one that " \
	"belongs to the connection, or that hapax writes anew (Via, X-Forwarded-For, " \
	"Accept-Encoding …); leave it out\n"
#define NO_TENANT "names a header that cannot be the tenant's: "

static void contradictions_are_mistakes(void **state)
{
	static const struct row rows[] = {
		{ "store: sqlite:/s.db\n",
		  "f: upstream: is missing; say where the API is, e.g. upstream: "
		  "http://127.0.0.1:9000, or --upstream on the command line\n" },
		{ "upstream: http://127.0.0.1:9000\nstore: postgres://h@db/h\n", UNNAMED },
		{ "upstream: http://127.0.0.1:9000\nstore: postgresql://h@db/h\n", UNNAMED },
		{ GOOD "access_log_file: /x.log\n",
		  "f:3:1: access_log_file: names a file, and access_log does not say what to write "
		  "there; add access_log: json (or text)\n" },
		{ GOOD "tenant: {from: cookie}\n", "f:3:10: tenant.from: is cookie, but no "
						   "cookie is named; add e.g. tenant.name: "
						   "session\n" },
		{ GOOD "tenant: {from: header}\ntrusted_peers: [10.0.0.0/8]\n",
		  "f:3:10: tenant.from: is header, but no header is named; add e.g. "
		  "tenant.name: "
		  "X-Tenant\n" },
		{ GOOD "tenant: {from: header, name: X-Tenant}\n",
		  "f:3:10: tenant.from: is header, which any client could send; list your "
		  "proxies in "
		  "trusted_peers, or listen on a unix socket (listen: unix:PATH)\n" },
		{ GOOD "tenant: {from: anonymous, anonymous: refuse}\n",
		  "f:3:27: tenant.anonymous: is always allow where tenant.from is anonymous; "
		  "leave one of them out\n" },
		{ GOOD "tenant: {from: credential}\n",
		  "f:3:10: tenant.from: is credential, but no header is named; add e.g. "
		  "tenant.name: X-Auth-Token\n" },
		{ GOOD "tenant: {from: credential, name: cookie}\n",
		  "f:3:28: tenant.name: " NO_TENANT "the key's, Cookie (say tenant.from: cookie), "
		  "or one that belongs to the message or the connection, or that hapax writes anew\n" },
		{ GOOD "tenant: {from: credential, name: idempotency-key}\n",
		  "f:3:28: tenant.name: " NO_TENANT "the key's, Cookie (say tenant.from: cookie), "
		  "or one that belongs to the message or the connection, or that hapax writes anew\n" },
		{ GOOD "tenant: {with: [Content-Length]}\n",
		  "f:3:10: tenant.with: names a header that cannot be part of a tenant: the "
		  "key's, Cookie, or one that belongs to the message or the connection, or that hapax writes anew\n" },
		{ GOOD "tenant: {with: [X-Forwarded-Host]}\n",
		  "f:3:10: tenant.with: names a header that cannot be part of a tenant: the "
		  "key's, Cookie, or one that belongs to the message or the connection, or that "
		  "hapax writes anew\n" },
		{ GOOD "defaults: {fingerprint: {headers: [X-Currency, Accept-Encoding]}}\n",
		  "f:3:26: defaults.fingerprint.headers: " NOT_FORWARDED },
		{ GOOD "routes: [{match: POST /p, fingerprint: {headers: [te]}}]\n",
		  "f:3:41: routes[].fingerprint.headers: " NOT_FORWARDED },
		{ GOOD "tenant: {with: [X-Org], ignore: [x-org]}\n",
		  "f:3:25: tenant.ignore: names a header that tenant.with names too; leave it "
		  "out of one of them\n" },
		{ GOOD "tenant: {from: credential, name: X-T, ignore: [x-t]}\n",
		  "f:3:39: tenant.ignore: names the header that tenant.name names; leave one "
		  "out\n" },
		{ GOOD "tenant: {required: true}\n", "f:3:10: tenant.required: is no option\n" },
		{ GOOD "cors: {origins: [\"*\", \"https://a.example\"]}\n",
		  "f:3:8: cors.origins: has \"*\" beside other origins; it stands alone, or not "
		  "at all\n" },
		{ GOOD "cors: {origins: [\"*\"], credentials: yes}\n",
		  "f:3:24: cors.credentials: cannot be true where cors.origins is \"*\": every page "
		  "that a caller opens could act in its name; list the origins\n" },
		{ GOOD "admin: 127.0.0.1:8080\n", "f:3:1: admin: is the same address as "
						  "listen; give it its own, or off\n" },
		{ GOOD "listen: 127.0.0.1:9000\n",
		  "f:1:1: upstream: is the address that hapax itself listens on; give the "
		  "API's\n" },
		{ GOOD "admin: 127.0.0.1:9000\n",
		  "f:1:1: upstream: is hapax's own admin address; give the API's, or admin "
		  "another\n" },
		{ GOOD "limits: {request_body: 2MiB, bodies: 1MiB}\n",
		  "f:3:10: limits.request_body: is larger than limits.bodies: such a "
		  "request could "
		  "never be taken\n" },
		{ GOOD "defaults: {on_lost: resume}\n", "f:3:12: defaults.on_lost: " RESUMES },
		/* A route that inherits it says nothing of its own. */
		{ GOOD "defaults: {on_lost: resume}\nroutes: [{match: POST /a}]\n",
		  "f:3:12: defaults.on_lost: " RESUMES },
		{ GOOD "routes:\n  - match: POST /a\n    on_lost: resume\n",
		  "f:5:5: routes[].on_lost: " RESUMES },
		{ GOOD "routes:\n  - match: POST /a\n    on_lost: resume\n"
		       "    honours_keys: 1h\n",
		  "f:6:5: routes[].honours_keys: " FORGETS },
		{ IN_MEMORY "history: {retention: 400d}\n",
		  "f:3:11: history.retention: needs a store that outlives hapax; give store: "
		  "sqlite:PATH or postgres://…\n" },
		{ GOOD "defaults: {key_min: 100, key_max: 50}\n",
		  "f:3:12: defaults.key_min: is above key_max: every new key would be refused; make it smaller\n" },
		{ GOOD "defaults: {key_min: 100}\nroutes: [{match: POST /a, key_max: 99}]\n",
		  "f:4:27: routes[].key_max: is below key_min: every new key would be refused; make it larger\n" },
		{ GOOD "profile: paypal\ndefaults: {key_min: 109}\nroutes: [{match: POST /a, key_min: 1}]\n",
		  "f:4:12: defaults.key_min: is above key_max: every new key would be refused; make it smaller\n" },
		{ GOOD "defaults: {retention_max: 1h}\n",
		  "f:3:12: defaults.retention_max: is shorter than retention, so that it never has an "
		  "effect; make it longer, or leave it out\n" },
		{ IN_MEMORY "defaults: {completes: application}\n",
		  "f:3:12: defaults.completes: " COMPLETES },
		{ IN_MEMORY "routes:\n  - match: POST /a\n    completes: application\n",
		  "f:5:5: routes[].completes: " COMPLETES },
		{ GOOD "limits: {bodies: 512KiB}\n",
		  "f:3:10: limits.request_body: is larger than limits.bodies: such a "
		  "request could "
		  "never be taken\n"
		  "f:3:10: limits.response_body: is larger than limits.bodies: such an "
		  "answer could "
		  "never be stored\n" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		test_report(rows[i].text, NULL, HPX_INVALID, rows[i].report);
}

static void doubts_are_warnings(void **state)
{
	static const struct row rows[] = {
		{ GOOD, "" },
		{ GOOD "defaults: {key_min: 64, key_max: 64}\n", "" },
		{ GOOD
		  "tenant: {from: header, name: X-Tenant}\ntrusted_peers: [10.0.0.0/8]\n",
		  "" },
		{ GOOD "tenant: {from: header, name: X-Tenant}\nlisten: unix:/s\n", "" },
		{ GOOD "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n", "" },
		{ GOOD "trusted_peers: [10.0.0.7]\ntenant: {with: [X-Forwarded-Host, Host]}\n", "" },
		{ GOOD "routes: [{match: POST /p, fingerprint: {headers: [Host, Content-Language]}}]\n",
		  "" },
		{ GOOD "admin: off\n", "" },
		{ GOOD "cors: {origins: [\"*\"]}\n", "" },
		{ GOOD "cors: {origins: [\"https://a.example\"], credentials: yes}\n", "" },
		{ GOOD "cors: {origins: [\"null\"]}\n", "" },
		{ GOOD "cors: {credentials: yes}\n",
		  "f:3:8: warning: cors.credentials: has no effect unless cors.origins lists any\n" },
		{ GOOD "traces: {sample: 0.5}\n",
		  "f:3:10: warning: traces.sample: has no effect unless traces.endpoint is given\n" },
		{ GOOD "cors: {origins: [\"null\"], credentials: yes}\n",
		  "f:3:8: warning: cors.origins: lists null, an origin that any page can have, "
		  "together with cors.credentials; leave one out\n" },
		{ GOOD "defaults: {on_lost: resume, fenced: yes}\n", "" },
		{ GOOD "defaults: {on_lost: resume, honours_keys: 48h}\n", "" },
		{ GOOD "routes:\n  - match: POST /a\n    on_lost: resume\n    retention: 1h\n"
		       "    honours_keys: 1h\n",
		  "" },
		{ "upstream: http://127.0.0.1:9000\nupstream_name: shop\nstore: postgres://h@db/h\n"
		  "defaults: {completes: application}\n",
		  "" },
		{ GOOD "tenant: {name: X-Tenant}\n",
		  "f:3:10: warning: tenant.name: has no effect unless tenant.from is "
		  "credential, header or cookie\n" },
		{ "upstream: http://127.0.0.1:9000\nstore: sqlite:s.db\n",
		  "f:2:1: note: store: is a relative path: started in another directory, hapax "
		  "would use another, empty store; write an absolute path for a service\n" },
		{ IN_MEMORY, FORGETFUL },
		{ GOOD "defaults: {retention: 59m}\n", "f:3:12: warning: defaults.retention: " SHORT },
		{ GOOD "routes:\n  - match: POST /a\n    retention: 1s\n",
		  "f:5:5: warning: routes[].retention: " SHORT },
		{ GOOD "defaults: {retention: 1h}\nhistory: {retention: 400d}\n", "" },
		{ GOOD "defaults: {completes: application}\n", "" },
		{ GOOD "limits: {waiters: 5}\n",
		  "f:3:10: warning: limits.waiters_per_operation: is larger than "
		  "limits.waiters: it "
		  "is never reached\n" },
		{ GOOD "timeouts: {whole: 30s}\n",
		  "f:3:12: warning: timeouts.first_byte: is larger than timeouts.whole: it "
		  "is never "
		  "reached\n" },
		{ GOOD "routes:\n  - match: POST /a\n    wait: 5s\n",
		  "f:5:5: warning: routes[].wait: has no effect unless concurrent is "
		  "wait\n" },
		{ GOOD "defaults: {wait: 5s}\n", "f:3:12: warning: defaults.wait: has no "
						 "effect unless concurrent is wait\n" },
		{ GOOD "defaults: {wait: 5s}\nroutes:\n  - match: POST /a\n    concurrent: "
		       "wait\n",
		  "" },
		{ GOOD "routes:\n  - match: POST /a\n    key: ignore\n    lease: 5s\n    "
		       "wait: 5s\n"
		       "    fingerprint: {headers: [x]}\n",
		  "f:6:5: warning: routes[].lease: has no effect where key is ignore\n"
		  "f:7:5: warning: routes[].wait: has no effect where key is ignore\n"
		  "f:8:19: warning: routes[].fingerprint.headers: has no effect where key "
		  "is "
		  "ignore\n" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		test_report(rows[i].text, NULL, HPX_OK, rows[i].report);
}

/* A store that others may read or write, and a directory that they may write, are warned of. */
static void stores_that_others_reach(void **state)
{
	static const struct {
		mode_t folder;
		mode_t file;
		unsigned warnings;
	} rows[] = { { 0700, 0600, 0 }, { 0755, 0640, 0 }, { 0700, 0644, 1 }, { 0700, 0602, 1 }, { 0777, 0600, 1 }, { 0777, 0666, 2 } };
	char folder[] = "/tmp/hapax-rule-XXXXXX";
	char path[64], text[256];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s.db", folder);
	snprintf(text, sizeof(text), "upstream: http://127.0.0.1:9000\nstore: sqlite:%s\n", path);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_settings *settings = NULL;
		struct hpx_buffer out;
		unsigned found = 0;
		assert_int_equal(chmod(folder, rows[i].folder) | chmod(path, rows[i].file), 0);
		hpx_buffer_init(&out, 1 << 16);
		assert_status(test_read(text, NULL, &out, &settings), HPX_OK);
		assert_status(hpx_buffer_byte(&out, '\0'), HPX_OK);
		for (const char *at = out.ptr; (at = strstr(at, "every user")) != NULL; at++)
			found++;
		if (found != rows[i].warnings)
			fail_msg("%o/%o: %s", (unsigned)rows[i].folder, (unsigned)rows[i].file, out.ptr);
		hpx_buffer_done(&out);
		hpx_settings_unref(settings);
	}
	assert_int_equal(unlink(path) | rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stores_that_others_reach),
		cmocka_unit_test(contradictions_are_mistakes),
		cmocka_unit_test(doubts_are_warnings),
	};
	return cmocka_run_group_tests_name("rule", tests, NULL, NULL);
}
