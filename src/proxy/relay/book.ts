/**
 * The book of a request: all that is known of it, written down as it becomes known, and never its content. Its row, log line,
 * metrics, trace, place in the live list and lines in the budgets are made of it. It only records; `running-request.ts` acts.
 */

import { maxText } from "../../books/history/entry";
import type { ExchangeTrace } from "../../books/observe/tracing";
import type { ClientDialect } from "../../dialects/hub/conversation";
import { Noted } from "../../dialects/hub/notes";
import { believable, hasSearched, type ReplyEvent, type ReplyFailure, type Usage } from "../../dialects/hub/reply";
import type { Awaitable } from "../../lib/awaitable";
import { beginningOf } from "../../lib/beginning";
import { kindOrEnd, type ProxyError, type Words } from "../../lib/errors";
import { plainName } from "../../lib/json-shape";
import type { Cost } from "../../lib/money";
import { headerText } from "../../lib/net/in/header-text";
import type { Account } from "../../people/accounts/account";
import type { Reservation } from "../../people/budgets/entries";
import type { RequestScope } from "../scope";
import type { MeasuredPrompt } from "../tokens/measured-prompt";
import type { RatioLesson } from "../tokens/token-counts";
import type { CacheAddress } from "../upstream/cache-watch";
import { writtenOfReply } from "../upstream/copilot/failure";
import type { Hints } from "./hints";
import type { Facts, Incoming } from "./incoming";
import { type KnownTarget, mostTokens } from "./target";

/** What is needed of the client's request. */
export type ClientRequest = Pick<Request, "method" | "headers" | "signal">;

/** Who asks, and where. */
export interface Identity {
  readonly requestId: string;
  /** `ws:/v1/responses` for a message of a WebSocket. */
  readonly path: string;
  /** The name of the client key; null without a key, or for a key without a name. */
  readonly keyName: string | null;
  /** The id of the member whose key it is; null for the owner's. */
  readonly member: string | null;
  /** What the client says of the request. Only a hash of the prompt's id is written down. */
  readonly hints: Hints;
  /** The client's session, if it names one. Only the beginning of its hash is written down. */
  readonly session?: string | undefined;
  /** The request that this one runs for, if it is a search. */
  readonly parentId?: string;
}

/** The parts of an account that are recorded. */
export type AttemptedAccount = Pick<Account, "id" | "key"> & Partial<Pick<Account, "knownQuota">>;

/** One call. It has the account itself: a temporary one may learn its login later. */
export interface Attempted {
  account: AttemptedAccount | null;
  model?: string | undefined;
  status?: number;
  error?: string;
  ms: number;
}

/** A model that did not serve the request, so that the next one of its chain was considered. */
interface PassedOver {
  model: string;
  /** Null if the model was not asked. */
  status: number | null;
  /** Without words that may repeat the prompt. */
  why: string;
}

/** What a prompt is made of, and how the upstream's cache finds it. */
export interface RecordedPrompt {
  address: CacheAddress;
  measured: MeasuredPrompt;
}

/** What a request has in the budgets for its calls with one account and model. */
export interface BudgetLine {
  readonly account: AttemptedAccount | null;
  readonly model: string;
  readonly reservation: Reservation;
  /** What the budgets had left then, in words: see `BudgetGuard.remaining`. */
  readonly remaining: Awaitable<string | undefined>;
  readonly expected: Cost;
  /** A call of it was charged. */
  isCharged: boolean;
  /** Nothing more is charged to it. A line that was settled has what all calls up to its end cost in the unit of its plan. */
  ended?: { soFar?: Cost };
}

