/* A listening socket: one per event loop for TCP (SO_REUSEPORT), one shared
 * by all loops for a unix socket. */
#ifndef HPX_NET_LISTENER_H
#define HPX_NET_LISTENER_H

#include "base/address.h"
#include "net/transport.h"

struct hpx_listener;

#define HPX_PROBLEM_SIZE 512

/* Makes the listening socket, before the loops start. Several loops may each call
 * this for the same TCP address. A unix socket gets mode 0660; a stale socket file
 * that nobody answers on is removed, and one that answers is HPX_BUSY. `problem`
 * (512 bytes) gets a sentence with the remedy. */
enum hpx_status hpx_listener_open(const struct hpx_address *address, int *ret_fd, char *problem);
/* One more socket for another loop: for TCP its own, on the very port that `fd` got
 * (which matters for port 0); for unix the same one again. */
enum hpx_status hpx_listener_open_beside(int fd, int *ret_fd);
/* HPX_BUSY: another process listens on this TCP address. To be called once, before
 * the first open: the sockets of all loops share the port (SO_REUSEPORT), so a
 * second process of the same user would share it too, and silently. */
enum hpx_status hpx_listener_probe(const struct hpx_address *address, char *problem);

/* Starts accepting on `loop`. Owns the descriptor from now on, on failure too. */
enum hpx_status hpx_listener_start(struct hpx_loop *loop, int fd,
				   void (*on_accept)(void *user, struct hpx_transport *transport),
				   void *user, struct hpx_listener **ret_listener);
/* Connections that would take one of the last `kept_free` descriptors of the process
 * are closed at once: the store, the upstream and the admin listener need those.
 * `on_exhausted` is told of each, and of connections that the system could not open. */
void hpx_listener_keep_free(struct hpx_listener *listener, unsigned kept_free,
			    void (*on_exhausted)(void *user));
/* Raises the process's limit on descriptors to `wanted`, as far as the system lets it.
 * Returns the limit that holds then. */
uint64_t hpx_descriptors_raise(uint64_t wanted);
/* Stops accepting; connections live on. */
void hpx_listener_stop(struct hpx_listener *listener);
/* Removes the file of a unix socket, after all loops have stopped. */
void hpx_listener_unlink(const struct hpx_address *address);
/* The port that was really bound (for ":0"). */
uint16_t hpx_listener_port(int fd);

#endif
