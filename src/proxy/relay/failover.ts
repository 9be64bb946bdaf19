/** Sends one request to one account after another until one serves it. A request that may have been processed is never sent again. */
import { setTimeout as wait } from "node:timers/promises";
import { asProxyError, inBoth, ProxyError, words } from "../../lib/errors";
import { withFullStop } from "../../lib/format";
import { plainName } from "../../lib/json-shape";
import { type CallResponse, readStart } from "../../lib/net/out/body";
import { withTimeLimit } from "../../lib/net/time-limit";
import type { Account } from "../../people/accounts/account";
import type { CopilotToken } from "../../people/accounts/copilot-token";
import type { Need } from "../../people/accounts/pool";
import type { RequestScope } from "../scope";
import type { CopilotCall } from "../upstream/copilot/copilot";
import { type Failure, readBrokenReply, readFailure } from "../upstream/copilot/failure";
import { bodyRemedies, learnFrom, mendKnownRefusals, type Remedy, remediesOf, type SentRequest } from "./body-remedies";
import type { Book } from "./book";
import { reserve } from "./budget-lines";
import { withDenial } from "./denials";
import { afterBroken, BrokenReply } from "./respond";
import type { RunningRequest } from "./running-request";
import type { Target } from "./target";
import type { Dispatch, Outgoing } from "./upstream-call";

/** Milliseconds that a request waits for an account to become ready; shorter than a client waits before it retries. */
const maxPauseMs = 2000;
/** Milliseconds that it waits for one account's token while another account could serve. */
const tokenTimeoutMs = 5000;

/**
 * The result of the first account that serves the request.
 * @throws ProxyError The last failure, or why no account could be asked.
 */
export async function sendWithFailover<Answer>(parts: RequestScope, dispatch: Dispatch<Answer>): Promise<Answer> {
  const { catalogue, pool } = parts;
  const { target, outgoing, running } = dispatch;
  const model = target.model.id;
  const { premium } = target.model.price;
  const { onlyAccount } = outgoing;
  const capable = (account: Account) =>
    onlyAccount === undefined ? catalogue.offers(account, model) : account === onlyAccount;
  const need: Need = { premium, model, capable };
  // Made with the first failure, which most requests do not see.
  let failures: Map<Account, Failure> | undefined;
  /** Accounts that failed and are still ready: they would fail again. */
  let refusing: Set<Account> | undefined;
  for (let round = 1; round <= 2; round++) {
    const able = round === 1 ? pool.takeTurn(need) : pool.candidates(need);
    const candidates = able.length < 2 ? able : preferredFirst(namingFirst(able, catalogue), outgoing.preferredAccount);
    for (const account of candidates) {
      // Another request may have learned meanwhile that GitHub has blocked an account.
      const blocked = pool.suspensionError();
      if (blocked) throw blocked;
      if (refusing?.has(account)) continue;
      const outcome = await sendWith(parts, dispatch, account, {
        hasFailed: failures?.has(account) ?? false,
        timeoutMs: account === candidates.at(-1) ? undefined : tokenTimeoutMs,
      });
      if ("answer" in outcome) return outcome.answer;
      const result = onlyAccount ? outcome : withDenial(parts, account, model, outcome);
      failures ??= new Map();
      // The last one in time is the last one in the map.
      failures.delete(account);
      failures.set(account, result);
      markAccount(account, result, target);
      if (!result.account && account.stateFor(model).name === "ready") {
        refusing ??= new Set();
        refusing.add(account);
      }
      if (result.remedy !== "next-account") throw result.error;
    }
    const pause = pool.wait(need);
    if (round === 2) break;
    const { signal } = running.controller;
    if (pause !== undefined && pause <= maxPauseMs) await wait(pause, undefined, { signal });
    else if (!(await pool.lookAgain(need, signal))) break;
  }
  throw asLimit(parts, need, finalError(parts, need, failures), onlyAccount !== undefined);
}

