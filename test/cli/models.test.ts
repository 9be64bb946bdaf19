/** Scenario: `dragoman models`, which is like any command that prints a list of the running server's. */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";

const server = run(["start", "--demo", "--json", "--port", "0"]);
await server.ready();
afterAll(() => server[Symbol.asyncDispose]());

const models = (...args: string[]) => inProcess(["models", ...args], { DRAGOMAN_HOME: join(server.home, "data") });

test("the models are shown as a table, with limits, endpoints, cost and state", async () => {
  const { code, stdout, stderr } = await models();
  const rows = stdout
    .trim()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  expect(code).toBe(0);
  expect(stderr).toContain("DEMO");
  expect(rows[0]).toEqual(["id", "name", "context", "prompt", "output", "endpoints", "cost", "state"]);
  const row = (id: string) => rows.find(([first]) => first === id);
  // biome-ignore format: rows
  expect([row("claude-sonnet-4.6"), row("gpt-6-luna"), row("gpt-6-astra"), row("gpt-41-copilot")]).toEqual([
    ["claude-sonnet-4.6", "Claude Sonnet 4.6", "1,000,000", "936,000", "64,000", "/chat/completions /v1/messages", "300/1,500 credits per M in/out", "ready"],
    ["gpt-6-luna", "GPT-6 Luna", "1,050,000", "922,000", "128,000", "/responses", "10/50 credits per M in/out", "ready"],
    ["gpt-6-astra", "GPT-6 Astra", "400,000", "272,000", "128,000", "/responses", "1,000/5,000 credits per M in/out", "its terms are not accepted yet"],
    undefined,
  ]);
});

test("the models are printed as JSON, as the admin API gives them", async () => {
  const { stdout } = await models("--json");
  expect(stdout.trimEnd()).not.toContain("\n");
  expect(JSON.parse(stdout).items.find(({ id }: { id: string }) => id.startsWith("text-embedding")).price.premium).toBe(
    false,
  );
});

test("the models cannot be shown without a server", async () => {
  const { code, stderr } = await inProcess(["models"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("Start one with `dragoman start`")]);
});
