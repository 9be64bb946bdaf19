/** What is known of a request, as far as the relay has come with it. It only records; `running-request.ts` acts. */

import type { SessionPrompts } from "../../books/live/session-prompts";
import type { ExchangeTrace } from "../../books/observe/tracing";
import type { Changes } from "../../dialects/hub/changes";
import { hasSearched, type ReplyEvent, type ReplyFailure, type Usage } from "../../dialects/hub/reply";
import type { ProxyError } from "../../lib/errors";
import { plainName } from "../../lib/json-shape";
import type { Logger } from "../../lib/logger";
import { writtenOfReply } from "../upstream/copilot/failure";
import type { Hints } from "./hints";
import type { Facts, Incoming } from "./incoming";
import {
  type Asked,
  type AttemptedAccount,
  errorName,
  forgetModel,
  namedTarget,
  type PassedOver,
  type RecordedPrompt,
  type RequestState,
  recordUsage,
} from "./request-log";
import type { KnownTarget } from "./target";

interface RecordOptions {
  /** Undefined if nobody asked for traces. */
  trace: ExchangeTrace | undefined;
  logger: Pick<Logger, "scrub">;
  /** Aborts when the client hangs up. */
  signal: AbortSignal;
  progress: Progress;
  prompts: SessionPrompts;
}

/** What the record needs of the running request. */
export interface Progress {
  /** To be called when something has changed that those see who watch the requests in flight. */
  changed(): void;
  /** Since the request came. */
  readonly elapsedMs: number;
}

export class RequestRecord {
  readonly trace: ExchangeTrace | undefined;
  readonly #state: RequestState;
  readonly #with: RecordOptions;
  #hasBegun = false;
  #isOver = false;
  #waitBegan: number | undefined;
  #account: AttemptedAccount | null = null;
  /** When the present attempt was sent, by the clock that never jumps. */
  #sentAt = 0;

  constructor(state: RequestState, options: RecordOptions) {
    this.#state = state;
    this.#with = options;
    this.trace = options.trace;
  }

  setRequest({ model, stream, bytes }: Pick<Incoming, keyof Asked>): void {
    this.#state.asked = { model, stream, bytes: bytes.length };
  }

  /** @param said What the body says. A prompt that a header names takes precedence. */
  setSession(session: string | undefined, said: Pick<Hints, "prompt" | "kind"> = {}): void {
    this.#state.session = session;
    const { hints } = this.#state;
    const prompt = hints.prompt ?? said.prompt;
    this.#state.hints = { ...hints, prompt, kind: said.kind ?? hints.kind };
    if (prompt === undefined) this.#state.sessionPrompt = this.#with.prompts.runningIn(this.#state);
    else this.#with.prompts.begin(this.#state, prompt);
  }

  /** What the client says of the request. */
  get hints(): Hints {
    return this.#state.hints;
  }

  setTarget(target: KnownTarget, facts: Facts): void {
    this.#state.target = target;
    this.#state.facts = facts;
    this.#with.progress.changed();
  }

  get model(): string | undefined {
    return this.#state.target?.model.id;
  }

  /** @param prompt Undefined if the usage will not be this prompt's alone. */
  setPrompt(prompt: RecordedPrompt | undefined): void {
    this.#state.prompt = prompt;
  }

