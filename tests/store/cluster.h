/* A PostgreSQL of the test program's own: a cluster in a temporary folder,
 * reached by a unix socket only, which dies with the program. */
#ifndef HPX_TESTS_STORE_CLUSTER_H
#define HPX_TESTS_STORE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

#include <libpq-fe.h>

/* False, and a message, where PostgreSQL is not installed. Where it is and does
 * not start, the program ends. */
bool cluster_start(void);
void cluster_stop(void);
/* postgres://… of its one database. */
void cluster_url(char *url, size_t size);
/* A connection of an application's; closed by PQfinish. */
PGconn *cluster_connect(void);
/* Fails the test where the SQL fails. The result is to be cleared. */
PGresult *cluster_ask(PGconn *conn, const char *sql);
/* On a connection that is always there; results are dropped. */
void cluster_sql(const char *sql);

#endif
