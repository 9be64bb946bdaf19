/** Scenario: `dragoman start` as a person or an editor meets it. */
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json";
import { settingsOf } from "../../src/lib/launch";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { program, run } from "../support/command";
import { inProcess } from "../support/in-process";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";
import { scriptedGithub } from "./bench";

const demo = ["start", "--demo", "--json", "--port", "0"];
const ask = (content: string) =>
  JSON.stringify({ model: exampleModels.flash, stream: true, messages: [{ role: "user", content }] });

describe("a start", () => {
  test("with --json says one line on stdout, and its log is on stderr", async () => {
    await using command = run(demo);
    const ready = await command.ready();
    expect(ready).toEqual({
      event: "ready",
      url: `http://127.0.0.1:${ready.port}`,
      port: ready.port,
      pid: command.process.pid,
      version,
    });
    const answer = await fetch(`${ready.url}/v1/chat/completions`, { method: "POST", body: ask("Hello") });
    expect(await answer.text()).toEndWith("data: [DONE]\n\n");
    expect(command.stdout().trim().split("\n")).toHaveLength(1);
    expect(command.stderr()).toContain("DEMO");
    for (const line of command.stderr().trim().split("\n")) expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z? \w+ /);
  });

  test.if(process.platform === "linux")("a start has the settings that Bun reads before our first line", async () => {
    const without = Object.keys(settingsOf(Bun.version)).flatMap((name) => ["-u", name]);
    await using command = run(demo, { within: ["env", ...without] });
    const { pid } = await command.ready();
    const settings = (await Bun.file(`/proc/${pid}/environ`).text()).split("\0");
    expect(settings).toContain("BUN_CONFIG_MAX_HTTP_REQUESTS=4096");
    expect(settings).toContain("BUN_JSC_thresholdForFTLOptimizeSoon=100000");
  });

  test("says in at most 20 lines what a person needs, and prints a curl line that works as it is printed", async () => {
    await using command = run(["start", "--demo", "--port", "0"]);
    await until(() => command.stderr().includes("Next, in another terminal"), "it is ready");
    expect(command.stderr().split("Try it:")[0]!.split("\n").length).toBeLessThan(20);
    const line = /curl [\s\S]*?'\n/.exec(command.stderr())![0];
    expect(line.split("\n").filter((part) => part.length > 78)).toEqual([]);
    const shell = Bun.spawn(["sh", "-c", line], { stdout: "pipe" });
    expect(await new Response(shell.stdout).text()).toContain("[DONE]");
  });

  test("with --json a failure is one line on stdout too, with a code for programs", async () => {
    await using holder = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    const broken = temporaryFolder();
    writeFileSync(join(broken, "config.json"), '{\n  "maxRows": }');
    const unknown = temporaryFolder();
    writeFileSync(join(unknown, "config.json"), '{ "maxRow": 1 }');
    const open = temporaryFolder();
    chmodSync(open, 0o777);
    const cases: [code: string, exit: number, args: string[], home?: string][] = [
      ["usage", 2, ["--prot", "0"]],
      ["usage", 2, ["--port", "many"]],
      ["usage", 2, ["--host", "0.0.0.0"]],
      ["port_in_use", 1, ["--port", `${holder.port}`]],
      ["parent_not_running", 1, ["--parent-pid", "2147483646"]],
      ["log_file_unwritable", 1, ["--log-file", "/dev/null/log"]],
      ["config_invalid", 1, [], broken],
      ["config_invalid", 1, [], unknown],
      ["data_folder_unusable", 1, [], open],
      ["data_folder_unusable", 1, [], "/dev/null/data"],
    ];
    for (const [code, exit, args, home] of cases) {
      const ended = await inProcess(["start", "--json", ...args], home === undefined ? {} : { DRAGOMAN_HOME: home });
      const told = JSON.parse(ended.stdout);
      expect([args, ended.code, told]).toEqual([args, exit, { event: "failed", code, message: expect.any(String) }]);
      expect(ended.stderr).toContain(`dragoman: ${told.message}`);
      expect(ended.stdout.trim().split("\n")).toHaveLength(1);
    }
  });

  test("a start without an account listens all the same, and says which command helps", async () => {
    await using command = run(["start", "--json", "--port", "0"]);
    const { url } = await command.ready();
    await until(() => command.stderr().includes("dragoman auth"), "the log says it");
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/v1/chat/completions`, { method: "POST", body: ask("Hello") })).status).toBe(424);
  });

  test("a start makes a folder and files that only their owner can read, whatever the umask", async () => {
    await using command = run(demo);
    const { url } = await command.ready();
    await (await fetch(`${url}/v1/chat/completions`, { method: "POST", body: ask("Hello") })).text();
    command.process.kill("SIGTERM");
    await command.exited;
    const home = join(command.home, "data");
    const entries = readdirSync(home, { recursive: true, withFileTypes: true });
    expect(entries.some(({ name }) => name === "admin.sqlite")).toBe(true);
    for (const entry of entries) {
      const mode = statSync(join(entry.parentPath, entry.name)).mode & 0o777;
      expect(mode & 0o077).toBe(0);
    }
    expect(statSync(home).mode & 0o077).toBe(0);
  });

  test("somebody else on ::1 is a warning, and 127.0.0.1 is served", async () => {
    using holder = Bun.serve({ port: 0, hostname: "::1", fetch: () => new Response() });
    await using command = run(["start", "--demo", "--json", "--port", String(holder.port)]);
    const { url } = await command.ready();
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect(command.stderr()).toContain("::1 is taken");
  });
});

describe("wrong usage is exit code 2, with a sentence and nothing on stdout", () => {
  test.each([
    [["start", "--port", "abc"], {}],
    [["start", "--port", "-1"], {}],
    [["start", "--port", "70000"], {}],
    [["start", "--port", "4141.5"], {}],
    [["start", "--port", ""], {}],
    [["start", "--port", "0x10"], {}],
    [["start", "--host", "999.1.1.1"], {}],
    [["start", "--host", "a b"], {}],
    [["start", "--host", "0.0.0.0"], {}],
    [["start", "--host", "0"], {}],
    [["start", "--host", "::0"], {}],
    [["start", "--idp-token", ""], {}],
    [["start", "--idp-token", "a b"], {}],
    [["start", "--idp-token", "a\nb"], {}],
    [["start", "--enterprise-url", "https://x"], {}],
    [["start", "--enterprise-url", "a/b"], {}],
    [["start", "--enterprise-url", "localhost"], {}],
    [["start", "--enterprise-url", "127.0.0.1"], {}],
    [["start", "--nonsense"], {}],
    [["nonsense", "--json"], {}],
    [["start"], { DRAGOMAN_GITHUB_URL: "http://evil.example" }],
    [["start"], { PROXY_API_KEY: "one-key", DRAGOMAN_API_KEY: "another" }],
  ] as [string[], Record<string, string>][])("%j %j", async (args, env) => {
    expect(await inProcess(args, env)).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^dragoman: .+\n$/),
    });
  });

  test.each([
    [["start", "--prot", "1"], "dragoman start --help"],
    [["auth", "rm", "1", "2"], "dragoman auth rm --help"],
    [["nonsense"], "dragoman --help"],
  ])("%j: the sentence names %s", async (args, help) => {
    expect(await inProcess(args)).toMatchObject({ code: 2, stderr: expect.stringContaining(`\`${help}\``) });
  });
});

