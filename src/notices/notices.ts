/** Sends notices: checks the conditions twice a minute, and sends each notice once in its period, also after a restart. */

import { join } from "node:path";
import { z } from "zod";
import type { Account } from "../accounts/account";
import type { BudgetGuard } from "../budgets/guard";
import { readPrivate, writePrivate } from "../config/files";
import type { ConfigStore } from "../config/store";
import { asProxyError } from "../errors";
import { dayMs } from "../format";
import type { History } from "../history/history";
import { parseJson } from "../json";
import { lazy } from "../lazy";
import type { Logger } from "../logger";
import { postNotice, showOnDesktop } from "./channels";
import { accountNotices, budgetNotices, isFailing, type Notice, upstreamNotices, watchedMs } from "./conditions";

export interface Notices {
  /** Checks all conditions now, and resolves when the new notices are sent. */
  check(): Promise<void>;
  /** Sends a test notice. @returns What failed, as a sentence for each channel; empty if every channel worked. */
  test(): Promise<string[]>;
  close(): void;
}

export interface NoticesOptions {
  accounts(): readonly Account[];
  budgets: Pick<BudgetGuard, "overview">;
  config: Pick<ConfigStore, "current">;
  history: Pick<History, "totals">;
  logger: Logger;
  /** The data folder. */
  home: string;
  version: string;
  /** Wall clock, ms. */
  now(): number;
}

/** Milliseconds. */
const checkEvery = 30_000;
/** Milliseconds that an id is remembered: longer than any period. */
const rememberFor = 40 * dayMs;
const maxBytes = 1024 * 1024;

const sentSchema = lazy(() => z.record(z.string(), z.number()));

export function openNotices({
  accounts,
  budgets,
  config,
  history,
  logger,
  home,
  version,
  now,
}: NoticesOptions): Notices {
  const file = join(home, "notices.json");
  let sent: Map<string, number> | undefined;
  /** Timestamp of the first failure, while the upstream fails. */
  let failingSince: number | undefined;

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
      ...budgetNotices(await budgets.overview(), at),
      ...accountNotices(accounts(), config.current.notices.accounts, at),
      ...(failingSince === undefined ? [] : upstreamNotices(failingSince, at)),
    ];
  }

  async function check(): Promise<void> {
    sent ??= readSent(file);
    const due = (await current()).filter(({ id }) => !sent!.has(id));
    if (due.length === 0) return;
    for (const [id, at] of sent) if (Math.abs(now() - at) > rememberFor) sent.delete(id);
    for (const { id } of due) sent.set(id, now());
    try {
      writePrivate(file, JSON.stringify(Object.fromEntries(sent)));
    } catch (thrown) {
      logger.warn("The notices that were sent could not be saved, so they may be sent again after a restart.", thrown);
    }
    for (const { title, message, severity } of due)
      logger[severity === "error" ? "error" : "warn"](`${title}. ${message}`);
    const faults = (await Promise.all(due.map(deliver))).flat();
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

/** A missing or damaged file: a notice may be sent twice. */
function readSent(file: string): Map<string, number> {
  const read = sentSchema().safeParse(parseJson(readPrivate(file, maxBytes) ?? "{}"));
  return new Map(read.success ? Object.entries(read.data) : []);
}
