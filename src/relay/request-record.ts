/** What we shall remember of one exchange, gathered on its way and written once, however it ends. Never its content. */
import type { Account } from "../accounts/account";
import { isSuspensionEvent, suspensionReason } from "../accounts/suspension";
import type { App } from "../app";
import type { Dialect } from "../dialects/hub/conversation";
import type { ReplyEvent, Usage } from "../dialects/hub/reply";
import { asProxyError, ProxyError } from "../errors";
import type { InFlightRequest } from "../history/in-flight";
import { describeCause } from "../logger";
import type { Caller } from "../net/guard";
import { costOf } from "../upstream/price";
import { toldTo } from "./client-error";
import type { Facts, Incoming } from "./incoming";
import { redact } from "./redact";
import type { KnownTarget } from "./target";

export interface RequestRecord {
  readonly requestId: string;
  /** Aborts when no answer is wanted any more: the client hung up, or the owner cancelled; its reason is the error to be spoken. */
  readonly signal: AbortSignal;
  setRequest(incoming: Incoming): void;
  setTarget(target: KnownTarget, facts: Facts): void;
  /**
   * One try with one account (null: with a provider, which has none), and how it ended: an HTTP status, or the error
   * that came instead.
   */
  addAttempt(account: Tried | null, outcome: number | ProxyError, ms: number): void;
  /** The account that answered: the proofs in its reply are its own. */
  setAccount(account: Account): void;
  addFixup(name: string): void;
  addDropped(names: Iterable<string>): void;
  /** Each event of the reply. */
  addEvent(event: ReplyEvent): void;
  addUsage(usage: Partial<Usage>): void;
  /** The reply's terminal event was seen. */
  readonly isOver: boolean;
  /** The reply broke before it began: nothing of it went to the client, a plain error answer is still possible. */
  readonly earlyError: { code: string; message: string } | undefined;
  /** The last attempt's answer was an error after all, and another attempt may follow. */
  replyFailed(code: string): void;
  /** An error's words as they may be remembered: without what they repeat of the request. */
  redact(words: string): string;
  markFirstByte(): void;
  /** Writes the row; the first call counts. */
  end(status: number): void;
  /** The client hung up. */
  hungUp(): void;
  /** Writes the row of a failure; gives the error to be spoken. */
  fail(thrown: unknown): ProxyError;
}

type Tried = Pick<Account, "id" | "key">;

const clientClosed = "client_closed";
/** Spoken to nobody. */
const hungUp = new ProxyError("upstream", "The client hung up before the reply was complete.", {
  status: 499,
  code: clientClosed,
});

/** A word for programs, and nothing that a person wrote. */
const isName = (text: string) => /^[a-z]+(?:[_:-][a-z0-9]+)*$/.test(text);

/** Beyond the 2,000 that run well there is room for 1,000 that wait their turn; more would only fill memory. */
const maxAtOnce = 3000;

