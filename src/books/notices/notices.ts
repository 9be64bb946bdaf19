/**
 * Sends notices: checks the conditions twice a minute, and sends each notice once in its period, also after a restart. What a
 * channel does not take is tried again for an hour, with the notice's id, as long as its condition holds.
 */

import type { ConfigStore } from "../../config/store";
import { asProxyError } from "../../lib/errors";
import type { Logger } from "../../lib/logger";
import type { Account } from "../../people/accounts/account";
import type { BudgetState } from "../../people/budgets/entries";
import type { BudgetGuard } from "../../people/budgets/guard";
import { holderKindOf } from "../../people/budgets/holders";
import type { Members } from "../../people/keys/members";
import type { Losses } from "../changes/losses";
import type { GivenWarning } from "../changes/warnings";
import type { History } from "../history/history";
import { postNotice, showOnDesktop } from "./channels";
import {
  accountNotices,
  budgetNotices,
  type EndingLimits,
  gathered,
  isFailing,
  lossNotices,
  type Notice,
  returnNotices,
  upstreamNotices,
  warningNotices,
  watchedMs,
} from "./conditions";
import type { Claim, SentNotices } from "./sent-notices";

interface NoticesOptions {
  /** Those of the whole team. */
  accounts(): readonly Account[];
  members?: Pick<Members, "find" | "hearAll">;
  budgets: Pick<BudgetGuard, "budgets" | "holders" | "overview">;
  config: Pick<ConfigStore, "current">;
  history: Pick<History, "totals">;
  logger: Logger;
  losses: Pick<Losses, "current">;
  /** What GitHub's model lists tell. */
  warnings(): readonly GivenWarning[];
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
  const others = budgets.budgets.filter((budget) => !shared.includes(budget));
  const states = others.map(async (budget) => {
    const atLeast = Math.min(1, ...budget.warn);
    return (await budgets.holders(budget, { limit: maxHolders, atLeast })).states;
  });
  return [await budgets.overview(shared), ...(await Promise.all(states))].flat();
}

export class Notices {
  readonly #options: NoticesOptions;
  readonly #limits: EndingLimits = new Map();
  readonly #timer: Timer;
  /** Timestamp of the first failure, while the upstream fails. */
  #failingSince: number | undefined;

  constructor(options: NoticesOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      this.check().catch((thrown) => options.logger.warn("The notices could not be checked.", thrown));
    }, checkEvery);
    this.#timer.unref();
  }

  /** Checks all conditions now, and resolves when the new notices are sent. */
  async check(): Promise<void> {
    const { isLeader, logger, sent } = this.#options;
    if (!isLeader()) return;
    const all = await this.#current();
    const claims = new Map(
      (all.length === 0 ? [] : await sent.claim(all.map(({ id }) => id))).map((each) => [each.id, each]),
    );
    const due = all.filter(({ id }) => claims.has(id));
    for (const { id, title, message, severity, isLogged } of due)
      if (claims.get(id)!.isNew && !isLogged) logger[severity === "error" ? "error" : "warn"](`${title}. ${message}`);
    await this.#sendDue(due, claims);
  }

  /** Sends a test notice. @returns What failed, as a sentence for each channel; empty if every channel worked. */
  async test(): Promise<string[]> {
    const notice = {
      id: `test ${this.#options.now()}`,
      type: "test",
      severity: "info",
      title: "Test notice from dragoman",
      message: "Notices are set up correctly.",
    } as const;
    const faults = await Promise.all(this.#channels().map((channel) => deliver(channel, notice)));
    return faults.filter((fault) => fault !== undefined);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #current(): Promise<Notice[]> {
    const { accounts, budgets, config, history, losses, members, now, warnings } = this.#options;
    await members?.hearAll();
    const at = now();
    const [all, failed] = await Promise.all([
      history.totals({ from_ms: at - watchedMs }),
      history.totals({ from_ms: at - watchedMs, status_class: 5 }),
    ]);
    const recent = { count: all.request_count, failed: failed.request_count, firstAt: all.first_at_ms };
    this.#failingSince = isFailing(recent, at) ? (this.#failingSince ?? recent.firstAt ?? at) : undefined;
    const nameOf = (member: string) => members?.find(member)?.name;
    const noticed = { accounts: accounts(), thresholds: config.current.notices.accounts, nameOf };
    return [
      ...budgetNotices(await statesOf(budgets), at),
      ...accountNotices(noticed, at),
      ...returnNotices(this.#limits, noticed, at),
      ...(this.#failingSince === undefined ? [] : upstreamNotices(this.#failingSince, at)),
      ...lossNotices(losses.current, at),
      ...warningNotices(warnings()),
    ];
  }

  /** Sends to each channel what it does not have yet, and notes what it has then. */
  async #sendDue(due: readonly Notice[], claims: ReadonlyMap<string, Claim>): Promise<void> {
    const { logger, sent } = this.#options;
    const open = this.#channels();
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
    await sent.note(
      [...had].map(([id, names]) => {
        return { id, delivered: [...names], isDone: open.every(([name]) => names.has(name)) };
      }),
    );
  }

  /** Each channel that is on, with what it does. */
  #channels(): Channel[] {
    const { config, now, version } = this.#options;
    const { webhookUrl: url, webhookSecret: secret, webhookFormat: format, desktop } = config.current.notices;
    const channels: Channel[] = [];
    if (url)
      channels.push(["webhook", (notice) => postNotice({ url, secret, format }, notice, { at: now(), version })]);
    if (desktop) channels.push(["desktop", (notice) => showOnDesktop(notice)]);
    return channels;
  }
}

/** @returns What failed, as a sentence. */
const deliver = ([name, send]: Channel, notice: Notice): Promise<string | undefined> =>
  send(notice).then(
    () => undefined,
    (thrown) => `The notice could not be sent to the ${name}: ${asProxyError(thrown).message}`,
  );
