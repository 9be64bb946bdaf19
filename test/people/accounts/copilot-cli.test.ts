/**
 * Scenario: an account of GitHub's own Copilot CLI, with a program in its place that speaks as it did when it was
 * recorded.
 */
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startDemo } from "../../../src/demo/demo";
import { Account } from "../../../src/people/accounts/account";
import type { SavedAccount } from "../../../src/people/accounts/account-store";
import { installRuntime } from "../../support/copilot-runtime";
import { inProcess } from "../../support/in-process";
import { startProxy } from "../../support/proxy";
import { failureOf } from "../../support/refusal";
import { temporaryFolder } from "../../support/temporary-folder";
import { handClock, hostsOf, keptLog, minute } from "./bench";

const demo = startDemo({ pace: 0 });
afterAll(() => demo.stop());
const plus = demo.accounts.find(({ githubToken }) => githubToken.startsWith("gho_"))!;

const installed = (changes = {}) =>
  installRuntime(temporaryFolder(), { login: "plus-demo", baseUrl: demo.url, apiKey: plus.githubToken, ...changes });

const savedFor = (command: string): SavedAccount => ({
  ...{ login: "plus-demo", host: "github.com", app: "copilot-cli", mode: "direct", addedAt: 1 },
  command,
});

function open(command: string) {
  const clock = handClock(Date.now());
  const { logger, lines } = keptLog();
  const options = { hosts: hostsOf(demo), version: "1.2.3", logger, now: clock.now, monotonic: clock.monotonic };
  return { account: new Account(savedFor(command), options), clock, lines };
}

test("the CLI is asked once for its address, token and headers, in a session that is gone afterwards", async () => {
  const runtime = installed();
  const { account, clock, lines } = open(runtime.command);
  const tokens = await Promise.all([account.copilotToken(), account.copilotToken()]);
  expect(tokens[0]).toBe(tokens[1]!);
  expect(tokens[0]).toMatchObject({
    ...{ bearer: plus.githubToken, baseUrl: demo.url, mode: "direct" },
    headers: {
      "copilot-integration-id": "copilot-developer-cli",
      "copilot-harness-id": "copilot-sdk",
      "user-agent": "copilot/1.0.102 (linux v24.20.0) term/unknown",
    },
  });
  // Who caused a request, and what it consists of, is not for the CLI to say.
  expect(Object.keys(tokens[0]!.headers!).sort()).toEqual([
    ...["copilot-harness-id", "copilot-integration-id", "editor-version", "openai-intent", "user-agent"],
    ...["x-github-api-version", "x-interaction-id"],
  ]);
  clock.pass(11 * 60 * minute);
  await account.copilotToken();
  expect(runtime.asked()).toEqual([
    expect.stringMatching(/^start --headless --no-auto-update --log-level none --stdio +$/),
    ...["connect", "auth.getStatus", "session.create", "answered -32601", "session.provider.getEndpoint"],
    ...["session.delete", "runtime.shutdown"],
  ]);
  expect((await account.quota()).plan).toBe("individual_pro");
  // The host refuses the token: the CLI is asked for another one.
  runtime.set({ apiKey: "gho_DEMOnextDEMOnextDEMOnextDEMO0009" });
  expect((await account.renewToken(await account.copilotToken())).bearer).toBe("gho_DEMOnextDEMOnextDEMOnextDEMO0009");
  expect(lines.join("")).not.toMatch(/gho_/);
});

test("a token of the session is sent too, and asked for anew before its end", async () => {
  const runtime = installed();
  const { account, clock } = open(runtime.command);
  const answer = (token: string) => ({
    "session.provider.getEndpoint": {
      result: {
        ...{ type: "openai", baseUrl: demo.url, apiKey: plus.githubToken, headers: {} },
        sessionToken: {
          ...{ header: "Copilot-Session-Token", token },
          expiresAt: new Date(clock.now() + 10 * minute).toISOString(),
        },
      },
    },
  });
  runtime.set({ differs: answer("one") });
  expect((await account.copilotToken()).headers).toEqual({ "copilot-session-token": "one" });
  clock.pass(10 * minute);
  runtime.set({ differs: answer("two") });
  expect((await account.copilotToken()).headers).toEqual({ "copilot-session-token": "two" });
});