/** Accounts that have nothing but Auto refuse every named model, so the others come first. */
function namingFirst(candidates: Account[], catalogue: Pick<RequestScope["catalogue"], "isAutoOnly">): Account[] {
  const rank = (account: Account) => Number(catalogue.isAutoOnly(account));
  return candidates.toSorted((one, other) => rank(one) - rank(other));
}

function preferredFirst(candidates: Account[], preferred: Account | undefined): Account[] {
  if (preferred === undefined || !candidates.includes(preferred)) return candidates;
  return [preferred, ...candidates.filter((account) => account !== preferred)];
}

/** Keeps what the failure says about the account. */
function markAccount(account: Account, failure: Failure, { model }: Target): void {
  if (!failure.account) return;
  const { premium } = model.price;
  const state = { ...failure.account };
  // Where a model that costs no quota was refused without a reason, the other models may still work.
  const isModelOnly = failure.scope === "model" || (failure.scope === "premium" && !premium);
  if (state.name === "exhausted") state.alsoFree = !premium;
  account.setState(state, isModelOnly ? model.id : undefined);
}

/**
 * The upstream's own error where one account was to serve and the error says when to retry; else that of each account.
 * @param failures The last one of each account, in the order of time.
 */
function finalError(
  { accounts, pool }: RequestScope,
  need: Need,
  failures?: ReadonlyMap<Account, Failure>,
): ProxyError {
  const last = [...(failures?.values() ?? [])].at(-1);
  if (!failures || !last) return pool.whyNone(need);
  const isOneOfSeveral = accounts.filter((account) => need.capable?.(account) ?? true).length > 1;
  const lacksRetryTime = last.account !== undefined && !last.error.details.headers?.["retry-after"];
  return (isOneOfSeveral || lacksRetryTime) && pool.wait(need) !== 0 ? pool.whyNone(need, failures) : last.error;
}

/** The error with how long the accounts' limits last, for requests that may wait. A budget's refusal stands. */
function asLimit({ pool }: RequestScope, need: Need, error: ProxyError, isOfOneAccount: boolean): ProxyError {
  const isLimit = error.details.code !== "budget_exceeded" && pool.wait(need);
  const untilReady = isLimit ? () => pool.wait(need) : undefined;
  if (!untilReady && !isOfOneAccount) return error;
  const { kind, words: sentence, details } = error;
  return new ProxyError(kind, sentence, { ...details, untilReady, ...(isOfOneAccount && { otherAccount: true }) });
}

/** What is sent to one account next; the remedies change it. */
class AccountCall implements SentRequest {
  readonly sent: Outgoing & CopilotCall;
  readonly running: RunningRequest;
  readonly book: Book;
  readonly removed: string[] = [];
  readonly taught: SentRequest["taught"] = [];
  schemaMends = 0;
  readonly model: string;
  readonly asked: string;

  /** @param token The account's. */
  constructor(
    { logger }: RequestScope,
    { outgoing, running, target }: Dispatch<unknown>,
    readonly account: Account,
    public token: CopilotToken,
  ) {
    const { book, requestId } = running;
    this.running = running;
    this.book = book;
    this.model = target.model.id;
    this.asked = account.key;
    this.sent = {
      ...outgoing,
      requestId,
      retried: (code) => logger.debug(`The connection to GitHub Copilot failed (${code}); connecting again.`),
      resent: (error) => {
        book.endAttempt(error);
        this.#begin();
      },
    };
  }

  /** The upstream bills a request with `user`: each account counts a person's turn once. */
  asFurtherCall(): void {
    this.sent.initiator &&= "agent";
  }

  /** One call, whose beginning the book has. @throws ProxyError */
  send({ copilot }: RequestScope, { controller }: RunningRequest): Promise<CallResponse> {
    this.#begin();
    this.sent.controller = controller;
    return copilot.call(this.token, this.sent);
  }

  #begin(): void {
    this.book.beginAttempt(this.account, this.token.baseUrl);
  }
}

