/** The accounts of GitHub Copilot that may serve a request, in the order of trying, and what became of each. */

import { setTimeout as wait } from "node:timers/promises";
import type { ReplyFailure } from "../../dialects/hub/reply";
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
import { withDenial } from "../upstream/models/denials";
import type { Step } from "./after";
import { bodyRemedies, mendKnownRefusals, type Remedy } from "./body-remedies";
import { reserve } from "./budget-lines";
import type { RunningRequest } from "./running-request";
import { Seats, type Tried } from "./seats";
import type { Dispatch, Outgoing } from "./upstream-call";

/** Milliseconds that a request waits for an account to become ready; shorter than a client waits before it retries. */
const maxPauseMs = 2000;
/** Milliseconds that it waits for one account's token while another account could serve. */
const tokenTimeoutMs = 5000;

export class AccountSeats<Answer> extends Seats<Answer> {
  readonly #need: Need;
  #accounts: readonly Account[];
  /** The place of the next one. */
  #next = 0;
  #hasPaused = false;
  /** The one that is asked now, its token, and what it is sent next. */
  account!: Account;
  token!: CopilotToken;
  sent!: Outgoing & CopilotCall;
  /** The last failure of each account, in the order of time. Made with the first one, which most requests do not see. */
  #failures: Map<Account, Failure> | undefined;
  /** Accounts that failed and are still ready: they would fail again. */
  #refusing: Set<Account> | undefined;
  /** What the client gets whatever the other accounts can do. */
  #final: ProxyError | undefined;

  constructor(parts: RequestScope, dispatch: Dispatch<Answer>) {
    super(parts, dispatch);
    const { catalogue, pool } = parts;
    const { choice, model } = dispatch.target;
    const capable = (account: Account) =>
      choice === undefined ? catalogue.offers(account, model.id) : account === choice.account;
    this.#need = { premium: model.price.premium, model: model.id, capable };
    this.#accounts = this.#inOrder(pool.takeTurn(this.#need));
  }

  get asked(): string {
    return this.account.key;
  }

