/** One request while it runs: what can stop it, what it holds, and its end, with which its row is written. */

import { type InFlightRequest, maxText } from "../../books/history/entry";
import type { InFlightHandle } from "../../books/live/in-flight";
import type { ExchangeTrace } from "../../books/observe/tracing";
import type { ClientDialect } from "../../dialects/hub/conversation";
import type { ReplyEvent } from "../../dialects/hub/reply";
import { beginningOf } from "../../lib/beginning";
import { asProxyError, codeOf, ProxyError } from "../../lib/errors";
import { plainName } from "../../lib/json-shape";
import type { HeldBytes } from "../../lib/net/in/held-bytes";
import { pathOfUrl } from "../../lib/net/in/params";
import { withTimeLimit } from "../../lib/net/time-limit";
import type { Account } from "../../people/accounts/account";
import { suspensionReason } from "../../people/accounts/suspension";
import type { KeyedCaller } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import type { Lesson } from "../tokens/token-counts";
import { isSuspensionEvent } from "../upstream/copilot/failure-match";
import { writtenOf } from "../upstream/upstream-error";
import { clientClosed, errorForClient } from "./client-error";
import { hintsIn } from "./hints";
import { rememberMaker } from "./references";
import { RequestBudget } from "./request-budget";
import {
  cachedTurn,
  costOfRow,
  finishedRow,
  inFlightRow,
  inspectUsage,
  isCharged,
  isInterrupted,
  logFields,
  logLine,
  type PassedOver,
  type RecordedPrompt,
  type RequestState,
} from "./request-log";
import { type Progress, RequestRecord } from "./request-record";
import { requireRoomFor } from "./running-limits";

/**
 * @throws ProxyError 503 when too many requests run already, 429 when too many of the member's do; that request gets no row.
 */
export function openRequest(
  parts: RequestScope,
  request: Request,
  { requestId, key, connection }: Pick<KeyedCaller, "requestId" | "key" | "connection">,
  dialect: ClientDialect | "embeddings",
): RunningRequest {
  requireRoomFor(key?.member ?? null, parts.inFlight);
  const path = `${connection.isSocket ? "ws:" : ""}${pathOfUrl(request.url)}`;
  const hints = hintsIn(request.headers);
  const identity = { requestId, path, keyName: key?.name ?? null, member: key?.member ?? null, hints };
  const running = new RunningRequest(parts, request, identity, dialect);
  for (const fixup of connection.fixups ?? []) running.record.addFixup(fixup);
  parts.inFlight.begin(requestId, running);
  return running;
}

