/** The history's row of a request and its log line, made from what was gathered. Pure: nothing here is kept or sent. */

import type { Losses } from "../../books/changes/losses";
import type { Entry, InFlightRequest } from "../../books/history/entry";
import type { ClientDialect } from "../../dialects/hub/conversation";
import { believable, type Usage } from "../../dialects/hub/reply";
import type { Words } from "../../lib/errors";
import { plainName } from "../../lib/json-shape";
import type { Cost } from "../../lib/money";
import type { Account } from "../../people/accounts/account";
import type { CacheAddress, CachedTurn, HeadHashes, JudgedMiss } from "../upstream/cache-watch";
import type { AutoChoice } from "../upstream/copilot/auto";
import { type CostFacts, costOf } from "../upstream/models/price";
import type { Hints } from "./hints";
import type { Facts } from "./incoming";
import { shortHash } from "./session-id";
import type { KnownTarget } from "./target";

/** What the client asks for. */
export interface Asked {
  /** The model id as the client wrote it. */
  model: string;
  stream: boolean;
  /** The length of the body. */
  bytes: number;
}

/** The parts of an account that are recorded. */
export type AttemptedAccount = Pick<Account, "id" | "key"> & Partial<Pick<Account, "knownQuota">>;

/** Everything that is known of a request so far; never its content. */
export interface RequestState {
  readonly requestId: string;
  readonly method: string;
  /** `ws:/v1/responses` for a message of a WebSocket. */
  readonly path: string;
  readonly clientName: string | null;
  /** The name of the client key; null without a key, or for a key without a name. */
  readonly keyName: string | null;
  /** The id of the member whose key it is; null for the owner's. */
  readonly member: string | null;
  /** The client's session, if it names one. Only the beginning of its hash is written down. */
  session?: string;
  /** What the client says of the request. Only a hash of the prompt's id is written down. */
  hints: Hints;
  /** The client's id for the prompt that ran in the session, if the request names none. */
  sessionPrompt?: string | undefined;
  /** The request that this one runs for, if it is a search. */
  readonly parentId?: string;
  /** Web searches that ran for the reply. */
  searches?: number;
  readonly clientDialect: ClientDialect | "embeddings";
  readonly startedAtMs: number;
  firstByteMs?: number;
  asked?: Asked;
  target?: KnownTarget;
  facts?: Facts;
  prompt?: RecordedPrompt;
  cacheMiss?: JudgedMiss | null;
  /** The account of the last attempt; null before the first one, and with a provider, which has none. */
  account: AttemptedAccount | null;
  /** They keep the account itself: a temporary one may learn its login later. */
  readonly attempts: {
    account: AttemptedAccount | null;
    model?: string;
    status?: number;
    error?: string;
    ms: number;
  }[];
  /** The models that were to serve before the present one. Missing while there are none. */
  passedOver?: PassedOver[];
  /** It waited for a limit to end; `until` is null when it no longer does. */
  wait?: { why: string; until: number | null; ms: number };
  usage: Partial<Usage>;
  /** Numbers that the usage lacks although it always had them. */
  lostUsage?: CostFacts["lost"];
  /** The input tokens sent to the client before the upstream reported any. */
  estimatedInput?: number;
  /** The same of the output tokens, if it has reported none at the end. */
  estimatedOutput?: number;
  /** Bytes of the stream that the client got. */
  sentBytes?: number;
  /** Missing while there are none, like `dropped`. */
  fixups?: Set<string>;
  dropped?: Set<string>;
  stopReason?: string;
  error?: { code: string; words: Words; isOurs?: true };
}

/** A model that did not serve the request, so that the next one of its chain was considered. */
export interface PassedOver {
  model: string;
  /** Null if the model was not asked. */
  status: number | null;
  /** Without words that may repeat the prompt. */
  why: string;
}

/** Characters of the reason why a model did not serve. */
const maxReason = 300;

/** Drops what belongs to the present model: another one is to serve the request, as if it were the first. */
export function forgetModel(
  state: RequestState,
  { model, status, why }: PassedOver,
  scrub: (text: string, max?: number) => string,
): PassedOver {
  const passedOver = { model, status, why: scrub(why, maxReason) };
  state.passedOver ??= [];
  state.passedOver.push(passedOver);
  state.usage = {};
  state.account = null;
  for (const name of [
    "estimatedInput",
    "estimatedOutput",
    "fixups",
    "dropped",
    "stopReason",
    "error",
    "prompt",
  ] as const)
    state[name] = undefined;
  return passedOver;
}

/** What the upstream's cache knows a prompt by. */
export interface RecordedPrompt {
  address: CacheAddress;
  head: HeadHashes;
}

