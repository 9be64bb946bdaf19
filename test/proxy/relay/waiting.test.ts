/** Scenario: what becomes of requests at a limit that ends: refused with the time, or held until it does. */
import { expect, test } from "bun:test";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";

const wait = { whenLimited: "wait" };
const body = (text: string, stream = true) => ({
  model: "gpt-4.1",
  stream,
  messages: [{ role: "user", content: text }],
});

const limitFor = (proxy: RunningProxy, ms: number) =>
  proxy.app.accounts[0]!.setState({ name: "cooling", until: proxy.app.now() + ms, reason: "For a test." });
const free = (proxy: RunningProxy) => proxy.app.accounts[0]!.setState({ name: "ready" });
const waiting = (proxy: RunningProxy, count: number) =>
  until(() => proxy.app.waitingRoom.count === count, `${count} requests wait`);
/** The texts that the upstream was sent, in their order. */
const sent = (proxy: RunningProxy): string[] =>
  proxy.demo.journal
    .filter(({ path }) => path.endsWith("/chat/completions"))
    .map(({ body }) => (body as { messages: { content: string }[] }).messages.at(-1)!.content);

test("a limit is refused at once without the setting, with the time at which it ends", async () => {
  await using proxy = await startProxy();
  limitFor(proxy, 3_600_000);
  const answer = await proxy.post("/v1/chat/completions", body("hello"));
  expect(answer.status).toBe(429);
  expect(await answer.text()).toMatch(/No account can serve this before (?:\d+ \w+, )?\d\d:\d\d/);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(3_500);
});

for (const stream of [true, false])
  test(`with it, a ${stream ? "streamed" : "full"} request is held until the limit ends, and its row says so`, async () => {
    await using proxy = await startProxy({ config: wait });
    limitFor(proxy, 3_000);
    const answer = proxy.post("/v1/chat/completions", body("hello", stream));
    await waiting(proxy, 1);
    const [running] = proxy.app.inFlight.running();
    expect(running).toMatchObject({ waited_for: expect.stringContaining("For a test"), first_byte_ms: null });
    expect(running!.waits_until_ms! - Date.now()).toBeLessThan(3_001);
    free(proxy);
    const answered = await answer;
    expect(answered.status).toBe(200);
    expect(await answered.text()).toContain("hello");
    const [row] = proxy.rows();
    expect(row).toMatchObject({ http_status: 200, waits_until_ms: null, error_type: null });
    expect(row!.waited_ms!).toBeGreaterThan(0);
    expect(sent(proxy)).toEqual(["hello"]);
    expect(proxy.app.waitingRoom.count).toBe(0);
  });

test("a limit that lasts longer than a request may wait is refused at once", async () => {
  await using proxy = await startProxy({ config: wait });
  limitFor(proxy, 121_000);
  expect((await proxy.post("/v1/chat/completions", body("hello"))).status).toBe(429);
  limitFor(proxy, 119_000);
  const held = proxy.post("/v1/chat/completions", body("hello"));
  await waiting(proxy, 1);
  free(proxy);
  expect((await held).status).toBe(200);
  // Of a full answer, nothing is sent before its end, and clients give up.
  await using patient = await startProxy({ config: { ...wait, longestWaitMinutes: 60 } });
  limitFor(patient, 300_000);
  expect((await patient.post("/v1/chat/completions", body("hello", false))).status).toBe(429);
  // Nor is there anything that a stream of Gemini's could begin with.
  const google = { contents: [{ role: "user", parts: [{ text: "hello" }] }] };
  expect((await patient.post("/v1beta/models/gpt-4.1:streamGenerateContent?alt=sse", google)).status).toBe(429);
});

test("a key that is revoked or expires while its requests wait sends none of them", async () => {
  let ahead = 0;
  const now = () => Date.now() + ahead;
  const expiresAt = new Date(now() + 60_000).toISOString();
  const names = ["leaked", "late", "kept"] as const;
  const apiKeys = names.map((name) => ({
    ...{ name, key: `key-${name}-1` },
    ...(name === "late" && { expiresAt }),
  }));
  await using proxy = await startProxy({ config: { ...wait, auth: { apiKeys } }, clock: { now } });
  limitFor(proxy, 60_000);
  const answers: Promise<Response>[] = [];
  for (const [at, name] of names.entries()) {
    answers.push(proxy.post("/v1/chat/completions", body(name), { headers: { "x-api-key": `key-${name}-1` } }));
    await waiting(proxy, at + 1);
  }
  const revoked = await proxy.post("/api/admin/keys/leaked/revoke", undefined, { method: "POST" });
  expect(revoked.status).toBe(200);
  ahead = 61_000;
  free(proxy);
  expect(await Promise.all(answers.map(async (answer) => (await answer).status))).toEqual([401, 401, 200]);
  expect(sent(proxy)).toEqual(["kept"]);
  const errors = proxy.rows().map(({ key_name, error_type }) => [key_name, error_type]);
  expect(errors.toSorted()).toEqual([
    ["kept", null],
    ["late", "expired_api_key"],
    ["leaked", "invalid_api_key"],
  ]);
});

