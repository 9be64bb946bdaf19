/**
 * How long real clients stay at a stream in which nothing but keep-alives comes: `bun test/clients/held.ts [seconds] [client …]`.
 * The table in README.md beside this file was measured so. Needs npm and its registry; not part of the tests.
 */

import type { models } from "../../src/deploy/documents/client-settings";
import { type ClientCodec, codecs } from "../../src/dialects/codecs";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { commentFrame, gatherFrames, jsonFrame, type SseFrame } from "../../src/lib/net/stream/sse";
import { eventStream } from "../support/event-stream";
import { familiesOf, type Tool, tools } from "./clients";
import { type Installed, install } from "./install";
import { meet } from "./meet";

const sentence = "The otter is back.";
const reply: ReplyEvent[] = [
  { type: "start", id: "held", model: "otter" },
  { type: "block-start", block: { kind: "text" } },
  { type: "block-delta", text: sentence },
  { type: "block-end" },
  { type: "usage", usage: { input: 10, output: 5 } },
  { type: "finish", reason: "stop" },
];

/** What fills the silence: what the codec writes, a comment, or an event that no API documents. */
const fillers: Record<string, (() => SseFrame) | undefined> = {
  codec: undefined,
  comment: () => commentFrame("waiting"),
  event: () => jsonFrame({ type: "keepalive" }, "keepalive"),
};

const codecAt = (path: string): ClientCodec =>
  path.includes("messages") ? codecs.messages : path.includes("responses") ? codecs.responses : codecs.chat;

function held(path: string, body: JsonObject, seconds: number, filler: (() => SseFrame) | undefined): Response {
  const codec = codecAt(path);
  const out = gatherFrames();
  const writer = codec.encodeStream(codec.decodeRequest(body))(out);
  let timer: Timer;
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      const endsAt = performance.now() + seconds * 1000;
      const tick = () => {
        if (performance.now() > endsAt) {
          for (const event of reply) writer.push(event);
          writer.end();
          controller.enqueue(out.take()!);
          controller.close();
          return clearInterval(timer);
        }
        if (filler) out.push(filler());
        else writer.keepAlive();
        const piece = out.take();
        if (piece) controller.enqueue(piece);
      };
      timer = setInterval(tick, 15_000);
      tick();
    },
    cancel: () => clearInterval(timer),
  });
  return eventStream(stream);
}

async function hold(tool: Tool, model: keyof typeof models, seconds: number, filler: string, installed: Installed) {
  let requests = 0;
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      if (request.headers.get("upgrade")) return new Response(null, { status: 426 });
      const { pathname } = new URL(request.url);
      if (request.method !== "POST" || pathname.endsWith("count_tokens")) return new Response(null, { status: 404 });
      requests++;
      return held(pathname, (await request.json()) as JsonObject, seconds, fillers[filler]);
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  const timeoutMs = (seconds + 60) * 1000;
  const seen = await meet({ tool, model, url, words: new RegExp(sentence), timeoutMs }, installed);
  return { requests, ...seen };
}

const [time, ...wanted] = process.argv.slice(2);
const seconds = Number(time ?? 330);
const chosen = Object.entries(tools).flatMap(([name, tool]) =>
  wanted.length === 0 || wanted.includes(name) ? [tool] : [],
);
const installed = await install(chosen.map(({ npm }) => npm));
const cases = chosen.flatMap((tool) =>
  familiesOf(tool).flatMap((model) =>
    (tool.id === "codex" ? ["comment", "event"] : ["codec"]).map((filler) => ({ tool, model, filler })),
  ),
);
await Promise.all(
  cases.map(async ({ tool, model, filler }) => {
    const { requests, shown, ended, said } = await hold(tool, model, seconds, filler, installed);
    console.log(
      [
        `${tool.id} ${await installed.version(tool.npm)}`,
        `${model}, ${filler}, ${seconds} s`,
        `${requests} requests`,
        shown === undefined ? `never shown: ${JSON.stringify(said.slice(-300))}` : `shown ${shown.toFixed(0)} s`,
        `ended ${ended?.toFixed(0) ?? "not within"}`,
      ].join(" | "),
    );
  }),
);
