/* From the path of a request to the template of its operation: "/orders/8812/items" is
 * "/orders/{x}/items". Which segments are ids is a guess by their looks; people can
 * correct it (a route, or `hapax coverage --template`). */
#ifndef HPX_HTTP_PATH_TEMPLATE_H
#define HPX_HTTP_PATH_TEMPLATE_H

#include "base/span.h"

#define HPX_PATH_TEMPLATE_MAX 255

/* Numbers, UUIDs, hexadecimal and mixed ids, dates and addresses; not "v1", "oauth2" or a
 * word. */
bool hpx_segment_is_id(struct hpx_span segment);

/* Writes the template of the path without its query. Behind the last segment that fits,
 * "*" stands for the rest. */
struct hpx_span hpx_path_template(struct hpx_span path, char out[HPX_PATH_TEMPLATE_MAX]);

/* Whether the path is one of the template: {…} stands for one segment that is not empty,
 * a final * for the rest. */
bool hpx_path_matches(struct hpx_span template, struct hpx_span path);

#endif