/** @throws ProxyError 503 when too many exchanges run already; it is no row, for it costs nothing. */
export function openRequestRecord(
  app: App,
  request: Request,
  caller: Caller,
  dialect: Dialect | "embeddings",
): RequestRecord {
  if (app.inFlight.count >= maxAtOnce)
    throw new ProxyError("no_account", `${maxAtOnce} requests are under way here already; try again in a moment.`, {
      code: "overloaded",
      headers: { "retry-after": "1" },
    });
  const startedAt = Date.now();
  const path = new URL(request.url).pathname;
  const clock = performance.now();
  const elapsed = () => Math.round(performance.now() - clock);
  const usage: Partial<Usage> = {};
  const fixups = new Set<string>();
  const dropped = new Set<string>();
  /** A temporary account may learn its name meanwhile. */
  const attempts: { account: Tried | null; status?: number; error?: string; ms: number }[] = [];
  let incoming: Incoming | undefined;
  let target: KnownTarget | undefined;
  let facts: Facts | undefined;
  let tried: Tried | null = null;
  let server: Account | undefined;
  let firstByteMs: number | undefined;
  let begun = false;
  let stopReason: string | undefined;
  let error: { type: string; message: string } | undefined;
  let over = false;
  let written = false;
  const ending = new AbortController();

  const tell = (): InFlightRequest => ({
    request_id: caller.requestId,
    started_at_ms: startedAt,
    first_byte_ms: firstByteMs ?? null,
    path,
    client_dialect: dialect,
    upstream_dialect: target?.dialect ?? null,
    upstream_endpoint: target?.endpoint ?? null,
    account_id: tried?.id ?? null,
    account_key: tried?.key ?? null,
    client_model: incoming?.model ?? null,
    upstream_model: target?.model.id ?? null,
    stream: incoming?.stream ? 1 : 0,
    initiator: facts?.initiator ?? null,
    initiator_reason: facts?.reason ?? null,
    attempts: JSON.stringify(attempts.map((each) => ({ ...each, account: each.account?.id ?? null }))),
    client_name: /^[^\s(]+/.exec(request.headers.get("user-agent") ?? "")?.[0] ?? null,
  });
  const changed = () => app.inFlight.notify(caller.requestId);

  const withoutContent = (words: string) =>
    incoming ? redact(words, incoming.body, [incoming.model, target?.model.id ?? ""]) : words;

  /** A code, or a name of the wire, is nobody's content. */
  const nameWithoutContent = (name: string) => (isName(name) ? name : withoutContent(name));

  const write = (status: number) => {
    if (written) return;
    written = true;
    const told = error && {
      type: nameWithoutContent(error.type),
      message: withoutContent(error.message),
    };
    const cost = target ? costOf(target.model.price, usage, facts?.initiator !== "agent") : undefined;
    const served = status < 400 || status === 499;
    const entry = {
      ...tell(),
      duration_ms: elapsed(),
      http_status: status,
      stop_reason: stopReason ?? null,
      error_type: told?.type ?? null,
      error_message: told ? app.logger.scrub(told.message) : null,
      input_tokens: usage.input ?? null,
      output_tokens: usage.output ?? null,
      cached_tokens: usage.cachedInput ?? null,
      cache_write_tokens: usage.cacheWrite ?? null,
      reasoning_tokens: usage.reasoning ?? null,
      tokens_estimated: 0 as const,
      nano_credits: cost?.nanoCredits ?? null,
      premium_units: served ? (cost?.premiumUnits ?? null) : null,
      fixups: JSON.stringify([...fixups]),
      dropped: JSON.stringify(told ? [...dropped].map(nameWithoutContent) : [...dropped]),
    };
    app.history.add(entry);
    app.inFlight.end(entry);
    app.logger[told ? "warn" : "info"](
      [
        `${request.method} ${path}`,
        incoming?.model,
        target && target.model.id !== incoming?.model ? `→ ${target.model.id}` : undefined,
        tried && `· ${tried.id}`,
        `· ${status}`,
        usage.input === undefined
          ? undefined
          : `· ${usage.input} in (${usage.cachedInput ?? 0} cached), ${usage.output ?? "?"} out`,
        `· ${elapsed()} ms`,
        stopReason && `· ${stopReason}`,
        told && `· ${told.type}: ${told.message}`,
      ]
        .filter(Boolean)
        .join(" "),
    );
  };

  const see = (event: ReplyEvent) => {
    switch (event.type) {
      case "start":
        begun = true;
        break;
      case "block-end":
        if (server && event.signature) app.affinity.remember(event.signature.value, server);
        break;
      case "usage":
        Object.assign(usage, event.usage);
        break;
      case "finish":
        over = true;
        stopReason = event.raw ?? event.reason;
        break;
      case "error":
        over = true;
        error ??= { type: event.code, message: event.message };
        if (server && isSuspensionEvent(event.code, event.message))
          server.mark({ name: "failed", reason: suspensionReason(event.message), suspended: true });
        break;
    }
  };

  const left = () => {
    error ??= over ? undefined : { type: clientClosed, message: hungUp.message };
    write(over ? 200 : 499);
  };

  const hangUp = () => ending.abort(hungUp);
  if (request.signal.aborted) hangUp();
  else request.signal.addEventListener("abort", hangUp, { once: true });
  app.inFlight.begin(caller.requestId, { tell, stop: (why) => ending.abort(why) });
  return {
    requestId: caller.requestId,
    signal: ending.signal,
    setRequest(given) {
      incoming = given;
    },
    setTarget(chosen, learnt) {
      target = chosen;
      facts = learnt;
      changed();
    },
    addAttempt(account, outcome, ms) {
      tried = account;
      if (typeof outcome === "number") attempts.push({ account, status: outcome, ms });
      else attempts.push({ account, error: request.signal.aborted ? clientClosed : outcome.kind, ms });
      changed();
    },
    setAccount(account) {
      server = account;
    },
    addFixup: (name) => void fixups.add(name),
    addDropped: (names) => {
      for (const name of names) dropped.add(name);
    },
    addEvent: see,
    addUsage: (told) => void Object.assign(usage, told),
    get isOver() {
      return over;
    },
    get earlyError() {
      return error && !begun ? { code: error.type, message: error.message } : undefined;
    },
    replyFailed(code) {
      Object.assign(attempts.at(-1) ?? {}, { error: nameWithoutContent(code) });
      [error, over, stopReason] = [undefined, false, undefined];
      changed();
    },
    redact: withoutContent,
    markFirstByte() {
      if (firstByteMs !== undefined) return;
      firstByteMs = elapsed();
      changed();
    },
    end: write,
    hungUp: left,
    fail(thrown) {
      if (request.signal.aborted) {
        left();
        return hungUp;
      }
      const failure = asProxyError(ending.signal.aborted ? ending.signal.reason : thrown);
      error = { type: failure.details.code ?? failure.kind, message: failure.message };
      const told = toldTo(failure, dialect === "embeddings" ? "chat" : dialect, request.headers.get("user-agent"));
      write(told.status);
      if (failure.kind !== "internal") return told;
      const cause = withoutContent(describeCause(failure.details.cause));
      app.logger.error("A request failed in a way nobody foresaw.", cause);
      return new ProxyError("internal", failure.message, { ...failure.details, cause });
    },
  };
}
