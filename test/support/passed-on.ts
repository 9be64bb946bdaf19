/** Streams passed on in this process, without sockets: what the client gets, and what the book gets. */
import type { Dialect } from "../../src/dialects/hub/conversation";
import { upstreamPaths } from "../../src/lib/api-paths";
import type { ResponseBody } from "../../src/lib/net/out/body";
import { gatherFrames } from "../../src/lib/net/stream/sse";
import { passthrough } from "../../src/proxy/relay/passthrough";
import { readModel } from "../../src/proxy/upstream/models/model";
import { exchangeOf, type Recorded } from "./exchange";

const prompts: Record<Dialect, object> = {
  chat: { messages: [{ role: "user", content: "Hi" }], stream_options: { include_usage: true } },
  responses: { input: "Hi", store: false },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 500 },
};

interface PassedOn extends Recorded {
  push(chunk: Uint8Array): void;
  keepAlive(): void;
  end(): void;
  /** What the client got. */
  bytes(): Buffer;
}

export function passOn(dialect: Dialect, model: string, more: object = {}): PassedOn {
  const facts = readModel({
    id: model,
    vendor: "OpenAI",
    supported_endpoints: [upstreamPaths[dialect]],
    capabilities: { type: "chat", limits: {}, supports: { streaming: true } },
  })!;
  const body = { model, stream: true, ...prompts[dialect], ...more };
  const text = JSON.stringify(body);
  const incoming = { bytes: new TextEncoder().encode(text), body, model, stream: true };
  const { exchange, recorded } = exchangeOf(incoming, dialect);
  const target = { model: facts, upstreamModel: facts, dialect, endpoint: upstreamPaths[dialect] };
  const { reply } = passthrough(exchange, target, { webSearch: true });
  const out = gatherFrames();
  // Nobody reads the body: its chunks are pushed.
  const client = reply.stream(out);
  const { bytes: source } = reply.open({ body: {} as ResponseBody, isStream: true }, client);
  const sent: Uint8Array[] = [];
  const take = () => {
    const bytes = out.take();
    if (bytes) sent.push(bytes);
  };
  return Object.assign(recorded, {
    push(chunk: Uint8Array) {
      source.push(chunk);
      take();
    },
    keepAlive() {
      client.keepAlive();
      take();
    },
    end() {
      source.end();
      take();
    },
    bytes: () => Buffer.concat(sent),
  });
}