/** What has come of the model that is to serve. Another model begins a new chapter, as if it were the first. */
export interface Chapter {
  /** The account of the last attempt; null before the first one, and with a provider, which has none. */
  account: AttemptedAccount | null;
  /** The account that answered; only this account can read the signatures in its reply. */
  answeredBy?: Account;
  prompt?: RecordedPrompt | undefined;
  /** Learns what the model counts of this prompt by the usage of a request that is served to its end. */
  lesson?: RatioLesson | undefined;
  usage: Partial<Usage>;
  /** The input tokens sent to the client before the upstream reported any. */
  estimatedInput?: number;
  /** The same of the output tokens, if it has reported none at the end. */
  estimatedOutput?: number;
  stopReason?: string | undefined;
  error?: { code: string; words: Words; isOurs?: true | undefined } | undefined;
  /** The reply's last event was seen. */
  isOver: boolean;
}

/** Characters of the reason why a model did not serve. */
const maxReason = 300;

type Parts = Pick<RequestScope, "inFlight" | "logger" | "now" | "sessionPrompts" | "tracing">;

export class Book extends Noted implements Identity {
  readonly requestId: string;
  readonly path: string;
  readonly keyName: string | null;
  readonly member: string | null;
  readonly parentId: string | undefined;
  readonly method: string;
  readonly clientName: string | null;
  readonly clientDialect: ClientDialect | "embeddings";
  readonly startedAtMs: number;
  hints: Hints;
  session: string | undefined;
  /** The client's id for the prompt that ran in the session, if the request names none. */
  sessionPrompt: string | undefined;
  /** What the client asks for, and the length of the body. */
  asked: (Pick<Incoming, "model" | "stream"> & { bytes: number }) | undefined;
  target: KnownTarget | undefined;
  facts: Facts | undefined;
  chapter: Chapter = { account: null, usage: {}, isOver: false };
  readonly attempts: Attempted[] = [];
  /** The models that were to serve before the present one. Missing while there are none. */
  passedOver: PassedOver[] | undefined;
  /** It waited for a limit to end; `until` is null when it no longer does. */
  wait: { why: string; until: number | null; ms: number } | undefined;
  firstByteMs: number | undefined;
  /** Bytes of the stream that the client got. */
  sentBytes = 0;
  /** Web searches that ran for the reply. */
  searches: number | undefined;
  /** A part of the reply was generated, so it is not asked for again. */
  hasBegun = false;
  hasEnded = false;
  /** What it has in the budgets, one line for each account and model that was to be charged. Missing while none applies. */
  lines: BudgetLine[] | undefined;
  /** Undefined if nobody asked for traces. */
  readonly trace: ExchangeTrace | undefined;
  readonly #parts: Parts;
  /** Aborts when the client hangs up. */
  readonly #signal: AbortSignal;
  readonly #openedAt = performance.now();
  #waitBegan: number | undefined;
  /** Of the present attempt. */
  #account: AttemptedAccount | null = null;
  /** When the present attempt was sent, by the clock that never jumps. */
  #sentAt = 0;
  /** What was noted when the request had been read, and when the present attempt began. */
  #read = this.mark;
  #begun = this.mark;

  /** @param parent Of the request for which this one runs. */
  constructor(
    parts: Parts,
    { method, headers, signal }: ClientRequest,
    { requestId, path, keyName, member, hints, session, parentId }: Identity,
    dialect: ClientDialect | "embeddings",
    parent?: ExchangeTrace,
  ) {
    super();
    this.startedAtMs = parts.now();
    this.requestId = requestId;
    this.path = path;
    this.keyName = keyName;
    this.member = member;
    this.hints = hints;
    this.session = session;
    this.parentId = parentId;
    this.method = method;
    this.clientName = clientNameOf(headers);
    this.clientDialect = dialect;
    this.#parts = parts;
    this.#signal = signal;
    this.trace = parts.tracing.begin?.({ headers, method, path, dialect, requestId, parent });
  }

  /** Milliseconds since the request came. */
  get elapsedMs(): number {
    return Math.round(performance.now() - this.#openedAt);
  }

  /** Something has become known that those see who watch the requests in flight. */
  #tell(): void {
    this.#parts.inFlight.notify(this.requestId);
  }

