<?php
// A request that must happen once. Copy this file into your project (PHP 8.1 or later); it
// needs no extension but openssl for https.
//
// Make a key for each intended effect (per payment, per order) and store it with the order
// BEFORE the first call. Call post_once with it; after a restart, call it again with the same
// key, body and headers. Delete the key only after an answer was returned, whatever its
// status. An Unsettled exception is not definite: keep the key, and never make another one.
//
//   $answer = post_once($url, ['Content-Type' => 'application/json'], $body, $order['key']);
//   // ['status' => 201, 'headers' => ['content-type' => ...], 'body' => '...']

/** No definite answer came. $doubt: it may have happened. $last: the last answer, or null. */
final class Unsettled extends RuntimeException
{
    public function __construct(public readonly bool $doubt, public readonly ?array $last)
    {
        parent::__construct('no definite answer; may have happened: ' . ($doubt ? 'yes' : 'no'));
    }
}

/** Sends the request until the answer is definite, with the same key, within the budget. */
function post_once(string $url, array $headers, string $body, string $key, float $budget = 60.0): array
{
    $doubt = false;
    $last = null;
    $end = hrtime(true) / 1e9 + $budget;
    for ($backoff = 0.3; ; $backoff = min(2 * $backoff, 10)) {
        [$answer, $sent] = post_attempt($url, $headers, $body, $key, min($end, hrtime(true) / 1e9 + 30));
        [$then, $doubt, $wait] = $answer === null ? ['again', $doubt || $sent, 0] : post_judge($answer, $doubt);
        if ($then === 'done') {
            return $answer;
        }
        $last = $answer ?? $last;
        $wait = max($wait, $backoff * mt_rand() / mt_getrandmax());
        if ($then === 'stop' || hrtime(true) / 1e9 + $wait > $end) {
            throw new Unsettled($doubt, $last);
        }
        usleep((int) ($wait * 1e6));
    }
}

/** One attempt, on a connection of its own: [answer or null, whether a byte may have left]. */
function post_attempt(string $url, array $headers, string $body, string $key, float $end): array
{
    $u = parse_url($url);
    $port = $u['port'] ?? ($u['scheme'] === 'https' ? 443 : 80);
    $context = stream_context_create(['ssl' => ['peer_name' => $u['host']]]);
    $address = ($u['scheme'] === 'https' ? 'ssl' : 'tcp') . "://{$u['host']}:$port";
    $stream = @stream_socket_client($address, $code, $text, max($end - hrtime(true) / 1e9, 0.001), STREAM_CLIENT_CONNECT, $context);
    if ($stream === false) {
        return [null, false];
    }
    // HTTP/1.0 has no chunks: an answer is whole if it is as long as it says.
    $headers += ['Host' => "{$u['host']}:$port", 'Idempotency-Key' => "\"$key\"", 'Content-Length' => strlen($body), 'Connection' => 'close'];
    $lines = ['POST ' . ($u['path'] ?? '/') . (isset($u['query']) ? "?{$u['query']}" : '') . ' HTTP/1.0'];
    foreach ($headers as $name => $value) {
        $lines[] = "$name: " . str_replace(["\r", "\n", "\0"], '', (string) $value);
    }
    $all = implode("\r\n", $lines) . "\r\n\r\n" . $body;
    $came = '';
    stream_set_blocking($stream, false);
    while (!feof($stream) && ($left = $end - hrtime(true) / 1e9) > 0 && strlen($came) <= 16 << 20) {
        $read = [$stream];
        $write = $all === '' ? null : [$stream];
        $except = null;
        if (@stream_select($read, $write, $except, (int) $left, (int) (fmod($left, 1) * 1e6)) === false) {
            break;
        }
        if ($write && ($n = @fwrite($stream, $all)) !== false) {
            $all = substr($all, $n);
        }
        do { // until the stream has no more: what TLS holds back, select does not see
            $came .= $piece = (string) @fread($stream, 65536);
        } while ($piece !== '');
    }
    fclose($stream);
    [$head, $content] = explode("\r\n\r\n", $came, 2) + [1 => null];
    if ($content === null || !preg_match('~^HTTP/1\.[01] ([2-5]\d\d)~', $head, $status)) {
        return [null, true];
    }
    $fields = [];
    foreach (array_slice(explode("\r\n", $head), 1) as $line) {
        [$name, $value] = explode(':', $line, 2) + [1 => ''];
        $fields[strtolower($name)] = trim($value);
    }
    $whole = in_array((int) $status[1], [204, 304], true) || (string) strlen($content) === ($fields['content-length'] ?? '');
    return [$whole ? ['status' => (int) $status[1], 'headers' => $fields, 'body' => $content] : null, true];
}

/** [done, again or stop; whether it may have happened; seconds to wait]. The cases are those
 *  of hapax's own clients. */
function post_judge(array $answer, bool $doubt): array
{
    ['status' => $status, 'headers' => $fields] = $answer;
    $type = strtolower(trim(explode(';', $fields['content-type'] ?? '')[0]));
    $found = in_array($type, ['application/problem+json', 'application/json'], true) ? json_decode($answer['body'], true) : null;
    $said = $type === 'application/json' ? $found['error'] ?? null : $found;
    $word = fn ($from, $name, ...$known) => is_array($from) && in_array($from[$name] ?? null, $known, true) ? $from[$name] : '';
    $retry = $word($said, 'retry', 'same_key', 'after_fix', 'never');
    $executed = $word($said, 'executed', 'no', 'yes', 'unknown');
    $runs = $status === 202 && isset($fields['hapax-operation']) && $word($found, 'state', 'in_progress') !== '';
    $in_use = $type === 'application/json' && $word($said, 'type', 'idempotency_error') !== '';
    $after = $fields['retry-after'] ?? '';
    $date = DateTimeImmutable::createFromFormat('D, d M Y H:i:s \G\M\T', $after, new DateTimeZone('UTC'));
    $wait = preg_match('/^\d{1,9}$/', $after) ? (int) $after : ($date ? max($date->getTimestamp() - time(), 0) : null);
    $refused = in_array($status, [401, 403, 407, 408, 421, 425, 429], true) || $status === 503 && $wait !== null;
    $maybe = $doubt || ($executed === '' ? !$refused : $executed !== 'no');
    if ($runs) {
        return ['again', $maybe, $wait ?? 0];
    }
    if ($status < 400 || ($fields['idempotent-replayed'] ?? '') === 'true' || $retry === 'never') {
        return ['done', false, 0];
    }
    if ($retry === 'after_fix') {
        $clear = !$doubt && ($executed === '' ? $status < 500 : $executed === 'no');
        return $clear ? ['done', false, 0] : ['stop', $maybe, 0];
    }
    if ($retry === 'same_key' || in_array($status, [408, 425, 429, 502, 503, 504], true)
        || $status === 409 && ($doubt || $wait !== null || $in_use)) {
        return ['again', $maybe, $wait ?? 0];
    }
    if ($status >= 500 || $doubt && in_array($status, [401, 403, 407, 421], true)) {
        return ['stop', $maybe, 0];
    }
    return ['done', false, 0];
}
