/* Shows what each kind of mistake in a file is answered with: its exact line
 * and column, what was given, what would be right; and that all of them are
 * reported at once. */
#include "config_test.h"

#define UP "upstream: http://127.0.0.1:9000\n"
#define STORE "store: sqlite:/s.db\n"
/* What is there so that nothing else is wrong: two lines. */
#define GOOD UP STORE

struct row {
	const char *text;
	const char *report;
};

static void check(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		test_report(rows[i].text, NULL, HPX_INVALID, rows[i].report);
}

static void values(void **state)
{
	static const struct row rows[] = {
		/* Durations. */
		{ GOOD "timeouts:\n  head: 10\n",
		  "f:4:9: timeouts.head: \"10\" is no duration: write a whole number and "
		  "its unit, "
		  "e.g. 250ms, 10s, 2m, 24h or 7d\n" },
		{ GOOD "defaults: {lease: 500ms}\n",
		  "f:3:19: defaults.lease: \"500ms\" is too small: at least 1s\n" },
		{ GOOD "defaults: {lease: 2h}\n",
		  "f:3:19: defaults.lease: \"2h\" is too large: at most 1h\n" },
		{ GOOD "defaults: {wait: 1h}\n",
		  "f:3:12: warning: defaults.wait: has no effect unless concurrent is "
		  "wait\n"
		  "f:3:18: defaults.wait: \"1h\" is too large: at most 10m\n" },
		{ GOOD "defaults: {retention: -1d}\n",
		  "f:3:23: defaults.retention: \"-1d\" is no duration: write a whole "
		  "number and its "
		  "unit, e.g. 250ms, 10s, 2m, 24h or 7d\n" },
		/* Sizes. */
		{ GOOD "limits:\n  head: 1.5MiB\n",
		  "f:4:9: limits.head: \"1.5MiB\" is no size: write a whole number of "
		  "bytes, or "
		  "with a unit, e.g. 512, 32KiB, 1MiB or 1GiB\n" },
		{ GOOD "limits: {head: 12}\n",
		  "f:3:16: limits.head: \"12\" is too small: at least 1KiB\n" },
		{ GOOD "limits: {head: 2MiB}\n",
		  "f:3:16: limits.head: \"2MiB\" is too large: at most 1MiB\n" },
		/* Numbers. */
		{ GOOD "loops: many\n",
		  "f:3:8: loops: \"many\" is no whole number from 0 to 256\n" },
		{ GOOD "loops: 0x10\n",
		  "f:3:8: loops: \"0x10\" is no whole number from 0 to 256\n" },
		{ GOOD "loops: 257\n",
		  "f:3:8: loops: \"257\" is too large: at most 256\n" },
		{ GOOD "mismatch_status: 200\n",
		  "f:3:18: mismatch_status: \"200\" is too small: at least 400\n" },
		{ GOOD "limits: {fields: 1000}\n",
		  "f:3:18: limits.fields: \"1000\" is too large: at most 128\n" },
		/* Switches and choices. */
		{ GOOD "observe: maybe\n",
		  "f:3:10: observe: \"maybe\" is neither true nor false\n" },
		{ GOOD "key_syntax: iefl\n", "f:3:13: key_syntax: \"iefl\" is not one of "
					     "ietf, strict, bare; did you mean "
					     "\"ietf\"?\n" },
		{ GOOD "defaults: {key_refuse: [email, cards]}\n",
		  "f:3:24: defaults.key_refuse: \"cards\" is not one of email, card; did you mean "
		  "\"card\"?\n" },
		{ GOOD "defaults: {key_max: 256}\n",
		  "f:3:21: defaults.key_max: \"256\" is too large: at most 255\n" },
		{ GOOD "defaults: {key_from: [{header: Authorization}]}\n",
		  "f:3:22: defaults.key_from: names a header that can carry no key\n" },
		{ GOOD "defaults: {key_from: [{body: idempotency_key}]}\n",
		  "f:3:22: defaults.key_from: names no member of the body: write a JSON pointer, {body: "
		  "/idempotency_key}\n" },
		{ GOOD "defaults: {key_from: [{query: a b}]}\n",
		  "f:3:22: defaults.key_from: names no query parameter\n" },
		{ GOOD "defaults: {key_from: [{cookie: a}]}\n",
		  "f:3:22: defaults.key_from: is a list of {header: NAME}, {body: POINTER} and {query: "
		  "NAME}\n" },
		{ GOOD "defaults: {key_from: [X-Key]}\n",
		  "f:3:22: defaults.key_from: is a list of mappings with one member each; write e.g. "
		  "[{header: PayPal-Request-Id}, {body: /idempotency_key}, {query: request_id}]\n" },
		{ GOOD "defaults: {key_from: [{header: A, body: /b}]}\n",
		  "f:3:22: defaults.key_from: is a list of mappings with one member each; write e.g. "
		  "[{header: PayPal-Request-Id}, {body: /idempotency_key}, {query: request_id}]\n" },
		{ GOOD "limits: {tenant: {new_keys: 100}}\n",
		  "f:3:29: limits.tenant.new_keys: \"100\" is no rate: write e.g. 100/s, 6000/m, "
		  "100/s burst 500, or off; numbers from 1 to 1000000\n" },
		{ GOOD "limits: {key: {requests: 1/s burst}}\n",
		  "f:3:26: limits.key.requests: \"1/s burst\" is no rate: write e.g. 100/s, 6000/m, "
		  "100/s burst 500, or off; numbers from 1 to 1000000\n" },
		{ GOOD "limits: {peer: {new_keys: 0/s}}\n",
		  "f:3:27: limits.peer.new_keys: \"0/s\" is no rate: write e.g. 100/s, 6000/m, "
		  "100/s burst 500, or off; numbers from 1 to 1000000\n" },
		{ GOOD "defaults: {key_min: 256}\n",
		  "f:3:21: defaults.key_min: \"256\" is too large: at most 255\n" },
		{ GOOD "defaults: {fingerprint: {only: [/a], ignore: [/b]}}\n",
		  "f:3:26: defaults.fingerprint.only: cannot be combined with "
		  "fingerprint.ignore, because members outside of only are ignored in any "
		  "case; leave one of them out, or write ignore: [] if it comes from "
		  "defaults\n" },
		{ GOOD "defaults: {fingerprint: {ignore: [/b]}}\nroutes:\n  - match: POST /a\n"
		       "    fingerprint: {only: [/a]}\n",
		  "f:6:19: routes[].fingerprint.only: cannot be combined with "
		  "fingerprint.ignore, because members outside of only are ignored in any "
		  "case; leave one of them out, or write ignore: [] if it comes from "
		  "defaults\n" },
		{ GOOD "traces: {endpoint: 'http://127.0.0.1:4318', sample: 5%}\n",
		  "f:3:53: traces.sample: is no number from 0 to 1 with at most 6 digits behind the "
		  "point; write e.g. 0.05\n" },
		{ GOOD "traces: {endpoint: 'http://127.0.0.1:4318', sample: 1.000001}\n",
		  "f:3:53: traces.sample: is no number from 0 to 1 with at most 6 digits behind the "
		  "point; write e.g. 0.05\n" },
		{ GOOD "log_level: loud\n",
		  "f:3:12: log_level: \"loud\" is not one of debug, info, warn, error\n" },
		{ GOOD "store_create: yes\n",
		  "f:3:15: store_create: \"yes\" is not one of never, always\n" },
		{ GOOD "defaults: {on_lost: retry}\n",
		  "f:3:21: defaults.on_lost: \"retry\" is not one of unknown, resume\n" },
		{ GOOD "defaults: {completes: me}\n",
		  "f:3:23: defaults.completes: \"me\" is not one of upstream, application\n" },
		{ GOOD "profile: stripy\n",
		  "f:3:10: profile: \"stripy\" is not one of ietf, stripe, paypal, square; did you mean "
		  "\"stripe\"?\n" },
		/* Addresses; never shown, they may hold a password. */
		{ GOOD "listen: 127.0.0.1\n", "f:3:9: listen: a port is missing "
					      "(host:port); write e.g. 127.0.0.1:8080\n" },
		{ GOOD "admin: on\n", "f:3:8: admin: a port is missing (host:port); write "
				      "e.g. 127.0.0.1:8081 or off\n" },
		{ GOOD "listen: 8480\n",
		  "f:3:9: listen: the host is missing; write e.g. 127.0.0.1:8480\n" },
		{ GOOD "listen: :8480\n",
		  "f:3:9: listen: the host is missing; write e.g. 127.0.0.1:8480\n" },
		{ GOOD "listen: ''\n",
		  "f:3:9: listen: the host is missing; write e.g. 127.0.0.1:8080\n" },
		{ GOOD "listen: :http\n",
		  "f:3:9: listen: the host is missing; write e.g. 127.0.0.1:8080\n" },
		{ GOOD "admin: 9399\n", "f:3:8: admin: the host is missing; write e.g. "
					"127.0.0.1:9399 or off\n" },
		{ GOOD "listen: ::1:8080\n",
		  "f:3:9: listen: the host is not a name or an address (an IPv6 address stands "
		  "in brackets); write e.g. 127.0.0.1:8080\n" },
		{ STORE "upstream: http://:9000\n",
		  "f:2:11: upstream: the host is missing; write e.g. http://127.0.0.1:9000\n" },
		{ STORE "upstream: https://u:p@h\n",
		  "f:2:11: upstream: an upstream's URL carries no credentials; write e.g. "
		  "http://127.0.0.1:9000\n" },
		{ UP "store: mysql://u:p@h/d\n",
		  "f:2:8: store: is no store that this version knows: write sqlite:PATH, "
		  "e.g. "
		  "sqlite:hapax.db, or postgres://user@host/database\n" },
		{ UP "store: postgres://\n",
		  "f:2:8: store: is no store that this version knows: write sqlite:PATH, "
		  "e.g. sqlite:hapax.db, or postgres://user@host/database\n" },
		{ UP "store: 'sqlite:'\n", "f:2:8: store: is no store that this version "
					   "knows: write sqlite:PATH, e.g. "
					   "sqlite:hapax.db, or "
					   "postgres://user@host/database\n" },
		/* Names and texts. */
		{ GOOD "key_header: My Key\n",
		  "f:3:13: key_header: \"My Key\" is no name of a header or cookie: "
		  "letters, digits "
		  "and -_ without spaces, e.g. Idempotency-Key\n" },
		{ GOOD "key_header: Content-Type\n",
		  "f:3:1: key_header: names a header that means something else; e.g. "
		  "Idempotency-Key\n" },
		{ GOOD "key_header: Hapax-Key\n",
		  "f:3:1: key_header: names a header that means something else; e.g. "
		  "Idempotency-Key\n" },
		{ GOOD "upstream_name: \"\"\n",
		  "f:3:16: upstream_name: must have 1 to 255 characters\n" },
		{ GOOD "upstream_name: shop payments\n",
		  "f:3:1: upstream_name: must be UTF-8 and have no space, because a scope's first "
		  "space ends it: write e.g. shop-payments\n" },
		{ GOOD "upstream_name: \"a\\nb\"\n",
		  "f:3:16: upstream_name: has a control character\n" },
		{ GOOD "upstream_name: \"a\\0b\"\n",
		  "f:3:16: upstream_name: has a control character\n" },
		/* Lists. */
		{ GOOD "trusted_peers: [10.0.0.0/8, proxy]\n",
		  "f:3:16: trusted_peers: \"proxy\" is no address or network: write e.g. "
		  "10.0.0.0/8, 192.0.2.7 or \"::1\"\n" },
		{ GOOD "cors: {origins: [\"https://shop.example/\"]}\n",
		  "f:3:17: cors.origins: \"https://shop.example/\" has more than scheme, host and "
		  "port; leave out what comes behind them, a last / too\n" },
		{ GOOD "cors: {origins: [shop.example], credentials: yes}\n",
		  "f:3:17: cors.origins: \"shop.example\" has no scheme; write e.g. "
		  "https://shop.example\n" },
		{ GOOD "cors: {origins: [\"https://a.example\", \"https://a.example\"]}\n",
		  "f:3:17: cors.origins: names \"https://a.example\" twice\n" },
		{ GOOD "cors: {origins: \"https://a.example\"}\n",
		  "f:3:17: cors.origins: must be a list, not a single value\n" },
		{ GOOD "targets.x.url: http://a.example\n",
		  "f:3:1: targets.x.url: a name has no dot; write targets: {x: ...}\n" },
		{ GOOD "cors: {origin: []}\n",
		  "f:3:8: cors.origin: is no option; did you mean cors.origins?\n" },
		{ GOOD "defaults:\n  fingerprint:\n    ignore: [/a~2b]\n",
		  "f:5:13: defaults.fingerprint.ignore: \"/a~2b\" is no JSON pointer to a "
		  "member: "
		  "write e.g. /metadata/sent_at, with ~1 for / and ~0 for ~ in a name\n" },
		{ GOOD "defaults: {fingerprint: {ignore: [\"\"]}}\n",
		  "f:3:34: defaults.fingerprint.ignore: \"\" is no JSON pointer to a "
		  "member: write "
		  "e.g. /metadata/sent_at, with ~1 for / and ~0 for ~ in a name\n" },
		{ GOOD "defaults: {fingerprint: {headers: [A, b, a]}}\n",
		  "f:3:35: defaults.fingerprint.headers: names \"a\" twice\n" },
		{ GOOD "defaults: {fingerprint: {headers: [a b]}}\n",
		  "f:3:35: defaults.fingerprint.headers: \"a b\" is no name of a "
		  "header\n" },
	};
	(void)state;
	check(rows, COUNT(rows));
}