/** The first word of `User-Agent`: `claude-cli/2.1.330`. */
const clientNameOf = (headers: Headers): string | null =>
  beginningOf(/^[^\s(\p{C}]+/u.exec(headers.get("user-agent") ?? "")?.[0] ?? "", maxText) || null;

/** What is needed of the client's request. */
type ClientRequest = Pick<Request, "method" | "headers" | "signal">;

export class RunningRequest implements InFlightHandle, Progress {
  readonly requestId: string;
  /** The member whose request it is; null for the owner's. */
  readonly member: string | null;
  readonly record: RequestRecord;
  readonly budget: RequestBudget;
  /** What it holds in memory until it has ended. */
  readonly held: HeldBytes;
  readonly #parts: RequestScope;
  readonly #request: ClientRequest;
  /** The dialect in which the client gets errors. */
  readonly #errors: ClientDialect;
  readonly #state: RequestState;
  readonly #openedAt = performance.now();
  #controller = new AbortController();
  /** The account that answered; only this account can read the signatures in its reply. */
  account: Account | undefined;
  #isStopped = false;
  #hasEnded = false;
  #lesson: Lesson | undefined;
  #children = 0;

  constructor(
    parts: RequestScope,
    request: ClientRequest,
    identity: Pick<RequestState, "requestId" | "path" | "keyName" | "member" | "parentId" | "session" | "hints">,
    dialect: RequestState["clientDialect"],
    parent?: ExchangeTrace,
  ) {
    this.requestId = identity.requestId;
    this.member = identity.member;
    this.held = parts.heldBodies.of(identity.member);
    this.#parts = parts;
    this.#errors = dialect === "embeddings" ? "chat" : dialect;
    this.#request = request;
    this.#state = {
      ...identity,
      method: request.method,
      // As long as the row's, so that a budget of the client knows it by the same name.
      clientName: clientNameOf(request.headers),
      clientDialect: dialect,
      startedAtMs: Date.now(),
      account: null,
      attempts: [],
      usage: {},
    };
    const { method, headers, signal } = request;
    const { path, requestId } = identity;
    const trace = parts.tracing.begin?.({ headers, method, path, dialect, requestId, parent });
    this.record = new RequestRecord(this.#state, {
      ...{ trace, signal, logger: parts.logger },
      progress: this,
      prompts: parts.sessionPrompts,
    });
    this.budget = new RequestBudget(parts.budgets, this.#state, this);
    if (signal.aborted) this.handleEvent();
    else signal.addEventListener("abort", this, { once: true });
  }

  /** The client has hung up. */
  handleEvent(): void {
    this.stop(clientClosed);
  }

  changed(): void {
    this.#parts.inFlight.notify(this.requestId);
  }

  get elapsedMs(): number {
    return Math.round(performance.now() - this.#openedAt);
  }

  /** What `work` gives, for which others may wait too. Nobody waits whose client has gone: it throws the signal's reason then. */
  whileThere<Result>(work: Promise<Result>): Promise<Result> {
    return withTimeLimit(work, undefined, () => work, this.controller.signal);
  }

  /** Begins a web search that runs for this request and has a row of its own. It is stopped with this request. */
  openSearch(): RunningRequest {
    const { requestId, keyName, member, session, clientDialect } = this.#state;
    const { method, headers } = this.#request;
    const childId = `${requestId}.${++this.#children}`;
    const hints = { ...this.#state.hints, kind: "search" as const };
    const path = "web_search";
    const identity = { requestId: childId, keyName, member, path, parentId: requestId, session, hints };
    const request = { method, headers, signal: this.controller.signal };
    const child = new RunningRequest(this.#parts, request, identity, clientDialect, this.record.trace);
    this.#parts.inFlight.begin(child.requestId, child);
    return child;
  }

  /**
   * Aborts when nobody wants the answer any more: the client hung up, an admin stopped the request, or a limit of the
   * present call has passed. Its reason is the error for the client. After such a limit, the next call has a new one.
   */
  get controller(): AbortController {
    if (this.#controller.signal.aborted && !this.#isStopped) this.#controller = new AbortController();
    return this.#controller;
  }

  /** The present state, for those who watch the requests in flight. */
  tell(): InFlightRequest {
    return inFlightRow(this.#state);
  }

  /** Ends the request at once. @param why For the client. */
  stop(why: ProxyError): void {
    const { controller } = this;
    this.#isStopped = true;
    controller.abort(why);
  }

  /** The client hung up, or an admin stopped the request. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /**
   * To be called with each event of the reply: it is recorded, and what it says of the account is kept.
   * @returns The event, without numbers that cannot be true.
   */
  addEvent(event: ReplyEvent): ReplyEvent {
    // Nothing is known of a text but that it came.
    if (event.type === "block-delta") return event;
    if (event.type === "usage") {
      const usage = this.record.addUsage(event.usage);
      return usage === event.usage ? event : { ...event, usage };
    }
    this.record.addEvent(event);
    const { account } = this;
    if (!account) return event;
    if (event.type === "error" && isSuspensionEvent(event.code, event.message))
      account.setState({
        name: "failed",
        reason: suspensionReason(writtenOf(event, { who: "GitHub Copilot" })),
        suspended: true,
      });
    if (event.type === "block-end" && event.signature) rememberMaker(this.#parts.affinity, event.signature, account);
    return event;
  }

  /** The usage of a request that is served to its end tells what the model counts of this prompt. */
  setPrompt(prompt: RecordedPrompt | undefined, lesson: Lesson | undefined): void {
    this.record.setPrompt(prompt);
    this.#lesson = lesson;
  }

  /** The upstream is asked once more for the same reply: its usage no longer tells the size of the client's prompt. */
  askAgain(): void {
    this.budget.charged();
    this.setPrompt(undefined, undefined);
  }

  /** Another model is to serve the request. @returns As it is recorded, without parts of the request. */
  passOver(why: PassedOver): PassedOver {
    this.#lesson = undefined;
    this.account = undefined;
    return this.record.passOver(why);
  }

  /** Of a stream that has begun, the client has the status. */
  cutShort(why: ProxyError): void {
    this.fail(why, this.record.hasBegun ? 200 : undefined);
  }

  /** Writes the row; only the first call counts. */
  end(status: number): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.held[Symbol.dispose]();
    const { cacheWatch, exchangeMetrics, history, inFlight, logger, losses, sessionPrompts } = this.#parts;
    const { hasBegun, isOver, trace } = this.record;
    const state = this.#state;
    const durationMs = this.elapsedMs;
    if (isOver) inspectUsage(state, this.account, losses);
    const { prompt } = state.hints;
    if (prompt !== undefined) sessionPrompts.end(state, prompt);
    // A title is asked for before the first request that names the prompt.
    else state.sessionPrompt ??= sessionPrompts.runningIn(state);
    const isCut = isInterrupted(state, hasBegun);
    // Nothing is said of the cache by numbers that are not final.
    const turn = isCut ? undefined : cachedTurn(state, durationMs);
    if (turn) state.cacheMiss = cacheWatch.judge(turn);
    const row = finishedRow(state, { status, durationMs, isCut, scrub: logger.scrub });
    this.budget.end(hasBegun || isCharged(state) ? costOfRow(row) : undefined, hasBegun && !isOver);
    history.add(row);
    inFlight.end(row);
    exchangeMetrics.count(row, state.attempts);
    trace?.end(row);
    const line = logLine(state.method, row);
    const fields = () => logFields(row);
    if (state.error) logger.warn(line, undefined, fields);
    else logger.info(line, fields);
    if (status === 200 && !state.error) void this.#lesson?.(state.usage);
  }

  /** Writes the row of a request whose client hung up. */
  hungUp(): void {
    const { isOver } = this.record;
    if (!isOver) this.#state.error ??= { code: "client_closed", words: clientClosed.words };
    this.end(isOver ? 200 : 499);
  }

  /**
   * Writes the row of a failure and returns the error for the client.
   * @param sent The status that the client got before; by default that of the error.
   */
  fail(thrown: unknown, sent?: number): ProxyError {
    if (this.#request.signal.aborted) {
      this.hungUp();
      return clientClosed;
    }
    const error = asProxyError(this.#isStopped ? this.#controller.signal.reason : thrown);
    this.#state.error = { code: error.details.code ?? error.kind, words: error.words };
    const forClient = errorForClient(error, this.#errors, this.#request.headers.get("user-agent"));
    this.end(sent ?? forClient.status);
    if (error.kind !== "internal") return forClient;
    const cause = faultOf(error.details.cause);
    this.#parts.logger.error("A request failed unexpectedly; please report this.", cause);
    return new ProxyError("internal", error.message, { ...error.details, cause });
  }
}

/**
 * A fault of dragoman's own as a report needs it: its class, and where it came from. Its message is left out, because an
 * engine's or a library's may repeat what was read. @param thrown A sentence of ours is kept.
 */
function faultOf(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  if (!(thrown instanceof Error)) return typeof thrown;
  const { message, name, stack = "" } = thrown;
  const calls = stack.slice(stack.indexOf(message) + message.length).match(/^\s+at .+:\d+:\d+\)?$/gm) ?? [];
  const from = calls.slice(0, 3).map((call) => call.trim());
  return [plainName(name), codeOf(thrown), ...from].filter((part) => part !== "").join(" ");
}
