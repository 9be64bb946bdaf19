/** Rows: who may ask what: each caller at each path, what it is answered, and that a refusal changes nothing. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { untouched } from "../attacks/assert-healthy";
import { type RunningProxy, startProxy } from "../support/proxy";
import { sendRaw, untilClosed } from "../support/raw-socket";
import { answerTo, expectRefused, expectServed, portOf, secrets } from "./asking";
import { groups, key, misleading, servers, token } from "./callers";
import { kinds, paths } from "./paths";

const proxies = {} as Record<keyof typeof servers, RunningProxy>;
beforeAll(async () => {
  for (const [name, options] of Object.entries(servers)) {
    const proxy = await startProxy(options);
    proxies[name as keyof typeof servers] = proxy;
    // Lists and quotas that are asked for once are there from now on.
    for (const path of ["/v1/models", "/usage"]) await fetch(proxy.url + path, { headers: { "x-api-key": key } });
  }
});
afterAll(async () => {
  for (const proxy of Object.values(proxies)) await proxy[Symbol.asyncDispose]();
});

const titled = groups.flatMap((group) =>
  group.sends.map((headers, at) => ({
    ...{ title: `${group.who}: ${JSON.stringify(headers).slice(0, 160)}`, group, headers },
    // Who asks is told apart before what is asked: the others of a group are asked for less.
    part: at === 0 ? 3 : 12,
  })),
);

describe("what a caller gets at every path, and that a refusal changes nothing", () => {
  test.each(titled)("$title", async ({ group, headers: sent, part }) => {
    const proxy = group.isCounted ? await startProxy(servers[group.at]) : proxies[group.at];
    const headers = Object.fromEntries(
      Object.entries(sent).map(([name, value]) => [name, value.replace("PORT", portOf(proxy))]),
    );
    await untouched(proxy, () => expectRefused(proxy, group, headers, part));
    await expectServed(proxy, group, headers);
    const log = proxy.lines.join("");
    expect(secrets.filter((secret) => log.includes(secret))).toEqual([]);
    if (group.isCounted) await proxy[Symbol.asyncDispose]();
  });
});

/** One path of each kind, and the same behind a part that a misread Host would swallow. */
const samples = ["/token", "/v1/models", "/metrics", "/api/admin/config", "/admin"];

describe("a Host that could mislead the router is 400 before routing", () => {
  test.each(Object.entries(misleading))("%s", async (_who, lines) => {
    const version = lines === "" ? "HTTP/1.0" : "HTTP/1.1";
    await untouched(proxies.open, async () => {
      for (const path of samples.flatMap((each) => [each, `/xxxxxxxxxxxx${each}`])) {
        const answer = await sendRaw(proxies.open.url, `GET ${path} ${version}\r\n${lines}\r\n`, untilClosed);
        // Bun itself closes some of these without an answer.
        expect([path, answer.closed, answer.statuses[0] ?? 400]).toEqual([path, true, 400]);
        expect(answer.text).not.toMatch(/tid=|revision|<nav/);
      }
    });
  });

  test("a host of one letter does not shift the path", async () => {
    const { statuses } = await sendRaw(proxies.open.url, "GET /abcdefgh/token HTTP/1.1\r\nHost: x\r\n\r\n", {
      quiet: 30,
    });
    expect(statuses).toEqual([404]);
  });
});

