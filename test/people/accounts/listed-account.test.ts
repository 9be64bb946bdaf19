/** Rows: an account of a team that is only listed here: what it shows, and what makes it more. */
import { expect, test } from "bun:test";
import { Account } from "../../../src/people/accounts/account";
import type { SavedAccount } from "../../../src/people/accounts/account-store";
import { type AccountSync, type AccountUpdate, signInOf } from "../../../src/people/accounts/account-sync";
import { openActiveAccounts } from "../../../src/people/accounts/active-accounts";
import { hostsFor } from "../../../src/people/accounts/hosts";
import type { Quota } from "../../../src/people/accounts/quota";
import { handClock, keptLog } from "./bench";

const saved: SavedAccount = {
  login: "Anna",
  host: "github.com",
  member: "7b3c",
  app: "vscode",
  mode: "exchange",
  githubToken: "ghu_token_of_anna",
  addedAt: 1,
};
const identity = { key: "github.com/anna", signIn: signInOf(saved.githubToken) };
const counted = { entitlement: 300, remaining: 200, percent_remaining: 66.6, unlimited: false, overage_count: 0 };
const quota: Quota = {
  plan: "business",
  unit: "premium",
  entitlement: 300,
  remaining: 200,
  unlimited: false,
  overage: false,
  overageCount: 0,
  exhausted: false,
  resetAt: null,
  at: 1_000,
  snapshots: { premium_interactions: counted, chat: counted, completions: counted },
};
const usedUp: Quota = { ...quota, remaining: 0, exhausted: true, at: 2_000 };

const ready = { name: "ready" } as const;

/** An account, what other servers know of it, and whether it was ever used here: its token is concealed then. */
function listed() {
  const { logger } = keptLog();
  let isUsed = false;
  const noting = {
    ...logger,
    conceal() {
      isUsed = true;
    },
  };
  const known: AccountUpdate = {};
  const paused = new Set<string>();
  const token = { bearer: "t", baseUrl: "https://api.individual.githubcopilot.com", mode: "exchange" } as const;
  const sync: AccountSync = {
    cached: () => known,
    follow: () => {},
    publish: () => {},
    copilotToken: async () => ({ token, freshFor: 1_500_000, lifetime: 1_800_000 }),
  };
  const parts = { hosts: hostsFor(), version: "1", logger: noting, sync, paused: (key: string) => paused.has(key) };
  const account = new Account(saved, { ...parts, ...handClock() });
  return { account, known, paused, sync, isUsed: () => isUsed };
}

test("a listed account shows who it is and that it is paused, without being used", () => {
  const { account, paused, isUsed } = listed();
  const { id, key, host, app, temporary, member } = account;
  expect({ id, key, host, app, temporary, member }).toEqual({
    ...{ id: "Anna", key: "github.com/anna", host: "github.com", app: "vscode", temporary: false, member: "7b3c" },
  });
  expect([account.state, account.stateFor("gpt-5"), account.presentCopilotToken()]).toEqual([ready, ready, undefined]);
  paused.add("github.com/anna");
  expect([account.state.name, account.stateFor(undefined, false).name]).toEqual(["paused", "paused"]);
  expect(isUsed()).toBe(false);
});

test("a listed account shows numbers that another server learned; those that exhaust it, and states, count at once", () => {
  const { account, known, isUsed } = listed();
  known.quota = quota;
  account.applyRemote(identity, { quota });
  expect([account.knownQuota, account.state, isUsed()]).toEqual([quota, ready, false]);
  known.quota = usedUp;
  account.applyRemote(identity, { quota: usedUp });
  expect([account.state.name, account.knownQuota]).toEqual(["exhausted", usedUp]);
  const other = listed().account;
  const state = {
    account: { name: "failed", suspended: true, retryAt: 9e12, reason: "Blocked." },
    models: {},
  } as const;
  other.applyRemote(identity, { state });
  expect(other.state).toMatchObject({ name: "failed", suspended: true });
});

test("the first use of a listed account begins with what is known of it", async () => {
  const { account, known, isUsed } = listed();
  known.quota = quota;
  await account.copilotToken();
  expect([isUsed(), account.knownQuota]).toEqual([true, quota]);
  account.setState({ name: "cooling", until: 9e12, reason: "Limited." });
  expect(account.state.name).toBe("cooling");
  // What belongs to another sign-in does not count.
  account.applyRemote({ ...identity, signIn: "0" }, { quota: usedUp });
  expect(account.knownQuota).toEqual(quota);
});

test("among the active accounts, a state that is known counts from the start", () => {
  const { account, known, sync } = listed();
  known.state = { account: { name: "cooling", until: 9e12 }, models: {} };
  const active = openActiveAccounts({
    store: { load: () => [saved], stamp: () => "1" },
    open: () => account,
    logger: keptLog().logger,
    sync,
  });
  expect(active.accounts[0]!.state.name).toBe("cooling");
  active.close();
});
