/** `dragoman wait` with a server of its own. */
import { expect, test } from "bun:test";
import { startDemo } from "../../src/demo/demo";
import { run } from "../support/command";
import { until } from "../support/until";

test("it says until when, and ends with 0 when the limit has ended; an unknown model is an error", async () => {
  const demo = startDemo({ pace: 0 });
  const urls = Object.fromEntries(
    ["DRAGOMAN_GITHUB_URL", "DRAGOMAN_GITHUB_API_URL", "DRAGOMAN_COPILOT_API_URL"].map((name) => [name, demo.url]),
  );
  await using server = run(["start", "--json", "--port", "0"], {
    env: { ...urls, DRAGOMAN_GITHUB_TOKEN: demo.accounts[0]!.githubToken },
  });
  const { url } = await server.ready();
  const wait = (...args: string[]) => run(["wait", ...args], { env: { DRAGOMAN_HOME: `${server.home}/data` } });
  await using ready = wait("--model", "gpt-4.1");
  expect(await ready.exited).toBe(0);
  const limited = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-4.1", messages: [{ role: "user", content: "[demo: 429 12 once]" }] }),
  });
  expect(limited.status).toBe(429);
  await using waiting = wait("--model", "gpt-4.1");
  await until(() => waiting.stderr().includes("Ready at"), "it says until when");
  expect(await waiting.exited).toBe(0);
  expect(waiting.stderr()).toContain("Ready.");
  await using wrong = wait("--model", "no-such-model");
  expect(await wrong.exited).toBe(1);
  expect(wrong.stderr()).toContain("`dragoman models` lists them all.");
  await demo.stop();
}, 60_000);
