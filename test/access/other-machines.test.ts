/** Scenario: the admin API for callers on other machines, with the limit on wrong tokens. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openTrustedProxies } from "../../src/lib/net/in/trusted-proxies";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { addresses, type Networked, startNetworked } from "../support/networks";
import { startProxy } from "../support/proxy";
import { describeWith, testWith } from "../support/sandbox";
import { token } from "./callers";
import { nothingInAdmin } from "./paths";

const path = "/api/admin/config";
const asked = (...lines: string[]) => `${[`GET ${path} HTTP/1.1`, ...lines].join("\r\n")}\r\n\r\n`;

test("who sends no token is told how to send one, and who sends a wrong one that it is wrong", async () => {
  await using proxy = await startProxy({ env: { ADMIN_TOKEN: token } });
  const ask = async (headers: Record<string, string>) =>
    await (await fetch(proxy.url + path, { headers: { "x-forwarded-for": "203.0.113.5", ...headers } })).text();
  expect(await ask({})).toContain("An admin token is required. Send it as");
  expect(await ask({ "x-admin-token": "wrong-0123456789" })).toContain("The admin token is wrong.");
});

describeWith("networks", "a caller on another machine", () => {
  let closed: Networked;
  let asking: Networked;
  beforeAll(async () => {
    closed = await startNetworked(["--host", "0.0.0.0", "--allow-open"]);
    asking = await startNetworked(["--host", "0.0.0.0", "--allow-open"], { env: { ADMIN_TOKEN: token } });
  });
  afterAll(async () => {
    for (const each of [closed, asking]) await each[Symbol.asyncDispose]();
  });

  const get = ({ there }: Networked, headers: Record<string, string> = {}, to = path) =>
    there.fetch(`http://${addresses.here}:4141${to}`, { headers });

  test("reaches nothing of a server that was started without --host", async () => {
    await using usual = await startNetworked([]);
    expect((await usual.here.fetch("http://localhost:4141/health")).status).toBe(200);
    expect(await usual.there.raw(asked("Host: localhost:4141"))).toEqual([]);
    await expect(get(usual, {}, "/health")).rejects.toThrow();
  });

  test("gets 403 where no token is set, in words that say what to do", async () => {
    const answer = await get(closed);
    expect([answer.status, await answer.json()]).toMatchObject([
      403,
      { error: { type: "forbidden", message: expect.stringMatching(/came from another machine\..* set ADMIN_TOKEN/) } },
    ]);
  });

  test.each([
    { lines: ["Host: localhost:4141"] },
    { lines: ["Host: 127.0.0.1:4141"] },
    { lines: ["Host: [::1]:4141"] },
    { lines: ["Host: localhost", "X-Forwarded-For: 127.0.0.1"] },
    { lines: ["Host: localhost", "Forwarded: for=127.0.0.1"] },
    { lines: ["Host: localhost", "X-Real-IP: 127.0.0.1"] },
  ])("gets 403 whatever it says of itself: $lines", async ({ lines }) => {
    expect(await closed.there.raw(asked(...lines))).toEqual([403]);
  });

  test.each([...nothingInAdmin])(
    "gets 403 for $method $path before it is anything else",
    async ({ method, path: to }) => {
      const answer = await closed.there.fetch(`http://${addresses.here}:4141${to}`, { method });
      expect([answer.status, await answer.json()]).toMatchObject([403, { error: { type: "forbidden" } }]);
    },
  );

  test("is refused a change before its body is read", async () => {
    const init = { method: "POST", body: "{", headers: { "content-type": "text/plain" } };
    expect((await closed.there.fetch(`http://${addresses.here}:4141${path}`, init)).status).toBe(403);
  });

  test("gets 401 with a wrong token or none, and is let in with the right one", async () => {
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
    expect((await get(asking, {}, `${path}?x-admin-token=${token}`)).status).toBe(401);
  });
});

testWith("networks", "a call over an IPv6 socket that carries IPv4 is this machine's", async () => {
  await using both = await startNetworked(["--host", "::", "--allow-open"]);
  expect(await both.here.raw(asked("Host: 127.0.0.1"))).toEqual([200]);
});

test("wrong tokens through a proxy on this machine are counted, and whoever calls directly goes on", async () => {
  const now = Date.now();
  await using tried = await startProxy({ env: { ADMIN_TOKEN: token }, clock: { now: () => now } });
  const get = (sent: string) =>
    fetch(tried.url + path, { headers: { "x-forwarded-for": "203.0.113.9", "x-admin-token": sent } });
  const statuses: number[] = [];
  for (let time = 0; time < 50; time++) statuses.push((await get(`wrong-${time}`)).status);
  expect(statuses).toEqual([...Array(10).fill(401), ...Array(40).fill(429)]);
  const locked = await get(token);
  expect([locked.status, await locked.json()]).toMatchObject([429, { error: { type: "rate_limit" } }]);
  expect(Number(locked.headers.get("retry-after"))).toBeWithin(1, 61);
  expect((await fetch(tried.url + path)).status).toBe(200);
  expect((await fetch(tried.url + path, { headers: { "x-admin-token": token } })).status).toBe(200);
});

describe("the count of wrong tokens", () => {
  /** A server behind a proxy that names its callers. */
  const counted = async (clock = { now: 0, set: Date.now() }) => {
    const proxy = await startProxy({
      exposed: true,
      env: { ADMIN_TOKEN: token },
      trustedProxies: openTrustedProxies(["127.0.0.1"]),
      clock: { now: () => clock.set, monotonic: () => clock.now },
    });
    const attempt = async (peer: string, sent = "wrong") => {
      const headers = { "x-forwarded-for": peer, ...(sent !== "" && { "x-admin-token": sent }) };
      return (await fetch(proxy.url + path, { headers })).status;
    };
    const fill = async (peer: string) => {
      for (let time = 0; time < 10; time++) expect(await attempt(peer)).toBe(401);
    };
    return { attempt, fill, [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose]() };
  };

  test("is an address's in whatever spelling, and of an IPv6 address its network's; and it ends after a minute by a clock set back too", async () => {
    const clock = { now: 0, set: Date.now() };
    await using door = await counted(clock);
    await door.fill("10.0.0.1");
    expect([await door.attempt("::ffff:10.0.0.1"), await door.attempt("10.0.0.2", token)]).toEqual([429, 200]);
    await door.fill("2001:db8::1");
    expect([await door.attempt("2001:db8:0:0:ffff::2", token), await door.attempt("2001:db8:0:1::1", token)]).toEqual([
      429, 200,
    ]);
    clock.now += 60_000;
    clock.set -= 3_600_000;
    expect(await door.attempt("10.0.0.1", token)).toBe(200);
  });

  test("the count of wrong tokens does not grow with callers that send no token", async () => {
    await using door = await counted();
    for (let time = 0; time < 50; time++) expect(await door.attempt("10.0.0.1", "")).toBe(401);
    expect(await door.attempt("10.0.0.1", token)).toBe(200);
  });

  test("the count of wrong tokens is kept for 1,024 networks, of which the oldest makes room for another", async () => {
    await using door = await counted();
    await door.fill("10.1.0.0");
    for (let index = 1; index <= 1023; index++) await door.attempt(`10.1.${index >> 8}.${index & 255}`);
    expect(await door.attempt("10.1.0.0")).toBe(429);
    await door.attempt("10.2.0.0");
    expect(await door.attempt("10.1.0.0")).toBe(401);
  });
});

describe("--admin-auth", () => {
  test.each([
    [["--admin-auth=always"], {}],
    [["--admin-auth=never"], { ADMIN_TOKEN: token }],
    [["--admin-auth"], { ADMIN_TOKEN: token }],
  ] as [string[], Record<string, string>][])("%j with %j is wrong usage", async (options, env) => {
    const { code, stderr } = await inProcess(["start", "--demo", "--port", "0", ...options], env);
    expect([code, stderr]).toEqual([2, expect.stringContaining("--admin-auth")]);
  });

  test("a command asks this machine too for the token with --admin-auth always", async () => {
    await using command = run(["start", "--demo", "--json", "--port", "0", "--admin-auth=always"], {
      env: { ADMIN_TOKEN: token },
    });
    const { url } = await command.ready();
    expect((await fetch(url + path)).status).toBe(401);
  });
});
