/** Scenario: `dragoman budget`, `budget add` and `rm`: with and without a running server. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { scriptedGithub } from "./bench";

const rowsOf = (stdout: string) => stdout.split("\n").map((line) => line.trim().split(/ {2,}/));

test("a budget for each key: added through the running server, shown with the highest, then all, and removed", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using server = run(["start", "--json", "--port", "0"], { env: github.env });
  const { url } = await server.ready();
  const keys = new Map<string, string>();
  for (const name of ["ann", "bob"]) keys.set(name, (await inProcess(["key", "add", name], github.env)).stdout.trim());
  const more = ["--unit", "requests", "--each", "key", "--limit-of", "ann=8,bob=2", "--model", "gpt-*"];
  const added = await inProcess(["budget", "add", "each", "--limit", "4", ...more], github.env);
  expect([added.code, added.stderr]).toEqual([
    0,
    expect.stringContaining("The budget each was added: 4 requests per month for each key."),
  ]);
  const body = JSON.stringify({ model: "gpt-4.1", messages: [{ role: "user", content: "Hi" }] });
  for (const name of ["ann", "ann", "bob"]) {
    const headers = { "x-api-key": keys.get(name)! };
    await (await fetch(`${url}/v1/chat/completions`, { method: "POST", body, headers })).text();
  }
  const [, row] = rowsOf((await inProcess(["budget"], github.env)).stdout);
  // Half of bob's two is more than a quarter of ann's eight.
  expect(row!.slice(0, 4)).toEqual(["each", "model=gpt-*", "bob: 1 (50%)", "4 requests per month for each key"]);
  expect(row!.at(-1)).toBe("ready");
  const shown = rowsOf((await inProcess(["budget", "--name", "each"], github.env)).stdout);
  expect(shown.slice(3, 6)).toEqual([
    ["key", "used", "limit"],
    ["bob", "1 (50%)", "2"],
    ["ann", "2 (25%)", "8"],
  ]);
  expect((await inProcess(["budget", "--name", "other"], github.env)).code).toBe(1);
  expect((await inProcess(["budget", "rm", "each"], github.env)).code).toBe(0);
  expect((await inProcess(["budget", "rm", "each"], github.env)).stderr).toContain("has no budget `each`");
});

test("a command for budgets without a server changes the stored config, by the same rules", async () => {
  await using github = scriptedGithub();
  const add = (...args: string[]) => inProcess(["budget", "add", ...args], github.env);
  expect((await add("members", "--limit", "1000", "--each", "member", "--limit-of", "anna=3000")).code).toBe(0);
  expect((await add("members", "--limit", "1")).stderr).toContain("There is a budget `members` already");
  const stored = JSON.parse(readFileSync(join(github.data, "config.json"), "utf8"));
  expect(stored.budgets).toMatchObject([
    { name: "members", each: "member", limits: { anna: 3000 }, unit: "credits", limit: 1000, per: "month" },
  ]);
  expect((await inProcess(["budget", "rm", "members"], github.env)).code).toBe(0);
  for (const [args, sentence] of [
    [["a:b", "--limit", "1"], "The name "],
    [["x", "--limit", "1", "--each", "team"], "--each must be one of: member, key"],
    [["x", "--limit", "1", "--limit-of", "anna=2"], "--limit-of: needs `each`"],
    [
      ["x", "--limit", "1", "--each", "key", "--limit-of", "anna"],
      "--limit-of must be pairs such as anna=3000,ben=500; `anna` is none.",
    ],
    [["x", "--limit", "1", "--member", ""], "--member is empty"],
  ] as const) {
    const { code, stderr } = await add(...args);
    expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining(sentence)]);
  }
});