static void shapes(void **state)
{
	static const struct row rows[] = {
		{ GOOD "listen: [a]\n", "f:3:10: listen: a port is missing (host:port)\n" },
		{ GOOD "listen: {zzz: b}\n", "f:3:10: listen[].zzz: is no option\n" },
		{ GOOD "listen: []\n", "f:3:1: listen: is an empty list; give an address\n" },
		{ GOOD "listen: [[a]]\n",
		  "f:3:10: listen: has a list in its list; each element is an address, or a mapping with "
		  "address\n" },
		{ GOOD "listen: [{proxy_protocol: false}]\n",
		  "f:3:10: listen[].address: is missing; write e.g. address: 0.0.0.0:8443\n" },
		{ GOOD "listen: [127.0.0.1:80, 127.0.0.1:80]\n",
		  "f:3:24: listen[].address: stands twice in listen\n" },
		{ GOOD "listen: [{address: 127.0.0.1:80, proxy_protocol: true}]\n",
		  "f:3:34: listen[].proxy_protocol: needs trusted_peers: the addresses of the load "
		  "balancers whose word about their clients is taken\n" },
		{ GOOD "listen: [{address: 127.0.0.1:80, tls: {certificate: /c}}]\n",
		  "f:3:40: listen[].tls.certificate: certificate names 1 files and key 0: each "
		  "certificate needs its key\n" },
		{ GOOD "listen: [{address: 127.0.0.1:80, tls: {client_ca: /c}}]\n",
		  "f:3:40: listen[].tls.client_ca: needs certificate and key: a client shows a "
		  "certificate only to a server that has one\n" },
		{ GOOD "listen: [{address: 127.0.0.1:80, tls: {certificate: /c, key: /k, min_version: 1.1}}]\n",
		  "f:3:79: listen[].tls.min_version: \"1.1\" is not one of 1.2, 1.3; did you mean \"1.2\"?\n" },
		{ GOOD "tenant: {from: certificate}\n",
		  "f:3:10: tenant.from: is certificate, but clients of 127.0.0.1:8080 show none; add "
		  "tls.client_ca to that listener\n" },
		{ GOOD "upstream_tls: {name: 'a b'}\n",
		  "f:3:22: upstream_tls.name: is no host name; write e.g. payments.internal\n"
		  "f: warning: upstream_tls: has no effect unless upstream is https://\n" },
		{ GOOD "upstream_tls: {certificate: [/a, /b], key: [/a, /b]}\n",
		  "f:3:16: upstream_tls.certificate: is one certificate: there is one upstream\n"
		  "f: warning: upstream_tls: has no effect unless upstream is https://\n" },
		{ GOOD "listen:\n",
		  "f:3:8: listen: has no value; give one, or leave the line out for "
		  "the default\n" },
		{ GOOD "listen: ~\n",
		  "f:3:9: listen: has no value; give one, or leave the line out "
		  "for the default\n" },
		{ GOOD "trusted_peers: 10.0.0.0/8\n",
		  "f:3:16: trusted_peers: must be a list, not a single value\n" },
		{ GOOD "trusted_peers: {a: b}\n",
		  "f:3:16: trusted_peers: must be a list, not a mapping\n" },
		{ GOOD "trusted_peers: [[a]]\n",
		  "f:3:16: trusted_peers: is a list of single values\n" },
		{ GOOD "limits: 5\n",
		  "f:3:1: limits: must be a mapping of options, not a single value\n" },
		{ GOOD "limits: [5]\n",
		  "f:3:1: limits: must be a mapping of options, not a list\n" },
		{ GOOD "defaults: [5]\n",
		  "f:3:1: defaults: must be a mapping of options, not a list\n" },
		{ GOOD "routes: {match: POST /a}\n",
		  "f:3:1: routes: must be a list, each element with its own match, not a "
		  "mapping\n" },
		{ GOOD "routes: x\n",
		  "f:3:1: routes: must be a list, each element with its own match, "
		  "not a single value\n" },
		{ GOOD "routes: [x]\n",
		  "f:3:10: routes[]: must be a mapping of options, not a single value\n" },
		{ GOOD "routes:\n  - key: ignore\n",
		  "f:4:5: routes[].match: is missing; say which requests, e.g. match: POST "
		  "/payments\n" },
		{ "just text\n",
		  "f:1:1: a configuration is a mapping of options (listen: ...), not a "
		  "single value\n"
		  "f: upstream: is missing; say where the API is, e.g. upstream: "
		  "http://127.0.0.1:9000, or --upstream on the command line\n" },
	};
	(void)state;
	check(rows, COUNT(rows));
}

