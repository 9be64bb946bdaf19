/** Scenario: what the upstream sends and dragoman does not know: noticed by name, and never more than that. */
import { expect, test } from "bun:test";
import { Drift } from "../../../src/books/changes/drift";
import { codecs } from "../../../src/dialects/codecs";
import { differencesIn, shape } from "../../../src/lib/json-shape";
import { jsonOf, readSse } from "../../../src/lib/net/stream/sse";
import { copilotStreams } from "../../support/copilot-forms";
import { type DriftWay, drifted } from "../../support/drifted";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { readSamples, valueIn } from "../../support/samples";

const messages = [{ role: "user", content: "Hello there" }];
/** A request of each dialect, streamed and full, passed through and translated. */
const bodies: [path: string, body: object][] = [
  "gpt-5-mini",
  "claude-sonnet-4.6",
  "gpt-5.3-codex",
  "gemini-3.1-pro-preview",
]
  .flatMap((model): [string, object][] => [
    ["/v1/chat/completions", { model, messages }],
    ["/v1/responses", { model, input: "Hello there" }],
    ["/v1/messages", { model, messages, max_tokens: 999 }],
  ])
  .flatMap(([path, body]): [string, object][] => [
    [path, body],
    [path, { ...body, stream: true }],
  ]);

async function askAll(proxy: RunningProxy): Promise<void> {
  for (const [path, body] of bodies) await (await proxy.post(path, body)).text();
}

const namesOf = ({ app }: RunningProxy, kind: string) =>
  app.drift.sightings.filter((sighting) => sighting.kind === kind).map(({ name, where }) => `${where}: ${name}`);

test("an upstream that is as it was has nothing new: neither the demo's replies, nor its models, headers and errors", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "plus-demo"] });
  await askAll(proxy);
  for (const directive of ["529", "503", "error-event", "failed", "refuse", "redacted"])
    for (const [path, body] of bodies.slice(0, 6)) {
      const text = JSON.stringify(body).replaceAll("Hello there", `[demo: ${directive}] Hello`);
      await (await proxy.post(path, text)).text();
    }
  expect(proxy.app.drift.sightings).toEqual([]);
});

test("an upstream that is as it was has nothing new in the forms of Copilot's streams", () => {
  for (const [form, { dialect, begin, words, end }] of Object.entries(copilotStreams("m"))) {
    const { events, typeOf } = codecs[dialect].knownNames();
    const found: string[] = [];
    const reader = readSse({
      push(frame) {
        const json = jsonOf(frame);
        if (json === undefined || json === null || typeof json !== "object") return;
        const known = events.get(typeOf(json as Record<string, unknown>));
        found.push(
          ...(known ? differencesIn(json, known).map(({ kind, path }) => `${kind} ${path}`) : [JSON.stringify(json)]),
        );
      },
      end() {},
    });
    reader.push(new TextEncoder().encode(begin + words("Hello", 0) + words(" you", 1) + end));
    reader.end();
    expect([form, found]).toEqual([form, []]);
  }
});

const drifting = (...drift: DriftWay[]) => startProxy({ demo: { change: drifted(...drift) } });

test.each([
  ["event", "event", ["responses: response.mood.delta", "messages: mood"]],
  ["member", "member", ["chat: usage.mood_tokens", "messages: message_delta usage.mood_tokens"]],
  ["value", "value", ["chat: choices.finish_reason=satisfied", "messages: stop_reason=satisfied"]],
  ["header", "header", ["chat: x-copilot-mood", "responses: x-copilot-mood", "messages: x-copilot-mood"]],
  ["model-field", "model field", ["models: capabilities.supports.telepathy"]],
] as const)("an upstream that has changed: %s: it is counted by its name", async (way, kind, names) => {
  await using proxy = await drifting(way);
  await askAll(proxy);
  expect(namesOf(proxy, kind)).toEqual(expect.arrayContaining([...names]));
  expect(new Set(proxy.app.drift.sightings.map((sighting) => sighting.kind))).toEqual(new Set([kind]));
  expect(JSON.stringify(proxy.app.drift.sightings)).not.toContain("calm");
});