test("requests go in the order in which they came, each once, and one that comes later waits behind them", async () => {
  await using proxy = await startProxy({ config: wait });
  limitFor(proxy, 60_000);
  const names = Array.from({ length: 8 }, (_, at) => `turn ${at}`);
  const answers: Promise<Response>[] = [];
  for (const [at, name] of names.entries()) {
    answers.push(proxy.post("/v1/chat/completions", body(name)));
    await waiting(proxy, at + 1);
  }
  free(proxy);
  answers.push(proxy.post("/v1/chat/completions", body("late")));
  for (const answer of answers) await (await answer).text();
  // Those that are let out together may overtake one another on their way.
  expect(sent(proxy).slice(0, 1)).toEqual(names.slice(0, 1));
  expect(sent(proxy).toSorted()).toEqual(["late", ...names]);
});

test("a request waits only for a limit of its own: not behind one that is bound to another account", async () => {
  const apiKeys = [{ name: "work", key: "key-work-1", accounts: ["github.com/octo-demo"] }, "key-home-1"];
  await using proxy = await startProxy({
    accounts: ["octo-demo", "work-demo"],
    config: { ...wait, auth: { apiKeys } },
  });
  const ask = (key: string, text: string) =>
    proxy.post("/v1/chat/completions", body(text), { headers: { "x-api-key": key } });
  limitFor(proxy, 60_000);
  const bound = ask("key-work-1", "bound");
  await waiting(proxy, 1);
  expect((await ask("key-home-1", "free")).status).toBe(200);
  expect(sent(proxy)).toEqual(["free"]);
  free(proxy);
  expect((await bound).status).toBe(200);
});

test("after a limit that comes again, the rest keeps its order and is let out one at a time", async () => {
  await using proxy = await startProxy({ config: wait });
  limitFor(proxy, 60_000);
  const names = ["[demo: 429 1 once] first", "second", "third"];
  const answers: Promise<Response>[] = [];
  for (const [at, name] of names.entries()) {
    answers.push(proxy.post("/v1/chat/completions", body(name)));
    await waiting(proxy, at + 1);
  }
  free(proxy);
  for (const answer of answers) expect((await answer).status).toBe(200);
  expect(sent(proxy)).toEqual([names[0]!, ...names]);
});

test("who hangs up frees the place, and nothing is sent", async () => {
  await using proxy = await startProxy({ config: wait });
  limitFor(proxy, 60_000);
  const caller = new AbortController();
  const answer = proxy.post("/v1/chat/completions", body("gone"), { signal: caller.signal });
  await waiting(proxy, 1);
  caller.abort();
  await answer.catch(() => {});
  await waiting(proxy, 0);
  await until(() => proxy.app.inFlight.count === 0, "the row is written");
  expect(proxy.rows()[0]).toMatchObject({ http_status: 499, error_type: "client_closed" });
  expect(sent(proxy)).toEqual([]);
});

test("a person who is to act ends the wait with the reason", async () => {
  await using proxy = await startProxy({ config: wait });
  limitFor(proxy, 60_000);
  const answer = proxy.post("/v1/chat/completions", body("hello"));
  await waiting(proxy, 1);
  proxy.app.accounts[0]!.setState({ name: "failed", reason: "Revoked." });
  expect(await (await answer).text()).toContain("Revoked.");
});

test("a server that stops hands those who wait a retry-after", async () => {
  await using proxy = await startProxy({ config: wait });
  limitFor(proxy, 60_000);
  const answer = proxy.post("/v1/chat/completions", body("hello"));
  await waiting(proxy, 1);
  void proxy.drain();
  const stopped = await answer;
  expect(stopped.status).toBe(503);
  expect(stopped.headers.get("retry-after")).toBe("1");
  expect(sent(proxy)).toEqual([]);
});