static void names(void **state)
{
	static const struct row rows[] = {
		{ GOOD "lisen: a\n", "f:3:1: lisen: is no option; did you mean listen?\n" },
		{ GOOD "xyzzy: {a: {b: c}}\n", "f:3:1: xyzzy: is no option\n" },
		{ GOOD "limits: {haed: 1}\n",
		  "f:3:10: limits.haed: is no option; did you mean limits.head?\n" },
		{ GOOD "lease: 5s\n",
		  "f:3:1: lease: is no option; did you mean defaults.lease?\n" },
		{ GOOD "defaults: {match: POST /a}\n",
		  "f:3:12: defaults.match: is no option; did you mean routes[].match?\n" },
		{ GOOD "config: x\n", "f:3:1: config: is no option\n" },
		{ GOOD "routes:\n  - match: POST /a\n    sever_error: retry\n",
		  "f:5:5: routes[].sever_error: is no option; did you mean "
		  "routes[].server_error?\n" },
		{ GOOD "loops: 1\nloops: 2\n",
		  "f:4:1: loops: is given twice; the first is on line 3\n" },
		{ GOOD "limits: {head: 2KiB}\nlimits: {fields: 20}\n",
		  "f:4:1: limits: is given twice; the first is on line 3\n" },
		{ GOOD "routes:\n  - match: POST /a\n    match: POST /b\n",
		  "f:5:5: match: is given twice; the first is on line 4\n" },
		{ GOOD "\"a\\e[31mb\": 1\n", "f:3:1: a?[31mb: is no option\n" },
	};
	(void)state;
	check(rows, COUNT(rows));
}

