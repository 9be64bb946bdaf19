/**
 * A request for the model `auto`: each account in turn is asked for its choice, and the model that it chose serves. A choice
 * holds for its conversation. A token that is refused is replaced once; it is never sent for another account.
 */

import type { ClientDialect } from "../../dialects/hub/conversation";
import { upstreamPaths } from "../../lib/api-paths";
import { ProxyError } from "../../lib/errors";
import { editBody } from "../../lib/net/in/request-body";
import { editMembers } from "../../lib/net/json/json-edit";
import type { Account } from "../../people/accounts/account";
import { isSuspension } from "../../people/accounts/suspension";
import { mayUseByAuto, requireAutoChoice } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import { type AutoChoice, type AutoQuestion, autoTokenHeader } from "../upstream/copilot/auto";
import { autoModel, tierOf } from "../upstream/copilot/auto-model";
import type { Model } from "../upstream/models/model";
import { findListed } from "../upstream/models/model-name";
import { dearestOf } from "../upstream/models/price";
import { requireOwnAccount } from "./account-seats";
import { preferredForAuto } from "./affinity-keys";
import type { Step, Trouble } from "./after";
import { conversationMark, wordsOf } from "./conversation-mark";
import type { Exchange } from "./exchange";
import { unfitReason } from "./fallback-fit";
import { type ChatTarget, preferredDialect } from "./target";
import type { UpstreamCall } from "./upstream-call";

/** The accounts whose Auto may choose, in the order of asking, and what each one chose. */
export class AutoSeats {
  readonly #conversation: string | undefined;
  #accounts: Iterator<Account> | undefined;
  /** The account that is asked next, if that was looked up. */
  #next: IteratorResult<Account> | undefined;
  #account: Account | undefined;
  /** What it chose. */
  #target: ChatTarget | undefined;
  /** How many calls were made before. */
  #calls = 0;
  /** What was done differently for the account. */
  readonly #retried = new Set<Retry>();

  /**
   * @param name The one of Auto's names that was asked for.
   * @param first The model in whose place it serves, whose request the chosen one must be able to take.
   */
  constructor(
    private readonly parts: RequestScope,
    private readonly exchange: Exchange,
    private readonly name: string,
    private readonly first?: ChatTarget,
  ) {
    this.#conversation = conversationMark(exchange);
  }

  /** The choice of the next account, or a new one of the same. @throws ProxyError */
  async choose(step: Step): Promise<ChatTarget> {
    if (step !== "new choice") await this.#take();
    this.#target = undefined;
    this.#calls = this.exchange.book.attempts.length;
    this.#target = await this.#chosenBy(this.#account!);
    return this.#target;
  }

  /** What the account's Auto chooses. @throws ProxyError */
  async #chosenBy(account: Account): Promise<ChatTarget> {
    const { exchange, first, name, parts } = this;
    const { auto, catalogue } = parts;
    const { dialect, key, facts, running } = exchange;
    requireOwnAccount(account, running);
    await running.whileThere(catalogue.load(account)).catch((thrown: unknown) => {
      // A choice describes its model itself.
      if (running.isStopped || !(thrown instanceof ProxyError) || isSuspension(thrown)) throw thrown;
    });
    const listed = catalogue.listOf(account);
    const question: AutoQuestion = {
      prompt: newestWords(exchange),
      hasImage: facts.vision,
      turns: exchange.conversation()?.turns.filter(({ role }) => role === "assistant").length ?? 0,
      asks: exchange.conversation()?.turns.filter((turn) => wordsOf(turn, exchange.whole) !== "").length ?? 0,
      tier: tierOf(name),
      mayUse: (model) => mayUseByAuto(key, name, model),
      listed,
      mayOmit: catalogue.mayBeAutoOnly(account) && listed.every(({ id }) => mayUseByAuto(key, name, id)),
      controller: () => running.controller,
    };
    const choice = await auto.choose(account, this.#conversation, question);
    const target = choice.model ? chosenTarget(choice, choice.model, dialect) : omittingTarget(choice, listed);
    if (choice.model) requireAutoChoice(key, name, choice.model.id);
    const why = first && (await unfitReason(parts, exchange, first, target));
    if (why !== undefined)
      throw new ProxyError(
        "invalid_request",
        `Auto chose \`${target.model.id}\`, which cannot take this request: ${why}.`,
      );
    return target;
  }

