/** Scenario: after the ready line each account is asked for once: who cannot serve is known before anybody asks. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { awaken } from "../../src/cli/start/awaken";
import { callsTo } from "../people/accounts/bench";
import { run } from "../support/command";
import { startProxy } from "../support/proxy";
import { until } from "../support/until";
import { ask, type Github, scriptedGithub } from "./bench";

// Processes are started, and the machine may be busy.
const start = ["start", "--json", "--port", "0"];
const exchange = "/copilot_internal/v2/token";
const quota = "/copilot_internal/user";
const asked = ({ demo }: Pick<Github, "demo">) =>
  demo.journal.map(({ path, account, headers }) => {
    const owner = demo.accounts.find(({ githubToken }) => headers.authorization?.endsWith(githubToken));
    return `${account ?? owner?.login} ${path}`;
  });
const serving = (url: string) => ask(url, "Hello", { model: "claude-sonnet-4.6" });

test("a start asks for token, models and quota of one account after the other, each once, and requests find them there", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo", "work-demo", "plus-demo");
  await using command = run(start, { env: github.env });
  const { url } = await command.ready();
  const expected = [
    ...["octo-demo", "work-demo"].flatMap((name) => [`${name} ${exchange}`, `${name} /models`, `${name} ${quota}`]),
    // An account that is used directly learns its model host from the quota's answer.
    `plus-demo ${quota}`,
    "plus-demo /models",
  ];
  await until(() => github.demo.journal.length >= expected.length, "everything is asked that a start asks");
  expect(asked(github)).toEqual(expected);
  expect((await serving(url)).status).toBe(200);
  await fetch(`${url}/usage`);
  expect(asked(github).slice(expected.length)).toEqual(["octo-demo /chat/completions"]);
});

test("a start knows before a request who cannot serve, says it in the log, and others are awakened all the same", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo", "work-demo", "plus-demo");
  for (const account of github.demo.accounts) if (account.login !== "work-demo") account.githubToken = "gho_other";
  await using command = run(start, { env: github.env });
  const { url } = await command.ready();
  await until(() => command.stderr().includes("plus-demo has failed"), "the failure is printed");
  expect(command.stderr()).toContain("octo-demo has failed: GitHub no longer accepts its sign-in");
  const { accounts } = (await (await fetch(`${url}/usage`)).json()) as { accounts: Record<string, unknown>[] };
  expect(accounts.map(({ id, state, failed }) => [id, state, failed])).toEqual([
    ["octo-demo", "failed", true],
    ["work-demo", "ready", false],
    ["plus-demo", "failed", true],
  ]);
  const health = (await (await fetch(`${url}/health`)).json()) as { accounts: string[] };
  expect(health.accounts).toEqual(["failed", "ready", "failed"]);
  expect(github.demo.journal.some(({ path }) => path === "/chat/completions")).toBe(false);
});

test("a start is ready while GitHub does not answer, and a child that stops then leaves nothing behind", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  github.demo.intercept(exchange, () => new Promise(() => {}));
  await using command = run([...start, "--stdin-lifetime"], { env: github.env });
  await command.ready();
  await until(() => callsTo(github.demo, exchange) === 1, "one token is asked for");
  command.process.stdin.end();
  expect(await command.exited).toBe(0);
  expect(command.stderr()).not.toMatch(/ (?:warn|error) /);
  for (const file of ["running.json", "admin.sqlite-wal", "admin.sqlite-shm"])
    expect(existsSync(join(github.data, file))).toBe(false);
});

test("a start without an account asks nobody", async () => {
  await using github = scriptedGithub();
  await using command = run(start, { env: github.env });
  const { url } = await command.ready();
  expect((await fetch(`${url}/health`)).status).toBe(200);
  expect(github.demo.journal).toEqual([]);
});

test("the awakening and a request that comes meanwhile share one exchange and one list", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo"] });
  const answered = Promise.withResolvers<undefined>();
  proxy.demo.intercept(exchange, () => answered.promise);
  const awakening = awaken(proxy.app);
  const early = serving(proxy.url);
  await until(
    () => callsTo(proxy.demo, exchange) === 1 && proxy.app.inFlight.count === 1,
    "one token is asked for, and the request waits",
  );
  answered.resolve(undefined);
  expect((await early).status).toBe(200);
  await awakening;
  expect([exchange, "/models", quota].map((path) => callsTo(proxy.demo, path))).toEqual([1, 1, 1]);
});

test("the awakening ends where GitHub has blocked an account: the others are not asked for any more", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  proxy.demo.intercept("/models", () => Response.json({ message: "Account suspended." }, { status: 403 }));
  await awaken(proxy.app);
  expect(proxy.demo.journal.map(({ path }) => path)).toEqual([exchange, "/models"]);
  expect(proxy.app.pool.suspensionError()?.message).toContain("octo-demo: GitHub Copilot answered with status 403.");
});

test("the awakening ends when the process does", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  proxy.demo.intercept(exchange, () => {
    proxy.app.close();
    return undefined;
  });
  await awaken(proxy.app);
  expect(proxy.demo.journal.map(({ path }) => path)).toEqual([exchange]);
});