static void yaml(void **state)
{
	static const struct row rows[] = {
		{ GOOD "limits: &a {head: 2KiB}\n",
		  "f:3:9: anchors (&name) are not used here; write the value out\n" },
		{ GOOD "loops: *a\n",
		  "f:3:8: aliases (*name) are not used here; write the value out. "
		  "The rest was not read\n" },
		{ GOOD "loops: !!int 3\n",
		  "f:3:8: tags (!name) are not used here; leave it out\n" },
		{ GOOD "---\nloops: 3\n",
		  "f:3:1: a second document (---) begins; a configuration is one\n" },
		{ GOOD "? [a]\n: b\n",
		  "f:3:3: the name of an option is a single word, not a list or "
		  "mapping; the rest was not read\n" },
		{ GOOD "x: [[[[[[[[1]]]]]]]]\n",
		  "f:3:1: x: is no option\n"
		  "f:3:11: nested deeper than any option; the rest was not read\n" },
		{ GOOD "loops: [1\nlisten: x\n",
		  "f:3:8: loops: must be a single value, not a list\n"
		  "f:4:7: a comma or ] is missing here: the [ of line 3 is not closed; the rest was "
		  "not read\n" },
	};
	(void)state;
	check(rows, COUNT(rows));
}

#define UNREAD "; the rest was not read\n"
#define TAB "a tab stands where YAML wants spaces: indent with spaces" UNREAD
#define NO_COLON "a colon and a space are missing after the option's name: write name: value" UNREAD
#define NO_SPACE "a space is missing after the colon: write name: value" UNREAD
#define TOO_FAR "has a value already, so begin both in the same column" UNREAD
#define CANNOT_BEGIN(c) "a value cannot begin with " c ": put the value into quotes, '...'" UNREAD

