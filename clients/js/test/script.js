// A server that answers by a list, one step for each request that comes: an answer
// ({ status, headers, type, body }), "lost before" (the connection is cut before the
// request is read), "lost after" (behind the whole request), "half" (in the middle of
// the answer), or "hold" (never). What came is kept: heads, and the bytes of the bodies.
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createPlain } from "node:net";

export const UNSENT = "unsent"; // a step for `fetchBy`: nobody listens

export async function startScript(steps) {
  const seen = [], left = steps.filter((step) => step !== UNSENT);
  const server = createServer(async (request, response) => {
    const step = left.shift() ?? { status: 599, body: "the script has ended" };
    if (step === "lost before") return request.socket.resetAndDestroy();
    const body = await bytesOf(request);
    seen.push({ method: request.method, url: request.url, headers: request.headers, body });
    return play(step, request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => { server.closeAllConnections(); server.close(); };
  return { url: `http://127.0.0.1:${server.address().port}/pay`, seen, left, close };
}

function play(step, request, response) {
  if (step === "hold") return;
  if (step === "lost after") return void request.socket.resetAndDestroy();
  if (step === "half") {
    response.writeHead(201, { "Content-Length": 1000 });
    return void response.write("x".repeat(500), () => request.socket.destroy());
  }
  const text = typeof step.body === "object" ? JSON.stringify(step.body) : step.body ?? "";
  const type = step.type ?? (typeof step.body === "object" ? "application/json" : "text/plain");
  response.writeHead(step.status, { ...(text ? { "Content-Type": type } : {}), ...step.headers });
  response.end(text);
}

async function bytesOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces);
}

// A real fetch; where the script says that nobody listens, it goes to a port where that is so.
export async function fetchBy(steps) {
  const port = await closedPort(), left = [...steps];
  return (url, init) => fetch(left.shift() === UNSENT ? `http://127.0.0.1:${port}/pay` : url, init);
}

async function closedPort() {
  const server = createPlain().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