test("the folder it stands in cannot steer it", async () => {
  await using decoy = run(["--version"]);
  await decoy.exited;
  const marker = join(decoy.home, "marker");
  writeFileSync(join(decoy.home, "preload.ts"), `require("node:fs").writeFileSync(${JSON.stringify(marker)}, "ran");`);
  writeFileSync(join(decoy.home, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
  writeFileSync(join(decoy.home, "tsconfig.json"), '{ "compilerOptions": { "paths": { "*": ["./preload.ts"] } } }');
  writeFileSync(
    join(decoy.home, ".env"),
    "DRAGOMAN_API_KEY=k-from-the-folder\nHTTPS_PROXY=http://127.0.0.1:1\nDRAGOMAN_GITHUB_URL=http://evil.example\n",
  );
  // The source by its own first line, as an installed package is run.
  const command = process.env.DRAGOMAN_BINARY ? program : [join(import.meta.dir, "../../src/main.ts")];
  const child = Bun.spawn([...command, ...demo], {
    cwd: decoy.home,
    env: { PATH: process.env.PATH ?? "", HOME: decoy.home },
    stdout: "pipe",
    stderr: "pipe",
  });
  const first = await child.stdout.getReader().read();
  const { url } = JSON.parse(new TextDecoder().decode(first.value)) as { url: string };
  expect((await fetch(`${url}/v1/models`)).status).toBe(200);
  child.kill("SIGTERM");
  await child.exited;
  expect(existsSync(marker)).toBe(false);
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
