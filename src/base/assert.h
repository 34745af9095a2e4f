/* An assert that stays on: for what only a mistake of ours can make false.
 * Nothing that came from a socket, a file or a row may reach it unchecked. */
#ifndef HPX_BASE_ASSERT_H
#define HPX_BASE_ASSERT_H

#define HPX_ASSERT(cond) \
	((cond) ? (void)0 : hpx_assert_failed(#cond, __FILE__, __LINE__))

_Noreturn void hpx_assert_failed(const char *cond, const char *file, int line);

#endif