describe("requests that only a hand writes", () => {
  const send = async (proxy: RunningProxy, text: string, quiet = 30) =>
    (await sendRaw(proxy.url, text, { quiet })).statuses;
  const get = (path: string, ...lines: string[]) => `${[`GET ${path} HTTP/1.1`, ...lines].join("\r\n")}\r\n\r\n`;

  test.each([
    { headers: [`x-api-key: ${key}`, "x-api-key: wrong"] },
    { headers: ["x-api-key: wrong", `x-api-key: ${key}`] },
  ])("two headers of one name are no key: $headers", async ({ headers }) => {
    expect(await send(proxies.keyed, get("/v1/models", "Host: localhost", ...headers))).toEqual([401]);
  });

  test("two origins, one of them our own, are foreign", async () => {
    const own = `localhost:${portOf(proxies.open)}`;
    const lines = [`Host: ${own}`, `Origin: http://${own}`, "Origin: http://evil.example"];
    expect(await send(proxies.open, get("/v1/models", ...lines))).toEqual([403]);
  });

  test("each request of a connection is judged by itself, in order", async () => {
    // The second answer ends the connection: no pause between the two is taken for the end.
    const both = (proxy: RunningProxy, first: string, second: string) => send(proxy, first + second, 3000);
    const local = get("/api/admin/config", "Host: localhost");
    const foreign = get("/api/admin/config", "Host: evil.example", "Connection: close");
    expect(await both(proxies.open, local, foreign)).toEqual([200, 403]);
    const keyless = get("/v1/models", "Host: localhost");
    const keyed = get("/v1/models", "Host: localhost", `x-api-key: ${key}`, "Connection: close");
    expect(await both(proxies.keyed, keyless, keyed)).toEqual([401, 200]);
  });

  test("the Host decides, not an absolute address", async () => {
    const path = "/api/admin/config";
    expect(await send(proxies.open, get(`http://localhost${path}`, "Host: evil.example"))).toEqual([403]);
    expect(await send(proxies.open, get(`http://evil.example${path}`, "Host: localhost"))).toEqual([200]);
  });
});

test("a server that stops answers probes and metrics, and nothing else, whoever asks", async () => {
  await using proxy = await startProxy();
  const stopping = async (path: string) => (await (await fetch(proxy.url + path)).text()).includes("shutting down");
  proxy.app.refuse();
  const open = ["/health", "/health/live", "/health/ready", "/metrics"];
  const asked = [...open, "/v1/models", "/v1beta/models", "/usage", "/"];
  const refused = await Promise.all(asked.map(async (path) => [path, await stopping(path)]));
  expect(refused).toEqual(asked.map((path) => [path, !open.includes(path)]));
});

describe("a secret in the address", () => {
  test("a secret in the address opens nothing, and is in no log line", async () => {
    await untouched(proxies.keyed, async () => {
      for (const { method, path } of [...paths.model, ...paths.token]) {
        const answer = await answerTo(proxies.keyed, { method, path: `${path}?api_key=${key}&x-api-key=${key}` }, {});
        expect([path, answer.status]).toEqual([path, 401]);
        // Google's packages of old send it there: they are told where it belongs.
        const { status } = await answerTo(proxies.keyed, { method, path: `${path}?key=${key}` }, {});
        expect([path, status]).toEqual([path, path.startsWith("/v1beta") ? 400 : 401]);
      }
      for (const name of ["token", "admin_token", "x-admin-token"]) {
        for (const path of [`/api/admin/config?${name}=${token}`, `/admin?${name}=${token}`]) {
          const { status } = await answerTo(proxies.keyed, { method: "GET", path }, { "x-forwarded-for": "192.0.2.9" });
          expect([path, status]).toEqual([path, 401]);
        }
      }
    });
    expect(secrets.filter((secret) => proxies.keyed.lines.join("").includes(secret))).toEqual([]);
  });
});

test.each(["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings"])(
  "a wrong key at %s is answered the same whether the model exists, does not, or the body is broken",
  async (path) => {
    const ids = /"request_id":"[^"]*"/;
    const answers = new Set<string>();
    for (const body of ['{"model":"gpt-5-mini"}', '{"model":"nothing"}', "{"]) {
      const response = await proxies.keyed.post(path, body, { headers: { "x-api-key": "wrong" } });
      expect(response.status).toBe(401);
      answers.add((await response.text()).replace(ids, ""));
    }
    expect(answers.size).toBe(1);
  },
);