/* What is no YAML is told by what to write, at the mistake itself. */
static void syntax(void **state)
{
	static const struct row rows[] = {
		{ UP "\tloops: 1\n", "f:2:1: " TAB },
		{ UP "limits:\n\thead: 2KiB\n", "f:3:1: " TAB },
		{ UP "limits: |\n\thead\n", "f:3:1: " TAB },
		{ UP "loops:\t\"\n", "f:2:8: a quote (\") begins here and is not closed: write another at "
				     "the value's end" UNREAD },
		{ UP "# \xc3\xa9\nloops: 'a\nlisten: x\n", "f:3:8: a quote (') begins here and is not closed: write "
							   "another at the value's end" UNREAD },
		{ UP "loops: 1'\nnode: 'x' y\n", "f:2:8: loops: \"1'\" is no whole number from 0 to 256\n"
						 "f:3:1: node: is no option\n"
						 "f:3:11: text follows the closing quote of a value: is a quote "
						 "before it not closed? A quote inside of '...' is written "
						 "twice" UNREAD },
		{ UP "admin:127.0.0.1:80\nloops: 2\n", "f:2:6: " NO_SPACE },
		{ UP "limits:\n  head:2KiB\n  body: 1\n", "f:2:1: limits: must be a mapping of options, not a single value\nf:3:7: " NO_SPACE },
		{ UP "admin 127.0.0.1:80\nloops: 2\n", "f:2:1: " NO_COLON },
		{ UP "loops\n", "f:2:1: " NO_COLON },
		{ "loops\n# \nlisten: x\n", "f:1:1: " NO_COLON
					    "f:1:1: a configuration is a mapping of options (listen: ...), not a single "
					    "value\n" },
		{ UP "loops: 1\n  admin: x\n", "f:2:8: loops: \"1 admin\" is no whole number from 0 to 256\n"
					       "f:3:3: this line is indented too far: line 2 " TOO_FAR },
		{ UP "limits:\n  head: 2KiB\n admin: 3\n",
		  "f:4:2: this line begins in column 2, the options around it in column 1 (line 1): begin them "
		  "in the same column" UNREAD },
		{ "  " UP "loops: 1\n", "f:2:1: this line begins before the first option of the file: begin all options "
					"of the top level in the same column" UNREAD },
		{ UP "]\n", "f:2:1: an option is missing here: write name: value" UNREAD },
		{ UP "- a\n", "f:2:1: a list item (-) stands among options: indent it further than the list's name, "
			      "or write name: value" UNREAD },
		{ UP "admin: a: b\n", "f:2:8: admin: a port is missing (host:port); write e.g. 127.0.0.1:8081 or off\n"
				      "f:2:9: a second colon with a space stands in one line: put the value into "
				      "quotes, '...'" UNREAD },
		{ UP "trusted_peers: - ::1\n", "f:2:16: a list (-) begins on its own line: put it below the option's "
					       "name, or write [a, b]" UNREAD },
		{ UP "trusted_peers:\n  - ::1\n  foo: 1\n",
		  "f:4:3: this line is no list item, but begins where those of line 3 do: write - before it, "
		  "or begin it in another column" UNREAD },
		{ UP "limits: {head: 2KiB\nloops: 1\n", "f:2:16: limits.head: \"2KiB loops\" is no size: write a whole number of bytes, or with a unit, e.g. "
							"512, 32KiB, 1MiB or 1GiB\n"
							"f:3:6: a comma or } is missing here: the { of line 2 is not "
							"closed" UNREAD },
		{ UP "trusted_peers: [::1]\n", "f:2:17: " CANNOT_BEGIN(":") },
		{ UP "trusted_peers: [10.0.0.1, \n", "f:3:1: a value is missing here, or a ] or } that closes what was "
						     "opened before" UNREAD },
		{ UP "loops: @a\n", "f:2:8: " CANNOT_BEGIN("@") },
		{ UP "loops: * a\n", "f:2:8: " CANNOT_BEGIN("*") },
		{ UP "loops: & a\n", "f:2:8: " CANNOT_BEGIN("&") },
		{ UP "loops: \"\\q\"\n", "f:2:9: in double quotes, a backslash begins an escape, and this is none: "
					 "write \\\\, or put the value into single quotes" UNREAD },
		{ UP "a: \x01\n", "f:2:4: a control character (0x01) is not allowed: remove it" UNREAD },
		{ UP "a: \xff\n", "f:2:4: this is not UTF-8: save the file as UTF-8" UNREAD },
		{ UP "tenant: {from:header}\n", "f:2:10: tenant.from:header: is no option; a space is missing after "
						"the colon\n" },
		{ UP "%x\n", "f:2:3: this is not YAML: while scanning a directive, found unknown directive "
			     "name" UNREAD },
	};
	(void)state;
	check(rows, COUNT(rows));
}