const forms = {
  "/v1/messages": { ...body("hello"), model: "claude-sonnet-4.6", max_tokens: 100 },
  "/v1/responses": { model: "gpt-5.4", stream: true, input: "hello" },
  "/v1/chat/completions": body("hello"),
};
const ends = {
  "/v1/messages": "message_stop",
  "/v1/responses": "response.completed",
  "/v1/chat/completions": "[DONE]",
};

for (const [path, asked] of Object.entries(forms)) {
  test(`${path}: keep-alives come while the request waits, then the answer`, async () => {
    await using proxy = await startProxy({ config: wait });
    proxy.app.limits.keepAlive = 30;
    limitFor(proxy, 60_000);
    const answer = await proxy.post(path, asked);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toStartWith("text/event-stream");
    const reader = answer.body!.getReader();
    const alive = new TextDecoder().decode((await reader.read()).value);
    expect(alive).toMatch(
      path === "/v1/messages" ? /^(?:event: ping\ndata: \{"type": ?"ping"\}\n\n)+$/ : /^: [\w-]+\n\n/,
    );
    free(proxy);
    let rest = "";
    for (let piece = await reader.read(); !piece.done; piece = await reader.read())
      rest += new TextDecoder().decode(piece.value);
    expect(rest).toContain(ends[path as keyof typeof ends]);
    expect(proxy.rows()[0]).toMatchObject({ http_status: 200, error_type: null });
  });

  test(`${path}: a wait that fails after keep-alives ends with an error in the stream`, async () => {
    await using proxy = await startProxy({ config: wait });
    proxy.app.limits.keepAlive = 30;
    limitFor(proxy, 60_000);
    const answer = await proxy.post(path, asked);
    const [running] = proxy.app.inFlight.running();
    proxy.app.inFlight.cancel(running!.request_id);
    expect(await answer.text()).toContain("The owner of this proxy cancelled the request.");
    expect(proxy.rows()[0]).toMatchObject({ http_status: 200, error_type: "cancelled" });
    expect(proxy.app.waitingRoom.count).toBe(0);
  });
}

test("Codex, which counts only events, gets events", async () => {
  await using proxy = await startProxy({ config: wait });
  // The stream begins after the first of these times, and its first event is there at once.
  const times = [30];
  Object.defineProperty(proxy.app.limits, "keepAlive", { get: () => times.pop() ?? 60_000 });
  limitFor(proxy, 60_000);
  const headers = { "user-agent": "codex_exec/0.169.0 (Debian)" };
  const answer = await proxy.post("/v1/responses", forms["/v1/responses"], { headers });
  const reader = answer.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('data: {"type":"keepalive"}');
  await reader.cancel();
  await waiting(proxy, 0);
});

test("who hangs up after keep-alives frees the place too", async () => {
  await using proxy = await startProxy({ config: wait });
  proxy.app.limits.keepAlive = 30;
  limitFor(proxy, 60_000);
  const caller = new AbortController();
  const answer = await proxy.post("/v1/messages", forms["/v1/messages"], { signal: caller.signal });
  expect(answer.status).toBe(200);
  caller.abort();
  await waiting(proxy, 0);
  await until(() => proxy.app.inFlight.count === 0, "the row is written");
  expect(proxy.rows()[0]).toMatchObject({ error_type: "client_closed" });
});

test("a request over its budget is refused at once", async () => {
  const budgets = [{ name: "all", unit: "requests", limit: 1, per: "day" }];
  await using proxy = await startProxy({ config: { ...wait, budgets } });
  const served = await proxy.post("/v1/chat/completions", body("one"));
  expect(await served.text()).toContain("one");
  const refused = await proxy.post("/v1/chat/completions", body("two"));
  expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining("The budget `all`")]);
  expect(sent(proxy)).toEqual(["one"]);
});

test("a request that was sent before its owner wanted waiting is refused by its limit, and not by an error of ours", async () => {
  await using proxy = await startProxy();
  const arrived = Promise.withResolvers<void>();
  const turned = Promise.withResolvers<void>();
  proxy.demo.intercept("/chat/completions", async () => {
    arrived.resolve();
    await turned.promise;
    return new Response("slow down", { status: 429, headers: { "retry-after": "30" } });
  });
  const answer = proxy.post("/v1/chat/completions", body("hello"));
  await arrived.promise;
  await proxy.app.config.change({ whenLimited: "wait" });
  turned.resolve();
  expect((await answer).status).toBe(429);
});
