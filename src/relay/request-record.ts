/** What is gathered of a request on its way through the relay. It is written to the history once, however the request ends. */
import type { Account } from "../accounts/account";
import { isSuspensionEvent, suspensionReason } from "../accounts/suspension";
import type { App } from "../app";
import type { Dialect } from "../dialects/hub/conversation";
import type { ReplyEvent, Usage } from "../dialects/hub/reply";
import { asProxyError, ProxyError } from "../errors";
import { describeCause } from "../logger";
import type { Caller } from "../net/guard";
import { errorForClient } from "./client-error";
import type { Facts, Incoming } from "./incoming";
import { clientClosed, openRequestLifetime } from "./request-lifetime";
import {
  type AttemptedAccount,
  finishedRow,
  inFlightRow,
  logLine,
  nameWithoutContent,
  type RequestState,
  withoutContent,
} from "./request-log";
import type { KnownTarget } from "./target";

export type RecordParts = Pick<App, "affinity" | "history" | "inFlight" | "logger">;

export interface RequestRecord {
  readonly requestId: string;
  /** Aborts when nobody wants the answer any more: the client hung up, or an admin stopped the request. Its reason is the error for the client. */
  readonly signal: AbortSignal;
  setRequest(incoming: Incoming): void;
  setTarget(target: KnownTarget, facts: Facts): void;
  /**
   * One attempt with one account (null with a provider, which has none).
   * @param outcome The HTTP status, or the error when there was no answer.
   */
  addAttempt(account: AttemptedAccount | null, outcome: number | ProxyError, ms: number): void;
  /** The account that answered; only this account can read the signatures in its reply. */
  setAccount(account: Account): void;
  addFixup(name: string): void;
  addDropped(names: Iterable<string>): void;
  /** To be called with each event of the reply. */
  addEvent(event: ReplyEvent): void;
  addUsage(usage: Partial<Usage>): void;
  /** The reply's last event was seen. */
  readonly isOver: boolean;
  /** An error that came before the reply began: nothing of it went to the client, so an error answer is still possible. */
  readonly earlyError: { code: string; message: string } | undefined;
  /** The last attempt's successful answer turned out to be an error, and another attempt may follow. */
  replyFailed(code: string): void;
  /** An error's message without the parts of the request it repeats. */
  redact(message: string): string;
  markFirstByte(): void;
  /** Writes the row; only the first call counts. */
  end(status: number): void;
  /** Writes the row of a request whose client hung up. */
  hungUp(): void;
  /** Writes the row of a failure and returns the error for the client. */
  fail(thrown: unknown): ProxyError;
}

/** 2,000 requests run well at the same time. 1,000 more may wait; beyond that they would only fill memory. */
const maxInFlight = 3000;

/** @throws ProxyError 503 when too many requests run already; that request gets no row. */
export function openRequestRecord(
  { affinity, history, inFlight, logger }: RecordParts,
  request: Request,
  { requestId }: Pick<Caller, "requestId">,
  dialect: Dialect | "embeddings",
): RequestRecord {
  if (inFlight.count >= maxInFlight) throw overloaded();
  const lifetime = openRequestLifetime(request);
  const userAgent = request.headers.get("user-agent");
  const state: RequestState = {
    requestId,
    method: request.method,
    path: new URL(request.url).pathname,
    clientName: /^[^\s(]+/.exec(userAgent ?? "")?.[0] ?? null,
    clientDialect: dialect,
    startedAtMs: lifetime.startedAtMs,
    account: null,
    attempts: [],
    usage: {},
    fixups: new Set(),
    dropped: new Set(),
  };
  const reply: ReplyProgress = { hasBegun: false, isOver: false };
  let server: Account | undefined;
  let isWritten = false;

  const changed = () => inFlight.notify(requestId);
  const write = (status: number) => {
    if (isWritten) return;
    isWritten = true;
    const row = finishedRow(state, { status, durationMs: lifetime.elapsedMs(), scrub: logger.scrub });
    history.add(row);
    inFlight.end(row);
    logger[state.error ? "warn" : "info"](logLine(state.method, row));
  };
  const writeHangUp = () => {
    if (!reply.isOver) state.error ??= { type: "client_closed", message: clientClosed.message };
    write(reply.isOver ? 200 : 499);
  };

  inFlight.begin(requestId, { tell: () => inFlightRow(state), stop: lifetime.stop });
  return {
    requestId,
    signal: lifetime.signal,
    setRequest(incoming) {
      state.incoming = incoming;
    },
    setTarget(target, facts) {
      state.target = target;
      state.facts = facts;
      changed();
    },
    addAttempt(account, outcome, ms) {
      state.account = account;
      if (typeof outcome === "number") state.attempts.push({ account, status: outcome, ms });
      else state.attempts.push({ account, error: lifetime.clientHungUp ? "client_closed" : outcome.kind, ms });
      changed();
    },
    setAccount(account) {
      server = account;
    },
    addFixup: (name) => void state.fixups.add(name),
    addDropped(names) {
      for (const name of names) state.dropped.add(name);
    },
    addEvent(event) {
      applyEvent(event, state, reply);
      if (!server) return;
      if (event.type === "block-end" && event.signature) affinity.remember(event.signature.value, server);
      else if (event.type === "error" && isSuspensionEvent(event.code, event.message))
        server.mark({ name: "failed", reason: suspensionReason(event.message), suspended: true });
    },
    addUsage: (usage) => void Object.assign(state.usage, usage),
    get isOver() {
      return reply.isOver;
    },
    get earlyError() {
      return state.error && !reply.hasBegun ? { code: state.error.type, message: state.error.message } : undefined;
    },
    replyFailed(code) {
      const attempt = state.attempts.at(-1);
      if (attempt) attempt.error = nameWithoutContent(state, code);
      state.error = undefined;
      state.stopReason = undefined;
      reply.isOver = false;
      changed();
    },
    redact: (message) => withoutContent(state, message),
    markFirstByte() {
      if (state.firstByteMs !== undefined) return;
      state.firstByteMs = lifetime.elapsedMs();
      changed();
    },
    end: write,
    hungUp: writeHangUp,
    fail(thrown) {
      if (lifetime.clientHungUp) {
        writeHangUp();
        return clientClosed;
      }
      const error = asProxyError(lifetime.signal.aborted ? lifetime.signal.reason : thrown);
      state.error = { type: error.details.code ?? error.kind, message: error.message };
      const forClient = errorForClient(error, dialect === "embeddings" ? "chat" : dialect, userAgent);
      write(forClient.status);
      if (error.kind !== "internal") return forClient;
      const cause = withoutContent(state, describeCause(error.details.cause));
      logger.error("A request failed unexpectedly; please report this.", cause);
      return new ProxyError("internal", error.message, { ...error.details, cause });
    },
  };
}

const overloaded = () =>
  new ProxyError("no_account", `${maxInFlight} requests are running already; try again in a moment.`, {
    code: "overloaded",
    headers: { "retry-after": "1" },
  });

interface ReplyProgress {
  hasBegun: boolean;
  /** Its last event was seen. */
  isOver: boolean;
}

function applyEvent(event: ReplyEvent, state: RequestState, reply: ReplyProgress): void {
  switch (event.type) {
    case "start":
      reply.hasBegun = true;
      break;
    case "usage":
      Object.assign(state.usage, event.usage);
      break;
    case "finish":
      reply.isOver = true;
      state.stopReason = event.raw ?? event.reason;
      break;
    case "error":
      reply.isOver = true;
      state.error ??= { type: event.code, message: event.message };
      break;
  }
}