  isLeft(step: Step): boolean {
    if (step === "next account") return this.#next < this.#accounts.length;
    return step === "again" || (step === "pause" && !this.#hasPaused);
  }

  async attempt(step: Step): Promise<Tried<Answer>> {
    if (step === "pause" && !(await this.#pause())) return { trouble: "unable" };
    if (step !== "again") {
      const { parts, running } = this;
      const account = this.#take();
      if (!account) return { trouble: "unable" };
      requireOwnAccount(account, running);
      const token = account.presentCopilotToken() ?? (await this.#tokenOf(account));
      if ("remedy" in token) return this.#noted(token);
      const overage = this.#mayBeOverage(account) ? await this.#overageOf(account) : undefined;
      if (overage) return this.#noted(overage);
      const reserved = reserve(parts, running, account);
      const overBudget = reserved instanceof Promise ? await reserved : reserved;
      if (overBudget) return this.#noted({ remedy: "next-account", error: overBudget });
      this.#begin(token);
      const mending = mendKnownRefusals(parts, this);
      if (mending) await mending;
      if (this.#failures?.has(account)) this.#asFurtherCall();
    }
    const result = await this.ask();
    if ("answer" in result) {
      for (const mark of this.dispatch.outgoing.marks ?? []) this.parts.affinity.remember(mark, this.account);
      return result;
    }
    const mended = await this.#mend(result);
    return mended === true ? { trouble: "mended" } : this.#noted(mended || ofAccount(result));
  }

  /** @throws ProxyError where another request has learnt meanwhile that GitHub has blocked an account. */
  #take(): Account | undefined {
    while (this.#next < this.#accounts.length) {
      const blocked = this.parts.pool.suspensionError();
      if (blocked) throw blocked;
      const account = this.#accounts[this.#next++]!;
      if (this.#refusing?.has(account)) continue;
      this.account = account;
      return account;
    }
    return undefined;
  }

  /** @returns Whether an account may serve by now. */
  async #pause(): Promise<boolean> {
    const { pool } = this.parts;
    const { signal } = this.running.controller;
    this.#hasPaused = true;
    const ms = pool.wait(this.#need);
    if (ms !== undefined && ms <= maxPauseMs) await wait(ms, undefined, { signal });
    else if (!(await pool.lookAgain(this.#need, signal))) return false;
    this.#accounts = this.#inOrder(pool.candidates(this.#need));
    this.#next = 0;
    return true;
  }

  /** Accounts that have nothing but Auto refuse every named model, so the others come first; before all, the preferred one. */
  #inOrder(able: Account[]): readonly Account[] {
    return able.length < 2 ? able : able.toSorted((one, other) => this.#rank(one) - this.#rank(other));
  }

  #rank(account: Account): number {
    const { preferredAccount } = this.dispatch.outgoing;
    return account === preferredAccount ? -1 : Number(this.parts.catalogue.isAutoOnly(account));
  }

  /** The account's token, or why it has none. */
  #tokenOf(account: Account): Promise<CopilotToken | Failure> {
    const isLast = this.#next === this.#accounts.length;
    return orUnavailable(account, this.running, () => account.copilotToken(), isLast ? undefined : tokenTimeoutMs);
  }

  /** With `neverOverage`, an account whose quota is not known yet is asked for it before it is charged. */
  #mayBeOverage({ knownQuota }: Account): boolean {
    return this.#need.premium && this.parts.config.current.neverOverage && !knownQuota;
  }

  /** Why the account may not be charged, if it may not. */
  async #overageOf(account: Account): Promise<Failure | undefined> {
    const { model } = this;
    const quota = await orUnavailable(account, this.running, () => account.quota());
    if ("remedy" in quota) return quota;
    if (account.stateFor(model).name === "ready") return undefined;
    return { remedy: "next-account", error: this.parts.pool.whyNone({ premium: true, model }) };
  }

  /** What is sent first with the account. */
  #begin(token: CopilotToken): void {
    this.startOver();
    this.token = token;
    this.sent = { ...this.dispatch.outgoing, requestId: this.running.requestId, listener: this };
  }

  retried(code: string): void {
    this.parts.logger.debug(`The connection to GitHub Copilot failed (${code}); connecting again.`);
  }

  resent(error: ProxyError): void {
    this.book.endAttempt(error);
    this.#beginAttempt();
  }

  /** The upstream bills a request with `user`: each account counts a person's turn once. */
  #asFurtherCall(): void {
    this.sent.initiator &&= "agent";
  }

  /** Changes what is sent next, if that may help. @returns Whether it did; or another failure, where GitHub does not tell. */
  async #mend(failure: Failure): Promise<boolean | Failure> {
    const remedy = this.mending.remedyFor(failure, remedies);
    if (!remedy) return false;
    const outcome = await orUnavailable(this.account, this.running, async () => remedy.apply(this, failure));
    if (outcome === true) this.#asFurtherCall();
    return typeof outcome === "boolean" ? outcome : withAnswer(failure, outcome);
  }

  protected call(): Promise<CallResponse> {
    this.#beginAttempt();
    this.sent.controller = this.running.controller;
    return this.parts.copilot.call(this.token, this.sent);
  }

  #beginAttempt(): void {
    this.book.beginAttempt(this.account, this.token.baseUrl);
  }

  protected failed(how: ProxyError | number): void {
    const { account, parts } = this;
    if (typeof how === "number") parts.breaker.failed(account, `status ${how}`);
    else if (how.kind !== "internal") parts.breaker.failed(account, how.written);
  }

  protected async refused(response: CallResponse): Promise<Failure> {
    const { status, headers } = response;
    return this.#withNewCode(readFailure(status, headers, await readStart(response, 64 * 1024), this.parts.now()));
  }

  protected accepted({ headers }: CallResponse): void {
    const { account, model, parts } = this;
    parts.breaker.served(account);
    // With a choice of Auto it was not the name that decided.
    if (!this.dispatch.target.choice) parts.catalogue.denials.served(account, model);
    account.learnQuota(headers);
    this.book.chapter.answeredBy = account;
  }