test.each([false, true])("a name in a reply beside a tool that runs here is counted, streamed: %p", async (stream) => {
  await using proxy = await drifting("member");
  const tools = [{ type: "web_search_20250305", name: "web_search" }];
  const model = "claude-sonnet-4.6";
  await (await proxy.post("/v1/messages", { model, max_tokens: 999, stream, messages, tools })).text();
  expect(JSON.parse(proxy.rows()[0]!.fixups)).toContain("server-tools-here");
  expect(namesOf(proxy, "member")).toContainEqual(expect.stringMatching(/^messages: .*mood_tokens$/));
});

test("an error code of an upstream that has changed is counted", async () => {
  await using proxy = await startProxy();
  const error = { error: { code: "moon_phase_exceeded", message: "Wait for the sun." } };
  proxy.demo.intercept("/chat/completions", () => Response.json(error, { status: 400 }));
  await proxy.post("/v1/chat/completions", { model: "gpt-5-mini", messages });
  expect(namesOf(proxy, "error code")).toEqual(["errors: moon_phase_exceeded"]);
});

test("an upstream that has changed: it is in /metrics, in the admin API and on Health", async () => {
  await using proxy = await drifting("header");
  await (await proxy.post("/v1/chat/completions", { model: "gpt-5-mini", messages })).text();
  const samples = readSamples(await (await fetch(`${proxy.url}/metrics`)).text());
  const labels = { kind: "header", name: "x-copilot-mood", where: "chat" };
  expect(valueIn(samples, "dragoman_upstream_new_total", labels)).toBe(1);
  const answer = (await (await fetch(`${proxy.url}/api/admin/drift`)).json()) as { items: object[] };
  expect(answer).toMatchObject({ items: [{ ...labels, count: 1 }], overflow: 0 });
  const page = await (await fetch(`${proxy.url}/admin/health`)).text();
  expect(page).toContain("New in the upstream");
  expect(page).toContain("x-copilot-mood");
});

test("one reply a minute of each model and dialect is looked at", () => {
  const clock = { at: 0 };
  const drift = new Drift(Date.now, () => clock.at);
  expect(drift.watch("chat", "a", true)).toBeDefined();
  expect(drift.watch("chat", "a", true)).toBeUndefined();
  expect(drift.watch("chat", "b", true)).toBeDefined();
  expect(drift.watch("messages", "a", true)).toBeDefined();
  expect(drift.watch("chat", "a", false)).toBeDefined();
  clock.at = 60_000;
  expect(drift.watch("chat", "a", true)).toBeDefined();
});

test("at most 200 unknown names are counted, and then how many were left out", () => {
  const clock = { now: 1 };
  const drift = new Drift(() => clock.now);
  for (let at = 0; at < 250; at++) drift.note("header", `x-${at}`, "chat");
  clock.now = 2;
  drift.note("header", "x-0", "chat");
  expect([drift.sightings.length, drift.overflow]).toEqual([200, 50]);
  expect(drift.sightings.find(({ name }) => name === "x-0")).toMatchObject({ count: 2, firstAt: 1, lastAt: 2 });
});

test("what is counted are names, never values, and no name that could be a text", () => {
  const known = shape("a! b{c type=x|y} list{d}");
  const json = {
    b: { c: 1, type: "a secret text!", "some words of a person": 2, e: "secret" },
    list: [{ d: 1 }, { f: "secret" }],
  };
  expect(differencesIn(json, known).map(({ kind, path }) => `${kind} ${path}`)).toEqual([
    "missing a",
    "value b.type=(no plain name)",
    "new b.(no plain name)",
    "new b.e",
    "new list.f",
  ]);
});

test("what nobody knows inside of is not looked at", () => {
  const { reply } = codecs.messages.knownNames();
  const block = { type: "tool_use", id: "a", name: "b", input: { "path of a person": "x" } };
  const body = {
    id: "i",
    type: "message",
    role: "assistant",
    model: "m",
    content: [block],
    stop_reason: "tool_use",
    usage: {},
  };
  expect(differencesIn(body, reply)).toEqual([]);
});

test.each(["a{b", "a}b", "}"])("the text %s is refused as the description of a shape", (text) =>
  expect(() => shape(text)).toThrow(),
);