/** The row as far as it is known while the request runs. */
export function inFlightRow(state: RequestState): InFlightRequest {
  const { asked, target, facts, account } = state;
  return {
    request_id: state.requestId,
    started_at_ms: state.startedAtMs,
    first_byte_ms: state.firstByteMs ?? null,
    path: state.path,
    client_dialect: state.clientDialect,
    upstream_dialect: target?.dialect ?? null,
    upstream_endpoint: target?.endpoint ?? null,
    account_id: account?.id ?? null,
    account_key: account?.key ?? null,
    client_model: asked?.model ?? null,
    upstream_model: target?.model.id ?? null,
    stream: asked?.stream ? 1 : 0,
    initiator: facts?.initiator ?? null,
    initiator_reason: facts?.reason ?? null,
    attempts: JSON.stringify(state.passedOver ? state.attempts.map(shownWithModel) : state.attempts.map(shownAttempt)),
    client_name: state.clientName,
    key_name: state.keyName,
    member: state.member,
    searches: state.searches ?? null,
    parent_id: state.parentId ?? null,
    fallbacks: state.passedOver ? JSON.stringify(state.passedOver) : null,
    waited_for: state.wait?.why ?? null,
    waits_until_ms: state.wait?.until ?? null,
    ...hintColumns(state),
  };
}

/** Two people's prompts are two, whatever ids their clients choose. */
const promptHash = (prompt: string | undefined, member: string | null): string | null =>
  prompt === undefined ? null : shortHash(`prompt ${member ?? ""} ${prompt}`);

const hintColumns = ({ hints: { prompt, kind, agentType, project }, member, sessionPrompt }: RequestState) => ({
  prompt: promptHash(prompt ?? sessionPrompt, member),
  kind: kind ?? (prompt === undefined ? null : "main"),
  agent_type: agentType ?? null,
  project: project ?? null,
});

type Attempted = RequestState["attempts"][number];

const shownAttempt = ({ account, status, error, ms }: Attempted) => ({
  account: account?.id ?? null,
  status,
  error,
  ms,
});

/** The model is named only where several were asked. */
const shownWithModel = ({ account, model, status, error, ms }: Attempted) => ({
  account: account?.id ?? null,
  model,
  status,
  error,
  ms,
});

/**
 * The row of a request that has ended.
 * @param status The HTTP status the client got; 499 when it hung up.
 * @param isCut The reply broke off before its end: its usage is not final.
 * @param scrub Removes secrets from an error's message.
 */
export function finishedRow(
  state: RequestState,
  {
    status,
    durationMs,
    isCut,
    scrub,
  }: { status: number; durationMs: number; isCut: boolean; scrub: (text: string) => string },
): Entry {
  const { usage, target, error, lostUsage: lost } = state;
  // A client that hangs up may have been answered meanwhile.
  const refused = status !== 499 && isAcceptedByNone(state) ? 0 : null;
  const cost = target ? costSoFar(state, { isCut, lost }) : unpriced;
  // What tokens cost is known by the tokens. A request that failed, and of which no usage is known, may have cost nothing.
  const isKnown = cost.unit === "credits" || status < 400 || status === 499 || usage.input !== undefined;
  const amount = refused ?? (isKnown ? cost.amount : null);
  return {
    ...inFlightRow(state),
    duration_ms: durationMs,
    http_status: status,
    stop_reason: state.stopReason ?? null,
    waited_ms: state.wait ? Math.round(state.wait.ms) : null,
    error_type: error ? errorName(error.code, scrub) : null,
    error_message: error ? scrub(error.words.written) : null,
    input_tokens: usage.input ?? refused ?? state.estimatedInput ?? null,
    output_tokens: usage.output ?? refused ?? state.estimatedOutput ?? null,
    cached_tokens: usage.cachedInput ?? null,
    cache_write_tokens: usage.cacheWrite ?? null,
    reasoning_tokens: usage.reasoning ?? null,
    tokens_estimated: refused === null && (isCut || hasEstimates(state)) ? 1 : 0,
    session: state.session === undefined ? null : shortHash(state.session),
    cache_miss: state.cacheMiss?.reason ?? null,
    cache_idle_ms: state.cacheMiss?.idleMs ?? null,
    cost: amount,
    cost_unit: amount === null ? null : cost.unit,
    cost_at_least: refused === null && cost.isAtLeast ? 1 : 0,
    fixups: listOf(state.fixups),
    auto: target?.choice ? JSON.stringify(shownChoice(target.choice)) : null,
    dropped: listOf(state.dropped),
  };
}

const listOf = (names: ReadonlySet<string> | undefined): string => (names ? JSON.stringify([...names]) : "[]");

const hasEstimates = ({ usage, estimatedInput, estimatedOutput }: RequestState): boolean =>
  (usage.input === undefined && estimatedInput !== undefined) ||
  (usage.output === undefined && estimatedOutput !== undefined);

/** The target with the model that the answer names, if the request named none. */
export const namedTarget = (target: KnownTarget | undefined, name: string): KnownTarget | undefined =>
  target?.named && name !== "" ? { ...target, model: target.named(name) } : target;

