/* Rehearsing accidents. PAYMENTS_BREAK="kill:asked:authorised" makes the
 * program die at that very moment, as kill -9 would; "stop:…" makes it stand
 * still until it gets SIGCONT, as a paused machine does. The moments of a phase:
 *
 *   asked       the provider has answered, nothing is committed yet
 *   committed   the phase is committed, nobody has been told
 *
 * and its name is that of its recovery point: screened, authorised, captured,
 * paid. */
#ifndef PAYMENTS_REHEARSAL_H
#define PAYMENTS_REHEARSAL_H

void rehearse(const char *moment, const char *phase);

#endif
