// What the measured Node services share: a plain HTTP server on one process, and
// one call of the upstream per execution over kept-alive connections.
import http from 'node:http';

const upstream = new URL(process.env.UPSTREAM);
const agent = new http.Agent({ keepAlive: true, maxSockets: 256, maxFreeSockets: 256 });

function collect(stream, done) {
  const chunks = [];
  stream.on('data', (chunk) => chunks.push(chunk));
  stream.on('end', () => done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
}

// The effect: it must happen once for each key. Gives {status, type, body}.
export function execute(path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({
      agent, host: upstream.hostname, port: upstream.port, method: 'POST', path,
      headers: { 'content-type': 'application/json', 'content-length': body.length },
    }, (response) => {
      response.on('error', reject);
      collect(response, (answer) => resolve({
        status: response.statusCode, type: response.headers['content-type'], body: answer,
      }));
    });
    request.on('error', reject);
    request.end(body);
  });
}

export const refusals = {
  missing: { status: 400, type: 'application/json', body: '{"error":"idempotency_key_missing"}' },
  running: { status: 409, type: 'application/json', body: '{"error":"idempotency_key_in_progress"}' },
  reused: { status: 422, type: 'application/json', body: '{"error":"idempotency_key_reused"}' },
};

// `handle` gets {key, path, headers, body} and gives what `execute` does.
export function serve(handle) {
  const server = http.createServer((request, response) => {
    collect(request, async (body) => {
      let answer;
      try {
        answer = await handle({
          key: request.headers['idempotency-key'], method: request.method, path: request.url,
          headers: request.headers, body,
        });
      } catch (error) {
        console.error(error);
        answer = { status: 500, type: 'text/plain', body: 'failed\n' };
      }
      response.writeHead(answer.status, {
        'content-type': answer.type, 'content-length': Buffer.byteLength(answer.body),
      });
      response.end(answer.body);
    });
  });
  server.keepAliveTimeout = 75000;
  server.requestTimeout = 0;
  server.listen(Number(process.env.PORT), '127.0.0.1', 4096, () => console.log('ready'));
  process.on('SIGTERM', () => process.exit(0));
}
