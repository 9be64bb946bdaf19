/** Scenario: what the command line says of what was typed, in a person's words. */
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";
import { scriptedGithub } from "./bench";

// biome-ignore format: a table is read by its rows
test.each([
  [["start", "--github-token", "-"], "The GitHub token is empty: `--github-token -` reads it from the first line of stdin."],
  [["budget", "add", "x"], "--limit is missing: say how much may be used in a period, such as --limit 20."],
  [["budget", "add", "x", "--limit", "abc"], "--limit must be a number, such as 20; it is `abc`."],
  [["budget", "add", "x", "--limit", "-3"], "--limit must be above 0."],
  [["budget", "add", "x", "--limit", "1", "--per", "year"], "--per must be one of: day, month."],
  [["--prot"], "There is no option `--prot` without a command."],
  [["key", "add", ""], "The name must be at most 63 letters"],
  [["key", "print", "laptop"], "`dragoman connect claude-code --write --key-helper`"],
  [["auth", "list"], "There is no command `auth list`. Did you mean `dragoman auth ls`?"],
  [["database"], "`database` needs another word; there are `dragoman database copy`, `dragoman database reseal`."],
  [["service", "foo"], "There is no command `service foo`. There are `dragoman service"],
  [["usage", "reconcile", "2026-13"], "`2026-13` must be a month, such as 2026-11."],
  [["strat"], "There is no command `strat`. Did you mean `dragoman start`?"],
  [["claude"], "`dragoman run claude-code` starts that tool with dragoman."],
  [["conect"], "There is no command `conect`. Did you mean `dragoman connect`?"],
  [["start", "--prot", "1"], "`dragoman start` has no option `--prot`. Did you mean `--port`?"],
  [["start", "--demo", "--drain", "soon"], "--drain"],
  [["start", "--demo", "--drain", "1.5"], "--drain"],
  [["start", "--demo", "--drain", "86401"], "--drain"],
  [["start", "--demo", "--log-format", "xml"], "--log-format"],
  [["doctor", "--port", "abc"], "--port"],
  [["start", "--port"], "--port needs a value: --port <number>."],
  [["usage", "--json", "now"], "`dragoman usage` takes no `now`."],
  [["key", "add"], "`dragoman key add` needs a name"],
  [["key", "add", "ci", "--expires", "2020-01-01"], "--expires must not be in the past"],
  [["usage", "--format", "{account} {nope}"], "--format: there is no field {nope}; there are {account}, {left}, {remaining}"],
  [["start", "--host", "0.0.0.0", "--port", "0"], "Create one with `dragoman key add NAME`, or use --allow-open."],
])("%j is refused with a sentence that helps", async (args, sentence) => {
  const { code, stdout, stderr } = await inProcess(args);
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining(sentence)]);
  expect(stderr).not.toMatch(/Invalid|received|idp-token|Unused args|missing required/);
});

test("an option that turns something off does not say that it is on by default, and --format lists its fields", async () => {
  const { stdout } = await inProcess(["start", "--help"]);
  expect(stdout).toContain("--no-update-notice");
  expect(stdout).not.toContain("default: true");
  expect(stdout).toContain("(default: 4141)");
  expect(stdout).toMatch(/--github-token <token> +Use this GitHub token for this run only/);
  expect((await inProcess(["usage", "--help"])).stdout).toContain("{entitlement}");
});

test("one of a unit is written in the singular", async () => {
  const { stderr } = await inProcess(["budget", "add", "small", "--limit", "1"]);
  expect(stderr).toContain("The budget small was added: 1 credit per month.");
});

test("a token of the environment that GitHub refuses is named as what it is: nobody can sign in again with it", async () => {
  await using github = scriptedGithub();
  await using server = run(["start", "--json", "--port", "0"], {
    env: { ...github.env, DRAGOMAN_GITHUB_TOKEN: "gho_0123456789abcdef0123456789abcdef0123" },
  });
  await server.ready();
  await until(
    () => server.stderr().includes("GitHub does not accept the token that was given at the start"),
    "the refusal is printed",
  );
  expect(server.stderr()).not.toContain("Sign in again");
});

test.each(["", "x"])(
  "a command that only lists changes no folder that is not dragoman's own, with %j in it",
  async (inside) => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    if (inside !== "") mkdirSync(join(folder, inside));
    // Without anything in it, it is the home folder.
    const env = { DRAGOMAN_HOME: folder, ...(inside === "" && { HOME: folder }) };
    const { code, stderr } = await inProcess(["auth", "ls"], env);
    expect([code, stderr]).toEqual([1, expect.stringContaining("choose a folder of its own for dragoman's data")]);
    expect(statSync(folder).mode & 0o777).toBe(0o755);
  },
);

test("`auth ls -q` calls no account ready that gets no token, although GitHub reports its quota", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  github.demo.intercept(
    "/copilot_internal/v2/token",
    () => Response.json({ message: "You have no access to GitHub Copilot." }, { status: 403 }),
    100,
  );
  const { stdout } = await inProcess(["auth", "ls", "-q"], github.env);
  expect(stdout).toContain("octo-demo");
  expect(stdout).not.toContain("ready");
  expect((await inProcess(["usage", "--format", "{state}"], github.env)).stdout).toBe("failed\n");
});
