/** An account that is opened when it is used behaves as one that was opened at the start. */
import { expect, test } from "bun:test";
import { openAccount } from "../../src/accounts/account";
import { type FoundOut, signInOf } from "../../src/accounts/account-share";
import type { SavedAccount } from "../../src/accounts/account-store";
import { openActiveAccounts } from "../../src/accounts/active-accounts";
import { openLater } from "../../src/accounts/dormant-account";
import { hostsFor } from "../../src/accounts/hosts";
import type { Quota } from "../../src/accounts/quota";
import { someQuota } from "../support/quota";
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
const quota: Quota = { ...someQuota, at: 1_000 };
const usedUp: Quota = { ...quota, remaining: 0, exhausted: true, at: 2_000 };

/** The same account twice: opened, and to be opened. */
function both() {
  const { logger } = keptLog();
  const known: FoundOut = {};
  const paused = new Set<string>();
  const share = {
    known: () => known,
    follow: () => {},
    publish: () => {},
    session: async () =>
      ({
        session: { token: "t", baseUrl: "https://api.individual.githubcopilot.com", mode: "exchange" as const },
      }) as never,
  };
  let opened = 0;
  const open = (each: SavedAccount) => {
    opened += 1;
    return openAccount(each, {
      hosts: hostsFor(),
      version: "1",
      logger,
      ...handClock(),
      share,
      paused: (key) => paused.has(key),
    });
  };
  const eager = open(saved);
  opened = 0;
  const later = openLater(saved, { open, isPaused: (_, key) => paused.has(key), share });
  return { eager, later, known, paused, opened: () => opened, share };
}

const seen = (account: ReturnType<typeof openAccount>) => {
  const { id, key, host, app, temporary, member, state, knownQuota, identity } = account;
  const models = [account.stateFor("gpt-5"), account.stateFor(undefined, false)];
  return { id, key, host, app, temporary, member, state, knownQuota, identity, models };
};

test("looks the same, and looking does not open it", () => {
  const { eager, later, paused, opened } = both();
  expect(seen(later)).toEqual(seen(eager));
  paused.add("github.com/anna");
  expect(seen(later)).toEqual(seen(eager));
  expect(later.state.name).toBe("paused");
  expect([later.presentSession(), opened()]).toEqual([undefined, 0]);
});

test("numbers that another server learned are known without opening it; those that exhaust it, and states, count at once", () => {
  const { eager, later, known, opened } = both();
  known.quota = quota;
  for (const account of [eager, later]) account.adopt(identity, { quota });
  expect(seen(later)).toEqual(seen(eager));
  expect(opened()).toBe(0);
  known.quota = usedUp;
  for (const account of [eager, later]) account.adopt(identity, { quota: usedUp });
  expect(seen(later)).toEqual(seen(eager));
  expect([later.state.name, opened()]).toEqual(["exhausted", 1]);
  const state = { account: { name: "failed", suspended: true, reason: "Blocked." }, models: {} } as const;
  const other = both();
  for (const account of [other.eager, other.later]) account.adopt(identity, { state });
  expect(seen(other.later)).toEqual(seen(other.eager));
  expect(other.later.state).toMatchObject({ name: "failed", suspended: true });
});

test("its first use opens it, with what is known of it", async () => {
  const { later, known, opened } = both();
  known.quota = quota;
  await later.session();
  expect([opened(), later.knownQuota]).toEqual([1, quota]);
  later.mark({ name: "cooling", until: 9e12, reason: "Limited." });
  expect([opened(), later.state.name]).toEqual([1, "cooling"]);
  // What belongs to another sign-in does not.
  later.adopt({ ...identity, signIn: "0" }, { quota: usedUp });
  expect(later.knownQuota).toEqual(quota);
});

test("among the active accounts, what is known of a state opens it at the start", () => {
  const { later, known, share, opened } = both();
  known.state = { account: { name: "cooling", until: 9e12 }, models: {} };
  const active = openActiveAccounts({
    store: { load: () => [saved], stamp: () => "1" },
    open: () => later,
    logger: keptLog().logger,
    share,
  });
  expect([opened(), active.accounts[0]!.state.name]).toEqual([1, "cooling"]);
  active.close();
});