  setRequest({ model, stream, bytes, isMended }: Pick<Incoming, "model" | "stream" | "bytes" | "isMended">): void {
    if (isMended) this.addFixup("half-characters");
    this.asked = { model, stream, bytes: bytes.length };
    this.#read = this.mark;
  }

  /** @param said What the body says. A prompt that a header names takes precedence. */
  setSession(session: string | undefined, said: Pick<Hints, "prompt" | "kind"> = {}): void {
    this.session = session;
    const { prompt = said.prompt } = this.hints;
    // Most requests say neither.
    if (prompt ?? said.kind) this.hints = { ...this.hints, prompt, kind: said.kind ?? this.hints.kind };
    if (prompt === undefined) this.sessionPrompt = this.#parts.sessionPrompts.runningIn(this);
    else this.#parts.sessionPrompts.begin(this, prompt);
  }

  setTarget(target: KnownTarget, facts: Facts): void {
    this.target = target;
    this.facts = facts;
    this.#tell();
  }

  get model(): string | undefined {
    return this.target?.model.id;
  }

  setPrompt(prompt: RecordedPrompt | undefined, lesson: RatioLesson | undefined): void {
    this.chapter.prompt = prompt;
    this.chapter.lesson = lesson;
  }

  /**
   * A call is about to be sent with one account (null with a provider, which has none).
   * @param baseUrl Where to; null if nothing can be sent, or if that is not known.
   */
  beginAttempt(account: AttemptedAccount | null, baseUrl: string | null): void {
    this.#account = account;
    this.#sentAt = performance.now();
    this.#begun = this.mark;
    this.trace?.beginAttempt({
      account: account?.key ?? null,
      endpoint: this.target?.endpoint ?? null,
      model: this.model ?? null,
      stream: this.asked?.stream ?? false,
      baseUrl,
    });
  }

