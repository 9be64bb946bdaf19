/** Rows: which accounts serve now. */
import { describe, expect, test } from "bun:test";
import { Account } from "../../../src/people/accounts/account";
import type { SavedAccount } from "../../../src/people/accounts/account-store";
import { openActiveAccounts } from "../../../src/people/accounts/active-accounts";
import { hostsFor } from "../../../src/people/accounts/hosts";
import { Pool } from "../../../src/people/accounts/pool";
import { until } from "../../support/until";
import { handClock, keptLog } from "./bench";

const person = (login: string, addedAt: number, githubToken = `ghu_token_of_${login}`): SavedAccount => ({
  login,
  host: "github.com",
  app: "vscode",
  mode: "exchange",
  githubToken,
  addedAt,
});

function openFrom(saved: SavedAccount[]) {
  const { logger, lines } = keptLog();
  const clock = handClock();
  const folder = { saved, looks: 0, readable: true };
  const activeAccounts = openActiveAccounts({
    store: {
      load: () => folder.saved,
      stamp: () => {
        folder.looks += 1;
        if (!folder.readable) throw new Error("EMFILE");
        return JSON.stringify(folder.saved);
      },
    },
    open: (each) => new Account(each, { hosts: hostsFor(), version: "1", logger, ...clock }),
    logger,
  });
  const pool = new Pool({ accounts: () => activeAccounts.accounts, now: clock.now });
  return { folder, roster: activeAccounts, pool, lines, clock };
}

describe("the active accounts", () => {
  test("somebody who signs in or out beside is taken up or let go; everybody else stays the very same", () => {
    const { folder, roster: activeAccounts, lines } = openFrom([person("octo", 1)]);
    const [octo] = activeAccounts.accounts;
    folder.saved = [person("octo", 1), person("work", 2)];
    activeAccounts.refresh();
    expect(activeAccounts.accounts.map(({ id }) => id)).toEqual(["octo", "work"]);
    expect(activeAccounts.accounts[0]).toBe(octo!);
    folder.saved = [person("work", 2)];
    activeAccounts.refresh();
    expect(activeAccounts.accounts.map(({ id }) => id)).toEqual(["work"]);
    expect(lines.join("")).toContain("work is signed in and ready.");
    expect(lines.join("")).toContain("octo is signed out; requests already in progress will finish.");
    activeAccounts.close();
  });

  test("who signs in again with a new token begins anew: what was wrong with the old one is forgotten", () => {
    const { folder, roster: activeAccounts } = openFrom([person("octo", 1)]);
    activeAccounts.accounts[0]!.setState({ name: "failed", reason: "Revoked." });
    folder.saved = [person("octo", 1, "ghu_token_of_octo_anew")];
    activeAccounts.refresh();
    expect(activeAccounts.accounts.map(({ state }) => state.name)).toEqual(["ready"]);
    activeAccounts.close();
  });

  test("it looks once a second by itself, and a folder that cannot be read for a moment sends nobody away", async () => {
    const { folder, roster: activeAccounts } = openFrom([person("octo", 1)]);
    folder.readable = false;
    folder.saved = [];
    const { looks } = folder;
    await until(() => folder.looks > looks, "it has looked again");
    expect(activeAccounts.accounts.length).toBe(1);
    folder.readable = true;
    await until(() => activeAccounts.accounts.length === 0, "who is not there any more is let go");
    activeAccounts.close();
  });
});