  protected broken(error: ReplyFailure, headers: Headers): Failure {
    return this.#withNewCode(readBrokenReply(error, headers, this.parts.now()));
  }

  /** Counts a code that is new. */
  #withNewCode(failure: Failure): Failure {
    if (failure.newCode !== undefined) this.parts.drift.note("error code", plainName(failure.newCode), "errors");
    return failure;
  }

  /** Keeps what the failure says about the account. */
  #noted(found: Failure): Tried<Answer> {
    const { account } = this;
    const { choice, model } = this.dispatch.target;
    const { id, price } = model;
    const failure = choice ? found : withDenial(this.parts, account, id, found);
    this.#failures ??= new Map();
    // The last one in time is the last one in the map.
    this.#failures.delete(account);
    this.#failures.set(account, failure);
    if (failure.account) {
      const state = { ...failure.account };
      // Where a model that costs no quota was refused without a reason, the other models may still work.
      const isModelOnly = failure.scope === "model" || (failure.scope === "premium" && !price.premium);
      if (state.name === "exhausted") state.alsoFree = !price.premium;
      account.setState(state, isModelOnly ? id : undefined);
    } else if (account.stateFor(id).name === "ready") {
      this.#refusing ??= new Set();
      this.#refusing.add(account);
    }
    if (failure.remedy === "next-account") return { trouble: "unable" };
    this.#final = failure.error;
    return { trouble: "refused" };
  }

  /**
   * Why nobody serves, with how long the accounts' limits last, for requests that may wait. A budget's refusal stands.
   */
  get error(): ProxyError {
    if (this.#final) return this.#final;
    const { pool } = this.parts;
    const error = this.#errorOfAll();
    const isOfOneAccount = this.dispatch.target.choice !== undefined;
    const isLimit = error.details.code !== "budget_exceeded" && pool.wait(this.#need);
    const untilReady = isLimit ? () => pool.wait(this.#need) : undefined;
    if (!untilReady && !isOfOneAccount) return error;
    const { kind, words: sentence, details } = error;
    return new ProxyError(kind, sentence, { ...details, untilReady, ...(isOfOneAccount && { otherAccount: true }) });
  }

  /** The upstream's own error where one account was to serve and the error says when to retry; else that of each account. */
  #errorOfAll(): ProxyError {
    const { accounts, pool } = this.parts;
    const need = this.#need;
    const last = this.#failures && [...this.#failures.values()].at(-1);
    if (!last) return pool.whyNone(need);
    const isOneOfSeveral = accounts.filter((account) => need.capable?.(account) ?? true).length > 1;
    const lacksRetryTime = last.account !== undefined && !last.error.details.headers?.["retry-after"];
    return (isOneOfSeveral || lacksRetryTime) && pool.wait(need) !== 0
      ? pool.whyNone(need, this.#failures)
      : last.error;
  }
}

/** Asks GitHub once for another token, or where the account is served. @returns Whether the request may be sent again. */
const renewal = (
  when: Failure["remedy"],
  renew: (account: Account, token: CopilotToken) => Promise<CopilotToken>,
  mayBeSame = true,
): Remedy<AccountSeats<unknown>> => ({
  when,
  async apply(seats) {
    const rejected = seats.token;
    seats.token = await renew(seats.account, rejected);
    return mayBeSame || seats.token !== rejected;
  },
  again: "never",
});

const remedies: readonly Remedy<AccountSeats<unknown>>[] = [
  renewal("renew-token", (account, token) => account.renewToken(token), false),
  renewal("renew-token-or-host", (account, token) => account.renewTokenOrHost(token)),
  renewal("relearn-host", (account, token) => account.relearnHost(token)),
  ...bodyRemedies,
];

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

/**
 * A token that is refused although it is fresh is the account's own failure, and another account may serve. After
 * `renew-token` a person has to sign in again; else the account may lack a right for this model only.
 */
function ofAccount(failure: Failure): Failure {
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
    return { remedy: "next-account", error };
  }
}

function throwSlowToken(): never {
  throw new ProxyError("timeout", "GitHub is slow to issue a Copilot token for this account; try again in a moment.");
}
