/** Rows: bodies that are refused: each in its route's own words, and nothing is left of it; `fixtures/books/refused.txt` has those that are short. */
import { afterAll, expect, test } from "bun:test";
import { testBooks } from "../support/books";
import { startProxy } from "../support/proxy";
import { sendRaw } from "../support/raw-socket";
import { attack, errorOf } from "./assert-healthy";

const open = await startProxy();
// Lists and quotas that are asked for once are there from now on.
for (const path of ["/v1/models", "/usage"]) await fetch(open.url + path);
afterAll(() => open[Symbol.asyncDispose]());

testBooks("refused");

const messages = [{ role: "user", content: "Hello" }];
const bodies: Record<string, object> = {
  "/v1/chat/completions": { model: "gpt-5-mini", messages },
  "/v1/responses": { model: "gpt-5.3-codex", input: "Hello" },
  "/v1/messages": { model: "claude-sonnet-4.6", max_tokens: 9, messages },
  "/v1/messages/count_tokens": { model: "claude-sonnet-4.6", messages },
  "/v1/embeddings": { model: "text-embedding-3-small", input: "Hello" },
};
const posts = Object.keys(bodies);
/** Whether an exchange of this path that was let in is a row, also when it is refused. */
const rowsOf = (path: string) => (path.endsWith("count_tokens") ? 0 : 1);
const post = (body: unknown, headers: Record<string, string> = {}, rows = 0) => ({
  method: "POST",
  body: typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
  headers: { "content-type": "application/json", ...headers },
  rows,
});

test.each(posts)("%s takes UTF-8 alone, and only what is compressed as it says", async (path) => {
  const rows = rowsOf(path);
  const text = JSON.stringify(bodies[path]);
  const broken = Buffer.from(text.replace("Hello", "H_llo"));
  broken[broken.indexOf("_")] = 0xff;
  const given: [number, string | Uint8Array, Record<string, string>][] = [
    [400, broken, {}],
    [415, Bun.gzipSync(text), { "content-encoding": "compress" }],
    [400, text, { "content-encoding": "br" }],
    [415, text, { "content-type": "application/json; charset=utf-16" }],
    [415, Buffer.from(text, "utf16le"), { "content-type": 'application/json; charset="UTF-16LE"' }],
  ];
  for (const [status, body, headers] of given) {
    const answer = await attack(open, path, post(body, headers, rows));
    expect([answer.status, errorOf(path, answer).message.length > 0]).toEqual([status, true]);
  }
});

test.each([100_000, 1_000_000])("%i arrays within each other are refused as too deep", async (depth) => {
  for (const path of posts) {
    const body = JSON.stringify({ ...bodies[path], input: 7, messages: 7 }).replaceAll(
      ":7",
      `:${"[".repeat(depth)}${"]".repeat(depth)}`,
    );
    const answer = await attack(open, path, post(body, {}, rowsOf(path)));
    expect(errorOf(path, answer)).toMatchObject({
      type: "invalid_request_error",
      message: expect.stringContaining("too deep"),
    });
    expect(answer.status).toBe(400);
  }
});

test.each([
  ["512 characters", "m".repeat(512)],
  ["a path", "../../x"],
  ["lines of a header", "a\r\nX-Injected: y"],
  ["a prototype", "__proto__"],
  ["markup", "<script>alert(1)</script>"],
  ["NUL", "gpt-5-mini\0"],
])("a model that is %s is 404 in words, in each dialect", async (_name, model) => {
  // A name that no list has is looked up in one more list a minute, before the rows that count what is sent.
  await open.post(posts[0]!, { ...bodies[posts[0]!], model: "no-such-model" });
  for (const path of posts.filter((each) => !each.endsWith("count_tokens"))) {
    const answer = await attack(open, path, post({ ...bodies[path], model }, {}, 1));
    const { type, code, message } = errorOf(path, answer);
    expect([answer.status, code ?? type]).toEqual([
      404,
      path === "/v1/messages" ? "not_found_error" : "model_not_found",
    ]);
    expect(message.length).toBeLessThan(2100);
    expect(answer.headers.get("x-injected")).toBeNull();
    expect(open.rows()[0]!.http_status).toBe(404);
    // One line each, and nothing in it that a terminal would obey.
    expect(open.lines.at(-1)).toMatch(/^[^\u0000-\u001f\u007f]*\n$/);
  }
});

/** Chat bodies that are served, or are refused before they are a request. */
const chat = (body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${open.url}/v1/chat/completions`, { method: "POST", body: body as string, headers });

test("a byte order mark and a missing content type are no reason to refuse a body", async () => {
  const text = JSON.stringify(bodies["/v1/chat/completions"]);
  expect((await chat(`\uFEFF${text}`)).status).toBe(200);
  // What merely begins like one is no JSON.
  expect((await chat(`\uFF01${text}`)).status).toBe(400);
  const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${text.length}\r\n\r\n`;
  expect((await sendRaw(open.url, head + text)).statuses).toEqual([200]);
});

test("a body over 32 MiB is 413, by its length and by its bytes", async () => {
  const large = new Uint8Array(32 * 1024 * 1024 + 1).fill(32);
  expect((await chat(large)).status).toBe(413);
  const chunked = await chat(new Blob([large]).stream());
  expect(chunked.status).toBe(413);
  expect(await chunked.json()).toMatchObject({ error: { message: expect.stringContaining("32 MiB") } });
});

test("a prototype in the body is a member like any other", async () => {
  const answer = await chat(
    '{"model":"gpt-5-mini","__proto__":{"stream":true},"constructor":{},"messages":[{"role":"user","content":"Hi"}]}',
  );
  expect(answer.headers.get("content-type")).toContain("application/json");
  expect(({} as { stream?: boolean }).stream).toBeUndefined();
});