/* Commands that start no gateway need no upstream, unless a probe asks it. */
static void upstream_not_needed(void **state)
{
	static const struct hpx_config_flags work = { .without_gateway = true };
	static const struct hpx_config_flags look = { .without_secrets = true };
	static const char asks[] = STORE "defaults: {reconcile: {settle_after: 1m, probe: {get: '/o?operation={operation}', "
					 "applied: [200], not_applied: [404]}}}\n";
	(void)state;

	test_report(STORE, NULL, HPX_INVALID,
		    "f: upstream: is missing; say where the API is, e.g. upstream: http://127.0.0.1:9000, or "
		    "--upstream on the command line\n");
	test_report(STORE, &work, HPX_OK, "");
	test_report(STORE, &look, HPX_OK, "");
	test_report(asks, &look, HPX_OK, "");
	test_report(asks, &work, HPX_INVALID,
		    "f: defaults.reconcile.probe.url: is missing, and so is upstream, which a probe without a URL asks; "
		    "give one of them: upstream: http://127.0.0.1:9000\n");
}

static void routes(void **state)
{
	static const struct row rows[] = {
		{ GOOD "routes:\n  - match: GET /a\n",
		  "f:4:5: routes[].match: \"GET /a\" names a method that is never guarded "
		  "(GET, HEAD, OPTIONS, TRACE, PROPFIND, REPORT, SEARCH, QUERY); such requests "
		  "pass without a route\n" },
		{ GOOD "routes:\n  - match: Patch /a\n",
		  "f:4:5: routes[].match: \"Patch /a\" has a method in another spelling; it is "
		  "written PATCH\n" },
		{ GOOD "routes:\n  - match: /a\n", "f:4:5: routes[].match: \"/a\" begins "
						   "with a method or *, then a space: POST "
						   "/payments\n" },
		{ GOOD "routes:\n  - match: POST /a/{x}\n  - match: POST /b\n"
		       "  - match: POST /a/{y}\n  - match: POST /b\n",
		  "f:6:5: routes[].match: \"POST /a/{y}\" matches the same requests as the "
		  "route on "
		  "line 4; make them one\n"
		  "f:7:5: routes[].match: \"POST /b\" matches the same requests as the "
		  "route on line "
		  "5; make them one\n" },
	};
	(void)state;
	check(rows, COUNT(rows));
}

