/** Scenario: `dragoman start` as a person or an editor meets it. */
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json";
import { settingsOf } from "../../src/lib/launch";
import { program, run } from "../support/command";
import { inProcess } from "../support/in-process";
import { sharedModel } from "../support/shared-model";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";
import { scriptedGithub } from "./bench";

const ask = (content: string) =>
  JSON.stringify({ model: sharedModel, stream: true, messages: [{ role: "user", content }] });

describe("a start", () => {
  test("with --json says one line on stdout, and its log is on stderr", async () => {
    const without = Object.keys(settingsOf(Bun.version)).flatMap((name) => ["-u", name]);
    await using github = scriptedGithub();
    github.signIn("octo-demo");
    await using command = github.start([], process.platform === "linux" ? ["env", ...without] : []);
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
    for (const line of command.stderr().trim().split("\n")) expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z? \w+ /);
    if (process.platform !== "linux") return;
    // Bun reads them before our first line.
    const settings = (await Bun.file(`/proc/${ready.pid}/environ`).text()).split("\0");
    expect(settings).toContain("BUN_CONFIG_MAX_HTTP_REQUESTS=4096");
    expect(settings).toContain("BUN_JSC_thresholdForFTLOptimizeSoon=100000");
  });

  test("says in at most 20 lines what a person needs, and prints a curl line that works as it is printed", async () => {
    await using command = run(["start", "--demo", "--port", "0"]);
    await until(() => command.stderr().includes("Next, in another terminal"), "it is ready");
    // Its pages have the past by now.
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(command.stderr())!;
    expect(await (await fetch(`${url}/admin`)).text()).toContain("requests of the last two weeks are made up");
    const { items } = (await (await fetch(`${url}/api/admin/requests?limit=5`)).json()) as { items: unknown[] };
    expect(items).toHaveLength(5);
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

  test("a start without an account listens all the same, and says which command helps; somebody else on ::1 is a warning", async () => {
    using holder = Bun.serve({ port: 0, hostname: "::1", fetch: () => new Response() });
    await using command = run(["start", "--json", "--port", String(holder.port)]);
    const { url } = await command.ready();
    await until(() => command.stderr().includes("dragoman auth"), "the log says it");
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/v1/chat/completions`, { method: "POST", body: ask("Hello") })).status).toBe(424);
    expect(command.stderr()).toContain("::1 is taken");
    expect(command.stderr()).not.toContain(" Proxy: ");
  });
});

test("the folder it stands in cannot steer it", async () => {
  const home = temporaryFolder();
  const marker = join(home, "marker");
  writeFileSync(join(home, "preload.ts"), `require("node:fs").writeFileSync(${JSON.stringify(marker)}, "ran");`);
  writeFileSync(join(home, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
  writeFileSync(join(home, "tsconfig.json"), '{ "compilerOptions": { "paths": { "*": ["./preload.ts"] } } }');
  writeFileSync(
    join(home, ".env"),
    "DRAGOMAN_API_KEY=k-from-the-folder\nHTTPS_PROXY=http://127.0.0.1:1\nDRAGOMAN_GITHUB_URL=http://evil.example\n",
  );
  // The source by its own first line, as an installed package is run.
  const command = process.env.DRAGOMAN_BINARY ? program : [join(import.meta.dir, "../../src/main.ts")];
  const child = Bun.spawn([...command, "start", "--json", "--port", "0"], {
    cwd: home,
    env: { PATH: process.env.PATH ?? "", HOME: home },
    stdout: "pipe",
    stderr: "pipe",
  });
  const first = await child.stdout.getReader().read();
  const { url } = JSON.parse(new TextDecoder().decode(first.value)) as { url: string };
  // Nobody is signed in, and nobody asks for a key.
  expect((await fetch(`${url}/v1/chat/completions`, { method: "POST", body: ask("Hello") })).status).toBe(424);
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