describe("a preflight reaches no handler", () => {
  const preflight = (proxy: RunningProxy, path: string, headers: Record<string, string>) =>
    answerTo(proxy, { method: "OPTIONS", path }, headers);
  const asked = { "access-control-request-method": "POST", "access-control-request-private-network": "true" };
  const everywhere = Object.values(paths).flat();

  test("a preflight from a page of another origin is refused at every path, and names nothing that is allowed", async () => {
    for (const proxy of [proxies.open, proxies.keyed, proxies.listed])
      await untouched(proxy, async () => {
        for (const { path } of everywhere) {
          const { status, headers } = await preflight(proxy, path, { origin: "https://evil.example", ...asked });
          expect([path, status]).toEqual([path, 403]);
          expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
        }
      });
  });

  test("a preflight from a page whose origin is allowed is answered for model paths, and for no others", async () => {
    const headers = {
      origin: "http://localhost:3000",
      "access-control-request-headers": "content-type,x-mine",
      ...asked,
    };
    for (const kind of kinds)
      for (const { path } of paths[kind]) {
        const answer = await preflight(proxies.listed, path, headers);
        const isModel =
          kind === "model" && !/^\/(?:usage|wait$|managed|api\/oauth|v1\/(?:metrics|logs|traces)$)/.test(path);
        const sent = answer.headers.get("access-control-allow-headers");
        expect([path, answer.status, sent]).toEqual([path, ...(isModel ? [204, "content-type,x-mine"] : [403, null])]);
      }
  });

  test("a preflight from nobody's page needs no key, runs nothing, and names the methods", async () => {
    await untouched(proxies.keyed, async () => {
      const { status, headers } = await preflight(proxies.keyed, "/v1/models", {});
      expect([status, headers.get("allow")]).toEqual([204, "GET, HEAD, OPTIONS"]);
    });
  });
});

describe("a form changes no config", () => {
  test.each(["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"])(
    "as %s, from a page or from nowhere",
    async (type) => {
      const { open } = proxies;
      const send = async (headers: Record<string, string>) =>
        (await open.post("/api/admin/config", { logLevel: "debug" }, { headers: { "content-type": type, ...headers } }))
          .status;
      await untouched(open, async () => {
        expect(await send({ origin: "https://evil.example" })).toBe(403);
        expect(await send({ "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" })).toBe(403);
        expect(await send({})).toBe(415);
      });
    },
  );

  test("a body without any type is 415", async () => {
    const body = '{"logLevel":"debug"}';
    const head = `POST /api/admin/config HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n`;
    await untouched(proxies.open, async () => {
      expect((await sendRaw(proxies.open.url, head + body, { quiet: 30 })).statuses).toEqual([415]);
    });
  });
});

test("a page of our own may change the config, whichever of our names it was opened under", async () => {
  const { open } = proxies;
  const headers = { origin: `http://127.0.0.1:${portOf(open)}`, host: `localhost:${portOf(open)}` };
  expect((await open.post("/api/admin/config", { logLevel: "info" }, { headers })).status).toBe(200);
});

test("both loopback addresses of this machine are answered, under each of its names", async () => {
  for (const host of ["127.0.0.1", "[::1]", "localhost"])
    expect((await fetch(`http://${host}:${portOf(proxies.open)}/token`)).status).toBe(200);
});

test.each([
  ["x-forwarded-for", /came through a proxy \(header x-forwarded-for\)\..* set ADMIN_TOKEN/],
  ["host", /as localhost or 127\.0\.0\.1, and this request was sent to mybox\.lan\..* set ADMIN_TOKEN/],
])("a caller that is taken for a remote one for its %s is told so, and what to do", async (name, words) => {
  const response = await fetch(`${proxies.open.url}/api/admin/config`, { headers: { [name]: "mybox.lan" } });
  expect([response.status, await response.json()]).toMatchObject([
    403,
    { error: { message: expect.stringMatching(words) } },
  ]);
});
