/** Loads each account's token, models and quota once after the start, so that a failing account is known before a request needs it. */

import type { App } from "../../parts/app";
import type { Account } from "../../people/accounts/account";

/** In the order in which a first request needs them. A step makes no call if the result is known. */
const steps: { what: string; ask: (app: App, account: Account) => Promise<unknown> }[] = [
  { what: "token", ask: (_, account) => account.copilotToken() },
  { what: "model list", ask: ({ catalogue }, account) => catalogue.load(account) },
  // Of a team one server asks, and the others know its numbers.
  { what: "quota", ask: async ({ isLeader }, account) => isLeader && account.quota() },
];

/**
 * Loads one account after the other, to avoid a burst of calls. Requests share the calls in progress. Never throws: a
 * failure becomes the state of the account and a log line.
 */
export async function awaken(app: App): Promise<void> {
  for (const account of app.accounts)
    for (const { what, ask } of steps) {
      if (app.stopping.aborted || app.pool.suspensionError() || ["failed", "paused"].includes(account.state.name))
        break;
      try {
        await ask(app, account);
      } catch (thrown) {
        app.logger.debug(`${account.id} did not provide its ${what} at startup.`, thrown);
      }
    }
}
