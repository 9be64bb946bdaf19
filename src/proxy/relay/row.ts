/** The history's row of a request, its log line and its cost, made of its book. Nothing here is sent; that a turn has ended is told to `CacheWatch`, once. */

import type { Losses } from "../../books/changes/losses";
import type { Entry, InFlightRequest } from "../../books/history/entry";
import { packed } from "../../books/history/portions";
import type { Usage } from "../../dialects/hub/reply";
import { type Cost, isCostUnit } from "../../lib/money";
import type { RequestScope } from "../scope";
import type { CachedTurn } from "../upstream/cache-watch";
import type { AutoChoice } from "../upstream/copilot/auto";
import { type CostFacts, costOf } from "../upstream/models/price";
import { type Attempted, type AttemptedAccount, type Book, type Chapter, errorName } from "./book";
import { type EndedPrompt, endedPrompt } from "./portions";
import { shortHash } from "./session-id";

/** The row as far as it is known while the request runs. */
export function inFlightRow(book: Book): InFlightRequest {
  const { asked, target, facts, passedOver, wait } = book;
  const { account } = book.chapter;
  return {
    request_id: book.requestId,
    started_at_ms: book.startedAtMs,
    first_byte_ms: book.firstByteMs ?? null,
    path: book.path,
    client_dialect: book.clientDialect,
    upstream_dialect: target?.dialect ?? null,
    upstream_endpoint: target?.endpoint ?? null,
    account_id: account?.id ?? null,
    account_key: account?.key ?? null,
    client_model: asked?.model ?? null,
    upstream_model: target?.model.id ?? null,
    stream: asked?.stream ? 1 : 0,
    initiator: facts?.initiator ?? null,
    initiator_reason: facts?.reason ?? null,
    attempts: shownAttempts(book.attempts, passedOver !== undefined),
    client_name: book.clientName,
    key_name: book.keyName,
    member: book.member,
    searches: book.searches ?? null,
    parent_id: book.parentId ?? null,
    fallbacks: passedOver ? JSON.stringify(passedOver) : null,
    waited_for: wait?.why ?? null,
    waits_until_ms: wait?.until ?? null,
    ...hintColumns(book),
  };
}

/** Two people's prompts are two, whatever ids their clients choose. */
const promptHash = (prompt: string | undefined, member: string | null): string | null =>
  prompt === undefined ? null : shortHash(`prompt ${member ?? ""} ${prompt}`);

const hintColumns = ({ hints: { prompt, kind, agentType, project }, member, sessionPrompt, target }: Book) => ({
  prompt: promptHash(prompt ?? sessionPrompt, member),
  kind: kind ?? (prompt === undefined ? null : "main"),
  agent_type: agentType ?? null,
  route: target?.route ?? null,
  project: project ?? null,
});

/** @param hasSeveral Several models were asked: only then each attempt names its own. */
function shownAttempts(attempts: readonly Attempted[], hasSeveral: boolean): string {
  const shown: object[] = [];
  for (const { account, model, status, error, ms } of attempts)
    shown.push({ account: account?.id ?? null, model: hasSeveral ? model : undefined, status, error, ms });
  return JSON.stringify(shown);
}

type RowParts = Pick<RequestScope, "accounts" | "cacheWatch" | "logger">;

/** What is known of a request when it has ended. */
interface End {
  /** The HTTP status the client got; 499 when it hung up. */
  status: number;
  durationMs: number;
  /** The reply broke off before its end: its usage is not final. */
  isCut: boolean;
  /** Numbers that the usage lacks although it always had them. */
  lost: CostFacts["lost"];
}

/**
 * The row of a request that has ended.
 * @param parts The watch compares the prompt with the one before it in its conversation; the logger removes secrets from an
 * error's message; the accounts are those of the person.
 */
