/* The options of a webhook: who may tell what became of something. */
#include "config/option_reconcile.h"

static const struct hpx_option rows[] = {
	{ "scheme", HPX_OPTION_CHOICE, WEBHOOK(signature.scheme), .example = "stripe",
	  CHOICES("stripe", "standard-webhooks", "hmac-body"),
	  .text = "How it is signed: stripe is Stripe-Signature; standard-webhooks is "
		  "webhook-signature with webhook-id and webhook-timestamp; hmac-body is an "
		  "HMAC-SHA256 of the body alone, hexadecimal or base64, in a header of any "
		  "name. Must be given." },
	{ "secret_file", HPX_OPTION_FILE, WEBHOOK(secret_file),
	  .example = "/etc/hapax/bank.secret",
	  .text = "A file with the secret; only hapax's user should be able to read it. Several "
		  "secrets, one per line, are all good: that is how to change one. It is read "
		  "at start and with every reload." },
	{ "secret_env", HPX_OPTION_VARIABLE, WEBHOOK(secret_env), .example = "BANK_SECRET",
	  .text = "The same, from a variable of the environment." },
	{ "tolerance", HPX_OPTION_DURATION, WEBHOOK(signature.tolerance_ms), .default_value = "5m",
	  RANGE(SECOND, DAY),
	  .text = "How far the time that was signed may be from ours. hmac-body has none." },
	{ "header", HPX_OPTION_TOKEN, WEBHOOK(signature.header), .example = "X-Signature",
	  .text = "hmac-body: the header that carries the signature." },
	{ "prefix", HPX_OPTION_TEXT, WEBHOOK(signature.prefix), .example = "sha256=",
	  .text = "hmac-body: what stands before the signature." },
	{ "operation", HPX_OPTION_POINTER, WEBHOOK(operation),
	  .example = "/data/metadata/operation",
	  .text = "Where in its JSON body the operation's reference stands, as a JSON pointer. "
		  "This or provider_id must be given." },
	{ "provider_id", HPX_OPTION_POINTER, WEBHOOK(provider_id), .example = "/data/id",
	  .text = "Where in its body the provider's own id stands, which its answer to a job "
		  "gave." },
	{ "target", HPX_OPTION_NAME, WEBHOOK(target), .example = "mailer",
	  .text = "The target whose service sends it, by its name: nothing is settled but that "
		  "target's jobs. Left out, it is believed of every operation and every job. Must "
		  "be given where provider_id is and there are several targets: two services may "
		  "give the same id." },
	{ "verdict", HPX_OPTION_POINTER, WEBHOOK(mapping.pointer), .example = "/data/status",
	  .text = "Where in its body the word stands that the lists below have. Must be given." },
	SIGN_ROW(WEBHOOK, "", "applied", mapping, APPLIED, HPX_OPTION_WORDS, "[succeeded]",
		 "Words that mean that it happened. What no list has means nothing."),
	SIGN_ROW(WEBHOOK, "", "declined", mapping, DECLINED, HPX_OPTION_WORDS, "[failed]",
		 "Words that mean that it was executed and refused."),
	SIGN_ROW(WEBHOOK, "", "not_applied", mapping, NOT_APPLIED, HPX_OPTION_WORDS,
		 "[not_found]", "Words that mean that it never happened."),
	SIGN_ROW(WEBHOOK, "", "not_yet", mapping, NOT_YET, HPX_OPTION_WORDS, "[pending]",
		 "Words that mean that it is being worked on."),
	{ "settle_after", HPX_OPTION_DURATION, WEBHOOK(settle_after_ms), .example = "2m",
	  RANGE(SECOND, 30 * DAY),
	  .text = "The longest that the service can take for a request, from its last byte on: "
		  "before that, \"not applied\" counts for nothing. Must be given where "
		  "not_applied is." },
	{ "body", HPX_OPTION_SIZE, WEBHOOK(body_bytes_max), .default_value = "64KiB",
	  RANGE(1, MIB), .text = "The largest body; a larger one is refused with 413." },
	{ "rate", HPX_OPTION_COUNT, WEBHOOK(per_second), .default_value = "100", RANGE(1, 100000),
	  .text = "How many are taken in a second; more are refused with 429." },
};

const struct hpx_option_part hpx_option_webhook = HPX_OPTION_PART(rows);
