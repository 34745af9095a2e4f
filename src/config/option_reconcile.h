/* Rows that stand in several places of the table: how a service is asked, what
 * its words mean, and `reconcile`, which routes and targets have alike. Each
 * takes PLACE, one of the macros of option_row.h that name a member. */
#ifndef HPX_CONFIG_OPTION_RECONCILE_H
#define HPX_CONFIG_OPTION_RECONCILE_H

#include "config/option_row.h"

/* clang-format off */
#define CREDENTIAL_ROWS(PLACE, group, caller)                                                 \
	{ group "credentials.header", HPX_OPTION_TOKEN, PLACE(caller.credentials.header),     \
	  .default_value = "Authorization",                                                        \
	  .text = "The header that carries the credential." },                                \
	{ group "credentials.file", HPX_OPTION_FILE, PLACE(caller.credentials.file),          \
	  .example = "/etc/hapax/mailer.credential",                                          \
	  .text = "A file that holds the header's whole value (for Authorization, e.g. "      \
		  "Bearer and the token), in one line; only hapax's user should be able to "  \
		  "read it. It is read at start." },                                          \
	{ group "credentials.env", HPX_OPTION_VARIABLE, PLACE(caller.credentials.env),        \
	  .example = "MAILER_CREDENTIAL",                                                     \
	  .text = "The same, from a variable of the environment." },                          \
	{ group "ca_file", HPX_OPTION_FILE, PLACE(caller.ca_file),                            \
	  .example = "/etc/hapax/ca.pem",                                                     \
	  .text = "The certificates (PEM) that its own must lead to. Left out, those that "   \
		  "the system trusts." }

#define SIGN_ROW(PLACE, group, name, mapping, ruling, ROW_KIND, sample, words)                \
	{ group name, ROW_KIND, PLACE(mapping.signs[HPX_RULING_##ruling]), .default_value = "",    \
	  .example = sample, .text = words }

#define RECONCILE_ROWS(PLACE, elsewhere, identify)                                            \
	{ "reconcile.settle_after", HPX_OPTION_DURATION,                                      \
	  PLACE(reconcile.rule.settle_after_ms), .example = "2m", RANGE(SECOND, 30 * DAY),    \
	  .text = "The longest that the service can take for a request, from its last byte "  \
		  "on: before that, \"not applied\" counts for nothing, because the slow "    \
		  "original may still run. Must be given where probe.not_applied is." },      \
	{ "reconcile.confirm_after", HPX_OPTION_DURATION,                                     \
	  PLACE(reconcile.rule.confirm_after_ms), .default_value = "30s", RANGE(SECOND, DAY),      \
	  .text = "\"Not applied\" must be said twice in a row, at least so far apart." },    \
	{ "reconcile.tries", HPX_OPTION_COUNT, PLACE(reconcile.rule.tries_max),               \
	  .default_value = "20", RANGE(2, 1000),                                                   \
	  .text = "How often the probe asks before a person has to decide." },                \
	{ "reconcile.backoff", HPX_OPTION_DURATION, PLACE(reconcile.rule.backoff.base_ms),    \
	  .default_value = "10s", RANGE(10, DAY),                                                  \
	  .text = "The longest wait before the first question; it doubles with each one, "    \
		  "and every wait is random up to that." },                                   \
	{ "reconcile.backoff_max", HPX_OPTION_DURATION, PLACE(reconcile.rule.backoff.cap_ms), \
	  .default_value = "1h", RANGE(10, 7 * DAY),                                               \
	  .text = "The longest wait of all." },                                               \
	{ "reconcile.retry_after_max", HPX_OPTION_DURATION,                                   \
	  PLACE(reconcile.rule.retry_after_max_ms), .default_value = "1h", RANGE(0, 7 * DAY),      \
	  .text = "The most that a Retry-After of its answer can put the next question off." }, \
	{ "reconcile.probe.url", HPX_OPTION_URL, PLACE(reconcile.probe.caller.url),           \
	  .example = "https://api.example/v1",                                                \
	  .text = "The service that is asked: http or https, without credentials or query. "  \
		  "Left out, " elsewhere },                                                   \
	{ "reconcile.probe.get", HPX_OPTION_PROBE, PLACE(reconcile.probe.get),                \
	  .example = "/payments?operation={operation}",                                       \
	  .text = "The path, and query, of a GET that tells what became of it, behind that "  \
		  "URL. " identify },                                                         \
	CREDENTIAL_ROWS(PLACE, "reconcile.probe.", reconcile.probe.caller),                   \
	{ "reconcile.probe.connect_timeout", HPX_OPTION_DURATION,                             \
	  PLACE(reconcile.probe.caller.connect_timeout_ms), .default_value = "5s",                 \
	  RANGE(10, 10 * MINUTE), .text = "For its connection." },                            \
	{ "reconcile.probe.timeout", HPX_OPTION_DURATION,                                     \
	  PLACE(reconcile.probe.caller.timeout_ms), .default_value = "10s", RANGE(10, HOUR),       \
	  .text = "For the whole question." },                                                \
	{ "reconcile.probe.concurrency", HPX_OPTION_COUNT, PLACE(reconcile.probe.concurrency), \
	  .default_value = "4", RANGE(1, 1024),                                                    \
	  .text = "Questions that one process has under way at once: these slots are its "    \
		  "own, whatever others ask. Over all probes there are 1024; where more are " \
		  "configured, each has an equal share." },                                   \
	{ "reconcile.probe.rate", HPX_OPTION_COUNT, PLACE(reconcile.probe.per_second),        \
	  .default_value = "10", RANGE(1, 100000),                                                 \
	  .text = "Questions a second, of one process; as many again at once after a quiet "  \
		  "second. After an outage there may be very many: the service must bear this " \
		  "beside its usual load." },                                                 \
	{ "reconcile.probe.verdict", HPX_OPTION_POINTER, PLACE(reconcile.probe.mapping.pointer), \
	  .example = "/status",                                                               \
	  .text = "Where in the body of a 2xx answer the word stands that the lists below "   \
		  "have." },                                                                  \
	SIGN_ROW(PLACE, "reconcile.probe.", "applied", reconcile.probe.mapping, APPLIED,      \
		 HPX_OPTION_MATCHES, "[200]",                                                   \
		 "Answers that mean that it happened: statuses (numbers of three digits), "   \
		 "and words at verdict. What no list has means nothing."),                    \
	SIGN_ROW(PLACE, "reconcile.probe.", "declined", reconcile.probe.mapping, DECLINED,    \
		 HPX_OPTION_MATCHES, "[failed]",                                                \
		 "Answers that mean that it was executed and refused: it is completed, "      \
		 "with the failure as its answer."),                                          \
	SIGN_ROW(PLACE, "reconcile.probe.", "not_applied", reconcile.probe.mapping,           \
		 NOT_APPLIED, HPX_OPTION_MATCHES, "[404]",                                      \
		 "Answers that mean that it never happened, so that it may be done again."),  \
	SIGN_ROW(PLACE, "reconcile.probe.", "not_yet", reconcile.probe.mapping, NOT_YET,      \
		 HPX_OPTION_MATCHES, "[202, pending]",                                          \
		 "Answers that mean that it is being worked on.")
/* clang-format on */

#endif
