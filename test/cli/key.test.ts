/** Scenario: `dragoman key`, `dragoman budget` and the forms of `dragoman usage` for status bars. */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { until } from "../support/until";
import { scriptedGithub } from "./bench";

const start = ["start", "--json", "--port", "0"];

const statusWith = async (url: string, key: string) =>
  (await fetch(`${url}/v1/models`, { headers: { "x-api-key": key } })).status;

test("a key is created through the running server, works at once, and is refused once it is removed", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using server = run(start, { env: github.env });
  const { url } = await server.ready();
  const added = await inProcess(
    ["key", "add", "0123", "--models", "gpt-*,claude-*", "--expires", "2099-01-31"],
    github.env,
  );
  const key = added.stdout.trim();
  expect([added.code, key]).toEqual([0, expect.stringMatching(/^drg_[\w-]{43}$/)]);
  expect(added.stderr).toContain("every client must send a key");
  expect(readFileSync(join(github.data, "config.json"), "utf8")).not.toContain(key);
  expect([await statusWith(url, key), await statusWith(url, "other")]).toEqual([200, 401]);

  const listed = await inProcess(["key", "ls"], github.env);
  const [head, row] = listed.stdout.split("\n").map((line) => line.split(/ {2,}/));
  expect(head).toEqual(["name", "models", "expires", "last used"]);
  expect(row).toEqual(["0123", "gpt-* claude-*", "2099-01-31", "unknown"]);
  expect(listed.stdout).not.toContain(key.slice(4));

  const second = (await inProcess(["key", "add", "4567"], github.env)).stdout.trim();
  expect((await inProcess(["key", "rm", "4567"], github.env)).stderr).toContain("Its next request is refused.");
  expect([await statusWith(url, second), await statusWith(url, key)]).toEqual([401, 200]);
  // The last one is not removed unasked, as every key is good then.
  const refused = await inProcess(["key", "rm", "0123"], github.env);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("This removes the last client key.")]);
  expect(await statusWith(url, "other")).toBe(401);
  const removed = await inProcess(["key", "rm", "0123", "--yes"], github.env);
  expect([removed.code, removed.stderr]).toEqual([0, expect.stringContaining("From now on clients need no key.")]);
  expect(await statusWith(url, "other")).toBe(200);
  expect((await inProcess(["key", "rm", "0123"], github.env)).code).toBe(1);
});

test("a command for keys without a server changes the config file itself", async () => {
  await using github = scriptedGithub();
  const added = await inProcess(["key", "add", "laptop"], github.env);
  expect([added.code, added.stdout.trim()]).toEqual([0, expect.stringMatching(/^drg_/)]);
  const again = await inProcess(["key", "add", "Laptop"], github.env);
  expect([again.code, again.stdout, again.stderr]).toEqual([1, "", expect.stringContaining("already")]);
  const listed = JSON.parse((await inProcess(["key", "ls", "--json"], github.env)).stdout);
  expect(listed).toMatchObject({ required: true, items: [{ name: "laptop", models: null, expires_at_ms: null }] });
  const old = { name: "old", key: "an-old-key", expiresAt: "2020-01-31" };
  writeFileSync(
    join(github.data, "config.json"),
    JSON.stringify({ auth: { apiKeys: [{ name: "laptop", key: "k" }, old] } }),
  );
  expect((await inProcess(["key", "ls"], github.env)).stdout).toMatch(/^old +all +2020-01-31 \(expired\) +unknown$/m);
  writeFileSync(
    join(github.data, "config.json"),
    JSON.stringify({ auth: { apiKeys: [{ name: "laptop", key: "k" }] } }),
  );
  expect((await inProcess(["key", "rm", "laptop"], github.env)).code).toBe(2);
  expect((await inProcess(["key", "rm", "laptop", "--yes"], github.env)).code).toBe(0);
  expect((await inProcess(["key", "ls"], github.env)).stderr).toContain("There are no client keys");
});

test.each([
  [["key", "add", "a/b"], "The name must"],
  [["key", "add", "x", "--expires", "soon"], "--expires must be a date"],
  [["usage", "--watch", "never"], "--watch must be a number"],
])("the command %j is refused in a sentence", async (args, sentence) => {
  await using github = scriptedGithub();
  const { code, stdout, stderr } = await inProcess(args, github.env);
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining(sentence)]);
});

test("usage as one line, and again and again", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  const once = await inProcess(["usage", "--format", "{account}: {percent}"], github.env);
  expect(once).toMatchObject({ code: 0, stdout: "octo-demo: 72%\n" });
  await using watching = run(["usage", "--format", "{remaining}", "--watch", "1"], { env: github.env });
  await until(() => watching.stdout().split("\n").length >= 3, "it has printed two lines");
  watching.process.kill("SIGINT");
  expect(await watching.exited).toBe(0);
  expect(watching.stdout()).toStartWith("217\n217\n");
});

// Linux has a file that is always full.
test.skipIf(process.platform !== "linux")("a key that cannot be written anywhere is no success", async () => {
  const script = '"$@" > /dev/full';
  await using command = run(["key", "add", "laptop"], { within: ["sh", "-c", script, "sh"] });
  expect(await command.exited).toBe(1);
  expect(command.stderr()).toContain("The output could not be written: Error: ENOSPC");
});
