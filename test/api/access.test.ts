/** The door: access, shapes of errors, request ids, what a socket may send. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { type RunningProxy, startProxy } from "../support/proxy";

const key = "k-alpha-0123456789";
let open: RunningProxy;
let guarded: RunningProxy;

beforeAll(async () => {
  open = await startProxy();
  guarded = await startProxy({
    config: { auth: { apiKeys: [key, "k-beta-0123456789"] } },
    env: { PROXY_API_KEY: "k-old-0123456789" },
  });
});
afterAll(async () => {
  await open[Symbol.asyncDispose]();
  await guarded[Symbol.asyncDispose]();
});

const hello = { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] };
const status = async (response: Promise<Response>) => (await response).status;

/** The answer to exactly these bytes. */
function raw(proxy: RunningProxy, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(Number(new URL(proxy.url).port), "127.0.0.1", () => socket.write(text));
    socket.on("data", (data) => {
      answer += data;
      if (answer.includes("\r\n\r\n")) setTimeout(() => socket.destroy(), 30);
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
    setTimeout(() => socket.destroy(), 1500);
  });
}

describe("client keys", () => {
  test("none is 401 with a hint how to send one", async () => {
    const response = await guarded.post("/v1/chat/completions", hello);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(await response.json()).toMatchObject({
      error: { type: "authentication_error", code: "invalid_api_key", param: null },
    });
  });

  test.each([
    ["same length, wrong", { "x-api-key": "k-alpha-0123456780" }],
    ["cut by one", { "x-api-key": key.slice(0, -1) }],
    ["one more", { "x-api-key": `${key}x` }],
    ["upper case", { "x-api-key": key.toUpperCase() }],
    ["no value", { authorization: "Bearer" }],
    ["another scheme", { authorization: `Basic ${btoa(`:${key}`)}` }],
    ["a made-up scheme", { authorization: `Token ${key}` }],
    ["a cookie", { cookie: `x-api-key=${key}` }],
    ["empty", { "x-api-key": "" }],
    ["spaces", { "x-api-key": "   " }],
    ["the environment's key beside the config's", { "x-api-key": "k-old-0123456789" }],
    ["15 kB", { "x-api-key": "k".repeat(15_000) }],
  ])("%s is 401", async (_name, headers) => {
    expect(await status(guarded.post("/v1/chat/completions", hello, { headers }))).toBe(401);
  });

  test.each([
    ["x-api-key", { "x-api-key": key }],
    ["the other key", { "x-api-key": "k-beta-0123456789" }],
    ["bearer in lower case", { authorization: `bearer ${key}` }],
    ["two spaces", { authorization: `Bearer  ${key}` }],
    ["a wrong header beside", { "x-api-key": "wrong", authorization: `Bearer ${key}` }],
    ["the other way round", { "x-api-key": key, authorization: "Bearer wrong" }],
  ])("%s is accepted", async (_name, headers) => {
    expect(await status(guarded.post("/v1/chat/completions", hello, { headers }))).toBe(200);
  });

  test("two headers are joined and fail, a query is no place for a key", async () => {
    expect(
      await raw(guarded, `GET /v1/models HTTP/1.1\r\nHost: localhost\r\nx-api-key: ${key}\r\nx-api-key: wrong\r\n\r\n`),
    ).toContain(" 401 ");
    expect(await status(fetch(`${guarded.url}/v1/models?key=${key}&api_key=${key}`))).toBe(401);
    expect(guarded.lines.join("")).not.toContain(key);
  });

  test("every model route and the token need one, HEAD as well", async () => {
    for (const path of ["/v1/models", "/v1/models/gpt-4.1", "/token"]) {
      expect(await status(fetch(guarded.url + path))).toBe(401);
      const head = await fetch(guarded.url + path, { method: "HEAD" });
      expect([head.status, await head.text()]).toEqual([401, ""]);
    }
    for (const path of ["/v1/chat/completions", "/v1/embeddings"])
      expect(await status(guarded.post(path, hello))).toBe(401);
  });

  test("front page and health need none", async () => {
    for (const path of ["/", "/health", "/health/live", "/health/ready"]) {
      expect(await status(fetch(guarded.url + path))).toBe(200);
      expect(await status(fetch(guarded.url + path, { method: "HEAD" }))).toBe(200);
    }
  });

  test("a wrong key hides whether the model exists", async () => {
    expect(await status(guarded.post("/v1/chat/completions", { ...hello, model: "nothing" }))).toBe(401);
  });

  test("the environment's key counts when the config has none", async () => {
    await using old = await startProxy({ env: { PROXY_API_KEY: "k-old-0123456789" } });
    expect(await status(fetch(`${old.url}/v1/models`))).toBe(401);
    expect(await status(fetch(`${old.url}/v1/models`, { headers: { "x-api-key": "k-old-0123456789" } }))).toBe(200);
  });

  test("refused calls leave no row", () => {
    expect(guarded.rows().every(({ http_status }) => http_status !== 401)).toBe(true);
  });
});

