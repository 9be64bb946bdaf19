/** Sends notices: checks the conditions twice a minute, and sends each notice once in its period, also after a restart. */

import type { Account } from "../accounts/account";
import type { BudgetState } from "../budgets/entries";
import type { BudgetGuard } from "../budgets/guard";
import { holderKindOf } from "../budgets/holders";
import type { ConfigStore } from "../config/store";
import { asProxyError } from "../errors";
import type { History } from "../history/history";
import type { Members } from "../keys/members";
import type { Logger } from "../logger";
import { postNotice, showOnDesktop } from "./channels";
import {
  accountNotices,
  budgetNotices,
  gathered,
  isFailing,
  type Notice,
  upstreamNotices,
  watchedMs,
} from "./conditions";
import type { SentNotices } from "./sent-notices";

export interface Notices {
  /** Checks all conditions now, and resolves when the new notices are sent. */
  check(): Promise<void>;
  /** Sends a test notice. @returns What failed, as a sentence for each channel; empty if every channel worked. */
  test(): Promise<string[]>;
  close(): void;
}

export interface NoticesOptions {
  /** Those of the whole team. */
  accounts(): readonly Account[];
  members?: Pick<Members, "find">;
  budgets: Pick<BudgetGuard, "budgets" | "holders" | "overview">;
  config: Pick<ConfigStore, "current">;
  history: Pick<History, "totals">;
  logger: Logger;
  sent: SentNotices;
  /** Whether this server sends notices: one of a team does. Read at each check. */
  isLeader(): boolean;
  version: string;
  /** Wall clock, ms. */
  now(): number;
}

/** Milliseconds. */
const checkEvery = 30_000;
/** Of one budget, the holders that have used the largest shares of their limits. */
const maxHolders = 10_000;

/** Of a budget with an amount for each, the states of those that have reached a threshold. */
async function statesOf(budgets: NoticesOptions["budgets"]): Promise<BudgetState[]> {
  const shared = budgets.budgets.filter((budget) => holderKindOf(budget) === null);
  const others = budgets.budgets.filter((budget) => !shared.includes(budget) && budget.per !== "session");
  const states = others.map(async (budget) => {
    const atLeast = Math.min(1, ...budget.warn);
    return (await budgets.holders(budget, { limit: maxHolders, atLeast })).states;
  });
  return [await budgets.overview(shared), ...(await Promise.all(states))].flat();
}

export function openNotices({
  accounts,
  budgets,
  config,
  history,
  logger,
  members,
  sent,
  isLeader,
  version,
  now,
}: NoticesOptions): Notices {
  /** Timestamp of the first failure, while the upstream fails. */
  let failingSince: number | undefined;

  const nameOf = (member: string) => members?.find(member)?.name;

  /** Each channel that is on, with what it does. */
  const channels = (): [name: string, send: (notice: Notice) => Promise<void>][] => {
    const { webhookUrl: url, webhookSecret: secret, webhookFormat: format, desktop } = config.current.notices;
    return [
      ...(url
        ? [
            [
              "webhook",
              (notice: Notice) => postNotice({ url, secret, format }, notice, { at: now(), version }),
            ] as const,
          ]
        : []),
      ...(desktop ? [["desktop", (notice: Notice) => showOnDesktop(notice)] as const] : []),
    ].map(([name, send]) => [name, send]);
  };

  async function deliver(notice: Notice): Promise<string[]> {
    const results = await Promise.all(
      channels().map(([name, send]) =>
        send(notice).then(
          () => undefined,
          (thrown) => `The notice could not be sent to the ${name}: ${asProxyError(thrown).message}`,
        ),
      ),
    );
    return results.filter((fault) => fault !== undefined);
  }

  async function current(): Promise<Notice[]> {
    const at = now();
    const [all, failed] = await Promise.all([
      history.totals({ from_ms: at - watchedMs }),
      history.totals({ from_ms: at - watchedMs, status_class: 5 }),
    ]);
    const recent = { count: all.request_count, failed: failed.request_count, firstAt: all.first_at_ms };
    failingSince = isFailing(recent, at) ? (failingSince ?? recent.firstAt ?? at) : undefined;
    return [
      ...budgetNotices(await statesOf(budgets), at),
      ...accountNotices({ accounts: accounts(), thresholds: config.current.notices.accounts, nameOf }, at),
      ...(failingSince === undefined ? [] : upstreamNotices(failingSince, at)),
    ];
  }

  async function check(): Promise<void> {
    if (!isLeader()) return;
    const all = await current();
    const fresh = new Set(all.length === 0 ? [] : await sent.claim(all.map(({ id }) => id)));
    const due = all.filter(({ id }) => fresh.has(id));
    for (const { title, message, severity } of due)
      logger[severity === "error" ? "error" : "warn"](`${title}. ${message}`);
    const faults = (await Promise.all(gathered(due).map(deliver))).flat();
    for (const fault of faults) logger.warn(fault);
  }

  const timer = setInterval(() => {
    check().catch((thrown) => logger.warn("The notices could not be checked.", thrown));
  }, checkEvery);
  timer.unref();

  return {
    check,
    test: () =>
      deliver({
        id: `test ${now()}`,
        type: "test",
        severity: "info",
        title: "Test notice from dragoman",
        message: "Notices are set up correctly.",
      }),
    close() {
      clearInterval(timer);
    },
  };
}
