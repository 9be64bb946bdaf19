/**
 * The least a proxy can do, each in a process of its own: `bun` and `elysia` hand the body on both ways; `pull` does the
 * same from JavaScript, piece by piece, and `parse` reads the JSON of each event before; `translate` turns a messages
 * request into a chat request and the chat reply into a messages reply, without a look to the side; `guarantees` hands a
 * full reply on with what dragoman promises of it: limits, hang-up, a row and a log line.
 */
import { Database, type SQLQueryBindings } from "bun:sqlite";
import { openSync, writeSync } from "node:fs";
import { Elysia } from "elysia";
import { clientPath, type Dialect, dialects, upstreamPath } from "./dialects";

const [kind, upstream, folder] = process.argv.slice(2);
const pathAt = new Map<string, string>(
  dialects.map((dialect: Dialect) => [clientPath[dialect], upstreamPath[dialect]]),
);
const utf8 = new TextDecoder();
const listening = { hostname: "127.0.0.1", port: 0, idleTimeout: 0, maxRequestBodySize: 1024 ** 3 } as const;

if (kind === "elysia") {
  const app = new Elysia({ serve: listening })
    .post("/*", ({ request }) => pass(request), { parse: "none" })
    .get("/", () => "ok")
    .listen(listening);
  console.log(app.server!.port);
} else {
  const ways = { bun: pass, translate, pull: passPieces(() => ""), parse: passPieces(readEvents) };
  const fetch = kind === "guarantees" ? withGuarantees(openRows()) : ways[kind as keyof typeof ways];
  const server = Bun.serve({
    ...listening,
    fetch: (request) => (request.method === "GET" ? new Response("ok") : fetch(request)),
  });
  console.log(server.port);
}

async function pass(request: Request): Promise<Response> {
  const path = pathAt.get(request.url.slice(request.url.indexOf("/", 8)))!;
  const { body, headers } = await ask(path, await request.bytes(), request.signal);
  return new Response(body, { headers: { "content-type": headers.get("content-type")! } });
}

function ask(path: string, body: string | Uint8Array, signal: AbortSignal): Promise<Response> {
  return fetch(upstream + path, {
    method: "POST",
    body: body as string,
    headers: { "content-type": "application/json" },
    signal,
  });
}

/** Hands a body on piece by piece, when the client reads. @param look Gets each piece, and the text that an earlier one left. */
function passPieces(look: (piece: Uint8Array, held: string) => string) {
  return async (request: Request): Promise<Response> => {
    const path = pathAt.get(request.url.slice(request.url.indexOf("/", 8)))!;
    const { body, headers } = await ask(path, await request.bytes(), request.signal);
    const reader = body!.getReader();
    let held = "";
    const pieces = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        held = look(value, held);
        controller.enqueue(value);
      },
      cancel: () => reader.cancel(),
    });
    return new Response(pieces, { headers: { "content-type": headers.get("content-type")! } });
  };
}

/** @returns The beginning of an event that goes on in the next piece. */
function readEvents(piece: Uint8Array, held: string): string {
  const frames = (held + utf8.decode(piece)).split("\n\n");
  const rest = frames.pop()!;
  for (const frame of frames) {
    const data = frame.slice(frame.indexOf("data: ") + 6);
    if (data !== "[DONE]") JSON.parse(data);
  }
  return rest;
}

interface Chunk {
  choices: { delta: { content?: string }; finish_reason: string | null }[];
  usage?: Usage | null;
}

interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
}

