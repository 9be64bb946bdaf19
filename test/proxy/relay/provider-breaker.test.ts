/** Scenario: a provider that fails five times in a row is put off for a while, so that its fallbacks serve at once. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { openFailureCounter } from "../../../src/people/accounts/breaker";
import { type RunningProxy, startProxy } from "../../support/proxy";

const down = "down/x";
const gpt = "gpt-5-mini";
let proxy: RunningProxy;
let server: Bun.Server<undefined>;
let now: number;
/** How far the wall clock was set back, as a negative number of ms. */
let set: number;
let calls: number;
let answer: () => Response | Promise<Response>;

const reply = () =>
  Response.json({
    ...{ id: "c", object: "chat.completion", created: 1, model: "x" },
    choices: [{ index: 0, message: { role: "assistant", content: "Here." }, finish_reason: "stop" }],
  });
const failing = () => Response.json({ error: { message: "Broken." } }, { status: 500 });

async function start(fallbacks: object) {
  const providers = {
    down: { type: "chat", baseUrl: `${server.url}v1`, apiKey: "a-provider-key", models: ["x", "y"] },
  };
  proxy = await startProxy({ clock: { now: () => now + set, monotonic: () => now }, config: { providers, fallbacks } });
}
beforeEach(() => {
  [now, set, calls, answer] = [Date.now(), 0, 0, failing];
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch() {
      calls += 1;
      return answer();
    },
  });
});
afterEach(async () => {
  await proxy[Symbol.asyncDispose]();
  await server.stop(true);
});

/** The status, the model that served, and how often the provider was called. */
async function ask(model = down): Promise<[number, string | null, number]> {
  const before = calls;
  const response = await proxy.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "Hello" }] });
  await response.text();
  return [response.status, response.ok ? response.headers.get("x-dragoman-model") : null, calls - before];
}
const asked = async (times: number) => {
  const all: Awaited<ReturnType<typeof ask>>[] = [];
  for (let time = 0; time < times; time++) all.push(await ask());
  return all;
};

test("after five failures the chain goes on at once, a probe follows though the clock was set back, and one success ends it", async () => {
  await start({ [down]: [gpt] });
  for (const [status, , called] of await asked(5)) expect([status, called]).toEqual([500, 1]);
  expect(await asked(3)).toEqual(Array(3).fill([200, gpt, 0]));
  const [row] = proxy.rows();
  const why = "The provider down is cooling down: its last requests all failed (status 500).";
  expect(JSON.parse(row!.fallbacks!)).toEqual([{ model: down, status: null, why }]);
  expect(proxy.lines.filter((line) => line.includes("The provider down is cooling down until"))).toHaveLength(1);

  now += 31_000;
  set -= 3_600_000;
  expect((await ask())[2]).toBe(1);
  expect(await ask()).toEqual([200, gpt, 0]);
  now += 31_000;
  expect(await ask()).toEqual([200, gpt, 0]);
  now += 30_000;
  answer = reply;
  expect(await ask()).toEqual([200, down, 1]);
  answer = failing;
  for (const [status, , called] of await asked(4)) expect([status, called]).toEqual([500, 1]);
  answer = reply;
  expect(await ask()).toEqual([200, down, 1]);
});

test("a provider without a connection is put off too, but a refusal of a request says nothing of it", async () => {
  await start({ [down]: [gpt] });
  answer = () => Response.json({ error: { message: "No." } }, { status: 400 });
  await asked(6);
  expect(calls).toBe(6);
  await server.stop(true);
  await asked(5);
  expect(await ask()).toEqual([200, gpt, 0]);
});

test("a provider is asked all the same without a chain, and where no other model can serve", async () => {
  await start({ [down]: ["no-such-model", "down/y"] });
  expect(await asked(5)).toEqual(Array(5).fill([500, null, 1]));
  expect((await ask("down/y"))[2]).toBe(1);
  // The provider's other model is the last of the chain; when it fails, the one that was put off has its turn.
  expect(await ask()).toEqual([500, null, 2]);
  calls = 0;
  answer = () => (calls === 1 ? failing() : reply());
  expect(await ask()).toEqual([200, down, 2]);
});

test("each cooldown is longer than the one before, up to five minutes", () => {
  const counter = openFailureCounter<object>();
  const key = {};
  const fail = (times: number) => Array.from({ length: times }, () => counter.failed(key, true));
  expect(fail(4)).toEqual(Array(4).fill(undefined));
  expect(fail(11)).toEqual([30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300].map((seconds) => seconds * 1_000));
  counter.served(key);
  expect(fail(1)).toEqual([undefined]);
});