// biome-ignore format: a table is read by its rows
test.each([
  ["nobody is signed in to it", { login: undefined }, /is not signed in, or not as a person: run `copilot login`/],
  ["its address is not GitHub's", { baseUrl: "https://models.evil.test" }, /names https:\/\/models\.evil\.test, where tokens are not sent/],
  [
    "it does not know the question any more",
    { differs: { "session.provider.getEndpoint": { error: { code: -32601, message: "Unhandled method" } } } },
    /does not know a question that dragoman asks/,
  ],
  ["it opens no session", { differs: { "session.create": { result: {} } } }, /opens no session: its releases change/],
  ["its answer has another form", { differs: { "session.provider.getEndpoint": { result: { url: "x" } } } }, /names no address and token of its models/],
  [
    "its token is for one model",
    {
      differs: {
        "session.provider.getEndpoint": {
          result: {
            baseUrl: demo.url,
            apiKey: "gho_x",
            sessionToken: { header: "h", token: "t", model: "gpt-6-luna" },
          },
        },
      },
    },
    /hands out tokens for one model only/,
  ],
])("a person has to act where %s", async (_, changes, sentence) => {
  const { account } = open(installed(changes).command);
  expect((await failureOf(account.copilotToken())).message).toMatch(sentence);
  expect(account.state.name).toBe("failed");
});

test("what it refuses for now is asked again later; without the program a person has to act", async () => {
  const message = "error sending request for url: tcp connect error: Connection refused";
  const differs = { "session.provider.getEndpoint": { error: { code: -32603, message } } };
  const { account } = open(installed({ differs }).command);
  await failureOf(account.copilotToken());
  expect(account.state).toMatchObject({
    name: "cooling",
    outage: true,
    reason: expect.stringContaining("tcp connect"),
  });
  const gone = open("/nowhere/copilot").account;
  expect((await failureOf(gone.copilotToken())).message).toMatch(/is not on this machine: install it with/);
  const broken = join(temporaryFolder(), "copilot");
  writeFileSync(broken, "\0", { mode: 0o755 });
  expect((await failureOf(open(broken).account.copilotToken())).message).toBe(
    `plus-demo cannot serve: The Copilot CLI ${broken} cannot be started (ENOEXEC).`,
  );
});

test("auth add takes what it is signed in with; requests say both names, and who has caused them", async () => {
  const runtime = installed();
  const home = temporaryFolder();
  const env = { HOME: home, DRAGOMAN_HOME: home, DRAGOMAN_GITHUB_API_URL: demo.url, ADMIN_TOKEN: "not-for-the-cli" };
  const added = await inProcess(["auth", "add", `--copilot-cli=${runtime.command}`], env);
  expect(added).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      /is signed in as plus-demo\. This is experimental[\s\S]*saved and ready\. Plan: individual_pro/,
    ),
  });
  expect((await inProcess(["auth", "ls"], env)).stdout).toBe("1  plus-demo  github.com  copilot-cli\n");
  expect((await inProcess(["auth", "rm", "1", "--force"], env)).stderr).toContain("The Copilot CLI stays signed in.");

  await using proxy = await startProxy({ saved: () => [savedFor(runtime.command)] });
  runtime.set({ baseUrl: proxy.demo.url });
  const messages = [{ role: "user", content: "Hi" }];
  for (const [path, body] of [
    ["/v1/messages", { model: "claude-sonnet-4.6", max_tokens: 9, messages }],
    ["/v1/responses", { model: "gpt-5.3-codex", input: "Hi" }],
    ["/v1/chat/completions", { model: "gpt-5.3-codex", messages }],
    ["/v1beta/models/claude-sonnet-4.6:generateContent", { contents: [{ parts: [{ text: "Hi" }] }] }],
  ] as const)
    expect([path, (await proxy.post(path, body)).status]).toEqual([path, 200]);
  expect(proxy.demo.journal.find(({ path }) => path === "/v1/messages")!.headers).toMatchObject({
    "user-agent": "copilot/1.0.102 (linux v24.20.0) term/unknown dragoman/0.0.0-test",
    "copilot-integration-id": "copilot-developer-cli",
    "x-initiator": "user",
    authorization: `Bearer ${plus.githubToken}`,
  });
  expect(runtime.asked().join("\n")).not.toMatch(/DRAGOMAN_|ADMIN_TOKEN/);
  expect(proxy.lines.join("")).not.toMatch(/gho_/);
});