export function finishedRow(parts: RowParts, book: Book, { status, durationMs, isCut, lost }: End): Entry {
  const { chapter, target, wait, session } = book;
  const { account, usage, error } = chapter;
  // A client that hangs up may have been answered meanwhile.
  const refused = status !== 499 && isAcceptedByNone(book) ? 0 : null;
  const cost = target ? costSoFar(book, account, usage, { isCut, lost }) : unpriced(parts.accounts);
  // What tokens cost is known by the tokens. A request that failed, and of which no usage is known, may have cost nothing.
  const isKnown = cost.unit === "credits" || status < 400 || status === 499 || usage.input !== undefined;
  const amount = refused ?? (isKnown ? cost.amount : null);
  const price = target?.model.price;
  const ended = { usage, cost, prompt: chapter.prompt, price, turn: cachedTurn(book, durationMs) };
  // Nothing is said of the prompt by numbers that are not final.
  const { miss, lostCost, portions, marked }: EndedPrompt = isCut ? {} : endedPrompt(parts.cacheWatch, ended);
  return {
    ...inFlightRow(book),
    duration_ms: durationMs,
    http_status: status,
    stop_reason: chapter.stopReason ?? null,
    waited_ms: wait ? Math.round(wait.ms) : null,
    error_type: error ? errorName(error.code, parts.logger.scrub) : null,
    error_message: error ? parts.logger.scrub(error.words.written) : null,
    input_tokens: usage.input ?? refused ?? chapter.estimatedInput ?? null,
    output_tokens: usage.output ?? refused ?? chapter.estimatedOutput ?? null,
    cached_tokens: usage.cachedInput ?? null,
    cache_write_tokens: usage.cacheWrite ?? null,
    reasoning_tokens: usage.reasoning ?? null,
    tokens_estimated: refused === null && (isCut || hasEstimates(chapter)) ? 1 : 0,
    session: session === undefined ? null : shortHash(session),
    cache_miss: miss?.reason ?? null,
    cache_idle_ms: miss?.idleMs ?? null,
    cache_change: miss?.change ? JSON.stringify(miss.change) : null,
    cache_lost_cost: lostCost ?? null,
    portions: portions ? packed(portions) : null,
    marked_tokens: marked ?? null,
    cost: amount,
    cost_unit: amount === null ? null : cost.unit,
    cost_at_least: refused === null && cost.isAtLeast ? 1 : 0,
    fixups: listOf(book.fixups),
    auto: target?.choice ? JSON.stringify(shownChoice(target.choice)) : null,
    dropped: listOf(book.dropped),
  };
}

const listOf = (names: ReadonlySet<string> | undefined): string => (names ? JSON.stringify([...names]) : "[]");

const hasEstimates = ({ usage, estimatedInput, estimatedOutput }: Chapter): boolean =>
  (usage.input === undefined && estimatedInput !== undefined) ||
  (usage.output === undefined && estimatedOutput !== undefined);

/** Never its token. */
const shownChoice = ({ by, why, discount }: AutoChoice) => ({ by, why, discount });

/**
 * Whether it is known that nothing was used: the request did not leave this machine, or whoever got it refused it. GitHub
 * charges nothing for that (opencode, 2026-09). What an attempt that broke off or failed has cost is not known.
 */
const isAcceptedByNone = ({ attempts, chapter: { usage, error } }: Book): boolean =>
  error !== undefined && usage.input === undefined && attempts.every(isRefused);

/**
 * Whether the reply broke off before its end, so that the numbers of its usage are those of its beginning. If a further call
 * for it was refused, they are those of the calls before.
 */
export const isInterrupted = ({ attempts, hasBegun, chapter: { error, stopReason, usage } }: Book): boolean =>
  stopReason === undefined &&
  usage.input !== undefined &&
  (hasBegun || error !== undefined) &&
  !isRefused(attempts.at(-1));

const isRefused = (attempt: Attempted | undefined): boolean => {
  const { status = 0 } = attempt ?? {};
  return status >= 400 && status < 500;
};

/** Before the last attempt failed, an answer of the same reply or a batch of embeddings may have been served. */
export function isCharged({ attempts, chapter }: Book): boolean {
  const { error, status = 500 } = attempts.at(-1) ?? {};
  return chapter.usage.input !== undefined || (error === undefined && status < 400);
}