  /** @throws ProxyError why no account can be asked. */
  async #take(): Promise<void> {
    const { auto, pool } = this.parts;
    this.#accounts ??= await this.#begin();
    const { done, value } = this.#next ?? this.#accounts.next();
    this.#next = undefined;
    if (done) throw pool.whyNone({ premium: true, capable: (account) => auto.worksFor(account) !== false });
    const blocked = pool.suspensionError();
    if (blocked) throw blocked;
    this.#account = value;
    this.#retried.clear();
  }

  async #begin(): Promise<Iterator<Account>> {
    const { pool } = this.parts;
    const preferredAccount = await preferredForAuto(this.parts, this.exchange);
    const need = { premium: false, capable: mayChoose(this.parts) };
    const { signal } = this.exchange.running.controller;
    if (pool.candidates(need).length === 0) await pool.lookAgain(need, signal);
    return accountsOf(this.parts, preferredAccount, this.#conversation);
  }

  /** Whether another account is left. */
  get hasNext(): boolean {
    this.#next ??= this.#accounts?.next();
    return this.#next?.done === false;
  }

  /** After a summary the conversation goes on with a new choice. */
  forget(): void {
    this.parts.auto.forget(this.#account!, this.#conversation);
  }

  /** What an error means for the account's choice, and writes that down; undefined where it says nothing of it. */
  troubleOf(error: ProxyError): Trouble | undefined {
    const { book } = this.exchange;
    const account = this.#account;
    const target = this.#target;
    if (!account || book.hasBegun || error.kind === "internal" || isSuspension(error)) return undefined;
    if (!target) {
      book.beginAttempt(account, null);
      book.endAttempt(error);
      return mayTryAnotherAccount(error) ? "noChoice" : undefined;
    }
    const retry = retryFor(this.parts, error, target.choice);
    if (retry ? this.#retried.has(retry) : !error.details.otherAccount) return undefined;
    const status = book.attempts.length > this.#calls ? error.status : null;
    if (retry === "choice") this.forget();
    book.passOver(target.model.id, status, error.words);
    if (!retry) return "unable";
    this.#retried.add(retry);
    return "choiceRefused";
  }
}

/** Whether another account's choice may succeed. */
const mayTryAnotherAccount = ({ kind, details }: ProxyError): boolean =>
  kind !== "permission" && kind !== "invalid_request" && details.code !== "budget_exceeded";

/**
 * The accounts that keep the conversation's choice first, then the one that made what it replays or served its last turn, which
 * is the first among several that keep one; then the others in order.
 */
function* accountsOf(
  parts: RequestScope,
  preferredAccount: Account | undefined,
  conversation: string | undefined,
): Generator<Account> {
  const { auto, pool } = parts;
  const capable = mayChoose(parts);
  const first = (account: Account) =>
    Number(!auto.keeps(account, conversation)) * 2 + Number(account !== preferredAccount);
  const asked = new Set<Account>();
  // An account whose quota is used up may still serve a choice that costs none.
  for (const premium of [true, false])
    for (const account of pool.candidates({ premium, capable }).toSorted((one, other) => first(one) - first(other))) {
      if (asked.has(account)) continue;
      asked.add(account);
      yield account;
    }
}

/** Whether an account has Auto. Where none has it, each is asked again, and its answer says so. */
const mayChoose =
  ({ auto, accounts }: RequestScope) =>
  (account: Account): boolean =>
    auto.worksFor(account) !== false || accounts.every((each) => auto.worksFor(each) === false);

function chosenTarget(choice: AutoChoice, model: Model, client: ClientDialect): ChatTarget {
  const dialect = preferredDialect(client, model);
  if (!dialect) throw new ProxyError("upstream", `Auto chose \`${model.id}\`, which cannot hold a conversation.`);
  return { model, upstreamModel: model, dialect, endpoint: upstreamPaths[dialect], choice };
}

/** Until the answer names its model, the request counts as the dearest one that may serve. */
function omittingTarget(choice: AutoChoice, listed: readonly Model[]): ChatTarget {
  const served = listed.filter(({ enabled, dialects }) => enabled && dialects.includes("chat"));
  const model = { ...autoModel(served), dialects: ["chat" as const], price: dearestOf(served) };
  // OpenAI's newer models refuse `max_tokens`; most that Auto chooses are theirs.
  const like = served.find(({ supports }) => supports.completionTokens);
  const upstreamModel = like
    ? { ...model, vendor: like.vendor, supports: { ...model.supports, completionTokens: true } }
    : model;
  const named = (name: string) => servedModel(name, listed);
  return { model, upstreamModel, dialect: "chat", endpoint: upstreamPaths.chat, choice, named };
}

/** The model that an answer names, perhaps by its version. If it is not listed, only its name is known. */
function servedModel(name: string, listed: readonly Model[]): Pick<Model, "id" | "price"> {
  const undated = name.replace(/-\d{4}-\d{2}-\d{2}$/, "");
  return (
    findListed(name, listed) ??
    listed.find(({ version }) => version === name) ??
    findListed(undated, listed) ?? { id: name.slice(0, 256), price: { premium: true } }
  );
}

type Retry = "choice" | "omission";

/** What another try with the same account may do differently. */
function retryFor(
  { auto }: RequestScope,
  { details, status, message }: ProxyError,
  choice?: AutoChoice,
): Retry | undefined {
  if (!choice) return undefined;
  const isRefused = details.code === "auto_token_refused" || details.code === "model_not_found";
  if (choice.by !== "omission") return isRefused ? "choice" : undefined;
  const isOfModel =
    isRefused || (status === 400 && (details.param === "model" || /\bmodel is required\b/i.test(message)));
  if (!isOfModel) return undefined;
  auto.refuseOmission(choice.account);
  return "omission";
}

/** The request as Auto chose it: with its token, and without a model if Auto named none. */
export function asChosen({ model, token }: AutoChoice, { body, headers }: SentParts): SentParts {
  if (token !== undefined) return { body, headers: { ...headers, [autoTokenHeader]: token } };
  return { body: model ? body : editBody(body, (text) => editMembers(text, {}, ["model"])), headers };
}

type SentParts = Pick<UpstreamCall, "body" | "headers">;

const newestWords = (exchange: Exchange): string =>
  exchange
    .conversation()
    ?.turns.toReversed()
    .map((turn) => wordsOf(turn, exchange.whole))
    .find((words) => words !== "") ?? "";
