/** GitHub and Copilot in one process. What its streams do is set by `POST /script`, before each measurement. */
import { type Dialect, dialects, modelOf, piecesOf, replyOf, upstreamPath } from "./dialects";

export interface Script {
  /** Events of words in a stream. */
  events: number;
  /** How many of them come in one piece. */
  perRead: number;
  /** Milliseconds between two pieces; 0: as fast as they are taken. */
  every: number;
  /** Milliseconds until an answer begins; 0 if missing. */
  thinks?: number;
  /** The vendor's form of its dialect's streams. */
  form?: string;
  /** The same of its full replies. */
  reply?: string;
}

let script: Script = { events: 10, perRead: 1, every: 0 };
/** When a stream was last given up by its reader: Unix time in ms. */
let cancelledAt = 0;

const encoder = new TextEncoder();
const dialectAt = new Map<string, Dialect>(dialects.map((dialect) => [upstreamPath[dialect], dialect]));
/** By the dialect and the tokens of the prompt. */
const made = { pieces: new Map<string, Pieces>(), replies: new Map<string, string>() };

const server: Bun.Server<undefined> = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  maxRequestBodySize: 1024 ** 3,
  async fetch(request): Promise<Response> {
    const path = request.url.slice(request.url.indexOf("/", 8));
    const dialect = dialectAt.get(path);
    if (dialect) {
      const body = await request.text();
      const stream = body.length < 1000 ? body.includes('"stream":true') : isStream(body);
      const tokens = Math.ceil(body.length / 4);
      const answer = stream ? piecesFor(dialect, tokens) : replyFor(dialect, tokens);
      if (script.thinks) await think(script.thinks);
      return typeof answer === "string" ? json(answer) : streamed(answer);
    }
    switch (path) {
      case "/copilot_internal/v2/token": {
        const now = Math.floor(Date.now() / 1000);
        const endpoints = { api: `http://127.0.0.1:${server.port}` };
        return Response.json({ token: "tid=bench;exp=1:x", expires_at: now + 1800, refresh_in: 1500, endpoints });
      }
      case "/models":
        return Response.json({ data: dialects.map(listed) });
      case "/script":
        script = (await request.json()) as Script;
        made.pieces.clear();
        made.replies.clear();
        return new Response();
      case "/cancelled":
        return Response.json(cancelledAt);
      default:
        return Response.json({ login: "bench" });
    }
  },
});
console.log(server.port);

/** In a large request only its ends are looked at, so that the upstream's own time stays out of the figures. */
const isStream = (body: string) => /"stream":true/.test(body.slice(0, 200) + body.slice(-200));

const json = (text: string) => new Response(text, { headers: { "content-type": "application/json" } });

function listed(dialect: Dialect): object {
  return {
    id: modelOf(dialect),
    name: modelOf(dialect),
    vendor: "Bench",
    supported_endpoints: [upstreamPath[dialect]],
    capabilities: {
      type: "chat",
      limits: { max_output_tokens: 64_000, max_prompt_tokens: 8_000_000 },
      supports: { streaming: true, tool_calls: true },
    },
  };
}

/** Timers are a millisecond late at times, and only one request at a time is answered by who thinks: the last of it is waited for. */
async function think(ms: number): Promise<void> {
  const until = performance.now() + ms;
  await Bun.sleep(ms - 2);
  while (performance.now() < until);
}

function replyFor(dialect: Dialect, tokens: number): string {
  const key = `${dialect} ${tokens}`;
  const reply = made.replies.get(key) ?? replyOf(dialect, script.reply, tokens);
  made.replies.set(key, reply);
  return reply;
}

type Pieces = Record<"begin" | "some" | "end", Uint8Array<ArrayBuffer>>;

function piecesFor(dialect: Dialect, tokens: number): Pieces {
  const key = `${dialect} ${tokens}`;
  const pieces = made.pieces.get(key) ?? buildPieces(dialect, tokens);
  made.pieces.set(key, pieces);
  return pieces;
}

function buildPieces(dialect: Dialect, tokens: number): Pieces {
  const texts = piecesOf(dialect, script.form, script.perRead, tokens);
  const [begin, some, end] = texts.map((text) => encoder.encode(text));
  return { begin: begin!, some: some!, end: end! };
}

function streamed({ begin, some, end }: Pieces): Response {
  const { every, events, perRead } = script;
  let left = Math.ceil(events / perRead);
  let timer: Timer | undefined;
  const cancel = () => {
    clearInterval(timer);
    cancelledAt = Date.now();
  };
  const finish = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    clearInterval(timer);
    controller.enqueue(end);
    controller.close();
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      if (begin.length > 0) controller.enqueue(begin);
      if (every) timer = setInterval(() => (left-- > 0 ? controller.enqueue(some) : finish(controller)), every);
    },
    pull(controller) {
      if (every) return;
      if (left-- > 0) controller.enqueue(some);
      else finish(controller);
    },
    cancel,
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
