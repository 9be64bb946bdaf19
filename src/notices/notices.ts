/**
 * Sends notices: checks the conditions twice a minute, and sends each notice once in its period, also after a restart. What a
 * channel does not take is tried again for an hour, with the notice's id, as long as its condition holds.
 */

import type { Account } from "../accounts/account";
import type { BudgetState } from "../budgets/entries";
import type { BudgetGuard } from "../budgets/guard";
import { holderKindOf } from "../budgets/holders";
import type { ConfigStore } from "../config/store";
import { asProxyError } from "../errors";
import type { History } from "../history/history";
import type { Members } from "../keys/members";
import type { Logger } from "../logger";
import type { Losses } from "../upstream/changes/losses";
import { postNotice, showOnDesktop } from "./channels";
import {
  accountNotices,
  budgetNotices,
  gathered,
  isFailing,
  type Limits,
  lossNotices,
  type Notice,
  returnNotices,
  upstreamNotices,
  watchedMs,
} from "./conditions";
import type { Claim, SentNotices } from "./sent-notices";

export interface Notices {
  /** Checks all conditions now, and resolves when the new notices are sent. */
  check(): Promise<void>;
  /** Sends a test notice. @returns What failed, as a sentence for each channel; empty if every channel worked. */
  test(): Promise<string[]>;
  close(): void;
}

interface NoticesOptions {
  /** Those of the whole team. */
  accounts(): readonly Account[];
  members?: Pick<Members, "find">;
  budgets: Pick<BudgetGuard, "budgets" | "holders" | "overview">;
  config: Pick<ConfigStore, "current">;
  history: Pick<History, "totals">;
  logger: Logger;
  losses: Pick<Losses, "current">;
  sent: SentNotices;
  /** Whether this server sends notices: one of a team does. Read at each check. */
  isLeader(): boolean;
  version: string;
  /** Wall clock, ms. */
  now(): number;
}

type Channel = [name: string, send: (notice: Notice) => Promise<void>];

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
  losses,
  members,
  sent,
  isLeader,
  version,
  now,
}: NoticesOptions): Notices {
  /** Timestamp of the first failure, while the upstream fails. */
  let failingSince: number | undefined;

  const limits: Limits = new Map();

  const nameOf = (member: string) => members?.find(member)?.name;

  /** Each channel that is on, with what it does. */
  const channels = (): Channel[] => {
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

  /** @returns What failed, as a sentence. */
  const deliver = ([name, send]: Channel, notice: Notice): Promise<string | undefined> =>
    send(notice).then(
      () => undefined,
      (thrown) => `The notice could not be sent to the ${name}: ${asProxyError(thrown).message}`,
    );

  /** Sends to each channel what it does not have yet, and notes what it has then. */
  async function sendDue(due: readonly Notice[], claims: ReadonlyMap<string, Claim>): Promise<void> {
    const open = channels();
    const had = new Map(due.map(({ id }) => [id, new Set(claims.get(id)!.delivered)]));
    const faults: string[] = [];
    const sends = open.flatMap((channel) =>
      gathered(due.filter(({ id }) => !had.get(id)!.has(channel[0]))).map(async (notice) => {
        const fault = await deliver(channel, notice);
        if (fault) faults.push(`${fault} It is tried again for an hour.`);
        else for (const id of notice.of ?? [notice.id]) had.get(id)!.add(channel[0]);
      }),
    );
    await Promise.all(sends);
    for (const fault of faults) logger.warn(fault);
    for (const [id, names] of had)
      await sent.note(
        id,
        [...names],
        open.every(([name]) => names.has(name)),
      );
  }

  async function current(): Promise<Notice[]> {
    const at = now();
    const [all, failed] = await Promise.all([
      history.totals({ from_ms: at - watchedMs }),
      history.totals({ from_ms: at - watchedMs, status_class: 5 }),
    ]);
    const recent = { count: all.request_count, failed: failed.request_count, firstAt: all.first_at_ms };
    failingSince = isFailing(recent, at) ? (failingSince ?? recent.firstAt ?? at) : undefined;
    const noticed = { accounts: accounts(), thresholds: config.current.notices.accounts, nameOf };
    return [
      ...budgetNotices(await statesOf(budgets), at),
      ...accountNotices(noticed, at),
      ...returnNotices(limits, noticed, at),
      ...(failingSince === undefined ? [] : upstreamNotices(failingSince, at)),
      ...lossNotices(losses.current, at),
    ];
  }

  async function check(): Promise<void> {
    if (!isLeader()) return;
    const all = await current();
    const claims = new Map(
      (all.length === 0 ? [] : await sent.claim(all.map(({ id }) => id))).map((each) => [each.id, each]),
    );
    const due = all.filter(({ id }) => claims.has(id));
    for (const { id, title, message, severity, isLogged } of due)
      if (claims.get(id)!.isNew && !isLogged) logger[severity === "error" ? "error" : "warn"](`${title}. ${message}`);
    await sendDue(due, claims);
  }

  const timer = setInterval(() => {
    check().catch((thrown) => logger.warn("The notices could not be checked.", thrown));
  }, checkEvery);
  timer.unref();

  return {
    check,
    async test() {
      const notice = {
        id: `test ${now()}`,
        type: "test",
        severity: "info",
        title: "Test notice from dragoman",
        message: "Notices are set up correctly.",
      } as const;
      const faults = await Promise.all(channels().map((channel) => deliver(channel, notice)));
      return faults.filter((fault) => fault !== undefined);
    },
    close() {
      clearInterval(timer);
    },
  };
}