static void everything_at_once_in_the_order_of_the_file(void **state)
{
	(void)state;
	test_report("lisen: 1\n"
		    "routes:\n"
		    "  - match: HEAD /a\n"
		    "    lease: 1\n"
		    "loops: x\n",
		    NULL, HPX_INVALID,
		    "f:1:1: lisen: is no option; did you mean listen?\n"
		    "f:3:5: routes[].match: \"HEAD /a\" names a method that is never "
		    "guarded (GET, HEAD, OPTIONS, TRACE, PROPFIND, REPORT, SEARCH, QUERY); "
		    "such requests pass without a route\n"
		    "f:4:12: routes[].lease: \"1\" is no duration: write a whole number "
		    "and its "
		    "unit, e.g. 250ms, 10s, 2m, 24h or 7d\n"
		    "f:5:8: loops: \"x\" is no whole number from 0 to 256\n"
		    "f: upstream: is missing; say where the API is, e.g. upstream: "
		    "http://127.0.0.1:9000, or --upstream on the command line\n");
}

static void flags(void **state)
{
	struct hpx_config_flags given = { .value = { NULL } };
	(void)state;
	hpx_config_flags_set(&given, "listen", "nowhere");
	hpx_config_flags_set(&given, "upstream", "http://127.0.0.1:9000");
	test_report("", &given, HPX_INVALID,
		    "--listen: a port is missing (host:port); write e.g. 127.0.0.1:8080\n");
}

