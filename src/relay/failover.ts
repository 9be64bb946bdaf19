/** One request, sent until an account serves it: the retry matrix. Nothing is sent twice that may have been processed. */
import { setTimeout as wait } from "node:timers/promises";
import type { Account, Session } from "../accounts/account";
import type { Need } from "../accounts/pool";
import type { App } from "../app";
import { asProxyError, ProxyError } from "../errors";
import { type CallResponse, readStart } from "../net/body";
import type { CopilotCall } from "../upstream/copilot";
import { type Failure, readBrokenReply, readFailure } from "../upstream/failure";
import { withoutParams } from "../upstream/unsupported-params";
import { bodyText } from "./incoming";
import type { RequestRecord } from "./request-record";
import { BrokenReply } from "./respond";
import type { Target } from "./target";
import type { UpstreamCall } from "./upstream-call";

/** What is sent, for whichever account serves it. */
export type Outgoing = Pick<CopilotCall, "path" | "intent" | "initiator" | "vision" | "headers" | "limits"> & {
  body: string | Uint8Array;
  /** The body without what only another account could read; tried once when the upstream says so. */
  repaired?: () => string;
  /** See {@link UpstreamCall}. */
  fitTools?: UpstreamCall["fitTools"];
  /** The account that is asked first, before the usual order, if it can serve. */
  preferredAccount?: Account;
  /** The client's session: whoever serves it now is its owner. */
  session?: string;
};

/** Milliseconds that a request waits for an account to come back: less than a client would, told to come again. */
const maxPauseMs = 2000;
/** Milliseconds that it waits for one account's sign-in while another one could serve. */
const sessionTimeoutMs = 5000;

/** What is made of a good answer, its body unread. @throws BrokenReply when an error was told in its place. */
export type Accept<Answer> = (response: CallResponse) => Promise<Answer>;

/**
 * What was made of the upstream's good answer; asked for as long as the exchange wants one.
 * @throws ProxyError The last failure, or why no account could be asked.
 */
export async function sendWithFailover<Answer>(
  app: App,
  target: Target,
  outgoing: Outgoing,
  exchange: RequestRecord,
  accept: Accept<Answer>,
): Promise<Answer> {
  const model = target.model.id;
  const { premium } = target.model.price;
  const need: Need = { premium, model, capable: (account) => app.catalogue.offers(account, model) };
  const asked = new Map<Account, Failure>();
  const refusing = new Set<Account>();
  for (let round = 1; round <= 2; round++) {
    const candidates = ownerFirst(app.pool.candidates(need), outgoing.preferredAccount);
    for (const [at, account] of candidates.entries()) {
      // Another request may have been told meanwhile that an account is blocked.
      const stopped = app.pool.stopped();
      if (stopped) throw stopped;
      // One that refused and need not rest would refuse again.
      if (refusing.has(account)) continue;
      // A person's turn is announced once to each account.
      const initiator = asked.has(account) ? outgoing.initiator && "agent" : outgoing.initiator;
      const within = at + 1 < candidates.length ? sessionTimeoutMs : undefined;
      const result = await sendWith(app, account, within, target, { ...outgoing, initiator }, exchange, accept);
      if ("accepted" in result) return result.accepted;
      asked.set(account, result);
      if (result.account) {
        const reason = result.account.reason && exchange.redact(result.account.reason);
        // Where a free model was refused and nobody said why, the others may still be had.
        const modelOnly = result.scope === "model" || (result.scope === "premium" && !premium);
        account.mark({ ...result.account, reason, alsoFree: !premium }, modelOnly ? model : undefined);
      } else if (account.stateFor(model).name === "ready") refusing.add(account);
      if (result.remedy !== "next-account") throw result.error;
    }
    const pause = app.pool.wait(need);
    if (round === 2 || pause === undefined || pause > maxPauseMs) break;
    await wait(pause, undefined, { signal: exchange.signal });
  }
  throw lastWord(app, need, [...asked.values()].at(-1));
}

function ownerFirst(candidates: Account[], owner: Account | undefined): Account[] {
  if (owner === undefined || !candidates.includes(owner)) return candidates;
  return [owner, ...candidates.filter((account) => account !== owner)];
}

/** The upstream's own words where one account was to serve and they say when again; else what became of each account. */
function lastWord(app: App, need: Need, failure: Failure | undefined): ProxyError {
  if (!failure) return app.pool.whyNone(need);
  const several = app.accounts.filter(need.capable!).length > 1;
  const untold = failure.account !== undefined && !failure.error.details.headers?.["retry-after"];
  return (several || untold) && app.pool.wait(need) !== 0 ? app.pool.whyNone(need) : failure.error;
}

interface Accepted<Answer> {
  accepted: Answer;
}

/** How often one account is asked again for one request, each time for another cause. */
const maxTries = 4;