async function translate(request: Request): Promise<Response> {
  const { model, messages, max_tokens, stream } = (await request.json()) as Record<string, unknown>;
  const asked = JSON.stringify({ model, messages, max_tokens, stream });
  const answer = await ask("/chat/completions", asked, request.signal);
  const message = { id: "msg_1", type: "message", role: "assistant", model, content: [], usage: {} };
  if (!stream) {
    const { choices, usage } = (await answer.json()) as { choices: { message: { content: string } }[]; usage: Usage };
    const content = [{ type: "text", text: choices[0]!.message.content }];
    const counted = { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens };
    return Response.json({ ...message, content, stop_reason: "end_turn", usage: counted });
  }
  const reader = answer.body!.getReader();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const write = (event: { type: string; [key: string]: unknown }) =>
    `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
  let held = "";
  let output_tokens = 0;
  const head =
    write({ type: "message_start", message }) +
    write({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(head)),
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      let out = "";
      const frames = (held + decoder.decode(value, { stream: true })).split("\n\n");
      held = frames.pop()!;
      for (const frame of frames) {
        const data = frame.slice(6);
        if (data === "[DONE]") {
          out += write({ type: "content_block_stop", index: 0 });
          out += write({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens } });
          out += write({ type: "message_stop" });
          continue;
        }
        const { choices, usage } = JSON.parse(data) as Chunk;
        if (usage) output_tokens = usage.completion_tokens;
        const text = choices[0]?.delta.content;
        if (text) out += write({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
      }
      controller.enqueue(encoder.encode(out));
    },
    cancel: () => reader.cancel(),
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

type Row = SQLQueryBindings[];
type KeepRow = (row: Row, line: string) => void;

/** Rows and lines are written together, 50 ms after the first of them. */
function openRows(): KeepRow {
  const database = new Database(`${folder}/rows.sqlite`);
  for (const pragma of ["journal_mode = WAL", "synchronous = NORMAL"]) database.run(`PRAGMA ${pragma}`);
  const columns = "started, duration, path, asked, served, account, status, stop, input, output, cached, client";
  database.run(`CREATE TABLE requests (id TEXT UNIQUE, ${columns})`);
  database.run("CREATE INDEX requests_started ON requests (started)");
  const insert = database.query(`INSERT INTO requests VALUES (?, ${columns.replace(/\w+/g, "?")})`);
  const writeAll = database.transaction((some: Row[]) => some.map((row) => insert.run(...row)));
  const log = openSync(`${folder}/lines.txt`, "a");
  let rows: Row[] = [];
  let lines = "";
  const write = () => {
    writeAll.immediate(rows);
    writeSync(log, lines);
    [rows, lines] = [[], ""];
  };
  return (row, line) => {
    if (rows.push(row) === 1) setTimeout(write, 50);
    lines += line;
  };
}

const sameHeaders = {
  ...{ authorization: "Bearer tid=bench", "user-agent": "bench/1", "x-initiator": "user" },
  ...{ accept: "*/*", "accept-encoding": "identity", "content-type": "application/json" },
};

function withGuarantees(keep: KeepRow) {
  return async (request: Request): Promise<Response> => {
    const [id, started, call] = [crypto.randomUUID(), Date.now(), new AbortController()];
    const path = request.url.slice(request.url.indexOf("/", 8));
    const end = () => call.abort();
    const limit = setTimeout(end, 600_000);
    request.signal.addEventListener("abort", end);
    try {
      const body = await request.text();
      const { model } = JSON.parse(body);
      const sent = { method: "POST", body, headers: { ...sameHeaders, "x-request-id": id }, signal: call.signal };
      const response = await fetch(upstream + pathAt.get(path)!, sent);
      const { status, headers } = response;
      const reply = await response.text();
      const { model: served, usage, choices, stop_reason } = JSON.parse(reply);
      const stop = choices?.[0].finish_reason ?? stop_reason;
      const input = usage.prompt_tokens ?? usage.input_tokens;
      const output = usage.completion_tokens ?? usage.output_tokens;
      const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.cache_read_input_tokens;
      const duration = Date.now() - started;
      const row = [id, started, duration, path, model, served, "bench", status, stop, input, output, cached];
      const line = `${new Date(started).toISOString()} info ${model} ${status} ${input} + ${output}, ${duration} ms\n`;
      keep([...row, request.headers.get("user-agent")], line);
      return new Response(reply, { headers: { "content-type": headers.get("content-type")!, "x-request-id": id } });
    } finally {
      clearTimeout(limit);
      request.signal.removeEventListener("abort", end);
    }
  };
}
