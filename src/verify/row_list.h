/* Every row, once: its name, weight, guarantees, group, the option that the description
 * must have for it, what holds, what happens to people where it does not hold, and what
 * is sent.
 *
 * The order is the order of the run: `first` decides whether the others can be tried,
 * and mismatch_body finds out the dialect before rows that depend on it. */
#ifndef HPX_VERIFY_ROW_LIST_H
#define HPX_VERIFY_ROW_LIST_H

/* X(name, weight, guarantee, also, group, needs, title, why, sends) */
#define HPX_ROW_LIST(X) \
	X(first, REQUIRED, 0, 0, RETRY, "", \
	  "a first request is executed", \
	  "Nothing else can be judged before the request itself works.", \
	  "the request, once") \
	X(retry, REQUIRED, 4, 0, RETRY, "", \
	  "a retry gets the first answer, and nothing happens again", \
	  "The customer who presses the button again pays again, or is shown another answer than the one that counts.", \
	  "the request, and three times the same on other connections") \
	X(retry_headers, REQUIRED, 4, 0, RETRY, "", \
	  "a retry gets the headers of the first answer", \
	  "A client that lost the first answer does not learn what kind of answer it got, or where the thing that it made is.", \
	  "the request, twice") \
	X(retry_cookie, REQUIRED, 5, 0, RETRY, "", \
	  "a retry does not get the cookies of the first answer", \
	  "A cookie is a session. Anyone who knows a key, for example from a log, is given somebody else's session.", \
	  "the request, twice") \
	X(mismatch_body, REQUIRED, 5, 0, MISMATCH, "", \
	  "the same key with another body is refused", \
	  "A program that mixes up its keys is told \"paid\" for a payment that was never made.", \
	  "the request, then its key with the second body") \
	X(original_kept, REQUIRED, 4, 0, MISMATCH, "", \
	  "refusals leave the first answer as it is", \
	  "One wrong request takes the answer away from the right one: its retries are refused although it happened.", \
	  "the request four times at once, its key with the second body, and the request again") \
	X(mismatch_query, REQUIRED, 5, 0, MISMATCH, "", \
	  "the same key with another query is refused", \
	  "The query is part of what is asked: the caller gets the answer to another question, or the payment is made again.", \
	  "the request, then its key with one query parameter more") \
	X(mismatch_path, REQUIRED, 5, 0, MISMATCH, "", \
	  "the same key on another path never gets the first answer", \
	  "A refund is answered with the payment that it should undo, and is never made.", \
	  "the request, then its key on another path") \
	X(mismatch_method, REQUIRED, 5, 0, MISMATCH, "", \
	  "the same key with another method never gets the first answer", \
	  "A change is answered with the creation that came before it, and is never made.", \
	  "the request, then its key with another method") \
	X(other_endpoint, REQUIRED, 5, 0, MISMATCH, "other", \
	  "one key on two endpoints never mixes up their answers", \
	  "A flow of two calls that uses one key for both gets the first call's answer twice, and the second never happens.", \
	  "the request, then its key with the request `other`, and each again") \
	X(tenants, REQUIRED, 5, 0, MISMATCH, "second_tenant", \
	  "two tenants with one key are two operations", \
	  "One customer is shown another customer's payment, and their own is never made.", \
	  "the request by both tenants under one key, and each again") \
	X(method_case, REQUIRED, 2, 0, MISMATCH, "", \
	  "the method in another spelling is refused, or done once", \
	  "Some clients send `patch` or `post`. A guard that knows only capitals lets them pass, the server behind it executes them, and every retry pays again.", \
	  "the request twice with its method in lower case, then as it is, under one key") \
	X(method_override, REQUIRED, 5, 0, MISMATCH, "", \
	  "the same key with another method in a header never gets the first answer", \
	  "A change that is sent as a POST with X-HTTP-Method-Override is answered with the creation that came before it, and is never made.", \
	  "the request, then its key with X-HTTP-Method-Override, X-HTTP-Method and X-Method-Override; where that gets the first answer, the same under a new key") \
	X(connection_named, REQUIRED, 5, 2, MISMATCH, "", \
	  "a header that Connection names is never lost", \
	  "Proxies remove the headers that Connection names. After the guard, that makes another request, and the right one gets its answer. Before the guard, the key is gone, and every retry pays again.", \
	  "for the key's header and each of the request's: the request twice with `Connection: close, NAME`, then as it is, under one key") \
	X(foreign_caller, REQUIRED, 5, 0, MISMATCH, "", \
	  "a caller without the first one's credentials never gets the first answer", \
	  "Anyone who knows a key, from a log or by chance, reads somebody else's receipt.", \
	  "the request, then its key without its credentials and with made-up ones, in the same headers and in others; where that gets the first answer, the same under a new key") \
	X(other_host, REQUIRED, 5, 2, MISMATCH, "", \
	  "the same key under another Host is the same operation, or another site's", \
	  "One service has two names, and a retry by the other one pays again; or two sites share a server, and one of them shows the other's payment.", \
	  "the request, then its key with `Host: hapax-verify.invalid`; where that gets the first answer, the same under a new key") \
	X(key_missing, REQUIRED, 0, 0, KEY, "", \
	  "a request without a key is handled as the dialect says", \
	  "A client that forgot its key runs without protection and does not know.", \
	  "the request without a key") \
	X(key_empty, REQUIRED, 0, 0, KEY, "", \
	  "an empty key is refused", \
	  "A client whose key is empty by mistake runs without protection, or shares one key with all others and gets a stranger's answer.", \
	  "the request with an empty key, bare and quoted") \
	X(key_too_long, REQUIRED, 0, 0, KEY, "", \
	  "long keys are refused or told apart, never cut", \
	  "Two payments whose keys differ in their last characters become one.", \
	  "the request with two keys of 300 bytes that differ in the last one") \
	X(key_repeated, REQUIRED, 0, 0, KEY, "", \
	  "two keys in one request are refused", \
	  "A proxy and the server may each take another of the two keys, and the retry runs again.", \
	  "the request with two key lines") \
	X(key_malformed, REQUIRED, 0, 0, KEY, "", \
	  "a malformed key is refused", \
	  "A server that ignores a key it cannot read executes every retry.", \
	  "the request with keys that break the rules") \
	X(new_key, REQUIRED, 0, 0, KEY, "", \
	  "the same body under a new key is executed anew", \
	  "The second coffee of the same price is never paid.", \
	  "the request, then the same body under another key") \
	X(member_order, REQUIRED, 0, 0, JSON, "", \
	  "members in another order are the same request", \
	  "A client in a language without ordered maps is refused its own retry, at random.", \
	  "the request, then its members in another order") \
	X(white_space, REQUIRED, 0, 0, JSON, "", \
	  "other white space is the same request", \
	  "A retry through another library, or after an upgrade, is refused although it asks for the same.", \
	  "the request, then the same with other white space") \
	X(number_same, ADVISED, 0, 0, JSON, "", \
	  "one number written in other ways is the same request", \
	  "A client that writes 5 today and 5.0 after an upgrade is refused its own retry.", \
	  "the request, then its number as n.0 and as ne0") \
	X(number_traps, REQUIRED, 5, 0, JSON, "", \
	  "numbers that a double cannot tell apart are different requests", \
	  "Two amounts become one: the second is reported as done and never happens.", \
	  "9007199254740993 and then ...992, 1.000000000000000001 and then ...002, under one key each") \
	X(at_once_2, REQUIRED, 2, 0, CONCURRENT, "", \
	  "two at the same moment: one effect", \
	  "A double click is charged twice, or one of the two is told something else than what happened.", \
	  "the request twice at the same moment, and again") \
	X(at_once_10, REQUIRED, 2, 0, CONCURRENT, "", \
	  "ten at the same moment: one effect", \
	  "An impatient client, or two, is charged more than once, or told something else than what happened.", \
	  "the request ten times at the same moment, and again") \
	X(at_once_100, REQUIRED, 2, 0, CONCURRENT, "", \
	  "a storm of ninety on one key and ten others: each once", \
	  "A retry storm after an outage charges as often as it was retried, or harms strangers.", \
	  "the request ninety times and ten others at the same moment, and each again") \
	X(in_progress, REQUIRED, 2, 0, CONCURRENT, "slow", \
	  "a retry while the first runs is not executed", \
	  "The slow payment is the one that people retry: it is made again, or the retry is told something else than what becomes of it.", \
	  "the request `slow`, retries while it runs, and again") \
	X(waiter_gone, REQUIRED, 2, 0, CONCURRENT, "slow", \
	  "a retry that goes away takes nothing with it", \
	  "A client that gives up waiting frees the key of a payment that still runs, and the next retry pays again.", \
	  "the request `slow`, a retry that goes away, and others while it runs") \
	X(cut_head, REQUIRED, 8, 0, CUT, "", \
	  "cut off after the head, a retry is done, once", \
	  "A lost connection leaves the key locked, and the payment cannot be made at all.", \
	  "the head of the request, a reset, then the request until it is answered") \
	X(cut_half_body, REQUIRED, 8, 0, CUT, "", \
	  "cut off in the middle of the body, a retry is done, once", \
	  "A read error leaves the key locked, and the payment cannot be made at all.", \
	  "half of the request, a reset, then the request until it is answered") \
	X(cut_whole_body, REQUIRED, 8, 0, CUT, "", \
	  "cut off after the body, a retry settles it, once", \
	  "The phone in the tunnel: the payment is made twice, or its outcome is never told.", \
	  "the request, a reset, then the request until it is answered") \
	X(cut_before_answer, REQUIRED, 8, 0, CUT, "", \
	  "cut off before the answer, a retry gets it", \
	  "The phone in the tunnel: the payment is made twice, or its outcome is never told.", \
	  "the request, a reset when its answer comes, then the request until it is answered") \
	X(binary_body, REQUIRED, 5, 0, BODY, "", \
	  "bodies that are not text are told apart byte by byte", \
	  "Two different files count as one, because both were read as broken text.", \
	  "a body of all 256 byte values, then with one byte changed under its key") \
	X(binary_answer, REQUIRED, 4, 0, BODY, "binary", \
	  "an answer that is not text is replayed byte by byte", \
	  "The receipt that comes with the retry cannot be opened.", \
	  "the request `binary`, twice") \
	X(large_body, REQUIRED, 0, 0, BODY, "", \
	  "a large body is done once, or refused", \
	  "What is larger than the record of a key runs without protection.", \
	  "the request padded to 300 KiB, twice") \
	X(large_answer, REQUIRED, 2, 0, BODY, "large_answer", \
	  "an answer too large to keep is not executed again", \
	  "What is larger than the record of a key happens with every retry.", \
	  "the request `large_answer`, three times") \
	X(client_error, REQUIRED, 4, 0, ERROR, "client_error", \
	  "a refusal is replayed as it was", \
	  "A declined card is charged by the retry after all, or the client never learns why it was declined.", \
	  "the request `client_error`, twice") \
	X(server_error, REQUIRED, 2, 0, ERROR, "server_error", \
	  "a server error after an effect does not repeat it", \
	  "The payment was made, the answer was an error, and the retry pays again.", \
	  "the request `server_error`, four times") \
	X(outage, REQUIRED, 8, 0, ERROR, "outage", \
	  "an outage ends when it ends", \
	  "An error that was over in a second is replayed, and the payment cannot be made.", \
	  "the request `outage` until it is done, and again") \
	X(get_alone, REQUIRED, 0, 0, OTHER, "", \
	  "a GET is left alone, with and without a key", \
	  "A client that sends its key with everything reads old data, or cannot read at all.", \
	  "a GET without a key and twice with one; where effects are counted, that GET before and after a request") \
	X(delete_alone, REQUIRED, 0, 0, OTHER, "delete", \
	  "a DELETE is left alone, with and without a key", \
	  "A DELETE that is safe to repeat is refused, or said to be done when it was not.", \
	  "the request `delete` twice with a key and once without") \
	X(retry_marker, ADVISED, 0, 0, OTHER, "", \
	  "a replay says that it is one (Idempotent-Replayed: true)", \
	  "Nobody can tell from a log whether a payment was made or only told again.", \
	  "the request, twice") \
	X(retry_after, ADVISED, 0, 0, OTHER, "", \
	  "\"in progress\" says when to come back (Retry-After)", \
	  "Clients guess: too soon is a storm, too late is a customer who waits.", \
	  "nothing of its own; looks at every 409 of the run") \
	X(expiry, ADVISED, 0, 0, OTHER, "", \
	  "an answer says how long its key is kept (Idempotency-Expires)", \
	  "A client that retries the next day cannot know whether it is still protected.", \
	  "the request, twice") \
	X(crash_once, REQUIRED, 2, 1, CRASH, "crash", \
	  "through crashes nothing happens twice", \
	  "A crash of the server makes some payments twice.", \
	  "rounds of a request, seven more at once, a crash, a start, and retries") \
	X(crash_kept, REQUIRED, 3, 0, CRASH, "crash", \
	  "through crashes no answer that was seen is lost", \
	  "The customer has a receipt, and after the crash nobody knows of it.", \
	  "the same as crash_once") \
	X(crash_settled, REQUIRED, 8, 0, CRASH, "crash", \
	  "through crashes nothing is stuck", \
	  "What ran during the crash stays \"in progress\", and nobody can pay.", \
	  "the same as crash_once")

#define HPX_ROW_GROUP_LIST(X) \
	X(RETRY, "the request and its retries") \
	X(MISMATCH, "one key, another request") \
	X(KEY, "the key") \
	X(JSON, "the same JSON, written differently") \
	X(CONCURRENT, "at the same moment") \
	X(CUT, "cut off by the client") \
	X(BODY, "bodies") \
	X(ERROR, "errors") \
	X(OTHER, "manners") \
	X(CRASH, "crashes of the server")

#endif