async function sendWith<Answer>(
  app: App,
  account: Account,
  timeoutMs: number | undefined,
  target: Target,
  outgoing: Outgoing,
  exchange: RequestRecord,
  accept: Accept<Answer>,
): Promise<Accepted<Answer> | Failure> {
  const tried = new Set<string>();
  const model = target.model.id;
  const lighter = (given: string | Uint8Array, patterns: readonly string[]) => without(given, patterns, exchange);
  const known = app.unsupportedParams.known(model);
  /** What was left out for this account and is not proven to be the reason. */
  const leftOut: string[] = [];
  let { initiator } = outgoing;
  let body = lighter(outgoing.body, known);
  let session: Session;
  try {
    session = await inTime(account.session(), timeoutMs);
  } catch (thrown) {
    return unable(account, thrown, exchange);
  }
  for (;;) {
    const response = await callOnce(app, account, session, { ...outgoing, body, initiator }, exchange);
    const result = response.ok
      ? await acceptFrom(app, account, response, exchange, accept)
      : readFailure(response.status, response.headers, await readStart(response, 64 * 1024), app.now());
    if ("accepted" in result) {
      if (outgoing.session !== undefined) app.affinity.remember(outgoing.session, account);
      for (const pattern of leftOut) app.unsupportedParams.learn(model, pattern);
      return result;
    }
    const failure = result;
    // Each refused parameter is a cause of its own: upstreams name one at a time.
    const cause = failure.param === undefined ? failure.remedy : `drop-param ${failure.param}`;
    if (tried.has(cause) || tried.size >= maxTries) return afterRemedy(failure);
    tried.add(cause);
    try {
      if (failure.remedy === "refresh-session") {
        const rejected = session;
        session = await account.refresh(rejected);
        if (session === rejected) return afterRemedy(failure);
      } else if (failure.remedy === "relearn-host") session = await account.relearnHost(session);
      else if (failure.remedy === "repair" && outgoing.repaired) {
        body = lighter(outgoing.repaired(), [...known, ...leftOut]);
        exchange.addFixup("foreign-items");
      } else if (failure.remedy === "fit-tools") {
        const fitted = outgoing.fitTools?.(bodyText(body));
        if (fitted === undefined) return failure;
        body = fitted;
      } else if (failure.remedy === "drop-param" && failure.param !== undefined) {
        const before = body;
        body = lighter(before, [failure.param]);
        if (body === before) return failure;
        leftOut.push(failure.param);
      } else return failure;
    } catch (thrown) {
      return unable(account, thrown, exchange);
    }
    // The person's turn was announced by the first try.
    initiator &&= "agent";
  }
}

/** What was made of a good answer; or the failure that it told of, before anything of it went out. */
async function acceptFrom<Answer>(
  app: App,
  account: Account,
  response: CallResponse,
  exchange: RequestRecord,
  accept: Accept<Answer>,
): Promise<Accepted<Answer> | Failure> {
  account.learnQuota(response.headers);
  exchange.setAccount(account);
  try {
    return { accepted: await accept(response) };
  } catch (thrown) {
    if (!(thrown instanceof BrokenReply)) throw thrown;
    const failure = readBrokenReply(thrown.told, response.headers, app.now());
    // A reply that had begun was made, and counted: it is not asked for again.
    if (thrown.begun) throw failure.error;
    exchange.replyFailed(thrown.told.code);
    return failure;
  }
}

/** The very same body when it has none of these parameters. */
function without(body: string | Uint8Array, patterns: readonly string[], exchange: RequestRecord): string | Uint8Array {
  if (patterns.length === 0) return body;
  const { text, removed } = withoutParams(bodyText(body), patterns);
  for (const pattern of removed) exchange.addFixup(`refused:${pattern}`);
  return removed.length === 0 ? body : text;
}

/** @param timeoutMs Milliseconds; as long as it takes when missing. */
async function inTime(session: Promise<Session>, timeoutMs: number | undefined): Promise<Session> {
  if (timeoutMs === undefined) return session;
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new ProxyError("timeout", "GitHub takes its time to hand out this account's Copilot token.");
    timer = setTimeout(reject, timeoutMs, error);
  });
  return Promise.race([session, late]).finally(() => clearTimeout(timer));
}

async function callOnce(
  app: App,
  account: Account,
  session: Session,
  outgoing: Outgoing,
  exchange: RequestRecord,
): Promise<CallResponse> {
  let sentAt = performance.now();
  const took = () => Math.round(performance.now() - sentAt);
  try {
    const response = await app.copilot.call(session, {
      ...outgoing,
      requestId: exchange.requestId,
      signal: exchange.signal,
      retried: (why) => app.logger.debug(`Connection to GitHub Copilot made a second time: ${why}.`),
      resent(error) {
        exchange.addAttempt(account, error, took());
        sentAt = performance.now();
      },
    });
    exchange.addAttempt(account, response.status, took());
    if (response.status >= 500) app.breaker.failed(account, `status ${response.status}`);
    else if (response.ok) app.breaker.served(account);
    return response;
  } catch (thrown) {
    const error = asProxyError(thrown);
    exchange.addAttempt(account, error, took());
    if (!exchange.signal.aborted) app.breaker.failed(account, error.message);
    throw thrown;
  }
}

/**
 * A refusal that outlived a fresh session is the account's own, and another one may serve. A sign-in that is refused
 * needs a person; a right that is missing (403) may concern this model only.
 */
function afterRemedy(failure: Failure): Failure {
  if (failure.remedy !== "refresh-session") return failure;
  if (failure.error.status !== 503) return { ...failure, remedy: "next-account" };
  return { ...failure, remedy: "next-account", account: { name: "failed", reason: failure.error.message } };
}

/** No session could be had: the account has said in its own state why; the next one may serve. */
function unable(account: Account, thrown: unknown, exchange: RequestRecord): Failure {
  const error = asProxyError(thrown);
  exchange.addAttempt(account, error, 0);
  // An account GitHub calls abusive is not replaced by another one.
  if (error.kind === "internal" || error.details.code === "account_suspended") throw error;
  return { remedy: "next-account", error: spokenAsUnavailable(error) };
}

/** A client would take GitHub's 401 or 403 for an answer to its own key. */
const spokenAsUnavailable = (error: ProxyError) =>
  error.status === 401 || error.status === 403 ? new ProxyError("no_account", error.message, { cause: error }) : error;
