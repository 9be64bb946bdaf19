/** Rows: for how long a provider that fails is put off; `fixtures/scenes/fallbacks.txt` has its chains. */
import { expect, test } from "bun:test";
import { openFailureCounter } from "../../../src/people/accounts/breaker";
import { startProxy } from "../../support/proxy";

test("a provider without a connection is put off too, no longer for failures of requests that ran already", async () => {
  let now = Date.now();
  const clock = { now: () => now, monotonic: () => now };
  const providers = { down: { type: "chat", baseUrl: "http://127.0.0.1:9/v1", models: ["x"] } };
  await using proxy = await startProxy({ clock, config: { providers, fallbacks: { "down/x": ["gpt-5-mini"] } } });
  const ask = async () => {
    const messages = [{ role: "user", content: "Hello" }];
    const response = await proxy.post("/v1/chat/completions", { model: "down/x", messages });
    return [response.status, response.headers.get("x-dragoman-model")];
  };
  expect(await Promise.all(Array.from({ length: 8 }, ask))).toEqual(Array(8).fill([502, null]));
  expect(await ask()).toEqual([200, "gpt-5-mini"]);
  now += 30_000;
  expect(await ask()).toEqual([502, null]);
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
