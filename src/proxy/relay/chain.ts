/**
 * The chain of models that serve in place of one that cannot: the owner's `fallbacks`. The next model is asked only while
 * nothing of an answer exists, each model once, and never after GitHub has blocked an account.
 */

import { inBoth, joined, ProxyError, type Words, words } from "../../lib/errors";
import { withFullStop, withoutFullStop } from "../../lib/format";
import { isEmpty } from "../../lib/json";
import type { RequestScope } from "../scope";
import { ofEveryModel } from "../upstream/copilot/failure-rows";
import { findListed } from "../upstream/models/model-name";
import type { Exchange } from "./exchange";
import { unfitReason } from "./fallback-fit";
import { type ChatTarget, chooseTarget, isAutoTarget } from "./target";

/** Further models that are asked for one request. */
const maxAsked = 3;

/** The names in the chain of a model, under whichever of its names the config has it. */
export function chainOf({ catalogue, config }: RequestScope, { model, provider }: ChatTarget) {
  const { fallbacks } = config.current;
  if (isEmpty(fallbacks)) return undefined;
  if (Object.hasOwn(fallbacks, model.id)) return fallbacks[model.id];
  const models = provider ? [] : catalogue.knownModels();
  for (const name in fallbacks) if (findListed(name, models)?.id === model.id) return fallbacks[name];
  return undefined;
}

export function targetNamed(
  parts: RequestScope,
  { dialect, key, running }: Exchange,
  name: string,
): Promise<ChatTarget> {
  const target = chooseTarget(parts, name, dialect, key);
  return parts.catalogue.presentModels() ? target : running.whileThere(target);
}

export class Chain {
  /** The model that the client asked for, by its id if it is known. */
  readonly #wanted: string;
  /** The models that were not considered yet. */
  #names: string[];
  /** The ids of the models that were asked. */
  readonly #asked: Set<string>;
  /** Copilot refuses every model. */
  #isCopilotOut = false;
  /** The models that were put off because their providers cool down. */
  readonly #putOff: ChatTarget[] = [];
  /** The models that did not serve, and why. */
  readonly #passedOver: { model: string; why: Words }[] = [];
  /** Why the model that the client asked for did not serve; or else the first one that was asked. */
  #failure: ProxyError | undefined;

  /**
   * @param first The model that the client asked for; missing if no account could list it.
   * @param unlisted Why not.
   */
  constructor(
    private readonly parts: RequestScope,
    private readonly exchange: Exchange,
    readonly first: ChatTarget | undefined,
    names: readonly string[],
    unlisted?: ProxyError,
  ) {
    this.#wanted = first?.model.id ?? exchange.incoming.model;
    this.#names = [...names];
    this.#asked = new Set([this.#wanted]);
    this.#failure = unlisted;
    if (unlisted) this.#passOver(this.#wanted, null, unlisted.words);
  }

  /** The first model to ask. @throws ProxyError if there is none. */
  async begin(): Promise<ChatTarget> {
    return this.first && !this.#isPutOff(this.first) ? this.first : this.next();
  }

  /** Whether a model is left that was put off. */
  get hasPutOff(): boolean {
    return this.#putOff.length > 0;
  }

  /** No model is asked any more but those that were put off. */
  end(): void {
    this.#names = [];
  }

  /** @param status Null if the model was not asked. */
  failed(target: ChatTarget, error: ProxyError, status: number | null): void {
    if (target === this.first) this.#failure = error;
    this.#failure ??= error;
    this.#isCopilotOut ||= ofEveryModel.test(error.details.code ?? "");
    this.#passOver(target.model.id, status, error.words);
  }

  /** The next model that can take the request. The book says why others cannot. @throws ProxyError if there is none. */
  async next(): Promise<ChatTarget> {
    const { running } = this.exchange;
    for (let name = this.#names.shift(); name !== undefined; name = this.#names.shift()) {
      if (running.isStopped) throw running.controller.signal.reason;
      // The first model is one of those that were asked.
      if (this.#asked.size > maxAsked) break;
      let target: ChatTarget;
      try {
        target = await targetNamed(this.parts, this.exchange, name);
      } catch (thrown) {
        if (running.isStopped || !(thrown instanceof ProxyError)) throw thrown;
        this.#passOver(name, null, thrown.words);
        continue;
      }
      const { id } = target.model;
      if (this.#asked.has(id)) continue;
      const why = await this.#unfitReason(target);
      if (why !== undefined) {
        this.#passOver(id, null, words`Not asked: ${why}.`);
        continue;
      }
      this.#asked.add(id);
      if (!this.#isPutOff(target)) return target;
    }
    const last = this.#putOff.shift();
    if (last) return last;
    throw this.unserved();
  }

  #unfitReason(target: ChatTarget): string | undefined | Promise<string | undefined> {
    if (this.#isCopilotOut && !target.provider) return "the limit holds for every model of GitHub Copilot";
    // What Auto chooses is looked at then.
    return isAutoTarget(target) ? undefined : unfitReason(this.parts, this.exchange, this.first, target);
  }

  /** A provider that fails all the time is asked only if no other model of the chain can serve. */
  #isPutOff(target: ChatTarget): boolean {
    const why = target.provider?.breaker.cooling;
    if (why === undefined || this.#names.length === 0) return false;
    this.#putOff.push(target);
    this.#passOver(target.model.id, null, words`${why}`);
    return true;
  }

  #passOver(model: string, status: number | null, why: Words): void {
    this.exchange.book.passOver(model, status, why);
    this.#passedOver.push({ model, why });
  }

  /** The error of the model that the client asked for, whose row it is, with what became of the others. */
  unserved(): ProxyError {
    const { book, facts } = this.exchange;
    if (this.first) book.setTarget(this.first, facts);
    const failure = this.#failure!;
    const others = this.#passedOver.filter(({ model }) => model !== this.#wanted);
    if (others.length === 0) return failure;
    const reasons = others.map(({ model, why }) => words`${model}: ${inBoth(why, withoutFullStop)}`);
    const first = inBoth(failure.words, withFullStop);
    const sentence = words`${first} None of its fallbacks could serve: ${joined(reasons, "; ")}.`;
    return new ProxyError(failure.kind, sentence, failure.details);
  }
}
