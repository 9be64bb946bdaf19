/** Scenario: `dragoman start` as a person or an editor meets it. */
import { expect, test } from "bun:test";
import { version } from "../../package.json";
import { settingsOf } from "../../src/lib/launch";
import { run } from "../support/command";
import { until } from "../support/until";
import { ask, scriptedGithub } from "./bench";

test("a start with --json says one line on stdout, and its log is on stderr", async () => {
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
  const answer = await ask(ready.url, "Hello", { stream: true });
  expect(await answer.text()).toEndWith("data: [DONE]\n\n");
  expect(command.stdout().trim().split("\n")).toHaveLength(1);
  for (const line of command.stderr().trim().split("\n")) expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z? \w+ /);
  if (process.platform !== "linux") return;
  // Bun reads them before our first line.
  const settings = (await Bun.file(`/proc/${ready.pid}/environ`).text()).split("\0");
  expect(settings).toContain("BUN_CONFIG_MAX_HTTP_REQUESTS=4096");
  expect(settings).toContain("BUN_JSC_thresholdForFTLOptimizeSoon=100000");
});

test("a start says in at most 20 lines what a person needs, and prints a curl line that works as it is printed", async () => {
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

test("a start without an account listens all the same, and says which command helps; somebody else on ::1 is a warning", async () => {
  using holder = Bun.serve({ port: 0, hostname: "::1", fetch: () => new Response() });
  await using command = run(["start", "--json", "--port", String(holder.port)]);
  const { url } = await command.ready();
  await until(() => command.stderr().includes("dragoman auth"), "the log says it");
  expect((await fetch(`${url}/health`)).status).toBe(200);
  expect((await ask(url)).status).toBe(424);
  expect(command.stderr()).toContain("::1 is taken");
  expect(command.stderr()).not.toContain(" Proxy: ");
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
