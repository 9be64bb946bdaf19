/** What is gathered of a request on its way through the relay. It is written to the history once, however the request ends. */
import type { Account } from "../accounts/account";
import { isSuspensionEvent, suspensionReason } from "../accounts/suspension";
import type { App } from "../app";
import type { Changes } from "../dialects/hub/changes";
import type { ClientDialect } from "../dialects/hub/conversation";
import { hasSearched, type ReplyEvent, type Usage } from "../dialects/hub/reply";
import { asProxyError, ProxyError } from "../errors";
import type { InFlightRequest } from "../history/entry";
import type { InFlightHandle } from "../history/in-flight";
import type { KeyedCaller } from "../keys/client-keys";
import { describeCause } from "../logger";
import type { HeldBytes } from "../net/in/held-bytes";
import { pathOfUrl } from "../net/in/params";
import { clientClosed, errorForClient } from "./client-error";
import type { Facts, Incoming } from "./incoming";
import { rememberMaker } from "./references";
import { RequestBudget } from "./request-budget";
import {
  type AttemptedAccount,
  cachedTurn,
  costOfRow,
  finishedRow,
  forgetModel,
  inFlightRow,
  inspectUsage,
  isCharged,
  logFields,
  logLine,
  namedTarget,
  nameWithoutContent,
  type PassedOver,
  type RecordedPrompt,
  type RequestState,
  recordUsage,
  withoutContent,
} from "./request-log";
import { RequestTrace } from "./request-trace";
import { RequestWait } from "./request-wait";
import { requireRoomFor } from "./running-limits";
import type { KnownTarget } from "./target";

type WrittenAtTheEnd = Pick<App, "cacheWatch" | "exchangeMetrics" | "history" | "logger" | "losses" | "tracing">;
export type RecordParts = WrittenAtTheEnd & Pick<App, "affinity" | "budgets" | "heldBodies" | "inFlight">;

/**
 * @param errors The dialect in which the client gets errors.
 * @throws ProxyError 503 when too many requests run already, 429 when too many of the member's do; that request gets no row.
 */
export function openRequestRecord(
  parts: RecordParts,
  request: Request,
  { requestId, key, connection }: Pick<KeyedCaller, "requestId" | "key" | "connection">,
  dialect: ClientDialect | "embeddings",
  errors: ClientDialect = dialect === "embeddings" ? "chat" : dialect,
): RequestRecord {
  requireRoomFor(key?.member ?? null, parts.inFlight);
  const path = `${connection.isSocket ? "ws:" : ""}${pathOfUrl(request.url)}`;
  const identity = { requestId, path, keyName: key?.name ?? null, member: key?.member ?? null };
  const record = new RequestRecord(parts, request, identity, dialect, errors);
  for (const fixup of connection.fixups ?? []) record.addFixup(fixup);
  parts.inFlight.begin(requestId, record);
  return record;
}

/** What a record needs of the client's request. */
type RecordedRequest = Pick<Request, "method" | "headers" | "signal">;

export class RequestRecord implements InFlightHandle {
  readonly requestId: string;
  /** The member whose request it is; null for the owner's. */
  readonly member: string | null;
  readonly budget: RequestBudget;
  /** What it holds in memory until it has ended. */
  readonly held: HeldBytes;
  readonly trace: RequestTrace;
  readonly wait: RequestWait;
  #controller = new AbortController();
  readonly #parts: RecordParts;
  readonly #errors: ClientDialect;
  readonly #request: RecordedRequest;
  readonly #state: RequestState;
  readonly #openedAt = performance.now();
  /** The account that answered. */
  #server: Account | undefined;
  #hasBegun = false;
  #isOver = false;
  #isWritten = false;
  #isStopped = false;
  #served: ((usage: Partial<Usage>) => void) | undefined;
  #children = 0;

