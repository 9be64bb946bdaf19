/** Holds a request to the budgets: reserves a line in them before it is sent, and settles the line when its cost is known. */

import { codecs } from "../../dialects/codecs";
import type { Usage } from "../../dialects/hub/reply";
import { type Awaitable, whenKnown } from "../../lib/awaitable";
import { ProxyError } from "../../lib/errors";
import { type Cost, type CostUnit, costUnitNames } from "../../lib/money";
import type { Subject } from "../../people/budgets/budgets";
import { amountName } from "../../people/budgets/entries";
import type { BudgetGuard } from "../../people/budgets/guard";
import type { RequestScope } from "../scope";
import type { AttemptedAccount, Book, BudgetLine } from "./book";
import { costSoFar } from "./row";

/** Bytes of a body for one token, roughly; the guard corrects the estimate by what requests of the model really cost. */
const bytesPerToken = 4;
/** Tokens of an answer, before anything is known of it. */
const expectedOutput = 500;

/** The running request whose lines they are. */
interface Running {
  readonly book: Book;
  /** Ends it, for a budget that cuts running streams. */
  stop(why: ProxyError): void;
}

type Parts = Pick<RequestScope, "budgets">;

/**
 * Reserves for a call with this account (null with a provider), in place of an earlier reservation. What another account was
 * charged is settled with that account. It is one request all the same, where requests are counted.
 * @returns The error if only this account's budget refuses the request, so that another account may serve it.
 * @throws ProxyError `quota`, `unable`.
 */
export function reserve(
  parts: Parts,
  running: Running,
  account: AttemptedAccount | null,
): Awaitable<ProxyError | undefined> {
  const { book } = running;
  const guard = parts.budgets;
  const open = openLine(book);
  if (!open && guard.budgets.length === 0) return undefined;
  if (open && open.account?.key === account?.key && open.model === book.model) return undefined;
  if (open?.isCharged) {
    const soFar = costSoFar(book, open.account);
    settle(guard, open, soFar, restOf(book, open, soFar));
  }
  return openNext(parts, running, account);
}

/** Opens a line in place of the open one, to which nothing was charged. */
function openNext(parts: Parts, running: Running, account: AttemptedAccount | null): Awaitable<ProxyError | undefined> {
  const { book } = running;
  const guard = parts.budgets;
  return whenKnown(release(parts, running), () => {
    const { model } = book;
    if (model === undefined || guard.budgets.length === 0) return undefined;
    const expected = guard.expect(model, costSoFar(book, account, expectedUsage(book)));
    const subject = subjectOf(guard, book, account);
    const stop = (why: ProxyError) => running.stop(why);
    const counted = namesCounted(book);
    const reserved = guard.reserve({ ...subject, counted }, expected, stop);
    return whenKnown(reserved, (reservation) => {
      if (!reservation || reservation instanceof ProxyError) return reservation;
      book.lines ??= [];
      // Asked while the upstream works: the client does not wait for it.
      const remaining = guard.remaining(subject, counted.size === 0 ? reservation.states : undefined);
      book.lines.push({ account, model, reservation, remaining, expected, isCharged: false });
      // The request was stopped while it waited for its reservation.
      if (book.hasEnded) void release(parts, running);
      return undefined;
    });
  });
}

/** Drops the reservation: nothing was charged. */
export function release({ budgets }: Parts, { book }: Pick<Running, "book">): Awaitable<void> {
  const line = openLine(book);
  if (!line) return;
  line.ended = {};
  return budgets.release(line.reservation);
}

/**
 * Ends the reservation with the request.
 * @param cost What the request cost. Undefined if it was not served.
 */
export function endLines(parts: Parts, running: Running, cost: Cost | undefined): void {
  const { book } = running;
  const line = openLine(book);
  if (!line) return;
  const rest = cost && restOf(book, line, cost);
  // Without a rest the last call was refused: accounts before it have settled everything.
  if (!rest || (!rest.amount && hasSettled(book))) return void release(parts, running);
  const isCut = book.hasBegun && !book.isOver;
  settle(parts.budgets, line, cost, isCut ? atLeastSent(book, line, rest) : rest);
}

/** Tells the client what the budgets have left, if one applies. */
export function tellRemaining({ book }: Pick<Running, "book">, response: Response): Awaitable<Response> {
  return whenKnown(book.lines?.at(-1)?.remaining, (remaining) => {
    if (remaining !== undefined) response.headers.set("x-dragoman-budget-remaining", remaining);
    return response;
  });
}

function openLine({ lines }: Book): BudgetLine | undefined {
  const line = lines?.at(-1);
  return line?.ended ? undefined : line;
}

/** @param soFar What the request has cost up to now. @param real The line's part of it. */
function settle(guard: BudgetGuard, line: BudgetLine, soFar: Cost, real: Cost): void {
  line.ended = { soFar };
  guard.settle(line.reservation, { model: line.model, expected: line.expected, real });
}

/** What lines before have settled of a cost in this unit. */
const settledIn = ({ lines = [] }: Book, unit: CostUnit): number =>
  lines.findLast(({ ended }) => ended?.soFar?.unit === unit)?.ended?.soFar?.amount ?? 0;

const hasSettled = (book: Book): boolean => costUnitNames.some((unit) => settledIn(book, unit) > 0);

/** The names of the amounts in which the request counts already. */
const namesCounted = ({ lines = [] }: Book): ReadonlySet<string> =>
  new Set(
    lines.flatMap(({ ended, reservation }) =>
      ended?.soFar ? reservation.entries.map(({ key }) => amountName(key)) : [],
    ),
  );

/** What the line has to settle of the cost so far. What is not known counts as expected, and what is known in part as no less than that. */
function restOf(book: Book, { expected }: BudgetLine, soFar: Cost): Cost {
  const rest = less(book, soFar);
  return rest.amount === null ? expected : rest.isAtLeast ? larger(rest, expected) : rest;
}

/** Counts what was sent of a reply that broke off: a client that hangs up just before the end has nearly all of it. */
function atLeastSent(book: Book, { account }: BudgetLine, rest: Cost): Cost {
  const { chapter, clientDialect, sentBytes } = book;
  if (clientDialect === "embeddings") return rest;
  const { usage } = chapter;
  const sent = Math.floor(sentBytes / codecs[clientDialect].facts.streamBytesPerToken);
  const input = usage.input ?? expectedUsage(book).input;
  const output = Math.max(usage.output ?? 0, sent);
  return larger(rest, less(book, costSoFar(book, account, { ...usage, input, output })));
}

const subjectOf = (guard: BudgetGuard, book: Book, account: AttemptedAccount | null): Subject => ({
  member: guard.memberOf(book.member),
  account: account?.id ?? null,
  ...(account && { accountKey: account.key }),
  key: book.keyName,
  model: book.target!.model.id,
  isProvided: book.target!.provider !== undefined,
  project: book.hints.project ?? null,
});

/** If nothing of it is cached. */
const expectedUsage = ({ asked }: Book): Partial<Usage> => ({
  input: Math.ceil((asked?.bytes ?? 0) / bytesPerToken),
  output: expectedOutput,
});

/** What no line before has settled of a cost; unknown stays unknown. */
const less = (book: Book, cost: Cost): Cost => ({
  ...cost,
  amount: cost.amount === null ? null : Math.max(0, cost.amount - settledIn(book, cost.unit)),
});

/** Of another unit, or of an unknown amount, nothing can be said. */
const larger = (cost: Cost, { unit, amount }: Cost): Cost =>
  cost.unit === unit && amount !== null ? { unit, amount: Math.max(cost.amount ?? 0, amount) } : cost;
