/** Rows: the account that serves a request; `fixtures/scenes/nobody.txt` has the reasons for which none can. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Demo, startDemo } from "../../../src/demo/demo";
import { ProxyError } from "../../../src/lib/errors";
import { zonedTime } from "../../../src/lib/format";
import { Account } from "../../../src/people/accounts/account";
import { type AccountFailure, Pool } from "../../../src/people/accounts/pool";
import { testScenes } from "../../support/scenes";
import { handClock, hostsOf, keptLog, minute, savedFrom, second } from "./bench";

testScenes("nobody");

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
});

describe("why nobody can serve", () => {
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
    expect([pool.candidates({ premium: false }), pool.wait({ premium: false })]).toEqual([[], undefined]);
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

  test("nobody has the model: the accounts are named", () => {
    const { pool, octo } = threeAccounts();
    octo.setState({ name: "failed", reason: "Its sign-in was revoked." });
    expect(pool.whyNone({ premium: true }).details.code).toBe("model_not_offered");
    const error = pool.whyNone({ premium: true, capable: () => false });
    expect([error.status, error.details.code]).toEqual([503, "model_not_offered"]);
    expect(error.message).toContain("octo-demo, work-demo, plus-demo");
  });
});
