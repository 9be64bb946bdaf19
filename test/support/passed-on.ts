/** Streams passed on in this process, without sockets: what the client gets, and what the record gets. */
import type { Dialect } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import type { ResponseBody } from "../../src/net/out/body";
import { gatherFrames } from "../../src/net/stream/sse";
import { passthrough } from "../../src/relay/passthrough";
import type { RequestRecord } from "../../src/relay/request-record";
import { readModel } from "../../src/upstream/models/model";

export const endpoints = {
  chat: "/chat/completions",
  responses: "/responses",
  messages: "/v1/messages",
} as const satisfies Record<Dialect, string>;

const prompts: Record<Dialect, object> = {
  chat: { messages: [{ role: "user", content: "Hi" }], stream_options: { include_usage: true } },
  responses: { input: "Hi", store: false },
  messages: { messages: [{ role: "user", content: "Hi" }], max_tokens: 500 },
};

export interface PassedOn {
  push(chunk: Uint8Array): void;
  keepAlive(): void;
  end(): void;
  /** What the client got. */
  bytes(): Buffer;
  fixups: string[];
  /** What the record got, without the deltas, of which it keeps nothing. */
  events: ReplyEvent[];
}

export function passOn(dialect: Dialect, model: string, more: object = {}): PassedOn {
  const facts = readModel({
    id: model,
    vendor: "OpenAI",
    supported_endpoints: [endpoints[dialect]],
    capabilities: { type: "chat", limits: {}, supports: { streaming: true } },
  })!;
  const body = { model, stream: true, ...prompts[dialect], ...more };
  const text = JSON.stringify(body);
  const result = { fixups: [] as string[], events: [] as ReplyEvent[] };
  const record = {
    addFixup: (name: string) => void (result.fixups.includes(name) || result.fixups.push(name)),
    conceal: String,
    addEvent: (event: ReplyEvent) => void (event.type === "block-delta" || result.events.push(event)),
    addChanges({ fixups = [] }: { fixups?: string[] }) {
      for (const name of fixups) record.addFixup(name);
    },
  } as unknown as RequestRecord;
  const call = passthrough({
    incoming: { bytes: new TextEncoder().encode(text), body, model, stream: true },
    dialect,
    target: { model: facts, upstreamModel: facts, dialect, endpoint: endpoints[dialect] },
    record,
    options: { webSearch: true },
    clientHeaders: new Headers(),
    conversation: () => undefined,
  });
  const out = gatherFrames();
  // Nobody reads the body: its chunks are pushed.
  const { bytes: source, client } = call.stages({ body: {} as ResponseBody, isStream: true }, out);
  const sent: Uint8Array[] = [];
  const take = () => {
    const bytes = out.take();
    if (bytes) sent.push(bytes);
  };
  return Object.assign(result, {
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
