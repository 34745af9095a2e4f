/* A stored answer: status, headers and body in one heap block. */
#include <stdlib.h>

#include "store/store.h"

static char *put(char *at, struct hpx_span bytes, struct hpx_span *ret_copy)
{
	if (bytes.len != 0)
		memcpy(at, bytes.ptr, bytes.len);
	*ret_copy = hpx_span(at, bytes.len);
	return at + bytes.len;
}

struct hpx_answer *hpx_answer_new(uint32_t status, bool kept, struct hpx_span headers,
				  struct hpx_span body)
{
	struct hpx_answer *answer;

	if (headers.len > SIZE_MAX / 4 || body.len > SIZE_MAX / 4)
		return NULL;
	answer = malloc(sizeof(*answer) + headers.len + body.len);
	if (answer == NULL)
		return NULL;
	answer->status = status;
	answer->kept = kept;
	put(put((char *)(answer + 1), headers, &answer->headers), body, &answer->body);
	return answer;
}

void hpx_answer_free(struct hpx_answer *answer)
{
	free(answer);
}