/**
 * What a request costs of which nothing is known.
 * @param accounts What their plans are counted in is its unit, if it is the same for all.
 */
function unpriced(accounts: RowParts["accounts"]): Cost {
  const [unit, ...others] = new Set(accounts.map(({ knownQuota }) => knownQuota?.unit));
  return { unit: others.length === 0 && isCostUnit(unit) ? unit : "credits", amount: null };
}

/** What the request of a row cost. */
export const costOfRow = ({ cost, cost_unit, cost_at_least }: Entry): Cost =>
  cost_unit === null
    ? unpriced([])
    : { unit: cost_unit, amount: cost, ...(cost_at_least === 1 && { isAtLeast: true }) };

/**
 * What a request costs that has a target, in what the plan of an account is counted in.
 * @param used By default what is known of its usage.
 */
export const costSoFar = (
  { target, facts, chapter }: Book,
  account: AttemptedAccount | null,
  used: Partial<Usage> = chapter.usage,
  more: Pick<CostFacts, "isCut" | "lost"> = {},
): Cost =>
  costOf(target!.model.price, used, facts?.initiator !== "agent", { planUnit: account?.knownQuota?.unit, ...more });

/**
 * Looks for numbers that Copilot stopped reporting. A provider is another service.
 * @returns The usage as it is to be written, and the numbers that it lacks although it always had them.
 */
export function inspectUsage(
  { target, chapter }: Book,
  losses: Losses,
): { usage: Partial<Usage>; lost?: CostFacts["lost"] } {
  const { answeredBy, error, isOver, usage } = chapter;
  if (!isOver || !answeredBy || error || !target?.dialect) return { usage };
  return losses.inspectUsage(target.dialect, answeredBy.key, target.model.id, usage);
}

/** What is known of the prompt's way through the upstream's cache; undefined if the usage is not known. */
function cachedTurn(book: Book, durationMs: number): CachedTurn | undefined {
  const { chapter, target } = book;
  const { account, prompt, usage } = chapter;
  if (!prompt || !target || !account || usage.input === undefined || usage.cachedInput === undefined) return undefined;
  return {
    // Nobody learns that somebody else has sent the same prompt.
    client: `${book.member ?? ""} ${book.session ?? book.clientName ?? ""}`,
    model: target.model.id,
    account: account.key,
    address: prompt.address,
    durationMs,
    input: usage.input,
    cached: usage.cachedInput,
    written: usage.cacheWrite ?? 0,
    writtenHour: usage.cacheWriteHour ?? 0,
    hashes: prompt.measured.hashes,
  };
}

/** `POST /v1/messages claude · octocat · 200 · 12 in (0 cached), 3 out · 800 ms · end_turn` */
export function logLine(method: string, row: Entry): string {
  let line = row.path.startsWith("/") ? `${method} ${row.path}` : row.path;
  if (row.client_model) line += ` ${row.client_model}`;
  if (row.upstream_model !== null && row.upstream_model !== row.client_model) line += ` → ${row.upstream_model}`;
  if (row.account_id !== null) line += ` · ${row.account_id}`;
  line += ` · ${row.http_status}`;
  if (row.input_tokens)
    line += ` · ${row.input_tokens} in (${row.cached_tokens ?? 0} cached), ${row.output_tokens ?? "?"} out`;
  line += ` · ${row.duration_ms} ms`;
  if (row.stop_reason) line += ` · ${row.stop_reason}`;
  if (row.error_type !== null) line += ` · ${row.error_type}: ${row.error_message}`;
  return line;
}

/** The row as the fields of a log line: its lists are lists, and `time` is the line's own. What has many numbers is left out. */
export const logFields = ({ portions: _, ...row }: Entry): Record<string, unknown> => ({
  ...row,
  ...Object.fromEntries(
    (["attempts", "fixups", "dropped", "fallbacks", "auto", "cache_change"] as const).map((name) => [
      name,
      JSON.parse(row[name] ?? "null"),
    ]),
  ),
});
