/* Plain words for what libyaml cannot read. */
#ifndef HPX_CONFIG_YAML_SYNTAX_H
#define HPX_CONFIG_YAML_SYNTAX_H

#include <yaml.h>

#include "base/span.h"

#define HPX_YAML_WORDS_SIZE 256

/* Says in `words` what is wrong and what to write instead. `*mark` is where libyaml stopped;
 * it is moved to the mistake. The parser has failed, and not for want of memory. */
void hpx_yaml_explain(struct hpx_span text, const yaml_parser_t *parser, yaml_mark_t *mark,
		      char words[HPX_YAML_WORDS_SIZE]);

#endif
