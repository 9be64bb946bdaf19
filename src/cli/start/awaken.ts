/** Loads each account's token, models and quota once after the start, so that a failing account is known before a request needs it. */
import type { Account } from "../../accounts/account";
import type { App } from "../../app";

/** In this order: what a first request waits for comes first. Each asks nobody where the answer is known already. */
const steps: { what: string; ask: (app: App, account: Account) => Promise<unknown> }[] = [
  { what: "token", ask: (_, account) => account.session() },
  { what: "model list", ask: ({ catalogue }, account) => catalogue.load(account) },
  { what: "quota", ask: (_, account) => account.quota() },
];

/**
 * One account after the other, so that nobody's start is a burst of calls; a request that comes meanwhile shares what is
 * under way. Never throws: what GitHub says of an account is its state, and a line in the log.
 */
export async function awaken(app: App): Promise<void> {
  for (const account of app.accounts)
    for (const { what, ask } of steps) {
      if (app.stopping.aborted || app.pool.stopped() || account.state.name === "failed") break;
      try {
        await ask(app, account);
      } catch (thrown) {
        app.logger.debug(`${account.id} did not provide its ${what} at startup.`, thrown);
      }
    }
}
