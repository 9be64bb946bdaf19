/** Scenario: `dragoman doctor` about providers and chains of models. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Finding } from "../../src/cli/checks/check";
import { inProcess } from "../support/in-process";
import { startOpenAiServer } from "../support/openai-server";
import { type Github, scriptedGithub } from "./bench";

// Each test starts programs, on a machine that may be busy.
const key = "pk-provider-0123456789";
const mock = await startOpenAiServer(key);
afterAll(() => mock[Symbol.asyncDispose]());

async function findings({ data, env }: Github, config: object): Promise<Finding[]> {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  writeFileSync(join(data, "config.json"), JSON.stringify(config), { mode: 0o600 });
  const { stdout } = await inProcess(["doctor", "--json", "--port", "0"], env);
  expect(stdout).not.toContain(key);
  const { checks } = JSON.parse(stdout) as { checks: Finding[] };
  return checks.filter(({ name }) => /^(?:provider |fallbacks|routes|accounts)/.test(name));
}

test("a provider that answers, one that refuses, one that is away, and one whose models are configured", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  const found = await findings(github, {
    providers: {
      good: { type: "chat", baseUrl: mock.url, apiKey: key },
      refused: { type: "chat", baseUrl: mock.url, apiKey: "pk-wrong-0123456789" },
      gone: { type: "chat", baseUrl: "http://127.0.0.1:9/v1" },
      own: { type: "chat", baseUrl: "http://127.0.0.1:9/v1", models: ["a", "b"] },
    },
  });
  expect(found.map(({ name, state, message }) => [name, state, message])).toEqual([
    ["provider good", "ok", "It answers, and lists 1 model."],
    ["provider refused", "warn", expect.stringContaining("401")],
    ["provider gone", "warn", expect.stringContaining("The provider gone")],
    ["provider own", "ok", "The config lists 2 models of it."],
  ]);
  expect(found[2]!.todo).toContain("providers.gone.models");
});

test("chains that name unknown models, and circles", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  const found = await findings(github, {
    providers: { own: { type: "chat", baseUrl: mock.url, models: ["a"] } },
    modelAliases: { fast: "gpt-5-mini" },
    fallbacks: {
      "claude-sonnet-4-6": ["gpt-5-mini", "own/a", "nope/a", "fast"],
      "gpt-5-mini": ["claude-sonnet-4.6", "gpt-9"],
      "claude-opus-4.6": ["claude-opus-4.6"],
      "gone-1": ["own/a"],
    },
  });
  expect(found.filter(({ name }) => name === "fallbacks").map(({ state, message }) => [state, message])).toEqual([
    ["warn", "`nope/a` is no model of your accounts or providers."],
    ["warn", "`gpt-9` is no model of your accounts or providers."],
    ["warn", "`gone-1` is no model of your accounts or providers."],
    ["warn", "The chains go in a circle: claude-sonnet-4.6 → gpt-5-mini → claude-sonnet-4.6."],
    ["warn", "The chains go in a circle: claude-opus-4.6 → claude-opus-4.6."],
  ]);
  const well = await findings(github, { fallbacks: { "claude-sonnet-4.6": ["gpt-5-mini"] } });
  expect(well).toEqual([{ name: "fallbacks", state: "ok", message: "1 chain of models." }]);
});

test("routes to a model that exists, and to one that does not", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  const found = await findings(github, { routes: { subagent: "gpt-5-mini", "subagent:Explore": "gpt-9" } });
  expect(found.map(({ name, state, message }) => [name, state, message.slice(0, 45)])).toEqual([
    ["routes", "warn", "`gpt-9`, to which `subagent:Explore` is route"],
  ]);
  const well = await findings(github, { routes: { subagent: "gpt-5-mini" } });
  expect(well).toEqual([{ name: "routes", state: "ok", message: "1 route by kind of request." }]);
});

test("a missing account is a warning to doctor where there are providers", async () => {
  await using github = scriptedGithub();
  const config = { providers: { own: { type: "chat", baseUrl: mock.url, models: ["a"] } } };
  const [accounts] = await findings(github, config);
  expect([accounts!.name, accounts!.state]).toEqual(["accounts", "warn"]);
});