const remedies: readonly Remedy<AccountCall>[] = [
  {
    when: "renew-token",
    async apply(current) {
      const rejected = current.token;
      current.token = await current.account.renewToken(rejected);
      return current.token !== rejected;
    },
    again: "never",
  },
  {
    when: "renew-token-or-host",
    async apply(current) {
      current.token = await current.account.renewTokenOrHost(current.token);
      return true;
    },
    again: "never",
  },
  {
    when: "relearn-host",
    async apply(current) {
      current.token = await current.account.relearnHost(current.token);
      return true;
    },
    again: "never",
  },
  ...bodyRemedies,
];

/** Sends the request to one account, and again as long as a remedy can be applied. */
async function sendWith<Answer>(
  parts: RequestScope,
  dispatch: Dispatch<Answer>,
  account: Account,
  { hasFailed, timeoutMs }: { hasFailed: boolean; timeoutMs: number | undefined },
): Promise<{ answer: Answer } | Failure> {
  const { target, outgoing, running } = dispatch;
  requireOwnAccount(account, running);
  const token = account.presentCopilotToken() ?? (await tokenOf(account, running, timeoutMs));
  if ("remedy" in token) return token;
  const overage = mayBeOverage(parts, account, target) ? await overageOf(parts, account, dispatch) : undefined;
  if (overage) return overage;
  const reserved = reserve(parts, running, account);
  const overBudget = reserved instanceof Promise ? await reserved : reserved;
  if (overBudget) return { remedy: "next-account", error: overBudget };
  const current = new AccountCall(parts, dispatch, account, token);
  const mending = mendKnownRefusals(parts, current);
  if (mending) await mending;
  if (hasFailed) current.asFurtherCall();
  let remedyFor: ReturnType<typeof remediesOf<AccountCall>> | undefined;
  for (;;) {
    const result = await attempt(parts, dispatch, current);
    if ("answer" in result) {
      for (const mark of outgoing.marks ?? []) parts.affinity.remember(mark, account);
      learnFrom(parts, current);
      return result;
    }
    remedyFor ??= remediesOf(remedies);
    const remedy = remedyFor(result);
    if (!remedy) return afterRemedies(result);
    const outcome = await applied(remedy, current, result);
    if (outcome === false) return afterRemedies(result);
    if (outcome !== true) return withAnswer(result, outcome);
    current.asFurtherCall();
  }
}

/** The accounts were chosen among the person's own. This is the last look before a token is used. @throws ProxyError `internal` */
export function requireOwnAccount({ id, member }: Account, running: RunningRequest): void {
  if (member === running.member) return;
  throw new ProxyError(
    "internal",
    "This request was not sent: the account that was chosen belongs to another person.",
    {
      cause: `The account ${id} of member ${member} was chosen for a request of member ${running.member}.`,
    },
  );
}

/** With `neverOverage`, an account whose quota is not known yet is asked for it before it is charged. */
const mayBeOverage = ({ config }: RequestScope, account: Account, { model }: Target): boolean =>
  config.current.neverOverage && model.price.premium && !account.knownQuota;

/** Why the account may not be charged, if it may not. */
async function overageOf(
  { pool }: RequestScope,
  account: Account,
  { target, running }: Pick<Dispatch<unknown>, "target" | "running">,
): Promise<Failure | undefined> {
  const model = target.model.id;
  const quota = await orUnavailable(account, running, () => account.quota());
  if ("remedy" in quota) return quota;
  if (account.stateFor(model).name === "ready") return undefined;
  return { remedy: "next-account", error: pool.whyNone({ premium: true, model }) };
}

const applied = (remedy: Remedy<AccountCall>, current: AccountCall, failure: Failure): Promise<boolean | Failure> =>
  orUnavailable(current.account, current.running, async () => remedy.apply(current, failure));

