/**
 * Rows: what an upstream or a client sends too much of: it is given up at its limit, and weighs little on a process of
 * its own.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as zlib from "node:zlib";
import { type Github, scriptedGithub } from "../../cli/bench";
import { type Command, run } from "../../support/command";
import { chatChunk, eventStream } from "../../support/event-stream";
import { forgetPeak, memoryOf } from "../../support/sandbox";

let github: Github;
let command: Command;
let url: string;
let pid: number;
beforeAll(async () => {
  github = scriptedGithub();
  github.signIn("octo-demo");
  command = run(["start", "--json", "--port", "0"], { env: github.env });
  ({ url, pid } = await command.ready());
  for (const client of clients) await (await ask(client, true)).text();
});
afterAll(async () => {
  await command[Symbol.asyncDispose]();
  await github[Symbol.asyncDispose]();
});

const messages = [{ role: "user", content: "Hello" }];
const clients = [
  { path: "/v1/chat/completions", endpoint: "/chat/completions", body: { model: "gpt-5-mini", messages } },
  { path: "/v1/messages", endpoint: "/v1/messages", body: { model: "claude-sonnet-4.6", max_tokens: 99, messages } },
  // Through the hub.
  { path: "/v1/messages", endpoint: "/responses", body: { model: "gpt-5.3-codex", max_tokens: 99, messages } },
] as const;
type Client = (typeof clients)[number];

const bytes = (text: string) => new TextEncoder().encode(text);
const mebibyte = 1024 * 1024;

function ask({ path, body }: Client, stream: boolean): Promise<Response> {
  return fetch(url + path, {
    method: "POST",
    body: JSON.stringify({ ...body, stream }),
    headers: { "content-type": "application/json" },
  });
}

/** The piece again and again, with how much of it was taken. */
function again(piece: Uint8Array, times: number, last = "") {
  let left = times;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (left-- > 0) controller.enqueue(piece);
      else {
        if (last) controller.enqueue(bytes(last));
        controller.close();
      }
      if (left % 8 === 0) await Bun.sleep(0);
    },
  });
  return { body, taken: () => (times - Math.max(left, 0)) * piece.length };
}

/** MiB by which the process grew at most while this was done. */
async function weightOf(work: () => Promise<unknown>): Promise<number> {
  const before = memoryOf(pid);
  return (await peakOf(work)) - before;
}

/** MiB that the process had at most while this was done. */
async function peakOf(work: () => Promise<unknown>): Promise<number> {
  forgetPeak(pid);
  await work();
  return memoryOf(pid, "VmHWM");
}

describe.each(clients)("$path from $endpoint", (client) => {
  test.each([
    ["a line of 1 GB without an end", bytes("x".repeat(mebibyte))],
    ["data lines of 1 GB without a blank one", bytes("data: x\n".repeat(mebibyte / 8))],
    ["data lines of 1 GB that are empty and end in CRLF", bytes("data:\r\n".repeat(mebibyte / 7))],
    ["data lines of 1 GB that are empty and end in carriage returns", bytes("data:\r".repeat(mebibyte / 6))],
  ])("%s is given up at 16 MiB", async (_name, piece) => {
    const { body, taken } = again(piece, 1024);
    github.demo.intercept(client.endpoint, () => eventStream(body));
    const weight = await weightOf(async () => {
      const response = await ask(client, true);
      expect([response.status, await response.text()]).toEqual([502, expect.stringContaining("16 MiB")]);
    });
    // The frame itself, what it was gathered in, and what came before anybody tidied up.
    expect(weight).toBeLessThan(96);
    expect(taken()).toBeLessThan(96 * mebibyte);
  });

  test.each([false, true])("200 KB that unfold to 200 MB are given up (stream: %p)", async (stream) => {
    const bomb = Bun.gzipSync(new Uint8Array(200 * mebibyte));
    expect(bomb.length).toBeLessThan(250_000);
    const headers = { "content-type": stream ? "text/event-stream" : "application/json", "content-encoding": "gzip" };
    github.demo.intercept(client.endpoint, () => new Response(bomb, { headers }));
    const weight = await weightOf(async () => {
      const response = await ask(client, stream);
      expect([response.status, await response.text()]).toEqual([502, expect.stringMatching(/over (?:16|32) MiB/)]);
    });
    expect(weight).toBeLessThan(96);
  });

  test.each([400, 500])("of an error of 50 MB with status %i the beginning is read", async (status) => {
    // The least of three: what the process has not tidied up since earlier tests counts there, too.
    let weight = Number.POSITIVE_INFINITY;
    for (let turn = 0; turn < 3 && weight >= 45; turn++) {
      const { body, taken } = again(bytes("A".repeat(mebibyte)), 50);
      github.demo.intercept(client.endpoint, () => new Response(body, { status }));
      const added = await weightOf(async () => {
        const response = await ask(client, true);
        expect(response.status).toBe(status);
        expect((await response.text()).length).toBeLessThan(64 * 1024 + 512);
      });
      weight = Math.min(weight, added);
      expect(taken()).toBeLessThan(25 * mebibyte);
    }
    expect(weight).toBeLessThan(45);
  });
});

