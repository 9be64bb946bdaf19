/** Who gets into the owner's wing. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { adminGuard } from "../../src/admin/access/authorize";
import { ProxyError } from "../../src/errors";
import { failedTries } from "../../src/net/failed-tries";
import type { Caller } from "../../src/net/guard";
import { run } from "../support/command";
import { addresses, type Networked, startNetworked } from "../support/networks";
import { type RunningProxy, startProxy } from "../support/proxy";
import { describeWith, testWith } from "../support/sandbox";

// Some start programs in networks of their own, on a machine that may be busy.
const token = "t-admin-0123456789";
const path = "/api/admin/config";

let open: RunningProxy;
let guarded: RunningProxy;

beforeAll(async () => {
  open = await startProxy({ config: { auth: { apiKeys: ["k-alpha-0123456789"] } } });
  guarded = await startProxy({ env: { ADMIN_TOKEN: token } });
});
afterAll(async () => {
  for (const each of [open, guarded]) await each[Symbol.asyncDispose]();
});

const portOf = (proxy: RunningProxy) => new URL(proxy.url).port;

/** The answers to exactly these bytes: their statuses, and all of the text. */
function raw(
  proxy: RunningProxy,
  text: string,
  { host = "127.0.0.1", answers = 1 } = {},
): Promise<{ statuses: number[]; text: string }> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const statuses = () => [...answer.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
    const socket = connect(Number(portOf(proxy)), host, () => socket.write(text));
    socket.on("data", (data) => {
      answer += data;
      if (statuses().length >= answers) setTimeout(() => socket.destroy(), 50);
    });
    socket.on("close", () => resolve({ statuses: statuses(), text: answer }));
    socket.on("error", reject);
    setTimeout(() => socket.destroy(), 3000);
  });
}

const request = (lines: string[], method = "GET", at = path) =>
  `${[`${method} ${at} HTTP/1.1`, ...lines].join("\r\n")}\r\n\r\n`;
const status = async (proxy: RunningProxy, headers: string[], host?: string) =>
  (await raw(proxy, request(headers), { host })).statuses[0];

const forwarding = [
  "Forwarded: for=127.0.0.1",
  "X-Forwarded: for=127.0.0.1",
  "X-Forwarded-For: 127.0.0.1",
  "X-Forwarded-Host: localhost",
  "X-Original-Forwarded-For: 127.0.0.1",
  "X-Cluster-Client-Ip: 127.0.0.1",
  "X-Real-IP: 127.0.0.1",
  "Via: 1.1 proxy",
  "CDN-Loop: cloudflare",
  "CF-Connecting-IP: 127.0.0.1",
  "CF-Ray: 0123456789abcdef-AMS",
  "True-Client-IP: 127.0.0.1",
  "Fastly-Client-IP: 127.0.0.1",
  "Fly-Client-IP: 127.0.0.1",
  "X-Client-IP: 127.0.0.1",
  "X-Envoy-External-Address: 127.0.0.1",
  "X-Azure-ClientIP: 127.0.0.1",
  "X-Appengine-User-Ip: 127.0.0.1",
  "Tailscale-User-Login: someone",
];