describe("pages and names, without keys", () => {
  test.each([
    ["XO01", { origin: "https://evil.example" }],
    ["XO02", { origin: "null" }],
    ["XO03", { "sec-fetch-site": "cross-site" }],
    ["XO04", { "sec-fetch-site": "same-site" }],
  ])("%s: a foreign page is refused before anything is read", async (_id, headers) => {
    const before = open.demo.journal.length;
    const response = await open.post("/v1/chat/completions", hello, { headers: headers as Record<string, string> });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ error: { type: "permission_error" } });
    expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    expect(open.demo.journal.length).toBe(before);
  });

  test("the token, usage and models are not for rebound names or scripts", async () => {
    for (const path of ["/token", "/v1/models"]) {
      expect(await raw(open, `GET ${path} HTTP/1.1\r\nHost: evil.example:4141\r\n\r\n`)).toContain(" 403 ");
      expect(await raw(open, `GET ${path} HTTP/1.1\r\nHost: 0.0.0.0:4141\r\n\r\n`)).toContain(" 403 ");
      expect(
        await status(
          fetch(open.url + path, { headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" } }),
        ),
      ).toBe(403);
    }
  });

  test("a rebound page that is its own origin", async () => {
    const body = JSON.stringify(hello);
    const answer = await raw(
      open,
      `POST /v1/chat/completions HTTP/1.1\r\nHost: evil.example:1\r\nOrigin: http://evil.example:1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(answer).toContain(" 403 ");
  });

  test("two origins, one of them good", async () => {
    const port = new URL(open.url).port;
    expect(
      await raw(
        open,
        `GET /v1/models HTTP/1.1\r\nHost: localhost:${port}\r\nOrigin: http://localhost:${port}\r\nOrigin: http://evil.example\r\n\r\n`,
      ),
    ).toContain(" 403 ");
  });

  test("a preflight never reaches a handler", async () => {
    const foreign = await fetch(`${open.url}/v1/chat/completions`, {
      method: "OPTIONS",
      headers: {
        origin: "https://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-private-network": "true",
      },
    });
    expect(foreign.status).toBe(403);
    expect([...foreign.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    const own = await fetch(`${guarded.url}/v1/models`, { method: "OPTIONS" });
    expect([own.status, own.headers.get("allow")]).toEqual([204, "GET, HEAD, OPTIONS"]);
  });

  test("only a listed origin is echoed, exactly, and never for the token", async () => {
    await using listed = await startProxy({ config: { allowedOrigins: ["http://localhost:3000"] } });
    const from = (origin: string, path = "/v1/models") => fetch(listed.url + path, { headers: { origin } });
    const good = await from("http://localhost:3000");
    expect([
      good.status,
      good.headers.get("access-control-allow-origin"),
      good.headers.get("vary"),
      good.headers.get("access-control-allow-credentials"),
    ]).toEqual([200, "http://localhost:3000", "Origin", null]);
    expect((await from("http://localhost:30001")).status).toBe(403);
    expect((await from("http://LOCALHOST:3000")).status).toBe(403);
    const token = await from("http://localhost:3000", "/token");
    expect([token.status, token.headers.get("access-control-allow-origin")]).toEqual([403, null]);
    const preflight = await fetch(`${listed.url}/v1/chat/completions`, {
      method: "OPTIONS",
      headers: { origin: "http://localhost:3000", "access-control-request-headers": "content-type,x-mine" },
    });
    expect([preflight.status, preflight.headers.get("access-control-allow-headers")]).toEqual([
      204,
      "content-type,x-mine",
    ]);
    expect((await fetch(`${open.url}/v1/models`)).headers.get("access-control-allow-origin")).toBeNull();
  });

  test("a call that went through a proxy does not get the token", async () => {
    expect(await status(fetch(`${open.url}/token`))).toBe(200);
    expect(await status(fetch(`${open.url}/token`, { headers: { "x-forwarded-for": "127.0.0.1" } }))).toBe(403);
  });
});

describe("what a router could be misled by is 400 before routing", () => {
  test.each([
    ["HTTP/1.0 without Host", "GET /xxxxxxxxxxxx/token HTTP/1.0\r\n\r\n"],
    ["a space", "GET /xxxxxxxxxxxx/token HTTP/1.1\r\nHost: a b\r\n\r\n"],
    ["a user", "GET /xxxxxxxxxxxx/token HTTP/1.1\r\nHost: evil@localhost\r\n\r\n"],
    ["a fragment", "GET /xxxxxxxxxxxx/token HTTP/1.1\r\nHost: localhost#x\r\n\r\n"],
    ["a path", "GET /xxxxxxxxxxxx/token HTTP/1.1\r\nHost: localhost/x\r\n\r\n"],
    ["empty", "GET /xxxxxxxxxxxx/token HTTP/1.1\r\nHost:\r\n\r\n"],
    ["two", "GET /token HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n"],
  ])("%s", async (_name, text) => {
    const answer = await raw(open, text);
    expect(answer).toContain(" 400 ");
    expect(answer).not.toContain("tid=");
  });

  test("a one-letter host does not shift the path", async () => {
    expect(await raw(open, "GET /abcdefgh/token HTTP/1.1\r\nHost: x\r\n\r\n")).toContain(" 404 ");
  });
});

describe("answers", () => {
  test("carry our request id, which is the row's", async () => {
    const response = await open.post("/v1/chat/completions", hello, { headers: { "x-request-id": "<script>" } });
    const id = response.headers.get("x-request-id")!;
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(open.rows()[0]!.request_id).toBe(id);
  });

  test.each([
    ["/nothing", "GET", 404],
    ["/v1/chat/completions", "GET", 405],
    ["/v1/models", "POST", 405],
    ["/v1/models/", "GET", 404],
    ["/.env", "GET", 404],
    ["/config.json", "GET", 404],
  ])("%s by %s is %i in the shape of the API", async (path, method, wanted) => {
    const response = await fetch(open.url + path, { method });
    expect(response.status).toBe(wanted);
    expect(await response.json()).toMatchObject({ error: { message: expect.any(String), type: expect.any(String) } });
    expect(response.headers.get("x-request-id")).toBeTruthy();
  });

  test("a wrong path of the messages API is refused in its own shape", async () => {
    expect(await (await open.post("/v1/messages/nothing", {})).json()).toMatchObject({
      type: "error",
      error: { type: "not_found_error" },
    });
  });

  test("the front page says DEMO, and health says how we are", async () => {
    expect(await (await fetch(open.url)).json()).toMatchObject({
      name: "dragoman",
      demo: expect.stringContaining("DEMO"),
    });
    expect(await (await fetch(`${open.url}/health`)).json()).toEqual({
      status: "ok",
      version: "0.0.0-test",
      demo: true,
      accounts: ["ready"],
      history: "ok",
    });
  });

  test("the token is the upstream's, never the account's own, and is not cached", async () => {
    const response = await fetch(`${open.url}/token`);
    expect(response.headers.get("cache-control")).toBe("no-store");
    const { token, expires_at } = (await response.json()) as { token: string; expires_at: number };
    expect(token).toStartWith("tid=");
    expect(expires_at).toBeGreaterThan(Date.now() / 1000);
    expect(expires_at).toBeLessThan(Date.now() / 1000 + 7200);
  });

  test("both loopback addresses answer", async () => {
    const port = new URL(open.url).port;
    for (const host of ["127.0.0.1", "[::1]", "localhost"])
      expect(await status(fetch(`http://${host}:${port}/token`))).toBe(200);
  });
});

describe("bodies", () => {
  const send = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
    open.post("/v1/chat/completions", body as string, { headers });

  test.each([
    ["cut off", '{"a":'],
    ["empty", ""],
    ["null", "null"],
    ["an array", "[]"],
    ["a string", '"x"'],
    ["a number", "1"],
    ["too deep", `{"model":"gpt-4.1","messages":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
    ["no model", "{}"],
    ["a model that is no text", '{"model":1}'],
    ["an empty model", '{"model":""}'],
    ["stream as text", '{"model":"gpt-4.1","stream":"true","messages":[]}'],
    ["a bracketed suffix", '{"model":"claude-opus-4.6[1m]","messages":[]}'],
  ])("%s is 400 in words", async (_name, body) => {
    const response = await send(body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { type: "invalid_request_error", message: expect.stringMatching(/\w/) },
    });
  });

  test("invalid UTF-8 is 400", async () => {
    const bytes = Buffer.from(JSON.stringify(hello).replace("Hello", "H\u0001llo").replace("\\u0001", "_"));
    bytes[bytes.indexOf("_")] = 0xff;
    expect((await send(bytes)).status).toBe(400);
  });

  test("no content type and a byte order mark are no reason to fail", async () => {
    const text = JSON.stringify(hello);
    expect((await send(`\uFEFF${text}`)).status).toBe(200);
    // What merely begins like one is no JSON.
    expect((await send(`\uFF01${text}`)).status).toBe(400);
    expect(
      await raw(
        open,
        `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
      ),
    ).toContain(" 200 ");
  });

  test("over 32 MiB is 413, by its length and by its bytes", async () => {
    const large = new Uint8Array(32 * 1024 * 1024 + 1).fill(32);
    expect((await send(large)).status).toBe(413);
    const chunked = await fetch(`${open.url}/v1/chat/completions`, {
      method: "POST",
      body: new Blob([large]).stream(),
    });
    expect(chunked.status).toBe(413);
    expect(await chunked.json()).toMatchObject({ error: { message: expect.stringContaining("32 MiB") } });
  });

  test("a UTF-16 body is 415", async () => {
    expect((await send(JSON.stringify(hello), { "content-type": "application/json; charset=utf-16" })).status).toBe(
      415,
    );
  });

  test("a prototype in the body is a member like any other", async () => {
    const response = await send(
      '{"model":"gpt-5-mini","__proto__":{"stream":true},"constructor":{},"messages":[{"role":"user","content":"Hi"}]}',
    );
    expect(response.headers.get("content-type")).toContain("application/json");
    expect(({} as { stream?: boolean }).stream).toBeUndefined();
  });
});
