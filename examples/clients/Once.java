// A request that must happen once. Copy this file into your project (Java 11 or later); it
// needs the standard library only.
//
// Make a key for each intended effect (per payment, per order) and store it with the order
// BEFORE the first call. Call post with it; after a restart, call it again with the same key,
// body and headers. Delete the key only after an answer was returned, whatever its status.
// An Unsettled exception is not definite: keep the key, and never make another one for it.
//
//   HttpResponse<byte[]> answer = Once.post(URI.create(url), Map.of("Content-Type", "application/json"),
//       body, order.key(), Duration.ofMinutes(1));
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public final class Once {
    /** No definite answer came. doubt: it may have happened. last: the last answer, or null. */
    public static final class Unsettled extends IOException {
        public final boolean doubt;
        public final transient HttpResponse<byte[]> last;

        Unsettled(boolean doubt, HttpResponse<byte[]> last, Throwable cause) {
            super("no definite answer; may have happened: " + doubt, cause);
            this.doubt = doubt;
            this.last = last;
        }
    }

    // It sends a POST once, and a redirect is an answer that is not followed.
    private static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
            .followRedirects(HttpClient.Redirect.NEVER).connectTimeout(Duration.ofSeconds(10)).build();

    /** Sends the request until the answer is definite, with the same key, within the budget. */
    public static HttpResponse<byte[]> post(URI uri, Map<String, String> headers, byte[] body, String key,
            Duration budget) throws Unsettled, InterruptedException {
        HttpRequest.Builder builder = HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.ofByteArray(body));
        headers.forEach(builder::setHeader);
        HttpRequest request = builder.setHeader("Idempotency-Key", '"' + key + '"').build();
        HttpResponse<byte[]> last = null;
        boolean doubt = false;
        long end = System.nanoTime() + budget.toNanos();
        for (long backoff = 300; ; backoff = Math.min(2 * backoff, 10_000)) {
            HttpResponse<byte[]> answer = null;
            Throwable failure = null;
            CompletableFuture<HttpResponse<byte[]>> sending = CLIENT.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray());
            try { // the time is that of the whole answer; HttpRequest.timeout ends with its head
                answer = sending.get(Math.max(Math.min(end - System.nanoTime(), 30_000_000_000L), 1), TimeUnit.NANOSECONDS);
                last = answer;
            } catch (ExecutionException | TimeoutException error) {
                sending.cancel(true);
                failure = error instanceof ExecutionException ? error.getCause() : error;
            }
            Verdict verdict = answer == null ? new Verdict("again", doubt || wasSent(failure), 0) : judge(answer, doubt);
            if (verdict.then.equals("done")) return answer;
            doubt = verdict.doubt;
            long waitMs = Math.max(ThreadLocalRandom.current().nextLong(backoff), verdict.waitMs);
            if (verdict.then.equals("stop") || System.nanoTime() + waitMs * 1_000_000 > end)
                throw new Unsettled(doubt, last, failure);
            Thread.sleep(waitMs);
        }
    }

    /** Only what is proved counts as unsent: no connection, or no TLS on it. */
    private static boolean wasSent(Throwable error) {
        return !(error instanceof ConnectException || error instanceof HttpConnectTimeoutException
                || error instanceof javax.net.ssl.SSLHandshakeException);
    }

    private static final class Verdict {
        final String then; // done, again (the same key), stop (not definite)
        final boolean doubt;
        final long waitMs;

        Verdict(String then, boolean doubt, long waitMs) {
            this.then = then;
            this.doubt = doubt;
            this.waitMs = waitMs;
        }
    }

    /** The cases are those of hapax's own clients. */
    private static Verdict judge(HttpResponse<byte[]> answer, boolean doubt) {
        int status = answer.statusCode();
        String type = field(answer, "Content-Type").split(";")[0].trim().toLowerCase();
        String text = type.endsWith("json") ? new String(answer.body(), StandardCharsets.UTF_8) : "";
        boolean isProblem = type.equals("application/problem+json"), isJson = type.equals("application/json");
        String said = isProblem ? text : isJson ? first(text, "\"error\"\\s*:\\s*\\{([^{}]*)\\}") : "";
        String retry = first(said, "\"retry\"\\s*:\\s*\"(same_key|after_fix|never)\"");
        String executed = first(said, "\"executed\"\\s*:\\s*\"(no|yes|unknown)\"");
        boolean runs = status == 202 && answer.headers().firstValue("Hapax-Operation").isPresent() && isJson
                && !first(text, "\"state\"\\s*:\\s*\"(in_progress)\"").isEmpty();
        boolean inUse = isJson && !first(said, "\"type\"\\s*:\\s*\"(idempotency_error)\"").isEmpty();
        long waitMs = retryAfterMs(field(answer, "Retry-After")); // -1: there is none
        boolean refused = Set.of(401, 403, 407, 408, 421, 425, 429).contains(status) || status == 503 && waitMs >= 0;
        boolean maybe = doubt || (executed.isEmpty() ? !refused : !executed.equals("no"));
        if (runs) return new Verdict("again", maybe, waitMs);
        if (status < 400 || field(answer, "Idempotent-Replayed").equals("true") || retry.equals("never"))
            return new Verdict("done", false, 0);
        if (retry.equals("after_fix")) {
            boolean clear = !doubt && (executed.isEmpty() ? status < 500 : executed.equals("no"));
            return clear ? new Verdict("done", false, 0) : new Verdict("stop", maybe, 0);
        }
        if (retry.equals("same_key") || Set.of(408, 425, 429, 502, 503, 504).contains(status)
                || status == 409 && (doubt || waitMs >= 0 || inUse))
            return new Verdict("again", maybe, waitMs);
        if (status >= 500 || doubt && Set.of(401, 403, 407, 421).contains(status)) return new Verdict("stop", maybe, 0);
        return new Verdict("done", false, 0);
    }

    private static String field(HttpResponse<byte[]> answer, String name) {
        return answer.headers().firstValue(name).orElse("");
    }

    private static String first(String text, String pattern) {
        Matcher found = Pattern.compile(pattern).matcher(text);
        return found.find() ? found.group(1) : "";
    }

    private static long retryAfterMs(String text) {
        if (text.matches("[0-9]{1,9}")) return Long.parseLong(text) * 1000;
        try {
            Instant date = ZonedDateTime.parse(text, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
            return Math.max(Duration.between(Instant.now(), date).toMillis(), 0);
        } catch (DateTimeParseException none) {
            return -1;
        }
    }

    private Once() { }
}