describe("from this machine", () => {
  test("no token and no client key is needed, also where clients need one", async () => {
    expect((await fetch(`${open.url}/v1/models`)).status).toBe(401);
    expect((await fetch(open.url + path)).status).toBe(200);
    expect((await fetch(open.url + path, { method: "HEAD" })).status).toBe(200);
  });

  test.each(["127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST", "[::1]"])("under the name %s", async (name) => {
    expect(await status(open, [`Host: ${name}:${portOf(open)}`])).toBe(200);
  });

  test("over ::1", async () => {
    expect(await status(open, ["Host: [::1]:4141"], "::1")).toBe(200);
  });

  testWith("networks", "over an IPv6 socket that carries IPv4", async () => {
    await using both = await startNetworked(["--host", "::", "--allow-open"]);
    expect(await both.here.raw(request(["Host: 127.0.0.1"]))).toEqual([200]);
  });

  test.each([
    "evil.example:4141",
    "localhost.evil.example",
    "foo.localhost",
    "127.0.0.1.nip.io",
    "2130706433",
    "0x7f.1",
    "127.1",
    "0.0.0.0",
    "0.0.0.0:4141",
    "192.168.1.7",
  ])("not under the name %s, unless the token is there", async (name) => {
    expect(await status(open, [`Host: ${name}`])).toBe(403);
    expect(await status(guarded, [`Host: ${name}`])).toBe(401);
    expect(await status(guarded, [`Host: ${name}`, `x-admin-token: ${token}`])).toBe(200);
  });

  test("a name that ends in a dot is no name at all", async () => {
    expect(await status(open, ["Host: localhost."])).toBe(400);
  });

  test.each(forwarding)("not through a proxy that says %s", async (header) => {
    expect(await status(open, ["Host: localhost", header])).toBe(403);
  });

  test.each(["X_Forwarded_For: 127.0.0.1", "X-Original-URL: /", "X-Rewrite-URL: /", "X-HTTP-Method-Override: POST"])(
    "%s changes nothing",
    async (header) => {
      const plain = await raw(open, request(["Host: localhost"]));
      const same = await raw(open, request(["Host: localhost", header]));
      expect(same.statuses).toEqual(plain.statuses);
      expect(same.text.split("\r\n\r\n")[1]).toBe(plain.text.split("\r\n\r\n")[1]!);
    },
  );

  test.each([
    ["HTTP/1.0 without a Host", `GET /xxxxxxxxxxxx${path} HTTP/1.0\r\n\r\n`],
    ["a space", request(["Host: a b"], "GET", `/xxxxxxxxxxxx${path}`)],
    ["a user", request(["Host: evil@localhost"], "GET", `/xxxxxxxxxxxx${path}`)],
    ["a fragment", request(["Host: localhost#x"], "GET", `/xxxxxxxxxxxx${path}`)],
    ["a path", request(["Host: localhost/x"], "GET", `/xxxxxxxxxxxx${path}`)],
    ["nothing", request(["Host:"], "GET", `/xxxxxxxxxxxx${path}`)],
    ["two names", request(["Host: localhost", "Host: evil.example"])],
    ["two names, the other way round", request(["Host: evil.example", "Host: localhost"])],
  ])("%s is 400", async (_name, text) => {
    const answer = await raw(open, text);
    expect(answer.statuses[0] ?? 400).toBe(400);
    expect(answer.text).not.toContain("revision");
  });

  test("the Host decides, not an absolute address", async () => {
    expect((await raw(open, request(["Host: evil.example"], "GET", `http://localhost${path}`))).statuses[0]).toBe(403);
    const evil = await raw(open, request(["Host: localhost"], "GET", `http://evil.example${path}`));
    expect([200, 400, 403]).toContain(evil.statuses[0]!);
  });

  test("each request of a connection is judged by itself", async () => {
    const both = request(["Host: localhost"]) + request(["Host: evil.example"]);
    expect((await raw(open, both, { answers: 2 })).statuses).toEqual([200, 403]);
  });

  test.each([
    ["another origin", { origin: "https://evil.example" }],
    ["no origin to speak of", { origin: "null" }],
    ["a look-alike", { origin: "http://localhost.evil.example" }],
    ["the same over https", { origin: "https://localhost:4141" }],
    ["another site's page", { "sec-fetch-site": "cross-site" }],
    ["another port's page", { "sec-fetch-site": "same-site" }],
  ])("%s is 403, token or not", async (_name, headers) => {
    for (const proxy of [open, guarded]) {
      const answer = await proxy.post(path, { logLevel: "debug" }, { headers: headers as Record<string, string> });
      expect([answer.status, await answer.json()]).toMatchObject([403, { error: { type: "forbidden" } }]);
    }
    expect(open.app.config.current.logLevel).toBe("info");
  });

  test("a preflight is refused, and a listed origin is none for the owner's wing", async () => {
    await using listed = await startProxy({ config: { allowedOrigins: ["http://localhost:3000"] } });
    for (const origin of ["https://evil.example", "http://localhost:3000"]) {
      const headers = {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-private-network": "true",
      };
      const answer = await fetch(listed.url + path, { method: "OPTIONS", headers });
      expect(answer.status).toBe(403);
      expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });

  test("a page of our own may change it, whichever of our names it was opened under", async () => {
    const own = { origin: `http://127.0.0.1:${portOf(open)}`, host: `localhost:${portOf(open)}` };
    expect((await open.post(path, { logLevel: "info" }, { headers: own })).status).toBe(200);
  });

  test("the token opens nothing for clients, and a client key nothing here", async () => {
    expect(
      (await fetch(`${open.url}/v1/models`, { headers: { "x-admin-token": token, authorization: `Bearer ${token}` } }))
        .status,
    ).toBe(401);
    expect(await status(open, ["Host: evil.example", "Authorization: Bearer k-alpha-0123456789"])).toBe(403);
  });

  test("other paths and methods are answered in the wing's own shape", async () => {
    const unknown = await fetch(`${open.url}/api/admin/nope`);
    expect([unknown.status, await unknown.json()]).toEqual([
      404,
      { error: { type: "not_found", message: expect.any(String) } },
    ]);
    const wrong = await fetch(open.url + path, { method: "DELETE" });
    expect([wrong.status, wrong.headers.get("allow"), await wrong.json()]).toMatchObject([
      405,
      "GET, HEAD, POST",
      { error: { type: "method_not_allowed" } },
    ]);
    expect(wrong.headers.get("x-request-id")).toBeTruthy();
  });
});

describe("with --admin-auth=always", () => {
  test("this machine needs the token too, and is never locked out", async () => {
    await using always = await startProxy({ adminAuth: "always", env: { ADMIN_TOKEN: token } });
    for (let time = 0; time < 30; time++)
      expect((await fetch(always.url + path, { headers: { "x-admin-token": "wrong" } })).status).toBe(401);
    expect((await fetch(always.url + path)).status).toBe(401);
    expect((await fetch(always.url + path, { headers: { "x-admin-token": token } })).status).toBe(200);
  });

  test.each([
    [["--admin-auth=always"], {}],
    [["--admin-auth=never"], { ADMIN_TOKEN: token }],
    [["--admin-auth"], { ADMIN_TOKEN: token }],
  ] as [string[], Record<string, string>][])("%j with %j is wrong usage", async (options, env) => {
    await using command = run(["start", "--demo", "--port", "0", ...options], { env });
    expect(await command.exited).toBe(2);
    expect(command.stderr()).toContain("--admin-auth");
  });

  test("as a command", async () => {
    await using command = run(["start", "--demo", "--json", "--port", "0", "--admin-auth=always"], {
      env: { ADMIN_TOKEN: token },
    });
    const { url } = await command.ready();
    expect((await fetch(url + path)).status).toBe(401);
  });
});

describeWith("networks", "from another machine", () => {
  let closed: Networked;
  let asking: Networked;
  beforeAll(async () => {
    closed = await startNetworked(["--host", "0.0.0.0", "--allow-open"]);
    asking = await startNetworked(["--host", "0.0.0.0", "--allow-open"], { env: { ADMIN_TOKEN: token } });
  });
  afterAll(async () => {
    for (const each of [closed, asking]) await each[Symbol.asyncDispose]();
  });

  const at = (to = path) => `http://${addresses.here}:4141${to}`;
  const get = ({ there }: Networked, headers: Record<string, string> = {}, to = path) =>
    there.fetch(at(to), { headers });

  test("403 where no token is set, in words that say what to do", async () => {
    const answer = await get(closed);
    expect([answer.status, await answer.json()]).toMatchObject([
      403,
      { error: { type: "forbidden", message: expect.stringMatching(/came from another machine\..* set ADMIN_TOKEN/) } },
    ]);
  });

  test.each(["localhost", "127.0.0.1", "[::1]"])("also when it says that it calls %s", async (name) => {
    expect(await closed.there.raw(request([`Host: ${name}:4141`]))).toEqual([403]);
  });

  test.each(forwarding)("also when it says %s", async (header) => {
    expect(await closed.there.raw(request(["Host: localhost", header]))).toEqual([403]);
  });

  test("with a token set, none and wrong ones are 401, the right one is let in", async () => {
    const answer = await get(asking);
    expect([answer.status, answer.headers.get("www-authenticate"), await answer.json()]).toMatchObject([
      401,
      "Bearer",
      { error: { type: "unauthorized" } },
    ]);
    for (const wrong of ["wrong", token.slice(0, -1), `${token}x`, token.toUpperCase()])
      expect((await get(asking, { "x-admin-token": wrong })).status).toBe(401);
    expect((await get(asking, { "x-admin-token": token })).status).toBe(200);
    expect((await get(asking, { authorization: `Bearer ${token}` })).status).toBe(200);
    expect((await get(asking, { authorization: "Bearer wrong", "x-admin-token": token })).status).toBe(200);
  });

  test("a query and a cookie are no place for it", async () => {
    for (const query of [`?token=${token}`, `?admin_token=${token}`, `?x-admin-token=${token}`])
      expect((await get(asking, {}, path + query)).status).toBe(401);
    expect((await get(asking, { cookie: `x-admin-token=${token}; token=${token}` })).status).toBe(401);
  });

  test.each(["", "   "])("a token of %j counts as none", async (blank) => {
    await using unset = await startNetworked(["--host", "0.0.0.0", "--allow-open"], { env: { ADMIN_TOKEN: blank } });
    expect((await get(unset, { "x-admin-token": blank })).status).toBe(403);
    expect((await get(unset, { authorization: "Bearer " })).status).toBe(403);
  });

  test("ten wrong tokens a minute, then 429; this machine goes on", async () => {
    await using tried = await startNetworked(["--host", "0.0.0.0", "--allow-open"], { env: { ADMIN_TOKEN: token } });
    const statuses: number[] = [];
    for (let time = 0; time < 1000; time++)
      statuses.push((await get(tried, { "x-admin-token": `wrong-${time}` })).status);
    expect([statuses.slice(0, 10), statuses.slice(10)]).toEqual([Array(10).fill(401), Array(990).fill(429)]);
    const locked = await get(tried, { "x-admin-token": token });
    expect([locked.status, await locked.json()]).toMatchObject([429, { error: { type: "rate_limit" } }]);
    expect(Number(locked.headers.get("retry-after"))).toBeWithin(1, 61);
    expect((await tried.here.fetch(tried.ready.url + path)).status).toBe(200);
  });

  test.each([
    ["GET", "/api/admin"],
    ["GET", "/api/admin/"],
    ["GET", "/api/admin/nope"],
    ["GET", "/api/admin/requests/%E0%A4%A"],
    ["POST", "/api/admin/config/nope"],
    ["DELETE", path],
    ["PATCH", path],
    ["PUT", "/api/admin/nope"],
  ])("%s %s is 403 before it is anything else", async (method, to) => {
    const answer = await closed.there.fetch(at(to), { method });
    expect([answer.status, await answer.json()]).toMatchObject([403, { error: { type: "forbidden" } }]);
  });

  test("a change is refused before its body is read", async () => {
    const headers = { "content-type": "text/plain" };
    expect((await closed.there.fetch(at(), { method: "POST", body: "{", headers })).status).toBe(403);
  });
});

describe("through a proxy on this machine", () => {
  const through = { "x-forwarded-for": "203.0.113.9" };

  test("wrong tokens are counted, and whoever calls directly goes on", async () => {
    await using tried = await startProxy({ env: { ADMIN_TOKEN: token } });
    const get = (sent: string) => fetch(tried.url + path, { headers: { ...through, "x-admin-token": sent } });
    const statuses: number[] = [];
    for (let time = 0; time < 30; time++) statuses.push((await get(`wrong-${time}`)).status);
    expect(statuses).toEqual([...Array(10).fill(401), ...Array(20).fill(429)]);
    expect((await get(token)).status).toBe(429);
    expect((await fetch(tried.url + path)).status).toBe(200);
    expect((await fetch(tried.url + path, { headers: { "x-admin-token": token } })).status).toBe(200);
  });

  test.each([
    [{ ...through }, /came through a proxy \(header x-forwarded-for\)\..* set ADMIN_TOKEN/],
    [
      { host: "mybox.lan:4141" },
      /as localhost or 127\.0\.0\.1, and this request was sent to mybox\.lan\..* set ADMIN_TOKEN/,
    ],
  ] as [Record<string, string>, RegExp][])("%j gets the reason why it is not local", async (headers, words) => {
    const answer = await fetch(open.url + path, { headers });
    expect([answer.status, await answer.json()]).toMatchObject([
      403,
      { error: { message: expect.stringMatching(words) } },
    ]);
  });
});

describe("the count of wrong tokens", () => {
  const caller = (peer: string): Caller => ({
    requestId: "",
    peer,
    foreign: false,
    origin: null,
    host: "address",
    hostName: "192.0.2.1",
    forwardedBy: undefined,
    local: false,
  });
  const attempt = (door: ReturnType<typeof adminGuard>, peer: string, sent = "wrong") => {
    try {
      door(new Request("http://localhost", { headers: sent === "" ? {} : { "x-admin-token": sent } }), caller(peer));
      return 200;
    } catch (thrown) {
      if (thrown instanceof ProxyError) return thrown.status;
      throw thrown;
    }
  };
  const doorAt = (clock: { now: number }) =>
    adminGuard({ ...guarded.app, adminAuth: "remote", tokenTries: failedTries(() => clock.now) } as typeof guarded.app);
  const fill = (door: ReturnType<typeof adminGuard>, peer: string) => {
    for (let time = 0; time < 10; time++) expect(attempt(door, peer)).toBe(401);
  };

  test("is of an address, in whatever spelling, of an IPv6 one its network; and ends after a minute", () => {
    const clock = { now: 0 };
    const door = doorAt(clock);
    fill(door, "10.0.0.1");
    expect([attempt(door, "::ffff:10.0.0.1"), attempt(door, "10.0.0.2", token)]).toEqual([429, 200]);
    fill(door, "2001:db8::1");
    expect([attempt(door, "2001:db8:0:0:ffff::2", token), attempt(door, "2001:db8:0:1::1", token)]).toEqual([429, 200]);
    clock.now = 60_000;
    expect(attempt(door, "10.0.0.1", token)).toBe(200);
  });

  test("does not grow with every caller that has no token at all", () => {
    const door = doorAt({ now: 0 });
    for (let time = 0; time < 50; time++) expect(attempt(door, "10.0.0.1", "")).toBe(401);
    expect(attempt(door, "10.0.0.1", token)).toBe(200);
  });

  test("remembers 1,024 networks, and forgets the oldest for another", () => {
    const door = doorAt({ now: 0 });
    fill(door, "10.1.0.0");
    for (let index = 1; index <= 1023; index++) attempt(door, `10.1.${index >> 8}.${index & 255}`);
    expect(attempt(door, "10.1.0.0")).toBe(429);
    attempt(door, "10.2.0.0");
    expect(attempt(door, "10.1.0.0")).toBe(401);
  });
});
