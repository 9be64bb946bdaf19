/** A provider on loopback that speaks the Messages API, and keeps what it was sent. */

export interface TestProvider extends AsyncDisposable {
  url: string;
  /** Everything it was sent, in order; header names in lower case. */
  seen: { method: string; path: string; query: string; headers: Record<string, string>; body: string }[];
  /** The next request gets this answer. */
  next(answer: (request: Request) => Response | Promise<Response>): void;
}

interface ProviderOptions {
  /** The one key it takes, in this header and no other. */
  key: string;
  auth: "x-api-key" | "bearer";
  /** Refuses whatever it does not know: headers, a missing version. */
  strict?: boolean;
}

export function startProvider({ key, auth, strict = false }: ProviderOptions): TestProvider {
  const seen: TestProvider["seen"] = [];
  const waiting: Parameters<TestProvider["next"]>[0][] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const headers = Object.fromEntries(request.headers);
      const body = await request.text();
      seen.push({ method: request.method, path: pathname, query: search, headers, body });
      const answer = waiting.shift();
      if (answer) return answer(request);
      const refusal = refuse(headers, { key, auth, strict });
      if (refusal) return refusal;
      if (pathname.endsWith("/v1/models")) return Response.json(models, { headers: limits });
      const asked = JSON.parse(body) as { model: string; stream?: boolean };
      if (!asked.stream) return new Response(fullReply(asked.model), { headers: { ...limits, ...json } });
      return new Response(strict ? plainStream(asked.model) : oddStream(asked.model), {
        headers: { ...limits, "content-type": "text/event-stream" },
      });
    },
  });
  return {
    url: server.url.origin,
    seen,
    next: (answer) => void waiting.push(answer),
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
}

const json = { "content-type": "application/json" };
const limits = {
  "request-id": "req_011",
  "anthropic-ratelimit-requests-remaining": "49",
  "x-ratelimit-limit-tokens": "9000",
  "set-cookie": "session=provider",
  "access-control-allow-origin": "*",
  server: "test",
};

export const models = { data: [{ type: "model", id: "sonnet-large", display_name: "Sonnet Large" }], has_more: false };

const problem = (status: number, type: string, message: string, headers: Record<string, string> = {}) =>
  Response.json({ type: "error", error: { type, message }, request_id: "req_012" }, { status, headers });

/** Headers that a strict one knows; the rest of them came from somewhere they should not. */
const known = new Set(
  "accept accept-encoding anthropic-beta anthropic-version connection content-length content-type host user-agent x-api-key x-dragoman-hops".split(
    " ",
  ),
);

function refuse(headers: Record<string, string>, { key, auth, strict }: ProviderOptions): Response | undefined {
  const sent = auth === "bearer" ? headers.authorization : headers["x-api-key"];
  if (sent !== (auth === "bearer" ? `Bearer ${key}` : key))
    return problem(401, "authentication_error", `invalid x-api-key ${sent}`);
  if (!strict) return undefined;
  const stranger = Object.keys(headers).find((name) => !known.has(name));
  if (stranger) return problem(400, "invalid_request_error", `${stranger}: unknown header`);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(headers["anthropic-version"] ?? ""))
    return problem(400, "invalid_request_error", "anthropic-version: header is required");
  return undefined;
}

const usage = { input_tokens: 12, cache_read_input_tokens: 100, output_tokens: 5 };

/** Written as no serialiser of ours would write it. */
export const fullReply = (model: string) =>
  `{ "id":"msg_1", "type":"message",\n "role":"assistant","model":"${model}","content":[{"type":"text","text":"Good day"}],
 "stop_reason":"end_turn","stop_sequence":null, "usage":${JSON.stringify(usage)}, "own_field": 1.50 }`;

const start = (model: string) =>
  `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"${model}","content":[],"stop_reason":null,"stop_sequence":null,"usage":${JSON.stringify({ ...usage, output_tokens: 1 })}}}`;

const events = (model: string): [string, string][] => [
  ["message_start", start(model)],
  ["content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`],
  ["ping", `{"type": "ping"}`],
  ["content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Good day"}}`],
  ["content_block_stop", `{"type":"content_block_stop","index":0}`],
  [
    "message_delta",
    `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`,
  ],
  ["message_stop", `{"type":"message_stop"}`],
];

export const plainStream = (model: string) =>
  events(model)
    .map(([name, data]) => `event: ${name}\ndata: ${data}\n\n`)
    .join("");

/** Comments, carriage returns, fields and events of its own: all of it is the client's to read. */
const oddStream = (model: string) =>
  `: hello\r\n\r\n${events(model)
    .map(([name, data]) => `event: ${name}\r\nid: 7\r\ndata:${data.replace("}", ` ,"own_field":1.50}`)}\r\n\r\n`)
    .join('event: own_event\r\ndata: {"type":"own_event"}\r\n\r\n')}`;
