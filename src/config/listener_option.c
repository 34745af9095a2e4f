/* `listen`: one address, one mapping, or a list of either; and TLS on all sides: which of
 * its options belong together. Whether the files can be used is looked at by
 * service/tls_watch.c. */
#include "base/status.h"
#include "config/parse_context.h"
#include "http/field.h"

/* Each has a socket for every event loop. */
#define LISTENERS_MAX 32

static void refuse(struct hpx_parse_context *context, const struct hpx_yaml_node *node,
		   const char *message)
{
	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line, node->column,
			  HPX_SPAN("listen"), "%s", message);
}

/* One element: a mapping, or an address alone. */
static enum hpx_status parse_listener(struct hpx_parse_context *context, size_t index,
				      struct hpx_listener_settings *listener,
				      struct hpx_section_given *section)
{
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	const char *reason = "";

	*listener = context->default_listener;
	listener->line = section->line = node->line;
	listener->column = section->column = node->column;
	if (node->kind == HPX_YAML_MAPPING)
		return hpx_parse_section(context, index, HPX_SPAN("listen[]"), listener,
					 &section->set);
	if (node->kind != HPX_YAML_SCALAR)
		refuse(context, node, "has a list in its list; each element is an address, or a "
				      "mapping with address");
	else if (hpx_address_parse(node->text, &listener->address, &reason) != HPX_OK)
		refuse(context, node, reason);
	return HPX_OK;
}

static size_t count_children(const struct hpx_parse_context *context, size_t index)
{
	const struct hpx_yaml_node *nodes = context->tree.nodes;
	size_t count = 0;

	for (size_t i = index + 1; i < nodes[index].end; i = nodes[i].end)
		count++;
	return count;
}

/* The node of `listen` where it is a list or a mapping; 0: it is one address. The command
 * line's address wins over the file's. */
static size_t find_list(const struct hpx_parse_context *context)
{
	size_t index = hpx_yaml_member(&context->tree, HPX_SPAN("listen"));
	bool given = hpx_context_given(context, "listen", NULL)->given;

	return index > 0 && context->tree.nodes[index].kind != HPX_YAML_SCALAR && !given ? index : 0;
}

enum hpx_status hpx_parse_listeners(struct hpx_parse_context *context)
{
	struct hpx_settings *settings = context->settings;
	size_t index = find_list(context);
	const struct hpx_yaml_node *nodes = context->tree.nodes;
	bool list = index > 0 && nodes[index].kind == HPX_YAML_LIST;
	size_t count = list ? count_children(context, index) : 1;
	enum hpx_status status = HPX_OK;

	if (list && (count == 0 || count > LISTENERS_MAX)) {
		refuse(context, &nodes[index], count == 0 ? "is an empty list; give an address" : "has more than 32 elements");
		list = false;
		index = 0;
		count = 1;
	}
	struct hpx_listener_settings *listeners =
		hpx_arena_zalloc(&settings->arena, count, sizeof(*listeners));
	struct hpx_section_given *sections =
		hpx_arena_zalloc(context->scratch, count, sizeof(*sections));
	if (listeners == NULL || sections == NULL)
		return HPX_NOMEM;
	settings->listeners = listeners;
	settings->listener_count = count;
	if (index == 0) {
		listeners[0] = context->default_listener;
		listeners[0].address = settings->listen;
		return HPX_OK;
	}
	context->listener_sections = sections;
	if (!list)
		return parse_listener(context, index, &listeners[0], &sections[0]);
	for (size_t i = index + 1, n = 0; i < nodes[index].end && status == HPX_OK;
	     i = nodes[i].end, n++)
		status = parse_listener(context, i, &listeners[n], &sections[n]);
	return status;
}

/* A name as certificates have it: a host name or an address. */
enum hpx_status hpx_server_name_read(const struct hpx_option *option, const struct hpx_span *items,
				     size_t count, struct hpx_arena *arena, void *base,
				     char *problem)
{
	struct hpx_span text = items[0];

	(void)count;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':' || c == '_';
		if (!good)
			text.len = 0;
	}
	if (text.len == 0 || text.len > 253)
		return hpx_value_refuse(problem, "is no host name; write e.g. %s", option->example);
	text = hpx_arena_dup(arena, text);
	if (text.ptr == NULL)
		return HPX_NOMEM;
	*(const char **)hpx_option_member(option, base) = text.ptr;
	return HPX_OK;
}

