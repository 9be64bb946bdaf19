/** Requests that are refused at the door or at the desk: each in its route's own words, and nothing is left of it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { routes } from "../../src/api/routes";
import { type RunningProxy, startProxy } from "../support/proxy";
import { sendRaw } from "../support/raw-socket";
import { unloadedNow } from "../support/unloaded";
import { attack, errorOf } from "./assert-healthy";

const key = "k-alpha-0123456789";
const token = "t-admin-0123456789";
const prov = { type: "anthropic", baseUrl: "http://127.0.0.1:9", apiKey: "pk-prov-0123456789" };
let open: RunningProxy;
let guarded: RunningProxy;
beforeAll(async () => {
  open = await startProxy({ config: { providers: { prov } } });
  guarded = await startProxy({
    config: { auth: { apiKeys: [key] }, providers: { prov } },
    env: { ADMIN_TOKEN: token },
  });
  // Lists and quotas that are asked for once are there from now on.
  for (const proxy of [open, guarded])
    for (const path of ["/v1/models", "/usage"]) await fetch(proxy.url + path, { headers: { "x-api-key": key } });
});
afterAll(async () => {
  for (const each of [open, guarded]) await each[Symbol.asyncDispose]();
});

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

describe("without a right key", () => {
  const every = [
    ["GET", "/v1/models"],
    ["POST", "/v1/embeddings"],
    ["POST", "/v1/responses"],
    ["POST", "/v1/responses/compact"],
    ["POST", "/v1/alpha/search"],
    ["POST", "/v1/chat/completions"],
    ["POST", "/v1/messages"],
    ["POST", "/v1/messages/count_tokens"],
    ["GET", "/usage"],
    ["GET", "/usage/line"],
    ["GET", "/usage/0"],
    ["GET", "/token"],
    ["GET", "/prov/v1/models"],
    ["POST", "/prov/v1/messages"],
    ["POST", "/prov/v1/messages/count_tokens"],
    ["GET", "/v1beta/models"],
    ["GET", "/v1beta/models/gemini-3.1-pro-preview"],
    ["POST", "/v1beta/models/gemini-3.1-pro-preview:generateContent"],
    ["POST", "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent"],
    ["POST", "/v1beta/models/gemini-3.1-pro-preview:countTokens"],
    ["POST", "/v1beta/models/gemini-3.1-pro-preview:embedContent"],
    ["POST", "/v1beta/models/gemini-3.1-pro-preview:batchEmbedContents"],
  ] as const;

  test.each(every)("%s %s is 401 in its own shape, with and without one", async (method, path) => {
    for (const headers of [{}, { "x-api-key": "k-alpha-0123456780" }, { authorization: `Bearer ${key}x` }] as Record<
      string,
      string
    >[]) {
      const answer = await attack(
        guarded,
        path,
        method === "POST" ? post(bodies[path] ?? {}, headers) : { method, headers },
      );
      expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
      const { type, code, message } = errorOf(path, answer);
      expect([type, code ?? "invalid_api_key"]).toEqual(["authentication_error", "invalid_api_key"]);
      expect(message).toContain("client key");
    }
  });

  test("no route is forgotten above", () => {
    const tried = new Set(
      every.map(
        ([method, path]) =>
          `${method} ${path.replace("prov", ":provider").replace("gemini-3.1-pro-preview", ":model")}`,
      ),
    );
    const guardedRoutes = routes.filter(({ path }) => !/^\/(?:health(?:\/|$)|metrics$|$)/.test(path));
    const known = new Set(["GET /v1/models/:id", "GET /usage/:accountIndex", "GET /v1/responses"]);
    expect(
      guardedRoutes
        .map(({ method, path }) => `${method} ${path}`)
        .filter((each) => !tried.has(each) && !known.has(each)),
    ).toEqual([]);
  });

  test.each(["/v1/models", "/v1/models/gpt-5-mini", "/token", "/usage", "/prov/v1/models"])(
    "HEAD %s is 401 without a word",
    async (path) => {
      const { status, text } = await attack(guarded, path, { method: "HEAD" });
      expect([status, text]).toEqual([401, ""]);
    },
  );

  test.each([`x-api-key: ${key}\r\nx-api-key: wrong`, `x-api-key: wrong\r\nx-api-key: ${key}`])(
    "two headers, one right: %j",
    async (headers) => {
      const { statuses } = await sendRaw(
        guarded.url,
        `GET /v1/models HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n`,
        {
          quiet: 30,
        },
      );
      expect(statuses).toEqual([401]);
    },
  );

  test("a key in the query or in a cookie is none, and is in no line", async () => {
    for (const path of posts)
      for (const [query, headers] of [
        [`?key=${key}`, {}],
        [`?api_key=${key}&x-api-key=${key}`, {}],
        ["", { cookie: `x-api-key=${key}; authorization=Bearer ${key}` }],
      ] as [string, Record<string, string>][])
        expect((await attack(guarded, path + query, post(bodies[path], headers))).status).toBe(401);
    expect(guarded.lines.join("")).not.toContain(key);
  });

  test.each(posts.slice(0, 4))("%s says the same of a model there is, and of one there is not", async (path) => {
    const wrong = { "x-api-key": "wrong" };
    const ids = /"request_id":"[^"]*"/;
    const [known, unknown, none] = await Promise.all(
      [bodies[path], { ...bodies[path], model: "nothing" }, "{"].map((body) =>
        fetch(guarded.url + path, post(body, wrong)).then(async (response) => [
          response.status,
          (await response.text()).replace(ids, ""),
        ]),
      ),
    );
    expect(known![0]).toBe(401);
    expect(unknown).toEqual(known!);
    expect(none).toEqual(known!);
  });
});

describe("from pages, without keys", () => {
  const pages: [string, Record<string, string>][] = [
    ["XO01", { origin: "https://evil.example" }],
    ["XO02", { origin: "null" }],
    ["XO03", { "sec-fetch-site": "cross-site" }],
    ["XO04", { "sec-fetch-site": "same-site" }],
    ["XO11", { origin: "http://localhost.evil.example" }],
    ["XO11", { origin: "http://localhost:4141.evil.example" }],
    ["XO11", { origin: "https://localhost:4141", host: "localhost:4141" }],
    ["XO11", { origin: "http://evil.example?localhost" }],
    ["XO11", { origin: "http://localhost@evil.example" }],
  ];
  test.each(pages)("%s: %j may post to no model", async (_id, headers) => {
    for (const path of [...posts, "/prov/v1/messages"]) {
      const answer = await attack(open, path, post(bodies[path] ?? {}, headers));
      expect([answer.status, errorOf(path, answer).type]).toEqual([403, "permission_error"]);
    }
  });

  test.each(pages)("%s: %j reads no list, no quota and no token", async (_id, headers) => {
    for (const path of ["/v1/models", "/usage", "/usage/0", "/token", "/prov/v1/models"]) {
      const answer = await attack(open, path, { headers });
      expect([answer.status, answer.text.includes("tid=")]).toEqual([403, false]);
    }
  });

  test.each(["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"])(
    "a form of type %s changes no config, from a page or from nowhere",
    async (type) => {
      const form = (headers: Record<string, string>) =>
        attack(open, "/api/admin/config", post('{"logLevel":"debug"}', { "content-type": type, ...headers }));
      const evil = await form({ origin: "https://evil.example" });
      expect([evil.status, errorOf("/api/admin", evil).type]).toEqual([403, "forbidden"]);
      expect((await form({ "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" })).status).toBe(403);
      expect((await form({})).status).toBe(415);
    },
  );

  test("a body without any type changes no config", async () => {
    const body = '{"logLevel":"debug"}';
    const { statuses } = await sendRaw(
      open.url,
      `POST /api/admin/config HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      { quiet: 30 },
    );
    expect(statuses).toEqual([415]);
    expect(open.app.config.current.logLevel).toBe("info");
  });

  test.each(["evil.example", "0.0.0.0", "localhost.evil.example"])(
    "the rebound name %s reads nothing, by GET or HEAD",
    async (name) => {
      for (const path of ["/token", "/usage", "/usage/0", "/v1/models", "/prov/v1/models", "/api/admin/meta"])
        for (const method of ["GET", "HEAD"]) {
          const host = `${name}:${new URL(open.url).port}`;
          expect((await attack(open, path, { method, headers: { host } })).status).toBe(403);
        }
    },
  );

  test("a rebound page is its own origin, and no less foreign", async () => {
    for (const path of posts) {
      const headers = { host: "evil.example:1", origin: "http://evil.example:1" };
      expect((await attack(open, path, post(bodies[path], headers))).status).toBe(403);
    }
  });

  test("a link on another site opens the page, never its data", async () => {
    const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    const page = await attack(open, "/admin", { headers });
    expect([page.status, page.headers.get("content-type")]).toEqual([200, expect.stringContaining("text/html")]);
    for (const path of ["/api/admin/meta", "/api/admin/requests", "/api/admin/live"])
      expect((await attack(open, path, { headers })).status).toBe(403);
  });

  test.each(["*", "null", "http://a/b", "localhost", "http://a:b", "http://*.example", "file://", ""])(
    "%j is no origin that a config could list",
    async (origin) => {
      const answer = await attack(open, "/api/admin/config", post({ allowedOrigins: [origin] }));
      expect(answer.status).toBe(400);
      expect(errorOf("/api/admin", answer)).toMatchObject({ param: "allowedOrigins[0]" });
    },
  );
});

describe("bodies", () => {
  test.each(posts)("%s refuses what is no request of its own, in its own shape", async (path) => {
    const rows = rowsOf(path);
    const streamed = rows === 1 && path !== "/v1/embeddings";
    for (const body of [
      '{"a":',
      "",
      "null",
      "[]",
      '"x"',
      "1",
      "{}",
      '{"model":1}',
      '{"model":null}',
      '{"model":""}',
      '{"model":["gpt-5-mini"]}',
      ...(streamed ? [JSON.stringify({ ...bodies[path], stream: "true" })] : []),
    ]) {
      const answer = await attack(open, path, post(body, {}, rows));
      expect([body, answer.status, errorOf(path, answer).type]).toEqual([body, 400, "invalid_request_error"]);
    }
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

  test.each([100_000, 1_000_000])("%i arrays within each other are too deep, and soon refused", async (depth) => {
    for (const path of posts) {
      const body = JSON.stringify({ ...bodies[path], input: 7, messages: 7 }).replaceAll(
        ":7",
        `:${"[".repeat(depth)}${"]".repeat(depth)}`,
      );
      const startedAt = unloadedNow();
      const answer = await attack(open, path, post(body, {}, rowsOf(path)));
      expect(errorOf(path, answer)).toMatchObject({
        type: "invalid_request_error",
        message: expect.stringContaining("too deep"),
      });
      expect(answer.status).toBe(400);
      expect(unloadedNow() - startedAt).toBeLessThan(depth / 200);
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

  test.each(posts.filter((path) => !path.endsWith("count_tokens")))(
    "a model of 10 KB is 400 at %s, and its name is in no log line",
    async (path) => {
      const model = "m".repeat(10_240);
      const answer = await attack(open, path, post({ ...bodies[path], model }, {}, 1));
      expect(answer.status).toBe(400);
      expect(errorOf(path, answer).message.length).toBeLessThan(1000);
      expect(open.lines.join("")).not.toContain("m".repeat(1000));
    },
  );

  test.each(posts.filter((path) => !path.endsWith("count_tokens")))(
    "%s is told which id to use instead of a bracketed one",
    async (path) => {
      const model = "claude-opus-4.6[1m]";
      const answer = await attack(open, path, post({ ...bodies[path], model }, {}, 1));
      expect([answer.status, errorOf(path, answer).message]).toEqual([400, expect.stringContaining("claude-opus-4.6")]);
    },
  );
});

describe("paths", () => {
  test.each(["/nope", "/__proto__", "/constructor", "/toString", "/hasOwnProperty", "/%2e%2e%2fadmin", "/a%2fb"])(
    "%s is no provider",
    async (name) => {
      for (const path of [`${name}/v1/messages`, `${name}/v1/messages/count_tokens`]) {
        const answer = await attack(open, path, post(bodies["/v1/messages"]));
        expect([answer.status, errorOf(path, answer).type]).toEqual([404, "not_found_error"]);
      }
      expect((await attack(open, `${name}/v1/models`)).status).toBe(404);
    },
  );

  test("a name of other letters is no provider either", async () => {
    expect((await attack(open, "/%F0%9F%98%80/v1/models")).status).toBe(404);
  });

  const broken = ["%E0%A4%A", "%zz", "a%", "%ff"];
  const paths = ["/v1/models/:id", "/usage/:accountIndex", "/:provider/v1/models", "/api/admin/requests/:requestId"];
  test.each(broken.flatMap((part) => paths.map((path) => [part, path])))(
    "%s, which does not decode, is 400 in %s, and the sentence says so",
    async (part, path) => {
      const [name] = /:\w+/.exec(path!)!;
      const answer = await attack(open, path!.replace(name, part!));
      const message = expect.stringContaining(`The \`${name.slice(1)}\` in this path does not decode`);
      expect([answer.status, errorOf(path!, answer).message]).toEqual([400, message]);
      expect((await attack(guarded, path!.replace(name, part!))).status).toBe(path!.startsWith("/api") ? 400 : 401);
    },
  );

  test("a page of a request whose id does not decode says so", async () => {
    const answer = await attack(open, "/admin/requests/%E0%A4%A");
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining("does not decode")]);
  });
});

test("the admin's token is no client key, in any header, and a client key no admin's", async () => {
  const sent = (secret: string): Record<string, string>[] => [
    { "x-api-key": secret },
    { authorization: `Bearer ${secret}` },
    { "x-admin-token": secret },
  ];
  for (const headers of sent(token)) expect((await attack(guarded, "/v1/models", { headers })).status).toBe(401);
  for (const headers of sent(key)) {
    const away = { ...headers, "x-forwarded-for": "192.0.2.9" };
    expect((await attack(guarded, "/api/admin/meta", { headers: away })).status).toBe(401);
  }
});