  /**
   * The headers of its answer are there, or there is none.
   * @param outcome The HTTP status, or the error when there was no answer.
   */
  endAttempt(outcome: number | ProxyError): void {
    const account = this.#account;
    const ms = Math.round(performance.now() - this.#sentAt);
    this.chapter.account = account;
    const result =
      typeof outcome === "number"
        ? { status: outcome }
        : { error: this.#signal.aborted ? "client_closed" : kindOrEnd(outcome) };
    this.attempts.push({ account, model: this.model, ...result, ms });
    this.trace?.endAttempt(result);
    this.#tell();
  }

  /** The last attempt's successful answer turned out to be an error, and another attempt may follow. */
  replyFailed(code: string): void {
    const attempt = this.attempts.at(-1);
    if (attempt) {
      attempt.error = errorName(code, this.#parts.logger.scrub);
      this.trace?.failAttempt(attempt.error);
    }
    this.takeBack(this.#begun);
    const { chapter } = this;
    chapter.error = chapter.stopReason = undefined;
    chapter.isOver = false;
    this.#tell();
  }

  /** A call was served, and its usage is written down: its account is charged for it, whoever serves the next call. */
  markCharged(): void {
    const line = this.lines?.at(-1);
    if (line) line.isCharged = true;
  }

  /** The upstream is asked once more for the same reply: its usage no longer tells the size of the client's prompt. */
  askAgain(): void {
    this.markCharged();
    this.setPrompt(undefined, undefined);
  }

  /** Another model is to serve the request. @returns As it is recorded, without parts of the request. */
  passOver(model: string, status: PassedOver["status"], { written }: Words): PassedOver {
    const passedOver = { model, status, why: this.#parts.logger.scrub(written, maxReason) };
    this.passedOver ??= [];
    this.passedOver.push(passedOver);
    this.beginChapter();
    this.#tell();
    return passedOver;
  }

  /** What was known of the model and its answers no longer holds, nor what was changed for it. */
  beginChapter(): void {
    this.chapter = { account: null, usage: {}, isOver: false };
    this.takeBack(this.#read);
  }

  /** An event of the reply. `addEvent` of the running request calls it. */
  addEvent(event: ReplyEvent): void {
    const { chapter, target } = this;
    switch (event.type) {
      case "start":
        this.hasBegun = true;
        // An answer names the model if the request named none.
        if (target?.named && event.model !== "") this.target = { ...target, model: target.named(event.model) };
        break;
      case "block-start":
        if (hasSearched(event.block)) this.addSearch();
        break;
      case "finish":
        chapter.isOver = true;
        chapter.stopReason = plainName(event.raw ?? event.reason);
        for (const reason of event.lostReasoning ?? []) this.addFixup(`reasoning-lost:${reason}`);
        break;
      case "error":
        chapter.isOver = true;
        chapter.error ??= {
          code: event.code,
          words: { told: event.message, written: writtenOfReply(event, target?.provider?.who) },
          isOurs: event.isOurs,
        };
        break;
    }
  }

  /** An error of dragoman's own ends the reply. Its event follows. */
  failed(error: ProxyError): void {
    if (!this.chapter.error) this.setError(error);
  }

  /** The error that the client gets, whatever was known before. */
  setError({ kind, words, details }: ProxyError): void {
    this.chapter.error = { code: details.code ?? kind, words };
  }

  /** @returns It without counts that no window could hold: a placeholder would use up every budget. */
  addUsage(reported: Partial<Usage>): Partial<Usage> {
    const usage = believable(reported, mostTokens(this.target));
    Object.assign(this.chapter.usage, usage);
    if (usage !== reported) this.addFixup("usage-unbelievable");
    return usage;
  }

  /** What the client was told before the upstream reported any, or in its place. */
  setEstimate(name: "estimatedInput" | "estimatedOutput", tokens: number): void {
    this.chapter[name] = tokens;
  }

  /** A web search ran for the reply. */
  addSearch(): void {
    this.searches = (this.searches ?? 0) + 1;
    this.#tell();
  }

  /** To be called with each piece of a stream that the client gets. */
  addSent(bytes: number): void {
    this.markFirstByte();
    this.sentBytes += bytes;
  }

  markFirstByte(): void {
    if (this.firstByteMs !== undefined) return;
    this.firstByteMs = this.elapsedMs;
    this.#tell();
  }

  /**
   * The request waits for a limit to end.
   * @param why Without words that may repeat the prompt.
   * @param until Timestamp, ms: when it probably ends.
   */
  beginWait(why: string, until: number): void {
    this.wait = { why: this.#parts.logger.scrub(why), until, ms: this.wait?.ms ?? 0 };
    // Models that could not serve before are asked anew.
    this.passedOver = undefined;
    this.#waitBegan ??= performance.now();
    this.#tell();
  }

  endWait(): void {
    if (!this.wait || this.#waitBegan === undefined) return;
    this.wait = { ...this.wait, until: null, ms: this.wait.ms + performance.now() - this.#waitBegan };
    this.#waitBegan = undefined;
    this.#tell();
  }

  get isOver(): boolean {
    return this.chapter.isOver;
  }

  /** An error that came before the reply began: nothing of it went to the client, so an error answer is still possible. */
  get earlyError(): ReplyFailure | undefined {
    const { error } = this.chapter;
    if (!error || this.hasBegun) return undefined;
    return { code: error.code, message: error.words.told, isOurs: error.isOurs };
  }
}

/** The first word of `User-Agent`: `claude-cli/2.1.330`. */
const clientNameOf = (headers: Headers): string | null =>
  beginningOf(/^[^\s(\p{C}]+/u.exec(headerText(headers.get("user-agent") ?? ""))?.[0] ?? "", maxText) || null;

/** An error's code; nothing of one that is no name, as it may be anybody's text. */
export const errorName = (code: string, scrub: (text: string) => string): string => plainName(scrub(code));
