/* The options of a target: a service outside that jobs are sent to. */
#include "config/option_reconcile.h"

static const struct hpx_option rows[] = {
	{ "url", HPX_OPTION_URL, TARGET(caller.url), .example = "https://mail.example/api",
	  .text = "Where it is: http or https, without credentials or query. What a job asks "
		  "for stands behind it. Must be given." },
	CREDENTIAL_ROWS(TARGET, "", caller),
	{ "connect_timeout", HPX_OPTION_DURATION, TARGET(caller.connect_timeout_ms),
	  .default_value = "5s", RANGE(10, 10 * MINUTE),
	  .text = "For a connection to it. Nothing was sent yet: the job is sent later." },
	{ "timeout", HPX_OPTION_DURATION, TARGET(caller.timeout_ms), .default_value = "30s",
	  RANGE(10, HOUR),
	  .text = "For a whole delivery. Past it, nobody knows what became of it." },
	{ "concurrency", HPX_OPTION_COUNT, TARGET(concurrency), .default_value = "16",
	  RANGE(1, 4096), .text = "Deliveries to it that one process has under way at once." },
	{ "attempts", HPX_OPTION_COUNT, TARGET(attempts_max), .default_value = "12",
	  RANGE(1, 1000),
	  .text = "How often a job is sent before it is among the dead letters." },
	{ "backoff", HPX_OPTION_DURATION, TARGET(backoff.base_ms), .default_value = "1s",
	  RANGE(10, DAY),
	  .text = "The longest wait before the second attempt; it doubles with each one, and "
		  "every wait is random up to that." },
	{ "backoff_max", HPX_OPTION_DURATION, TARGET(backoff.cap_ms), .default_value = "1h",
	  RANGE(10, 7 * DAY), .text = "The longest wait of all." },
	{ "retry_after_max", HPX_OPTION_DURATION, TARGET(retry_after_max_ms), .default_value = "1h",
	  RANGE(0, 7 * DAY),
	  .text = "The most that a Retry-After of its answer can put the next attempt off." },
	{ "honours_keys", HPX_OPTION_DURATION, TARGET(honours_keys_ms), .default_value = "0s",
	  RANGE(0, 3650 * DAY), .example = "24h",
	  .text = "Your word that the target itself executes a key once, and for how long it "
		  "remembers; 0 is not at all. A job whose outcome is unknown is sent again only "
		  "within that time of its first sending; without it never: it is reconciled." },
	{ "key_header", HPX_OPTION_TOKEN, TARGET(key_header), .default_value = "Idempotency-Key",
	  .text = "The header that carries the job's key to it." },
	{ "provider_id", HPX_OPTION_POINTER, TARGET(provider_id), .example = "/id",
	  .text = "Where in its JSON answer its own id of the thing stands, as a JSON pointer "
		  "(RFC 6901). It is kept with the job, and probes and webhooks can name it." },
	{ "breaker.failures", HPX_OPTION_COUNT, TARGET(breaker.failures_max), .default_value = "5",
	  RANGE(0, 1000),
	  .text = "After so many failures in a row nothing is sent for a while, then one job "
		  "finds out whether the target is back; 0 never stops." },
	{ "breaker.pause_max", HPX_OPTION_DURATION, TARGET(breaker.open_max_ms),
	  .default_value = "1m", RANGE(SECOND, DAY),
	  .text = "The longest such while. The first takes 1s; each failure doubles it." },
	RECONCILE_ROWS(TARGET, "the target, with its credentials and ca_file.",
		       "{operation} is replaced by the operation's reference, {provider_id} by "
		       "the target's own id, {key} by the key that the job was sent with."),
};

const struct hpx_option_part hpx_option_target = HPX_OPTION_PART(rows);
