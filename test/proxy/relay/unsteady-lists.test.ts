/**
 * Scenario: lists of one account differ from call to call: a model in use does not vanish, and one that is gone does
 * not stay.
 */
import { expect, test } from "bun:test";
import type { ChangeAnswer } from "../../../src/demo/state";
import { offerOnly } from "../../support/catalogue";
import { startProxy } from "../../support/proxy";

const minutes = 60_000;
const hours = 60 * minutes;
const flash = "gemini-3.1-pro-preview";

/** Every second list leaves these models out, although they serve. */
function everySecondListLacks(ids: readonly string[]): ChangeAnswer {
  let lists = 0;
  return async (response, path) => {
    if (path !== "/models" || lists++ % 2 === 0) return response;
    const { data, ...list } = (await response.json()) as { data: { id: string }[] };
    return Response.json({ ...list, data: data.filter(({ id }) => !ids.includes(id)) });
  };
}

/** An upstream whose first list has the model, and the next one lacks it. */
async function start(unsteady = [flash]) {
  const clock = { at: Date.parse("2026-11-01T00:00:00Z"), set: 0 };
  const proxy = await startProxy({
    demo: { change: everySecondListLacks(unsteady) },
    clock: { now: () => clock.at + clock.set, monotonic: () => clock.at },
  });
  return {
    proxy,
    clock,
    async ask(model = flash) {
      const messages = [{ role: "user", content: "Hi." }];
      const response = await proxy.post("/v1/chat/completions", { model, messages });
      await response.text();
      return response.status;
    },
    async isListed() {
      const { data } = (await (await fetch(`${proxy.url}/v1/models`)).json()) as { data: { id: string }[] };
      return data.some(({ id }) => id === flash);
    },
    async shown() {
      const { items } = (await (await fetch(`${proxy.url}/api/admin/models`)).json()) as {
        items: { id: string; absent: boolean }[];
      };
      return items.find(({ id }) => id === flash);
    },
    asked: () => proxy.demo.journal.filter(({ path }) => path === "/models").length,
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  };
}

test("a model that the last list lacks is listed and serves for 24 hours, marked on the page and in the admin API", async () => {
  await using upstream = await start();
  expect(await upstream.isListed()).toBe(true);
  upstream.clock.at += 23 * hours;
  expect(await upstream.isListed()).toBe(true);
  expect(upstream.asked()).toBe(2);
  expect(await upstream.ask()).toBe(200);
  expect(await upstream.shown()).toMatchObject({ absent: true });
  expect(await (await fetch(`${upstream.proxy.url}/admin/models`)).text()).toContain("not in the last list");
  upstream.clock.at += 1 * minutes;
  expect(await upstream.isListed()).toBe(true);
  expect(await upstream.shown()).toMatchObject({ absent: false });
});

test("a model that the last list lacks is gone after 24 hours", async () => {
  await using upstream = await start();
  expect(await upstream.isListed()).toBe(true);
  upstream.clock.at += 24 * hours;
  expect(await upstream.isListed()).toBe(false);
});

test("a model that the last list lacks is kept if the clock was set back meanwhile", async () => {
  await using upstream = await start();
  expect(await upstream.isListed()).toBe(true);
  upstream.clock.at += 1 * minutes;
  upstream.clock.set -= 40 * 24 * hours;
  expect(await upstream.isListed()).toBe(true);
  expect(await upstream.shown()).toMatchObject({ absent: true });
});

test("a model that the last list lacks is gone at once when the upstream refuses it", async () => {
  await using upstream = await start([]);
  expect(await upstream.isListed()).toBe(true);
  // The account loses the model.
  upstream.proxy.demo.accounts[0]!.models = ["gpt-5-mini"];
  upstream.clock.at += 1 * minutes;
  expect(await upstream.isListed()).toBe(true);
  expect(await upstream.ask()).toBe(404);
  expect(await upstream.isListed()).toBe(false);
  const [line] = upstream.proxy.lines.filter((each) => each.includes("GitHub refused"));
  expect(line).toContain("which was in an earlier list of the account and is not in its last one.");
  expect(line).not.toContain("which is in the account's list");
});

test("a name that the first list lacks is looked for in one more list, and served if that one has it", async () => {
  await using upstream = await start([]);
  // The second request is the one that offerOnly itself sends.
  offerOnly(upstream.proxy.demo, { "gpt-5-mini": ["/chat/completions"] }, 2);
  expect(await upstream.ask("gpt-5-mini")).toBe(200);
  expect(await upstream.ask()).toBe(200);
  expect(await upstream.isListed()).toBe(true);
});

test("causes one more list in a minute, however many such names are asked for", async () => {
  await using upstream = await start([]);
  expect(await upstream.ask()).toBe(200);
  const first = upstream.asked();
  const ask = () => Promise.all(["none-1", "none-2", "none-3"].map((name) => upstream.ask(name)));
  for (const later of [0, 59_000]) {
    upstream.clock.at += later;
    expect(await ask()).toEqual([404, 404, 404]);
    expect(upstream.asked()).toBe(first + 1);
  }
  upstream.clock.at += 1_000;
  expect(await ask()).toEqual([404, 404, 404]);
  expect(upstream.asked()).toBe(first + 2);
});
