/** A listener: keeps a journal of requests, lets tests answer them, and counts the open ones. */
import type { HostName, World } from "./accounts";
import { admit } from "./auth";
import type { Desk, Seen } from "./request-log";
import { type Arrival, answerRoute, modelPaths, type Route } from "./routes";
import { type DemoSocket, isHandshake, requestIn, type SocketState, sendAnswer } from "./socket";
import { plain, Refusal, randomId } from "./wire";

export function listen(world: World, host: HostName, routes: Route[], desk: Desk) {
  const answer = async (seen: Seen, request: Request, signal: AbortSignal): Promise<Response> => {
    desk.remember(seen);
    const response = await occupy(
      world,
      seen,
      signal,
      async (hold) =>
        (await intercepted(desk, seen, request, hold)) ?? (await scripted(routes, { world, seen, signal, hold })),
    );
    seen.status = response.status;
    return world.change ? world.change(response, seen.path) : response;
  };
  return Bun.serve<SocketState>({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: 64 * 1024 * 1024,
    development: false,
    async fetch(request, server) {
      const seen = await note(world, host, request);
      if (!isHandshake(request)) return answer(seen, request, request.signal);
      const refused =
        world.sockets < 0 ? plain(404, "404 page not found") : refusalOf(() => admit(world, host, seen.headers));
      if (refused) return refused.response();
      const data = { id: ++world.sockets, handshake: seen, gone: new AbortController() };
      return server.upgrade(request, { data }) ? undefined : new Response(null, { status: 400 });
    },
    websocket: {
      maxPayloadLength: 64 * 1024 * 1024,
      async message(socket: DemoSocket, message) {
        const seen = requestIn(socket.data, String(message));
        if (!seen) return socket.close(1008, "not a request");
        const request = new Request(`${world.urls[host]}/responses`, { method: "POST", body: String(message) });
        await sendAnswer(socket, await answer(seen, request, socket.data.gone.signal), world.socketErrors);
      },
      close: (socket: DemoSocket) => socket.data.gone.abort(),
    },
  });
}

/** The refusal that `work` throws, if it does. */
function refusalOf(work: () => unknown): Refusal | undefined {
  try {
    work();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown;
    throw thrown;
  }
}

async function note(world: World, host: HostName, request: Request): Promise<Seen> {
  const url = new URL(request.url);
  const bytes = new Uint8Array(await request.arrayBuffer());
  return {
    at: world.now(),
    host,
    method: request.method,
    path: url.pathname,
    query: url.search,
    headers: Object.fromEntries(request.headers),
    body: parse(new TextDecoder().decode(bytes)),
    bytes,
    account: whose(world, request.headers.get("authorization")?.split(" ")[1] ?? ""),
  };
}

const whose = (world: World, token: string): string | undefined =>
  (world.issued.get(token)?.account ?? world.accounts.find(({ githubToken }) => githubToken === token))?.login;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

type Hold = Arrival["hold"];

/** A model request is open until its answer is sent or its caller hangs up. */
async function occupy(world: World, seen: Seen, signal: AbortSignal, serve: (hold: Hold) => Promise<Response>) {
  const counted = seen.method === "POST" && modelPaths.has(seen.path) ? 1 : 0;
  let answering = true;
  let held = false;
  const leave = (aborted: boolean) => {
    if (!answering) return;
    answering = false;
    world.open -= counted;
    if (aborted) seen.aborted = world.now();
  };
  world.open += counted;
  world.peak = Math.max(world.peak, world.open);
  signal.addEventListener("abort", () => leave(true), { once: true });
  try {
    return await serve(() => {
      held = true;
      return leave;
    });
  } finally {
    if (!held) leave(false);
  }
}

/** The answer that a test gave for this path, if any. */
async function intercepted({ interceptions }: Desk, seen: Seen, request: Request, hold: Hold) {
  const found = interceptions.findIndex(({ path }) =>
    typeof path === "string" ? path === seen.path : path.test(seen.path),
  );
  const interception = interceptions[found];
  if (!interception) return undefined;
  interception.times -= 1;
  if (interception.times <= 0) interceptions.splice(found, 1);
  const response = await interception.answer(seen, request);
  return response?.body ? new Response(watched(response.body, hold()), response) : response;
}

/** The same stream, with a callback at its end. */
function watched(body: ReadableStream<Uint8Array>, leave: (aborted: boolean) => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        leave(false);
        controller.close();
      } catch (error) {
        leave(false);
        controller.error(error);
      }
    },
    cancel(reason) {
      leave(true);
      return reader.cancel(reason);
    },
  });
}

async function scripted(routes: Route[], arrival: Arrival): Promise<Response> {
  const response = await answerRoute(routes, arrival).catch((error: unknown) => {
    if (error instanceof Refusal) return error.response();
    throw error;
  });
  response.headers.set("x-request-id", arrival.seen.headers["x-request-id"] ?? crypto.randomUUID());
  response.headers.set("x-github-request-id", githubRequestId());
  response.headers.set("x-github-backend", "Kubernetes");
  response.headers.set("date", new Date(arrival.world.now()).toUTCString());
  response.headers.set("x-content-type-options", "nosniff");
  return response;
}

/** `1A2B:3C4D5E:…` */
const githubRequestId = () => [4, 6, 7, 7, 8].map((length) => randomId("", length).toUpperCase()).join(":");