/* ---- rules ---- */

static void check_tls(struct hpx_parse_context *context, const struct hpx_location *at,
		      const char *group, const struct hpx_tls_settings *tls)
{
	if (tls->certificate_count != tls->key_count)
		hpx_location_remark(context, at, HPX_CONFIG_MISTAKE, group,
				    tls->certificate_count == 0 ? "key" : "certificate",
				    "certificate names %zu files and key %zu: each certificate needs "
				    "its key",
				    tls->certificate_count, tls->key_count);
}

/* The options of a server's TLS mean nothing without a certificate. */
static void check_server(struct hpx_parse_context *context, const struct hpx_location *at,
			 const char *group, const struct hpx_tls_settings *tls)
{
	check_tls(context, at, group, tls);
	if (!hpx_tls_given(tls) && tls->ca != NULL)
		hpx_location_remark(context, at, HPX_CONFIG_MISTAKE, group, "client_ca",
				    "needs certificate and key: a client shows a certificate only "
				    "to a server that has one");
	else if (!hpx_tls_given(tls) && hpx_location_given(at, group, "min_version")->given)
		hpx_location_remark(context, at, HPX_CONFIG_WARNING, group, "min_version",
				    "has no effect without a certificate");
}

static void check_listener(struct hpx_parse_context *context, size_t n)
{
	const struct hpx_settings *settings = context->settings;
	const struct hpx_listener_settings *listener = &settings->listeners[n];
	const struct hpx_section_given *section = &context->listener_sections[n];
	const struct hpx_location at = { HPX_SPAN("listen[]"), &section->set, section->line,
					 section->column };
	bool mapping = hpx_location_any_given(&at, "");

	if (mapping && !hpx_location_given(&at, "", "address")->given)
		hpx_location_remark(context, &at, HPX_CONFIG_MISTAKE, "", "address",
				    "is missing; write e.g. address: 0.0.0.0:8443");
	check_server(context, &at, "tls.", &listener->tls);
	if (listener->proxy_protocol && settings->trusted_peer_count == 0 &&
	    !listener->address.is_unix)
		hpx_location_remark(context, &at, HPX_CONFIG_MISTAKE, "", "proxy_protocol",
				    "needs trusted_peers: the addresses of the load balancers whose "
				    "word about their clients is taken");
	for (size_t i = 0; i < n; i++)
		if (strcmp(settings->listeners[i].address.text, listener->address.text) == 0 &&
		    (listener->address.is_unix || listener->address.port != 0))
			hpx_location_remark(context, &at, HPX_CONFIG_MISTAKE, "", "address",
					    "stands twice in listen");
}

static void check_upstream(struct hpx_parse_context *context, const struct hpx_location *at)
{
	const struct hpx_settings *settings = context->settings;

	check_tls(context, at, "upstream_tls.", &settings->upstream_tls);
	if (settings->upstream_tls.certificate_count > 1)
		hpx_location_remark(context, at, HPX_CONFIG_MISTAKE, "upstream_tls.", "certificate",
				    "is one certificate: there is one upstream");
	if (!settings->upstream.tls && hpx_location_any_given(at, "upstream_tls."))
		hpx_config_remark(context->report, HPX_CONFIG_WARNING, 0, 0, HPX_SPAN("upstream_tls"),
				  "has no effect unless upstream is https://");
}

void hpx_rule_check_listeners(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;
	const struct hpx_location root = hpx_location_global(context);

	for (size_t n = 0; context->listener_sections != NULL && n < settings->listener_count; n++)
		check_listener(context, n);
	check_server(context, &root, "admin_tls.", &settings->admin_tls);
	check_upstream(context, &root);
	if (settings->tenant.from != HPX_TENANT_CERTIFICATE)
		return;
	for (size_t n = 0; n < settings->listener_count; n++)
		if (settings->listeners[n].tls.ca == NULL)
			hpx_location_remark(context, &root, HPX_CONFIG_MISTAKE, "tenant.", "from",
					    "is certificate, but clients of %s show none; add "
					    "tls.client_ca to that listener",
					    settings->listeners[n].address.text);
}
