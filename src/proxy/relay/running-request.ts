/** One request while it runs: what can stop it, what it holds, and its end, with which its row is written. */

import type { InFlightRequest } from "../../books/history/entry";
import type { InFlightHandle } from "../../books/live/in-flight";
import type { ClientDialect, JsonObject } from "../../dialects/hub/conversation";
import type { ReplyEvent } from "../../dialects/hub/reply";
import { asProxyError, codeOf, faultLine, ProxyError } from "../../lib/errors";
import { plainName } from "../../lib/json-shape";
import type { HeldBytes } from "../../lib/net/in/held-bytes";
import { pathOfUrl } from "../../lib/net/in/params";
import { withTimeLimit } from "../../lib/net/time-limit";
import { suspensionReason } from "../../people/accounts/suspension";
import type { KeyedCaller } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import { isSuspensionEvent } from "../upstream/copilot/failure-match";
import { writtenOf } from "../upstream/upstream-error";
import { Book, type ClientRequest } from "./book";
import { endLines } from "./budget-lines";
import { clientClosed, errorForClient } from "./client-error";
import { hintsIn } from "./hints";
import { rememberMaker } from "./references";
import { costOfRow, finishedRow, inFlightRow, inspectUsage, isCharged, isInterrupted, logFields, logLine } from "./row";
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
  const running = new RunningRequest(parts, request, new Book(parts, request, identity, dialect));
  for (const name of connection.fixups ?? []) running.book.addFixup(name);
  parts.inFlight.begin(requestId, running);
  return running;
}

export class RunningRequest implements InFlightHandle {
  /** What it holds in memory until it has ended. */
  readonly held: HeldBytes;
  /** Keeps an item of the answer, for a client that names it by its id in its next turn. */
  keepItem: ((item: JsonObject) => void) | undefined;
  readonly #parts: RequestScope;
  readonly #request: ClientRequest;
  #controller = new AbortController();
  #isStopped = false;
  #children = 0;

  constructor(
    parts: RequestScope,
    request: ClientRequest,
    readonly book: Book,
  ) {
    this.held = parts.heldBodies.of(book.member);
    this.#parts = parts;
    this.#request = request;
    const { signal } = request;
    if (signal.aborted) this.handleEvent();
    else signal.addEventListener("abort", this, { once: true });
  }

  get requestId(): string {
    return this.book.requestId;
  }

  /** The member whose request it is; null for the owner's. */
  get member(): string | null {
    return this.book.member;
  }

  /** The client has hung up. */
  handleEvent(): void {
    this.stop(clientClosed);
  }

  /** What `work` gives, for which others may wait too. Nobody waits whose client has gone: it throws the signal's reason then. */
  whileThere<Result>(work: Promise<Result>): Promise<Result> {
    return withTimeLimit(work, undefined, () => work, this.controller.signal);
  }

  /** Begins a web search that runs for this request and has a row of its own. It is stopped with this request. */
  openSearch(): RunningRequest {
    const { requestId, keyName, member, session, clientDialect, trace } = this.book;
    const { method, headers } = this.#request;
    const childId = `${requestId}.${++this.#children}`;
    const hints = { ...this.book.hints, kind: "search" as const };
    const identity = { requestId: childId, keyName, member, path: "web_search", parentId: requestId, session, hints };
    const request = { method, headers, signal: this.controller.signal };
    const child = new RunningRequest(
      this.#parts,
      request,
      new Book(this.#parts, request, identity, clientDialect, trace),
    );
    this.#parts.inFlight.begin(childId, child);
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
    return inFlightRow(this.book);
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
      const usage = this.book.addUsage(event.usage);
      return usage === event.usage ? event : { ...event, usage };
    }
    this.book.addEvent(event);
    const { answeredBy } = this.book.chapter;
    if (!answeredBy) return event;
    if (event.type === "error" && isSuspensionEvent(event.code, event.message))
      answeredBy.setState({
        name: "failed",
        reason: suspensionReason(writtenOf(event, { who: "GitHub Copilot" })),
        suspended: true,
      });
    if (event.type === "block-end" && event.signature)
      rememberMaker(this.#parts.affinity, event.signature, answeredBy, this.book.target?.model.vendor);
    return event;
  }

  /** Of a stream that has begun, the client has the status. */
  cutShort(why: ProxyError): void {
    this.fail(why, this.book.hasBegun ? 200 : undefined);
  }

  /** Writes the row; only the first call counts. */
  end(status: number): void {
    const { book } = this;
    if (book.hasEnded) return;
    book.hasEnded = true;
    this.held[Symbol.dispose]();
    const { exchangeMetrics, history, inFlight, logger, losses, sessionPrompts } = this.#parts;
    const durationMs = book.elapsedMs;
    const { usage, lost } = inspectUsage(book, losses);
    book.chapter.usage = usage;
    const { prompt } = book.hints;
    if (prompt !== undefined) sessionPrompts.end(book, prompt);
    // A title is asked for before the first request that names the prompt.
    else book.sessionPrompt ??= sessionPrompts.runningIn(book);
    const isCut = isInterrupted(book);
    const row = finishedRow(this.#parts, book, { status, durationMs, isCut, lost });
    endLines(this.#parts, this, book.hasBegun || isCharged(book) ? costOfRow(row) : undefined);
    history.add(row);
    inFlight.end(row);
    exchangeMetrics.count(row, book.attempts);
    book.trace?.end(row);
    const { error, lesson } = book.chapter;
    const line = logLine(book.method, row);
    const fields = () => logFields(row);
    if (error) logger.warn(line, undefined, fields);
    else logger.info(line, fields);
    if (status === 200 && !error) void lesson?.(usage);
  }

  /** Writes the row of a request whose client hung up. */
  hungUp(): void {
    const { isOver } = this.book;
    if (!isOver) this.book.failed(clientClosed);
    this.end(isOver ? 200 : 499);
  }

  /**
   * Writes the row of a failure and returns the error for the client. Where it is still to be sent, who sends it logs a fault of ours.
   * @param sent The status that the client got before; by default that of the error.
   */
  fail(thrown: unknown, sent?: number): ProxyError {
    if (this.#request.signal.aborted) {
      this.hungUp();
      return clientClosed;
    }
    const error = asProxyError(this.#isStopped ? this.#controller.signal.reason : thrown);
    this.book.setError(error);
    const { clientDialect } = this.book;
    const dialect = clientDialect === "embeddings" ? "chat" : clientDialect;
    const forClient = errorForClient(error, dialect, this.#request.headers.get("user-agent"));
    this.end(sent ?? forClient.status);
    if (error.kind !== "internal") return forClient;
    const cause = faultOf(error.details.cause);
    if (sent !== undefined) this.#parts.logger.error(faultLine(this.#request.method), cause);
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
  const calls = stack.slice(stack.indexOf(message) + message.length).match(/^[ \t]+at .+:\d+:\d+\)?$/gm) ?? [];
  const from = calls.slice(0, 3).map((call) => call.trim());
  return [plainName(name), codeOf(thrown), ...from].filter((part) => part !== "").join(" ");
}