  /**
   * A call is about to be sent with one account (null with a provider, which has none).
   * @param baseUrl Where to; null if nothing can be sent, or if that is not known.
   */
  beginAttempt(account: AttemptedAccount | null, baseUrl: string | null): void {
    this.#account = account;
    this.#sentAt = performance.now();
    if (!this.trace) return;
    const { target, asked } = this.#state;
    this.trace.beginAttempt({
      account: account?.key ?? null,
      endpoint: target?.endpoint ?? null,
      model: target?.model.id ?? null,
      stream: asked?.stream ?? false,
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
    this.#state.account = account;
    const model = this.#state.target?.model.id;
    const result =
      typeof outcome === "number"
        ? { status: outcome }
        : { error: this.#with.signal.aborted ? "client_closed" : outcome.kind };
    this.#state.attempts.push({ account, model, ...result, ms });
    this.trace?.endAttempt(result);
    this.#with.progress.changed();
  }

  addFixup(name: string): void {
    this.#state.fixups ??= new Set();
    this.#state.fixups.add(name);
  }

  addChanges({ fixups = [], dropped = [] }: Partial<Changes>): void {
    for (const name of fixups) this.addFixup(name);
    for (const name of dropped) {
      this.#state.dropped ??= new Set();
      this.#state.dropped.add(name);
    }
  }

  /** An event of the reply. {@link RunningRequest.addEvent} calls it. */
  addEvent(event: ReplyEvent): void {
    switch (event.type) {
      case "start":
        this.#hasBegun = true;
        this.#state.target = namedTarget(this.#state.target, event.model);
        break;
      case "block-start":
        if (hasSearched(event.block)) this.addSearch();
        break;
      case "finish":
        this.#isOver = true;
        this.#state.stopReason = plainName(event.raw ?? event.reason);
        for (const reason of event.lostReasoning ?? []) this.addFixup(`reasoning-lost:${reason}`);
        break;
      case "error":
        this.#isOver = true;
        this.#state.error ??= {
          code: event.code,
          words: { told: event.message, written: writtenOfReply(event, this.#state.target?.provider?.who) },
          isOurs: event.isOurs,
        };
        break;
    }
  }

  /** An error of dragoman's own ends the reply. Its event follows. */
  failed({ kind, words, details }: ProxyError): void {
    this.#state.error ??= { code: details.code ?? kind, words };
  }

  /** @returns It without counts that no window could hold: a placeholder would use up every budget. */
  addUsage(reported: Partial<Usage>): Partial<Usage> {
    const usage = recordUsage(this.#state, reported);
    if (usage !== reported) this.addFixup("usage-unbelievable");
    return usage;
  }

  /** A web search ran for the reply. */
  addSearch(): void {
    this.#state.searches = (this.#state.searches ?? 0) + 1;
    this.#with.progress.changed();
  }

  /** To be called with each piece of a stream that the client gets. */
  addSent(bytes: number): void {
    this.markFirstByte();
    this.#state.sentBytes = (this.#state.sentBytes ?? 0) + bytes;
  }

  /**
   * The request waits for a limit to end.
   * @param why Without words that may repeat the prompt.
   * @param until Timestamp, ms: when it probably ends.
   */
  beginWait(why: string, until: number): void {
    const state = this.#state;
    state.wait = { why: this.#with.logger.scrub(why), until, ms: state.wait?.ms ?? 0 };
    // Models that could not serve before are asked anew.
    state.passedOver = undefined;
    this.#waitBegan ??= performance.now();
    this.#with.progress.changed();
  }

  endWait(): void {
    const { wait } = this.#state;
    if (!wait || this.#waitBegan === undefined) return;
    this.#state.wait = { ...wait, until: null, ms: wait.ms + performance.now() - this.#waitBegan };
    this.#waitBegan = undefined;
    this.#with.progress.changed();
  }

  /** What the client was told before the upstream reported any, or in its place. */
  setEstimate(name: "estimatedInput" | "estimatedOutput", tokens: number): void {
    this.#state[name] = tokens;
  }

  /** The reply's last event was seen. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** An error that came before the reply began: nothing of it went to the client, so an error answer is still possible. */
  get earlyError(): ReplyFailure | undefined {
    const { error } = this.#state;
    if (!error || this.#hasBegun) return undefined;
    return { code: error.code, message: error.words.told, isOurs: error.isOurs };
  }

  /** The last attempt's successful answer turned out to be an error, and another attempt may follow. */
  replyFailed(code: string): void {
    const attempt = this.#state.attempts.at(-1);
    if (attempt) {
      attempt.error = errorName(code, this.#with.logger.scrub);
      this.trace?.failAttempt(attempt.error);
    }
    this.#state.error = undefined;
    this.#state.stopReason = undefined;
    this.#isOver = false;
    this.#with.progress.changed();
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
    const recorded = forgetModel(this.#state, why, this.#with.logger.scrub);
    this.#isOver = false;
    this.#with.progress.changed();
    return recorded;
  }

  markFirstByte(): void {
    if (this.#state.firstByteMs !== undefined) return;
    this.#state.firstByteMs = this.#with.progress.elapsedMs;
    this.#with.progress.changed();
  }
}
