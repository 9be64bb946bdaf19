/** A listener: keeps a journal of requests, lets tests answer them, and counts the open ones. */
import type { HostName } from "./accounts";
import { answerRoute, modelPaths, type Route } from "./routes";
import type { Arrival, DemoState, SeenRequest } from "./state";
import { parse, Refusal, randomId } from "./wire";

export const listen = (demo: DemoState, host: HostName, routes: Route[]) =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: 64 * 1024 * 1024,
    development: false,
    async fetch(request) {
      const seen = await note(demo, host, request);
      demo.remember(seen);
      const { signal } = request;
      const response = await occupy(
        demo,
        seen,
        signal,
        async (hold) =>
          (await intercepted(demo, seen, request, hold)) ?? (await scripted(routes, { demo, seen, signal, hold })),
      );
      seen.status = response.status;
      return demo.change ? demo.change(response, seen.path) : response;
    },
  });

async function note(demo: DemoState, host: HostName, request: Request): Promise<SeenRequest> {
  const url = new URL(request.url);
  const bytes = new Uint8Array(await request.arrayBuffer());
  return {
    at: demo.now(),
    host,
    method: request.method,
    path: url.pathname,
    query: url.search,
    headers: Object.fromEntries(request.headers),
    body: parse(new TextDecoder().decode(bytes)),
    bytes,
    account: whose(demo, request.headers.get("authorization")?.split(" ")[1] ?? ""),
  };
}

const whose = (demo: DemoState, token: string): string | undefined =>
  (demo.issued.get(token)?.account ?? demo.accounts.find(({ githubToken }) => githubToken === token))?.login;

type Hold = Arrival["hold"];

/** A model request is open until its answer is sent or its caller hangs up. */
async function occupy(
  demo: DemoState,
  seen: SeenRequest,
  signal: AbortSignal,
  serve: (hold: Hold) => Promise<Response>,
) {
  const counted = seen.method === "POST" && modelPaths.has(seen.path) ? 1 : 0;
  let answering = true;
  let held = false;
  const leave = (aborted: boolean) => {
    if (!answering) return;
    answering = false;
    demo.open -= counted;
    if (aborted) seen.aborted = demo.now();
  };
  demo.open += counted;
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
async function intercepted({ interceptions }: DemoState, seen: SeenRequest, request: Request, hold: Hold) {
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
  response.headers.set("date", new Date(arrival.demo.now()).toUTCString());
  response.headers.set("x-content-type-options", "nosniff");
  return response;
}

/** `1A2B:3C4D5E:…` */
const githubRequestId = () => [4, 6, 7, 7, 8].map((length) => randomId("", length).toUpperCase()).join(":");
