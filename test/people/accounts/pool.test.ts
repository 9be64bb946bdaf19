/** Rows: the account that serves a request, and the reasons for which none can. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Demo, startDemo } from "../../../src/demo/demo";
import { ProxyError } from "../../../src/lib/errors";
import { zonedTime } from "../../../src/lib/format";
import { Account } from "../../../src/people/accounts/account";
import { type AccountFailure, Pool } from "../../../src/people/accounts/pool";
import { refuseExchange } from "../../support/refused-exchange";
import { exchangePath, handClock, hostsOf, keptLog, minute, savedFrom, second } from "./bench";

let demo: Demo;
beforeEach(() => {
  demo = startDemo({ pace: 0 });
});
afterEach(() => demo.stop());

/** The demo's three accounts in order: octo, work, plus. */
function threeAccounts() {
  const clock = handClock();
  const { logger } = keptLog();
  const wake = { hosts: hostsOf(demo), version: "1", logger, ...clock, random: () => 0.5 };
  const accounts = demo.accounts.map((account, place) => new Account(savedFrom(account, place), wake));
  const [octo, work, plus] = accounts as [Account, Account, Account];
  return { accounts, octo, work, plus, clock, pool: new Pool({ accounts: () => accounts, now: clock.now }) };
}

const names = (accounts: Account[]) => accounts.map(({ id }) => id.replace("-demo", ""));

describe("who serves", () => {
  test("an account whose model cools down serves it again after that time, though the clock was set back", () => {
    const { octo, pool, clock } = threeAccounts();
    const model = "gpt-5-mini";
    octo.setState({ name: "cooling", until: clock.now() + minute, reason: "Slow." }, model);
    clock.jump(-60 * minute);
    const able = () => names(pool.candidates({ premium: true, model }));
    expect([able(), octo.limitedModels.length]).toEqual([["work", "plus"], 1]);
    clock.pass(minute);
    expect([able(), octo.limitedModels.length]).toEqual([["octo", "work", "plus"], 0]);
  });

  test("who only looks at the candidates takes no turn", () => {
    const { pool } = threeAccounts();
    const look = () => names(pool.candidates({ premium: false }))[0];
    expect([look(), look(), names(pool.takeTurn({ premium: false }))[0], look(), look()]).toEqual([
      ...["octo", "octo", "octo"],
      ...["work", "work"],
    ]);
  });

  test("only accounts that have the model are asked", () => {
    const { pool, work } = threeAccounts();
    expect(names(pool.candidates({ premium: true, capable: (account) => account !== work }))).toEqual(["octo", "plus"]);
  });

  test("an account that is out of everything serves no free model either", () => {
    const { pool, octo } = threeAccounts();
    octo.setState({ name: "exhausted", reason: "You have no quota.", alsoFree: true });
    expect(names(pool.takeTurn({ premium: false }))).toEqual(["work", "plus"]);
  });
});

