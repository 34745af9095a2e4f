/* The words for the choices, as the configuration and the published policy
 * spell them. */
#include "core/policy.h"

const char *hpx_key_rule_name(enum hpx_key_rule rule)
{
	static const char *const names[] = { "required", "optional", "ignore" };
	return names[rule];
}

const char *hpx_scope_rule_name(enum hpx_scope_rule rule)
{
	static const char *const names[] = { "path", "route", "tenant" };
	return names[rule];
}

const char *hpx_server_error_name(enum hpx_server_error choice)
{
	static const char *const names[] = { "retry", "replay", "unknown" };
	return names[choice];
}

const char *hpx_on_lost_name(enum hpx_on_lost choice)
{
	static const char *const names[] = { "unknown", "resume" };
	return names[choice];
}

const char *hpx_completes_name(enum hpx_completes choice)
{
	static const char *const names[] = { "upstream", "application" };
	return names[choice];
}

const char *hpx_concurrent_name(enum hpx_concurrent choice)
{
	static const char *const names[] = { "conflict", "wait", "accepted" };
	return names[choice];
}

const char *hpx_keep_name(enum hpx_keep choice)
{
	static const char *const names[] = { "answer", "status" };
	return names[choice];
}

const char *hpx_deliver_name(enum hpx_deliver choice)
{
	static const char *const names[] = { "now", "async" };
	return names[choice];
}