  constructor(
    parts: RecordParts,
    request: RecordedRequest,
    identity: Pick<RequestState, "requestId" | "path" | "keyName" | "member" | "parentId" | "session">,
    dialect: RequestState["clientDialect"],
    errors: ClientDialect,
    parent?: RequestTrace,
  ) {
    this.requestId = identity.requestId;
    this.member = identity.member;
    this.held = parts.heldBodies.of(identity.member);
    this.#parts = parts;
    this.#errors = errors;
    this.#request = request;
    this.#state = {
      ...identity,
      method: request.method,
      clientName: /^[^\s(]+/.exec(request.headers.get("user-agent") ?? "")?.[0] ?? null,
      clientDialect: dialect,
      startedAtMs: Date.now(),
      account: null,
      attempts: [],
      usage: {},
    };
    this.budget = new RequestBudget(parts.budgets, this.#state, (why) => this.stop(why));
    this.trace = new RequestTrace(parts.tracing, this.#state, request.headers, parent);
    this.wait = new RequestWait(this.#state, parts.logger.scrub, () => this.#changed());
    const { signal } = request;
    if (signal.aborted) this.stop(clientClosed);
    else signal.addEventListener("abort", () => this.stop(clientClosed), { once: true });
  }

  /**
   * Opens the record of something that runs for this request and has a row of its own. It is stopped with this request.
   * @param path What runs: `web_search`.
   */
  openChild(path: string): RequestRecord {
    const { requestId, keyName, member, session, clientDialect } = this.#state;
    const { method, headers } = this.#request;
    const childId = `${requestId}.${++this.#children}`;
    const identity = { requestId: childId, keyName, member, path, parentId: requestId, session };
    const child = new RequestRecord(
      this.#parts,
      { method, headers, signal: this.controller.signal },
      identity,
      clientDialect,
      this.#errors,
      this.trace,
    );
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
    const controller = this.controller;
    this.#isStopped = true;
    controller.abort(why);
  }

  /** The client hung up, or an admin stopped the request. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  setRequest(incoming: Incoming): void {
    this.#state.incoming = incoming;
  }

  /** For budgets per session. */
  setSession(session: string | undefined): void {
    this.#state.session = session;
  }

  setTarget(target: KnownTarget, facts: Facts): void {
    this.#state.target = target;
    this.#state.facts = facts;
    this.#changed();
  }

  readonly model = (): string | undefined => this.#state.target?.model.id;

  /** The answer comes over a WebSocket. */
  setOverSocket(): void {
    this.#state.overSocket = true;
  }

  setPrompt(prompt: RecordedPrompt): void {
    this.#state.prompt = prompt;
  }

  /**
   * One attempt with one account (null with a provider, which has none).
   * @param outcome The HTTP status, or the error when there was no answer.
   */
  addAttempt(account: AttemptedAccount | null, outcome: number | ProxyError, ms: number): void {
    this.#state.account = account;
    const model = this.#state.target?.model.id;
    const errorOf = ({ kind }: ProxyError) => (this.#request.signal.aborted ? "client_closed" : kind);
    const result = typeof outcome === "number" ? { status: outcome } : { error: errorOf(outcome) };
    this.#state.attempts.push({ account, model, ...result, ms });
    this.trace.ended(account, result);
    this.#changed();
  }

  /** The account that answered; only this account can read the signatures in its reply. */
  setAccount(account: Account): void {
    this.#server = account;
  }

  get account(): Account | undefined {
    return this.#server;
  }

  /** Handed on by itself. */
  readonly addFixup = (name: string): void => {
    this.#state.fixups ??= new Set();
    this.#state.fixups.add(name);
  };

  addChanges({ fixups = [], dropped = [] }: Partial<Changes>): void {
    for (const name of fixups) this.addFixup(name);
    for (const name of dropped) {
      this.#state.dropped ??= new Set();
      this.#state.dropped.add(name);
    }
  }

  /** To be called with each event of the reply. */
  addEvent(event: ReplyEvent): void {
    switch (event.type) {
      case "start":
        this.#hasBegun = true;
        this.#state.target = namedTarget(this.#state.target, event.model);
        break;
      case "usage":
        this.addUsage(event.usage);
        break;
      case "block-start":
        if (hasSearched(event.block)) this.addSearch();
        break;
      case "finish":
        this.#isOver = true;
        this.#state.stopReason = event.raw ?? event.reason;
        break;
      case "error":
        this.#isOver = true;
        this.#state.error ??= { type: event.code, message: event.message };
        if (isSuspensionEvent(event.code, event.message))
          this.#server?.setState({ name: "failed", reason: suspensionReason(event.message), suspended: true });
        break;
      case "block-end":
        if (this.#server && event.signature) rememberMaker(this.#parts.affinity, event.signature, this.#server);
        break;
    }
  }

  /** @returns It without counts that no window could hold: a placeholder would use up every budget. */
  addUsage(reported: Partial<Usage>): Partial<Usage> {
    return recordUsage(this.#state, reported, this.addFixup);
  }

  /** The upstream is asked once more for the same reply: its usage no longer tells the size of the client's prompt. */
  beginTurn(): void {
    this.#served = undefined;
    this.#state.prompt = undefined;
  }

  /** A web search ran for the reply. */
  addSearch(): void {
    this.#state.searches = (this.#state.searches ?? 0) + 1;
    this.#changed();
  }

  /** To be called with each piece of a stream that the client gets. */
  addSent(bytes: number): void {
    this.#state.sentBytes = (this.#state.sentBytes ?? 0) + bytes;
  }

  /** What the client was told before the upstream reported any, or in its place. */
  setEstimate(name: "estimatedInput" | "estimatedOutput", tokens: number): void {
    this.#state[name] = tokens;
  }

  /** Registers what is done with the usage once a request was served to its end; its row is written then. */
  onServed(work: (usage: Partial<Usage>) => void): void {
    this.#served = work;
  }

  /** The reply's last event was seen. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** An error that came before the reply began: nothing of it went to the client, so an error answer is still possible. */
  get earlyError(): { code: string; message: string } | undefined {
    const { error } = this.#state;
    return error && !this.#hasBegun ? { code: error.type, message: error.message } : undefined;
  }

  /** The last attempt's successful answer turned out to be an error, and another attempt may follow. */
  replyFailed(code: string): void {
    const attempt = this.#state.attempts.at(-1);
    if (attempt) {
      attempt.error = nameWithoutContent(this.#state, code, this.#parts.logger.scrub);
      this.trace.failed(attempt.error);
    }
    this.#state.error = undefined;
    this.#state.stopReason = undefined;
    this.#isOver = false;
    this.#changed();
  }

  /** A part of the reply was generated, so it is not asked for again. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** How many calls were made. */
  get attemptCount(): number {
    return this.#state.attempts.length;
  }

  /** Another model is to serve the request. @returns As it is recorded, without parts of the request. */
  passOver(why: PassedOver): PassedOver {
    const recorded = forgetModel(this.#state, why, this.#parts.logger.scrub);
    this.#served = undefined;
    this.#server = undefined;
    this.#isOver = false;
    this.#changed();
    return recorded;
  }

  /** A text of the upstream without credentials. Handed on by itself. */
  readonly conceal = (text: string): string => this.#parts.logger.withoutSecrets(text);

  /** An error's message without the parts of the request it repeats. */
  readonly redact = (message: string): string => withoutContent(this.#state, message);

  markFirstByte(): void {
    if (this.#state.firstByteMs !== undefined) return;
    this.#state.firstByteMs = this.#elapsedMs();
    this.#changed();
  }

  /** Writes the row; only the first call counts. */
  end(status: number): void {
    if (this.#isWritten) return;
    this.#isWritten = true;
    this.held[Symbol.dispose]();
    const { cacheWatch, exchangeMetrics, history, inFlight, logger, losses } = this.#parts;
    const state = this.#state;
    const durationMs = this.#elapsedMs();
    if (this.#isOver) inspectUsage(state, this.#server, losses);
    const turn = cachedTurn(state, durationMs);
    if (turn) state.cacheMiss = cacheWatch.judge(turn);
    const row = finishedRow(state, { status, durationMs, scrub: logger.scrub });
    this.budget.end(this.#hasBegun || isCharged(state) ? costOfRow(row) : undefined, this.#hasBegun && !this.#isOver);
    history.add(row);
    inFlight.end(row);
    exchangeMetrics.count(row, state.attempts);
    this.trace.end(row);
    const line = logLine(state.method, row);
    const fields = () => logFields(row);
    if (state.error) logger.warn(line, undefined, fields);
    else logger.info(line, fields);
    if (status === 200 && !state.error) this.#served?.(state.usage);
  }

  /** Writes the row of a request whose client hung up. */
  hungUp(): void {
    if (!this.#isOver) this.#state.error ??= { type: "client_closed", message: clientClosed.message };
    this.end(this.#isOver ? 200 : 499);
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
    this.#state.error = { type: error.details.code ?? error.kind, message: error.message };
    const forClient = errorForClient(error, this.#errors, this.#request.headers.get("user-agent"));
    this.end(sent ?? forClient.status);
    if (error.kind !== "internal") return forClient;
    const cause = withoutContent(this.#state, describeCause(error.details.cause));
    this.#parts.logger.error("A request failed unexpectedly; please report this.", cause);
    return new ProxyError("internal", error.message, { ...error.details, cause });
  }

  #changed(): void {
    this.#parts.inFlight.notify(this.requestId);
  }

  #elapsedMs(): number {
    return Math.round(performance.now() - this.#openedAt);
  }
}