/** Never its token. */
const shownChoice = ({ by, why, discount }: AutoChoice) => ({ by, why, discount });

/**
 * Whether it is known that nothing was used: the request did not leave this machine, or whoever got it refused it. GitHub
 * charges nothing for that (opencode, 2026-09). What an attempt that broke off or failed has cost is not known.
 */
const isAcceptedByNone = ({ attempts, usage, error }: RequestState): boolean =>
  error !== undefined && usage.input === undefined && attempts.every(isRefused);

/**
 * Whether the reply broke off before its end, so that the numbers of its usage are those of its beginning. If a further call
 * for it was refused, they are those of the calls before.
 * @param hasBegun A part of the reply was generated.
 */
export const isInterrupted = ({ attempts, error, stopReason, usage }: RequestState, hasBegun: boolean): boolean =>
  stopReason === undefined &&
  usage.input !== undefined &&
  (hasBegun || error !== undefined) &&
  !isRefused(attempts.at(-1));

const isRefused = (attempt: Attempted | undefined): boolean => {
  const { status = 0 } = attempt ?? {};
  return status >= 400 && status < 500;
};

/** Before the last attempt failed, an answer of the same reply or a batch of embeddings may have been served. */
export function isCharged({ attempts, usage }: RequestState): boolean {
  const { error, status = 500 } = attempts.at(-1) ?? {};
  return usage.input !== undefined || (error === undefined && status < 400);
}

/** What a request costs of which nothing is known. */
export const unpriced: Cost = { unit: "credits", amount: null };

/** What the request of a row cost. */
export const costOfRow = ({ cost, cost_unit, cost_at_least }: Entry): Cost =>
  cost_unit === null ? unpriced : { unit: cost_unit, amount: cost, ...(cost_at_least === 1 && { isAtLeast: true }) };

/**
 * What a request costs that has a target, in what the plan of its account is counted in.
 * @param account By default the one that was asked last.
 */
export function costSoFar(
  { target, usage, facts, account: last }: RequestState,
  { isCut, lost }: Pick<CostFacts, "isCut" | "lost"> = {},
  { account = last, used = usage }: { account?: AttemptedAccount | null; used?: Partial<Usage> } = {},
): Cost {
  const planUnit = account?.knownQuota?.unit;
  return costOf(target!.model.price, used, facts?.initiator !== "agent", { planUnit, isCut, lost });
}

/** A reply of several answers has read the window as often, and more; the list of a provider may have too small a window. */
const windowsOfReply = 16;
const [mostOfWindow, mostOfReply, mostOfEmbeddings] = [2 ** 20, 2 ** 25, 2 ** 31];

/** @returns The usage without what cannot be, which is unknown. */
export function recordUsage(state: RequestState, reported: Partial<Usage>): Partial<Usage> {
  const usage = believable(reported, mostTokens(state.target));
  Object.assign(state.usage, usage);
  return usage;
}

/** Looks for numbers that Copilot stopped reporting. A provider is another service. @param server The account that answered. */
export function inspectUsage(state: RequestState, server: Pick<Account, "key"> | undefined, losses: Losses): void {
  const { target, error, usage } = state;
  if (!server || error || !target?.dialect) return;
  const known = losses.inspectUsage(target.dialect, server.key, target.model.id, usage);
  state.usage = known.usage;
  state.lostUsage = known.lost;
}

/** How many tokens a request can have at most. */
function mostTokens(target: KnownTarget | undefined): number {
  if (target?.dialect == null) return mostOfEmbeddings;
  const { context } = target.model.limits ?? {};
  return context ? Math.max(mostOfWindow, windowsOfReply * context) : mostOfReply;
}

/** What is known of the prompt's way through the upstream's cache; undefined if the usage is not known. */
export function cachedTurn(state: RequestState, durationMs: number): CachedTurn | undefined {
  const { prompt, usage, target, account } = state;
  if (!prompt || !target || !account || usage.input === undefined || usage.cachedInput === undefined) return undefined;
  return {
    // Nobody learns that somebody else has sent the same prompt.
    client: `${state.member ?? ""} ${state.session ?? state.clientName ?? ""}`,
    model: target.model.id,
    account: account.key,
    address: prompt.address,
    durationMs,
    input: usage.input,
    cached: usage.cachedInput,
    written: usage.cacheWrite ?? 0,
    writtenHour: usage.cacheWriteHour ?? 0,
    head: prompt.head,
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

/** The row as the fields of a log line: its lists are lists, and `time` is the line's own. */
export const logFields = (row: Entry): Record<string, unknown> => ({
  ...row,
  ...Object.fromEntries(
    (["attempts", "fixups", "dropped", "fallbacks", "auto"] as const).map((name) => [
      name,
      JSON.parse(row[name] ?? "null"),
    ]),
  ),
});

/** An error's code; nothing of one that is no name, as it may be anybody's text. */
export const errorName = (code: string, scrub: (text: string) => string): string => plainName(scrub(code));