describe("why nobody can serve", () => {
  test("nobody is signed in: 503 with the one command that helps", () => {
    const error = new Pool({ accounts: () => [] }).whyNone();
    expect([error.status, error.details.code]).toEqual([503, "no_account"]);
    expect(error.message).toContain("Run `dragoman auth` to sign in.");
  });

  test("all have failed: 503 that names each and its reason", async () => {
    refuseExchange(demo, "billing_locked");
    const { pool, octo, work, plus } = threeAccounts();
    await Promise.allSettled([octo.copilotToken(), work.copilotToken()]);
    plus.setState({ name: "failed", reason: "Its sign-in was revoked." });
    expect(pool.candidates({ premium: true })).toEqual([]);
    const error = pool.whyNone();
    expect(error.status).toBe(503);
    expect(error.message).toContain("octo-demo: GitHub does not let this account use Copilot: Billing problem.");
    expect(error.message).toContain("work-demo: GitHub does not let");
    expect(error.message).toContain("plus-demo: Its sign-in was revoked.");
    const alone = pool.whyNone({ premium: true, capable: (account) => account === plus });
    expect([error, alone].map(({ details }) => details.code)).toEqual(["accounts_failed", "accounts_failed"]);
  });

  test("all exhausted: 429 that names each, with the earliest reset as retry-after", () => {
    const { pool, octo, work, plus, clock } = threeAccounts();
    const first = Date.parse("2026-12-01T00:00:00Z");
    octo.setState({ name: "exhausted", until: first + 9 * minute, reason: "You have no quota." });
    work.setState({ name: "exhausted", until: first, reason: "You have no quota." });
    plus.setState({ name: "failed", reason: "Its sign-in was revoked." });
    const error = pool.whyNone();
    const at = (time: number) => zonedTime(time, clock.now());
    expect([error.kind, error.status]).toEqual(["quota", 429]);
    expect(error.details.headers).toEqual({
      "retry-after": String((first - clock.now()) / second),
      "x-should-retry": "false",
    });
    expect(error.message).toBe(
      `No account can serve this before ${at(first)}. octo-demo: You have no quota (until ${at(first + 9 * minute)}). ` +
        `work-demo: You have no quota (until ${at(first)}). plus-demo: Its sign-in was revoked. ` +
        "Models that cost no quota may still work.",
    );
  });

  test("the words of a request's own failures stand for the states, and the error is the last one that decides how long to wait", () => {
    const { pool, octo, work, plus, clock } = threeAccounts();
    const refused = (account: Account, code: string, seconds: number): [Account, AccountFailure] => {
      const reason = { told: `${code} of Mortimer.`, written: `The answer was ${code}.` };
      account.setState({ name: "cooling", until: clock.now() + seconds * second, reason: reason.written });
      return [
        account,
        { reason, error: new ProxyError("rate_limit", reason, { status: 429, code, headers: { "retry-after": "9" } }) },
      ];
    };
    octo.setState({ name: "failed", reason: "Its sign-in was revoked." });
    const error = pool.whyNone(undefined, new Map([refused(plus, "one", 20), refused(work, "two", 40)]));
    expect([error.kind, error.status, error.details.code, error.details.headers]).toEqual([
      "rate_limit",
      429,
      "two",
      { "retry-after": "20" },
    ]);
    const at = (seconds: number) => zonedTime(clock.now() + seconds * second, clock.now());
    expect(error.message).toBe(
      `No account can serve this before ${at(20)}. octo-demo: Its sign-in was revoked. ` +
        `work-demo: two of Mortimer (until ${at(40)}). plus-demo: one of Mortimer (until ${at(20)}).`,
    );
    expect(error.written).toBe(
      `No account can serve this before ${at(20)}. octo-demo: Its sign-in was revoked. ` +
        `work-demo: The answer was two (until ${at(40)}). plus-demo: The answer was one (until ${at(20)}).`,
    );
    const person = new ProxyError("no_account", "Revoked.", { status: 503, code: "revoked" });
    const both = new Map([
      refused(plus, "one", 20),
      [octo, { reason: { told: "No.", written: "No." }, error: person }],
    ] as const);
    expect(pool.whyNone(undefined, both).details.code).toBe("one");
  });

  test("one account that cools down while the others need a person: 429 with its wait", () => {
    const { pool, octo, work, plus, clock } = threeAccounts();
    expect(pool.suspensionError()).toBeUndefined();
    octo.setState({ name: "cooling", until: clock.now() + 20 * second, reason: "Slow down." });
    for (const account of [work, plus]) account.setState({ name: "failed", reason: "Its sign-in was revoked." });
    const error = pool.whyNone();
    expect([error.kind, error.details.code]).toEqual(["rate_limit", "rate_limited"]);
    expect(error.details.headers).toEqual({ "retry-after": "20" });
    expect(error.message).toContain("work-demo: Its sign-in was revoked.");
  });

  test("an account whose quota has no known reset never shortens the wait, and alone names none", () => {
    const { octo, clock } = threeAccounts();
    const wake = { hosts: hostsOf(demo), version: "1", logger: keptLog().logger, ...clock, neverOverage: () => true };
    const inOverage = new Account(savedFrom(demo.accounts[1]!, 1), wake);
    inOverage.learnQuota(new Headers({ "x-quota-snapshot-premium_models": "ent=300&ov=3.5&ovPerm=true&rem=0.0" }));
    octo.setState({ name: "cooling", until: clock.now() + 20 * second, reason: "Slow down." });
    const both = new Pool({ accounts: () => [inOverage, octo], now: clock.now });
    expect(both.whyNone().details.headers).toEqual({ "retry-after": "20" });
    const alone = new Pool({ accounts: () => [inOverage], now: clock.now });
    expect(alone.wait({ premium: true })).toBeUndefined();
    expect(alone.whyNone()).toMatchObject({ kind: "quota", details: { code: "additional_spend_limit_reached" } });
    expect(alone.whyNone().details.headers).toBeUndefined();
    expect(alone.whyNone().message).toContain("No account can serve this. work-demo: Its included quota is used up");
  });

  test("an account that GitHub has suspended stops all, until a restart only where no other server has it", () => {
    const { pool, accounts, octo } = threeAccounts();
    octo.setState({ name: "failed", suspended: true, reason: "It was suspended." });
    expect(pool.whyNone().message).toEndWith(
      "To continue, sign in again, remove the account, on the page Accounts or with `dragoman auth rm octo-demo`, or restart dragoman.",
    );
    expect(new Pool({ accounts: () => accounts, isShared: true }).whyNone().message).toEndWith(
      "To continue, sign in again or remove the account, on the page Accounts or with `dragoman auth rm octo-demo`.",
    );
  });

  test("the wait is until the first account can serve, none if one can, and unknown if only a person can help", () => {
    const { pool, accounts, octo, clock } = threeAccounts();
    const need = { premium: true };
    expect(pool.wait(need)).toBe(0);
    for (const [place, account] of accounts.entries())
      account.setState({ name: "cooling", until: clock.now() + (20 + place) * second, reason: "Slow down." });
    expect(pool.wait(need)).toBe(20 * second);
    expect(pool.wait({ ...need, capable: (account) => account !== octo })).toBe(21 * second);
    clock.pass(20 * second);
    expect(pool.wait(need)).toBe(0);
    for (const account of accounts) account.setState({ name: "failed", reason: "Its sign-in was revoked." });
    expect(pool.wait(need)).toBeUndefined();
    expect(pool.wait({ ...need, capable: () => false })).toBeUndefined();
  });

  test("GitHub is down for all: 503 with retry-after, and the next request after it is served", async () => {
    demo.intercept(exchangePath, () => new Response("", { status: 500 }), 2);
    const { pool, octo, work, plus, clock } = threeAccounts();
    const two = new Pool({ accounts: () => [octo, work], now: clock.now });
    await Promise.allSettled([octo.copilotToken(), work.copilotToken()]);
    expect(two.candidates({ premium: false })).toEqual([]);
    const error = two.whyNone({ premium: false });
    expect([error.status, error.details.code]).toEqual([503, "github_unavailable"]);
    expect(error.details.headers).toEqual({ "retry-after": "1" });
    expect(names(pool.candidates({ premium: true }))).toEqual(["plus"]);
    clock.pass(second);
    expect(names(pool.candidates({ premium: true }))).toEqual(["octo", "work", "plus"]);
    await octo.copilotToken();
    expect(plus.state.name).toBe("ready");
  });

  test("nobody has the model: the accounts are named", () => {
    const { pool, octo } = threeAccounts();
    octo.setState({ name: "failed", reason: "Its sign-in was revoked." });
    expect(pool.whyNone({ premium: true }).details.code).toBe("model_not_offered");
    const error = pool.whyNone({ premium: true, capable: () => false });
    expect([error.status, error.details.code]).toEqual([503, "model_not_offered"]);
    expect(error.message).toContain("octo-demo, work-demo, plus-demo");
  });
});