/** The account's token, or why it has none. */
const tokenOf = (account: Account, running: RunningRequest, timeoutMs: number | undefined) =>
  orUnavailable(account, running, () => account.copilotToken(), timeoutMs);

/** One call and the result of its answer; or the failure, as long as nothing of the answer went to the client. */
async function attempt<Answer>(
  parts: RequestScope,
  dispatch: Dispatch<Answer>,
  current: AccountCall,
): Promise<{ answer: Answer } | Failure> {
  const { target, running } = dispatch;
  const { account, book } = current;
  let response: CallResponse;
  try {
    response = await current.send(parts, running);
  } catch (thrown) {
    const error = asProxyError(thrown);
    book.endAttempt(error);
    if (!running.isStopped && error.kind !== "internal") parts.breaker.failed(account, error.written);
    throw thrown;
  }
  const { status, headers } = response;
  book.endAttempt(status);
  if (status >= 500) parts.breaker.failed(account, `status ${status}`);
  if (!response.ok)
    return noted(parts, readFailure(status, headers, await readStart(response, 64 * 1024), parts.now()));
  parts.breaker.served(account);
  // With a choice of Auto it was not the name that decided.
  if (!target.choice) parts.catalogue.denials.served(account, target.model.id);
  account.learnQuota(headers);
  book.chapter.answeredBy = account;
  try {
    return { answer: await dispatch.accept(response) };
  } catch (thrown) {
    if (!(thrown instanceof BrokenReply)) throw thrown;
    return afterBroken(thrown, noted(parts, readBrokenReply(thrown.error, headers, parts.now())), book);
  }
}

/** Counts a code that is new. */
function noted({ drift }: RequestScope, failure: Failure): Failure {
  if (failure.newCode !== undefined) drift.note("error code", plainName(failure.newCode), "errors");
  return failure;
}

/**
 * A token that is refused although it is fresh is the account's own failure, and another account may serve. After
 * `renew-token` a person has to sign in again; else the account may lack a right for this model only.
 */
function afterRemedies(failure: Failure): Failure {
  if (failure.remedy === "renew-token-or-host") return { ...failure, remedy: "next-account" };
  if (failure.remedy !== "renew-token") return failure;
  const reason = failure.error.words;
  return { ...failure, remedy: "next-account", account: { name: "failed", reason: reason.written }, reason };
}

/** The failure of a remedy, with the answer that it was for: the client gets the upstream's words. */
function withAnswer(answer: Failure, failure: Failure): Failure {
  const { kind, words: ours, details } = failure.error;
  const reason = words`${inBoth(answer.error.words, withFullStop)} ${ours}`;
  return { ...failure, error: new ProxyError(kind, reason, details), reason };
}

/**
 * What `work` gives, which asks GitHub of the account; or, when GitHub does not tell, the failure after which the next account is
 * asked. Nobody waits for it whose client has gone.
 */
async function orUnavailable<Result>(
  account: Account,
  running: RunningRequest,
  work: () => Promise<Result>,
  timeoutMs?: number,
): Promise<Result | Failure> {
  const { book, controller } = running;
  try {
    return await withTimeLimit(work(), timeoutMs, throwSlowToken, controller.signal);
  } catch (thrown) {
    if (running.isStopped) throw thrown;
    const error = asProxyError(thrown);
    book.beginAttempt(account, null);
    book.endAttempt(error);
    // An account that GitHub has blocked is not replaced by another one: that would evade the block.
    if (error.kind === "internal" || error.details.code === "account_suspended") throw error;
    return { remedy: "next-account", error: asUnavailable(error) };
  }
}

function throwSlowToken(): never {
  throw new ProxyError("timeout", "GitHub is slow to issue a Copilot token for this account; try again in a moment.");
}

/** A client would take GitHub's 401 or 403 for an answer to its own key. */
function asUnavailable(error: ProxyError): ProxyError {
  if (error.status !== 401 && error.status !== 403) return error;
  return new ProxyError("no_account", error.words, { cause: error });
}