test.each([
  ["gzip", zlib.gzipSync],
  ["deflate", zlib.deflateSync],
  [
    "br",
    (plain: Uint8Array) => zlib.brotliCompressSync(plain, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
  ],
  ["zstd", zlib.zstdCompressSync],
] as const)(
  "a request in %s that would unfold to 400 MB is 413, and never unfolds",
  async (encoding, compress) => {
    const bomb = compress(new Uint8Array(400 * mebibyte));
    expect(bomb.length).toBeLessThan(mebibyte);
    const weight = await weightOf(async () => {
      for (let turn = 0; turn < 3; turn++) {
        const headers = { "content-encoding": encoding };
        const response = await fetch(url + clients[0].path, { method: "POST", headers, body: new Uint8Array(bomb) });
        expect(response.status).toBe(413);
      }
    });
    expect(weight).toBeLessThan(128);
  },
  30_000,
);

test("five million events flow, and memory is what it was after the first of them", async () => {
  const [client] = clients;
  const flows = async (event: string, count: number) => {
    const { body } = again(bytes(event.repeat(5000)), count / 5000, "data: [DONE]\n\n");
    github.demo.intercept(client.endpoint, () => eventStream(body));
    const response = await ask(client, true);
    let size = 0;
    for await (const piece of response.body!) size += piece.length;
    expect(size).toBeGreaterThan(count * event.length);
  };
  const words = chatChunk({ delta: { content: "ab" }, finish_reason: null });
  await flows('data: {"choices":[]}\n\n', 500_000);
  const first = await peakOf(() => flows(words, 500_000));
  expect(await weightOf(() => flows('data: {"choices":[]}\n\n', 500_000))).toBeLessThan(96);
  // Compared with a peak, because what is in use between two flows depends on when the memory was tidied up.
  expect(await peakOf(() => flows(words, 3_500_000))).toBeLessThan(first + 96);
});

test("a million calls in one reply end in an error, and weigh no more than a reply", async () => {
  const client = {
    path: "/v1/messages",
    endpoint: "/chat/completions",
    body: { ...clients[1].body, model: "gemini-3.1-pro-preview" },
  };
  let index = 0;
  const calls = () =>
    Array.from({ length: 1000 }, () => {
      const call = { index: index++, id: `call_${index}`, type: "function", function: { name: "f", arguments: "{}" } };
      return chatChunk({ delta: { tool_calls: [call] }, finish_reason: null });
    }).join("");
  let left = 1000;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (left-- > 0) controller.enqueue(bytes(calls()));
      else controller.close();
      await Bun.sleep(0);
    },
  });
  github.demo.intercept(client.endpoint, () => eventStream(body));
  const weight = await weightOf(async () => {
    const response = await ask(client as unknown as Client, true);
    let last = "";
    for await (const piece of response.body!) last = (last + Buffer.from(piece).toString()).slice(-2000);
    expect(last).toContain('"type":"error"');
    expect(last).not.toContain("message_stop");
  });
  expect(weight).toBeLessThan(96);
  expect(index).toBeLessThan(1_000_000);
});

test("bodies over 32 MiB are 413 in the words of Messages, the connection is closed, and nothing of them stays", async () => {
  const large = new Uint8Array(32 * mebibyte + 1).fill(32);
  const weight = await weightOf(async () => {
    for (let turn = 0; turn < 3; turn++)
      for (const body of [large, new Blob([large]).stream()]) {
        const response = await fetch(`${url}/v1/messages`, { method: "POST", body });
        expect([response.status, response.headers.get("connection")]).toEqual([413, "close"]);
        expect(await response.json()).toMatchObject({ type: "error", error: { type: "request_too_large" } });
      }
  });
  expect(weight).toBeLessThan(160);
  const before = memoryOf(pid);
  for (let turn = 0; turn < 3; turn++) await (await ask(clients[0], true)).text();
  expect(memoryOf(pid)).toBeLessThan(before + 40);
});
