/** Scenario: an account of a GitHub App, from its key to answered requests, and what each refusal of GitHub's says. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Demo, startDemo } from "../../../src/demo/demo";
import { Account, type AccountOptions } from "../../../src/people/accounts/account";
import type { SavedAccount, TemporaryAccount } from "../../../src/people/accounts/account-store";
import { acme, appKey, installApp } from "../../support/github-app";
import { failureOf } from "../../support/refusal";
import { callsTo, exchangePath, exchangesOf, handClock, hostsOf, keptLog, listModels, minute } from "./bench";

let demo: Demo;
beforeEach(() => {
  demo = startDemo({ pace: 0 });
});
afterEach(() => demo.stop());

const saved: SavedAccount = { login: "acme-corp", host: "github.com", mode: "exchange", addedAt: 1, ...acme };
const job = (): TemporaryAccount => ({ temporary: true, githubToken: "ghs_DEMOjobDEMOjobDEMOjob0001" });

function open(known: SavedAccount | TemporaryAccount = saved, more: Partial<AccountOptions> = {}) {
  // GitHub's clock is this machine's: it checks when the App's token was made.
  const clock = handClock(Date.now());
  const log = keptLog();
  const clocks = { now: clock.now, monotonic: clock.monotonic, random: () => 0.5 };
  const account = new Account(known, {
    ...{ hosts: hostsOf(demo), version: "1.2.3", logger: log.logger, ...clocks },
    ...more,
  });
  return { account, clock, lines: log.lines };
}

const says = (status: number, body: object) => demo.intercept(exchangePath, () => Response.json(body, { status }), 1e9);

describe("the token of an installation", () => {
  test("is asked for with the App's signature and the one permission, and exchanged", async () => {
    const state = installApp(demo);
    const { account } = open();
    const token = await account.copilotToken();
    expect((await listModels(token)).status).toBe(200);
    expect(token.mode).toBe("exchange");
    expect(state.asked).toEqual([{ permissions: { organization_copilot_requests: "read" } }]);
    expect(demo.journal.find(({ path }) => path === exchangePath)!.headers.authorization).toBe(
      `token ${state.account.githubToken}`,
    );
  });

  test("is asked for with the older permission and a repository, where the App has that one", async () => {
    const state = installApp(demo, { permissions: { copilot_requests: "write" } });
    await open({ ...saved, installation: { ...acme.installation, repository: "77" } }).account.copilotToken();
    expect(state.asked).toEqual([{ permissions: { copilot_requests: "write" }, repository_ids: [77] }]);
  });

  test("serves for its hour, however many Copilot tokens it is exchanged for, and 50 callers need one", async () => {
    const state = installApp(demo);
    const { account, clock } = open();
    await Promise.all(Array.from({ length: 50 }, () => account.copilotToken()));
    clock.pass(31 * minute);
    await account.copilotToken();
    expect([state.asked.length, exchangesOf(demo)]).toEqual([1, 2]);
    clock.pass(31 * minute);
    await account.copilotToken();
    expect([state.asked.length, exchangesOf(demo)]).toEqual([2, 3]);
    // The machine sleeps: one clock stands still.
    clock.pass(minute);
    clock.jump(8 * 60 * minute);
    await account.copilotToken();
    expect([state.asked.length, exchangesOf(demo)]).toEqual([3, 4]);
  });

  test.each([
    ["404", 404, { message: "Not Found" }],
    ["403 without details", 403, { message: "Resource not accessible by integration" }],
  ])(
    "is shown to the models' host itself where the exchange declines with %s, and renewed",
    async (_, status, body) => {
      const state = installApp(demo);
      says(status, body);
      const { account, clock } = open();
      const token = await account.copilotToken();
      expect([token.mode, token.bearer]).toEqual(["direct", state.account.githubToken]);
      expect((await listModels(token)).status).toBe(200);
      clock.pass(61 * minute);
      const next = await account.copilotToken();
      expect([state.asked.length, next.bearer]).toEqual([2, state.account.githubToken]);
      expect(callsTo(demo, "/copilot_internal/user")).toBe(0);
      // The host refuses it: another one is asked for.
      expect((await account.renewToken(next)).bearer).not.toBe(next.bearer);
      expect(state.asked).toHaveLength(3);
    },
  );

  test("has no quota of its own: it is billed in credits, and GitHub is not asked", async () => {
    installApp(demo);
    const { account } = open();
    await account.copilotToken();
    expect(await account.quota()).toMatchObject({ unit: "credits", plan: "organization", remaining: null });
    expect(callsTo(demo, "/copilot_internal/user") + callsTo(demo, "/user")).toBe(0);
  });

  test("is in no line of the log, nor is the key", async () => {
    const state = installApp(demo);
    const { account, lines } = open();
    await account.copilotToken();
    says(403, { message: `Not for ${state.account.githubToken}` });
    await account.renewToken(await account.copilotToken()).catch(() => {});
    expect(lines.join("")).not.toMatch(/ghs_|BEGIN|eyJ/);
    expect(account.state).toMatchObject({ name: "failed", reason: expect.not.stringMatching(/ghs_/) });
  });
});

describe("a refusal", () => {
  test("a clock that is wrong is named with its minutes", async () => {
    demo.intercept("/app/installations/987654", () =>
      Response.json(
        { message: "'Issued at' claim ('iat') must be in the past" },
        {
          status: 401,
          headers: { date: new Date(Date.now() - 7 * minute).toUTCString() },
        },
      ),
    );
    expect((await failureOf(open().account.copilotToken())).message).toMatch(
      /this machine's clock is wrong: it is 7 min ahead\./,
    );
  });

  test("GitHub that cannot be reached, or limits the App, is asked again later", async () => {
    for (const status of [403, 500]) {
      demo.intercept("/app/installations/987654", () =>
        Response.json({ message: "API rate limit exceeded for installation" }, { status }),
      );
      const { account } = open();
      await failureOf(account.copilotToken());
      expect(account.state).toMatchObject({ name: "cooling", outage: true });
    }
  });
});

test("the token of a job serves as it is, and nobody is asked who it belongs to", async () => {
  const { githubToken } = job() as { githubToken: string };
  const account = { ...demo.accounts[0]!, login: "acme", githubToken };
  demo.accounts.push(account);
  const opened = open(job());
  expect((await listModels(await opened.account.copilotToken())).status).toBe(200);
  expect(opened.account.presentCopilotToken()).toBeDefined();
  expect(await opened.account.quota()).toMatchObject({ unit: "credits", plan: "organization" });
  expect(demo.journal.map(({ path }) => path)).toEqual([exchangePath, "/models"]);
  expect(appKey).toContain("BEGIN RSA PRIVATE KEY");
});
