/**
 * Scenario: what runs now: seen as it happens, and found by its id; `fixtures/scenes/cancelled.txt` has what the client of a
 * cancelled request hears.
 */
import { describe, expect, test } from "bun:test";
import { InFlight } from "../../src/books/live/in-flight";
import { LiveRequests, type RunningEvent, type RunningRequests } from "../../src/books/live/running-requests";
import type { KnownServer, Team } from "../../src/people/keys/team";
import { formTokenIn, signedIn } from "../support/form-fields";
import { entry } from "../support/history-rows";
import { watchFeed } from "../support/live-feed";
import { type RunningProxy, startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";
import { until } from "../support/until";

testScenes("cancelled");

const sample = entry();
const nulls = (names: string) => Object.fromEntries(names.split(" ").map((name) => [name, null]));

const ask = (content: string, more: object = {}) => ({
  model: "gpt-5-mini",
  messages: [{ role: "user", content }],
  stream: true,
  max_tokens: 100,
  ...more,
});
const agent = { headers: { "user-agent": "tester/1.0 (x)" } };

const watch = (proxy: RunningProxy, path?: string, headers?: Record<string, string>) =>
  watchFeed(proxy.url, path, headers);

describe("running requests", () => {
  test("are listed, found, watched and cancelled; for a member, only their own exist", () => {
    const inFlight = new InFlight();
    const live = new LiveRequests(inFlight, undefined);
    const [owners, annas, bens] = [live.of(), live.of("anna"), live.of("ben")];
    const stopped: string[] = [];
    const begin = (id: string, member: string | null) => {
      const tell = () => entry({ request_id: id, member });
      inFlight.begin(id, {
        member,
        tell,
        stop: ({ message }) => void stopped.push(`${id}: ${message}`),
        cutShort() {},
      });
    };
    const idsOf = (running: RunningRequests) => running.list().map(({ request_id }) => request_id);
    const heard: string[] = [];
    const note = (who: string) => (event: RunningEvent) => {
      if (event.type === "running") heard.push(`${who}: ${event.running.request_id} runs`);
      if (event.type === "finished") heard.push(`${who}: ${event.entry.request_id} ended`);
    };
    const leave = [owners.watch(note("owner")), annas.watch(note("anna"))];
    begin("one", null);
    begin("two", "anna");
    expect(heard).toEqual(["owner: one runs", "owner: two runs", "anna: two runs"]);
    expect([owners, annas, bens].map(idsOf)).toEqual([["one", "two"], ["two"], []]);
    expect([owners.find("two")?.member, annas.find("two")?.request_id, annas.find("one")]).toEqual([
      ...["anna", "two", undefined],
    ]);
    expect([annas.cancel("one"), bens.cancel("two"), stopped]).toEqual([false, false, []]);
    expect([owners.cancel("one"), annas.cancel("two")]).toEqual([true, true]);
    expect(stopped).toEqual([
      "one: The owner of this proxy cancelled the request.",
      "two: The member whose key it uses cancelled the request.",
    ]);

    leave[0]!();
    inFlight.end(entry({ request_id: "one", member: null }));
    inFlight.end(entry({ request_id: "two", member: "anna" }));
    expect(heard.slice(3)).toEqual(["anna: two ended"]);
    let last: RunningEvent | undefined;
    owners.watch((event) => {
      last = event;
    });
    live.close();
    expect(last).toEqual({ type: "closed" });
  });

  test("are told with their texts cut to what the history keeps, while they run and when they end", () => {
    const inFlight = new InFlight();
    const long = entry({ request_id: "long", client_name: "x".repeat(9_999) });
    const told: (string | null | undefined)[] = [];
    inFlight.watch((event) => {
      told.push((event.type === "running" ? event.running : event.entry).client_name);
    });
    inFlight.begin("long", { member: null, tell: () => long, stop() {}, cutShort() {} });
    told.push(inFlight.find("long")?.client_name, inFlight.running()[0]?.client_name);
    inFlight.end(long);
    expect(told).toEqual(Array(4).fill("x".repeat(256)));
  });

  test("are those of this server, and a list says so where there are others", () => {
    const server = (id: string): KnownServer => ({ id, host: id, version: "1", isLeader: false });
    const of = (servers: Team["servers"]) => {
      const team = { servers, isDatabaseAway: !servers, silence: 0, waiting: () => ({ requests: 0, settlements: 0 }) };
      return new LiveRequests(new InFlight(), team).of().elsewhere;
    };
    expect(new LiveRequests(new InFlight(), undefined).of("anna").elsewhere).toBeUndefined();
    expect(of([server("a")])).toBeUndefined();
    expect(of(["a", "b", "c"].map(server))).toBe("Requests that 2 other servers may run are not shown here.");
    expect(of(undefined)).toBe("Requests that other servers run are not shown here.");
  });
});

const token = "t-admin-0123456789";
const away = { "x-forwarded-for": "10.0.0.9" };
const signIn = async (proxy: RunningProxy) => ({ ...away, ...(await signedIn(proxy.url, token, away)) });
const follow = async (proxy: RunningProxy, headers: Record<string, string>) => {
  const feed = await watch(proxy, "/admin/requests/live", headers);
  await until(() => feed.heard.length === 1, "the feed has begun");
  return feed;
};
const hello = (proxy: RunningProxy) => proxy.post("/v1/chat/completions", ask("Hello")).then((answer) => answer.text());

test("the feed of somebody who has signed in ends when it signs out, and says nothing more; another's goes on", async () => {
  await using proxy = await startProxy({ env: { ADMIN_TOKEN: token } });
  const [leaving, staying] = [await signIn(proxy), await signIn(proxy)];
  const [ended, other, api] = [
    await follow(proxy, leaving),
    await follow(proxy, staying),
    await watch(proxy, "/api/admin/live", { ...away, "x-admin-token": token }),
  ];
  const page = await (await fetch(`${proxy.url}/admin`, { headers: leaving })).text();
  const form_token = formTokenIn(page);
  const init = {
    method: "POST",
    body: new URLSearchParams({ form_token }),
    headers: leaving,
    redirect: "manual",
  } as const;
  expect((await fetch(`${proxy.url}/admin/sign-out`, init)).status).toBe(303);
  await until(() => ended.ended, "the feed has ended");
  await hello(proxy);
  await until(
    () => [other, api].every(({ heard }) => heard.some(({ event }) => event === "finished")),
    "the others heard of the end",
  );
  expect([ended.heard.length, other.ended, api.ended]).toEqual([1, false, false]);
  expect((await fetch(`${proxy.url}/admin/requests/live`, { headers: leaving })).status).toBe(401);
  await Promise.all([other, api].map(({ leave }) => leave()));
});

test("the feed of somebody who has signed in ends when the sign-in has expired, before another event is sent", async () => {
  const clock = { at: Date.now() };
  await using proxy = await startProxy({ env: { ADMIN_TOKEN: token }, clock: { now: () => clock.at } });
  const feed = await follow(proxy, await signIn(proxy));
  clock.at += 12 * 3600_000;
  await hello(proxy);
  await until(() => feed.ended, "the feed has ended");
  expect(feed.heard.map(({ event }) => event)).toEqual(["snapshot"]);
});

test("the live feed shows a stream while it runs, and its end", async () => {
  await using proxy = await startProxy();
  const feed = await watch(proxy);
  expect(feed.response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  await until(() => feed.heard.length === 1, "the feed has begun");
  expect(feed.heard[0]).toEqual({
    event: "snapshot",
    data: { now_ms: expect.any(Number), running: [], missed: false },
  });

  const response = await proxy.post("/v1/messages", ask("[demo: silence 0.6] Hello CANARY"), agent);
  const id = response.headers.get("x-request-id")!;
  const served = () => feed.about(id).find(({ data }) => data.first_byte_ms !== null);
  await until(() => served() !== undefined, "the feed shows the request with its first byte");
  expect(served()).toEqual({
    event: "running",
    data: {
      request_id: id,
      started_at_ms: expect.any(Number),
      first_byte_ms: expect.any(Number),
      path: "/v1/messages",
      client_dialect: "messages",
      upstream_dialect: expect.any(String),
      upstream_endpoint: expect.any(String),
      account_id: "octo-demo",
      account_key: "github.com/octo-demo",
      client_model: "gpt-5-mini",
      upstream_model: "gpt-5-mini",
      stream: true,
      initiator: "user",
      initiator_reason: "a person's turn",
      attempts: [{ account: "octo-demo", status: 200, ms: expect.any(Number) }],
      client_name: "tester/1.0",
      fallbacks: [],
      ...nulls("key_name member searches parent_id waited_for waits_until_ms prompt kind agent_type project route"),
    },
  });
  expect(await (await fetch(`${proxy.url}/api/admin/requests/${id}`)).json()).toMatchObject({
    running: true,
    item: { request_id: id, account_id: "octo-demo" },
  });
  const late = await watch(proxy);
  await until(() => late.heard.length > 0, "the late feed has begun");
  expect(late.heard[0]!.data.running).toMatchObject([{ request_id: id }]);

  await response.text();
  await until(() => feed.heard.some(({ event }) => event === "finished"), "the feed heard of the end");
  expect(feed.about(id).at(-1)).toMatchObject({
    event: "finished",
    data: { request_id: id, http_status: 200, stream: true, error_type: null, output_tokens: expect.any(Number) },
  });
  expect(feed.text).not.toContain("CANARY");
  expect(proxy.app.inFlight.count).toBe(0);
  await feed.leave();
  await late.leave();
});

test("the live feed says how the accounts are, and again once one has changed", async () => {
  await using proxy = await startProxy();
  const feed = await watch(proxy);
  await until(() => feed.accounts.length === 1, "the accounts are told");
  const [first] = feed.accounts[0];
  expect(first).toMatchObject({ account_id: "octo-demo", state: "ready", reason: null, until_ms: null });
  await proxy.post("/api/admin/accounts/pause", { account_key: first.account_key, paused: true });
  await until(() => feed.accounts.length === 2, "the change is told");
  expect(feed.accounts[1][0]).toMatchObject({ account_id: "octo-demo", state: "paused", reason: expect.any(String) });
  await feed.leave();
});

test("the live feed says an exchange that begins and ends at once only once", async () => {
  await using proxy = await startProxy();
  const feed = await watch(proxy);
  for (let count = 0; count < 5; count++) await proxy.post("/v1/messages", "{");
  await until(() => feed.heard.length === 6, "the feed has heard six events");
  expect(feed.heard.slice(1).map(({ event, data }) => [event, data.http_status])).toEqual(
    Array(5).fill(["finished", 400]),
  );
  await feed.leave();
});

test("the live feed ends when the process drains, so that a page left open does not hold it up", async () => {
  await using proxy = await startProxy();
  const feed = await watch(proxy);
  await until(() => feed.heard.length === 1, "the feed has begun");
  proxy.app.live.close();
  await until(() => feed.ended, "the feed has ended");
  const after = await watch(proxy);
  await until(() => after.ended, "the second feed has ended");
  expect(after.heard).toHaveLength(1);
});

test("the live feed is let go when its reader leaves; of more than 50 the last are refused", async () => {
  await using proxy = await startProxy();
  const feeds = await Promise.all(Array.from({ length: 50 }, () => watch(proxy)));
  expect((await fetch(`${proxy.url}/api/admin/live`)).status).toBe(429);
  await feeds[0]!.leave();
  await until(async () => {
    const again = await watch(proxy);
    await again.leave();
    return again.response.status === 200;
  }, "there is room for another");
  for (const feed of feeds) await feed.leave();
});

test("a member has ten watches at most and all members 500, which keep none from the owner", () => {
  const live = new LiveRequests(new InFlight(), undefined);
  const watch = (member?: string) => live.of(member).watch(() => {});
  for (let at = 0; at < 500; at += 1) {
    watch(`member ${Math.floor(at / 10)}`);
    if (at === 9) expect(() => watch("member 0")).toThrow("10 pages already watch");
  }
  expect(() => watch("another")).toThrow("500 pages already watch");
  watch()();
});

test("the live feed does not read requests while there are no watchers", () => {
  const inFlight = new InFlight();
  let told = 0;
  inFlight.begin("a", { member: null, tell: () => ({ ...sample, told: told++ }) as never, stop() {}, cutShort() {} });
  inFlight.notify("a");
  expect([told, inFlight.count]).toEqual([0, 1]);
  inFlight.end({ ...sample, request_id: "a" });
  expect(inFlight.count).toBe(0);
});

test("a cancelled request to a provider lets the provider go", async () => {
  const [reached, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using provider = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch({ signal }) {
      signal.addEventListener("abort", () => gone.resolve());
      reached.resolve();
      await gone.promise;
      return new Response();
    },
  });
  const providers = { slow: { type: "anthropic", baseUrl: provider.url.origin, apiKey: "k-slow-0123456789" } };
  await using proxy = await startProxy({ config: { providers } });
  const asked = proxy.post("/slow/v1/messages", ask("Hello"));
  await reached.promise;
  const id = proxy.app.inFlight.running()[0]!.request_id;
  await proxy.post(`/api/admin/live/${id}/cancel`, "{}");
  expect((await asked).status).toBe(424);
  await gone.promise;
  expect(proxy.rows()).toMatchObject([{ request_id: id, error_type: "cancelled", account_id: null }]);
});