/* A text of `count` times the same, behind a beginning. */
static char *many(const char *begin, const char *each, size_t count)
{
	size_t len = strlen(begin);
	size_t step = strlen(each);
	char *text = malloc(len + count * step + 1);

	assert_non_null(text);
	memcpy(text, begin, len);
	for (size_t i = 0; i < count; i++)
		memcpy(text + len + i * step, each, step);
	text[len + count * step] = '\0';
	return text;
}

static void bounds(void **state)
{
	static const struct {
		const char *begin;
		const char *each;
		size_t count;
		const char *report; /* a part of it */
	} rows[] = {
		{ GOOD "routes:\n", "- match: POST /a\n", 1001,
		  "routes: has 1001 elements; at most" },
		{ GOOD "trusted_peers:\n", "- ::1\n", 257,
		  "has 257 elements; at most 256" },
		{ GOOD "defaults:\n  fingerprint:\n    headers:\n", "    - a\n", 65,
		  "has 65 elements; at most 64" },
		{ GOOD "trusted_peers:\n", "- ::1\n", 20001, "too many values" },
		{ GOOD, "a: 1\n", 65, "more than 64 options in one place" },
		{ GOOD "a: ", "[", 100000, "nested deeper than any option" },
		{ GOOD "routes:\n", "- x\n", 150, "and 50 more\n" },
		{ GOOD "upstream_name: ", "a", 256, "must have 1 to 255 characters" },
		{ GOOD "loops: ", "9", 1000, "is no whole number" },
		{ GOOD, "a", 1 << 16, "a colon and a space are missing" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *text = many(rows[i].begin, rows[i].each, rows[i].count);
		struct hpx_settings *settings = NULL;
		struct hpx_buffer out;
		hpx_buffer_init(&out, 1 << 20);
		assert_status(test_read(text, NULL, &out, &settings), HPX_INVALID);
		assert_status(hpx_buffer_byte(&out, '\0'), HPX_OK);
		if (strstr(out.ptr, rows[i].report) == NULL)
			fail_msg("got\n%swant \"%s\"", out.ptr, rows[i].report);
		hpx_buffer_done(&out);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(shapes),
		cmocka_unit_test(names),
		cmocka_unit_test(yaml),
		cmocka_unit_test(syntax),
		cmocka_unit_test(upstream_not_needed),
		cmocka_unit_test(routes),
		cmocka_unit_test(everything_at_once_in_the_order_of_the_file),
		cmocka_unit_test(flags),
		cmocka_unit_test(bounds),
	};
	return cmocka_run_group_tests_name("mistake", tests, NULL, NULL);
}
