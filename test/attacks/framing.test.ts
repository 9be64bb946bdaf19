/** Scenario: requests as no client should write them: framing, pipelines, headers, other protocols on the port. */
import { afterAll, expect, test } from "bun:test";
import { clientEndpoints } from "../../src/routes/clients";
import { startProxy } from "../support/proxy";
import { sendRaw, untilClosed } from "../support/raw-socket";

const key = "k-alpha-0123456789";
const open = await startProxy();
const guarded = await startProxy({ config: { auth: { apiKeys: [key] } } });
afterAll(async () => {
  await open[Symbol.asyncDispose]();
  await guarded[Symbol.asyncDispose]();
});

const host = "Host: localhost\r\n";
const post = (headers: string, body: string) => `POST /v1/chat/completions HTTP/1.1\r\n${host}${headers}\r\n${body}`;
const get = (headers: string, path = "/health") => `GET ${path} HTTP/1.1\r\n${host}${headers}\r\n`;
const smuggled = get("");

test.each([
  ["a length and chunks", post("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", `0\r\n\r\n${smuggled}`)],
  ["two lengths", post("Content-Length: 2\r\nContent-Length: 3\r\n", `{}${smuggled}`)],
  ["+5", post("Content-Length: +5\r\n", `{}${smuggled}`)],
  ["-5", post("Content-Length: -5\r\n", `{}${smuggled}`)],
  ["20 digits", post(`Content-Length: ${"9".repeat(20)}\r\n`, `{}${smuggled}`)],
  ["another encoding", post("Transfer-Encoding: xchunked\r\n", `0\r\n\r\n${smuggled}`)],
  ["two encodings", post("Transfer-Encoding: chunked, identity\r\n", `0\r\n\r\n${smuggled}`)],
  ["a tab before", post("Transfer-Encoding: \x0bchunked\r\n", `0\r\n\r\n${smuggled}`)],
  ["a space before the colon", post("Content-Length : 2\r\n", `{}${smuggled}`)],
  ["a folded header", get("X-One: b\r\n c\r\n") + smuggled],
  ["a NUL", get("X-One: b\0c\r\n") + smuggled],
])("a request with %s for its length is refused, and what follows it is not run", async (_name, bytes) => {
  const { statuses, closed } = await sendRaw(open.url, bytes, untilClosed);
  expect([statuses, closed]).toEqual([[400], true]);
  expect(open.demo.journal).toEqual([]);
});

test.each([
  ["a header of 20 KB", get(`X-One: ${"a".repeat(20_000)}\r\n`)],
  ["300 headers", get(Array.from({ length: 300 }, (_, index) => `X-${index}: a\r\n`).join(""))],
  ["an address of 20 KB", get("", `/${"a".repeat(20_000)}`)],
])("%s is 431", async (_name, bytes) => {
  const { statuses, closed } = await sendRaw(open.url, bytes, untilClosed);
  expect([statuses, closed]).toEqual([[431], true]);
});

test.each([
  ["TRACE", `TRACE / HTTP/1.1\r\n${host}\r\n`, [405]],
  ["PUT with a body", `PUT / HTTP/1.1\r\n${host}Content-Length: 2\r\n\r\n{}`, [405]],
  ["CONNECT to another host", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", [400]],
  ["CONNECT to ourselves", `CONNECT localhost:80 HTTP/1.1\r\n${host}\r\n`, [400]],
  // A method nobody knows is not even read.
  ["FOO", `FOO / HTTP/1.1\r\n${host}\r\n`, []],
])("%s is refused and closed, and what follows it is not run", async (_name, bytes, wanted) => {
  const { statuses, closed } = await sendRaw(open.url, bytes + smuggled, { quiet: 500 });
  expect([statuses, closed]).toEqual([wanted, true]);
});

test("a key that the connection header calls its own is still a key", async () => {
  const { statuses } = await sendRaw(guarded.url, get(`Connection: x-api-key\r\nx-api-key: ${key}\r\n`, "/v1/models"));
  expect(statuses).toEqual([200]);
});

test("30 MB behind a wrong key are not read", async () => {
  const head = `POST /v1/messages HTTP/1.1\r\n${host}x-api-key: wrong\r\nExpect: 100-continue\r\n`;
  // None of the body is sent, whatever the answer is.
  const { statuses } = await sendRaw(guarded.url, `${head}Content-Length: ${30 * 1024 * 1024}\r\n\r\n`);
  expect(statuses.at(-1)).toBe(401);
});

test("what a browser would add changes no answer", async () => {
  const headers = { range: "bytes=0-1", "if-none-match": "*", accept: "text/html" };
  const response = await fetch(`${open.url}/v1/models`, { headers });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, expect.stringContaining("json")]);
  expect(await response.json()).toMatchObject({ object: "list" });
});

test.each([
  ["a TLS greeting", Buffer.from("16030100c8010000c40303", "hex")],
  ["an HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
])("a connection that begins with %s is answered with 400 and closed", async (_name, bytes) => {
  const lines = open.lines.length;
  const { statuses, closed } = await sendRaw(open.url, bytes, untilClosed);
  expect([statuses, closed]).toEqual([[400], true]);
  expect(open.lines.length - lines).toBeLessThan(2);
});

test("a key with a byte no key has is 401, one with NUL is 400", async () => {
  const head = Buffer.from(`GET /v1/models HTTP/1.1\r\n${host}x-api-key: k`);
  const high = await sendRaw(guarded.url, Buffer.concat([head, Buffer.from([0xff]), Buffer.from("\r\n\r\n")]));
  expect(high.statuses).toEqual([401]);
  expect((await sendRaw(guarded.url, get("x-api-key: k\0\r\n", "/v1/models"))).statuses).toEqual([400]);
});

test("a route becomes a WebSocket only for a caller with the key, and never for a page of another origin", async () => {
  const upgrade =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  expect((await sendRaw(guarded.url, get(upgrade, "/v1/responses"))).statuses).toEqual([401]);
  expect((await sendRaw(guarded.url, get(`${upgrade}x-api-key: wrong\r\n`, "/v1/responses"))).statuses).toEqual([401]);
  expect((await sendRaw(guarded.url, get(`${upgrade}x-api-key: ${key}\r\n`, "/v1/responses"))).statuses).toEqual([101]);
  expect((await sendRaw(open.url, get(upgrade, "/v1/responses"))).statuses).toEqual([101]);
  const paths = [...clientEndpoints().map(({ path }) => path), "/admin", "/api/admin/live", "/api/admin/requests"];
  for (const path of paths) {
    const { statuses } = await sendRaw(open.url, get(`${upgrade}Origin: https://evil.example\r\n`, path), {
      quiet: 20,
    });
    expect([path, statuses.includes(101)]).toEqual([path, false]);
  }
});

test("a key that is taken away ends no stream it began, and no more", async () => {
  await using proxy = await startProxy({
    config: { auth: { apiKeys: [key, "k-beta-0123456789"] } },
    demo: { pace: 20 },
  });
  const send = (long: number) =>
    proxy.post(
      "/v1/chat/completions",
      { model: "gpt-5-mini", stream: true, messages: [{ role: "user", content: `[demo: long ${long}] Hello` }] },
      { headers: { "x-api-key": key } },
    );
  const stream = await send(20);
  const changed = await proxy.post("/api/admin/config", { auth: { apiKeys: ["k-beta-0123456789"] } });
  expect(changed.status).toBe(200);
  expect((await send(1)).status).toBe(401);
  expect(await stream.text()).toEndWith("data: [DONE]\n\n");
});
