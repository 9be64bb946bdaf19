/**
 * The chain of models that serve in place of one that cannot: the owner's `fallbacks`. The next model is asked only while
 * nothing of an answer exists, each model once, and never after GitHub has blocked an account.
 */

import type { Config } from "../../config/schema";
import { asProxyError, inBoth, joined, ProxyError, type Words, words } from "../../lib/errors";
import { withFullStop, withoutFullStop } from "../../lib/format";
import { isEmpty } from "../../lib/json";
import type { RequestScope } from "../scope";
import { ofEveryModel } from "../upstream/copilot/failure-rows";
import { findListed } from "../upstream/models/model-name";
import type { Book } from "./book";
import type { Exchange } from "./exchange";
import { unfitReason } from "./fallback-fit";
import type { RunningRequest } from "./running-request";
import { type ChatTarget, chooseTarget, isAutoTarget, modelHeader, modelInHeader, presentTarget } from "./target";

/** The statuses after which another model may serve: no quota, limited, unavailable, overloaded. */
const statusesForFallback: ReadonlySet<number> = new Set([402, 429, 503, 529]);

/** Further models that are asked for one request. */
const maxAsked = 3;

/**
 * The answer of the first model, or else of the first one of its chain that serves the request.
 * @param serve Serves the request with a model, in place of the first one if that is another.
 * @throws ProxyError The first model's, which says why no other one could serve.
 */
export function withFallbacks(parts: RequestScope, exchange: Exchange, serve: Serve): Promise<Response> {
  const { dialect, key, incoming } = exchange;
  const present = presentTarget(parts, incoming.model, dialect, key);
  return present ? serveFirst(parts, exchange, serve, { first: present }) : lookUpAndServe(parts, exchange, serve);
}

const lookUpAndServe = async (parts: RequestScope, exchange: Exchange, serve: Serve): Promise<Response> =>
  serveFirst(parts, exchange, serve, await firstTarget(parts, exchange));

function serveFirst(parts: RequestScope, exchange: Exchange, serve: Serve, found: First): Promise<Response> {
  const { first } = found;
  const names = first ? chainOf(parts, first) : parts.config.current.fallbacks[exchange.incoming.model];
  return first && names === undefined
    ? serve(parts, exchange, first, first)
    : serveByChain(parts, exchange, serve, found, names);
}

type Serve = (
  parts: RequestScope,
  exchange: Exchange,
  target: ChatTarget,
  first: ChatTarget | undefined,
) => Promise<Response>;

/** @throws As {@link withFallbacks}. */
async function serveByChain(
  parts: RequestScope,
  exchange: Exchange,
  serve: Serve,
  { first, failure: unlisted }: First,
  names: readonly string[] | undefined,
): Promise<Response> {
  exchange.keep();
  const { book, running } = exchange;
  const name = exchange.incoming.model;
  const chain: Chain = {
    first,
    wanted: first?.model.id ?? name,
    names: [...(names ?? [])],
    asked: new Set([first?.model.id ?? name]),
    isCopilotOut: false,
    cooling: [],
    passedOver: [],
  };
  let target = first;
  let failure = unlisted;
  if (failure) passOver(chain, running, name, null, failure.words);
  if (failure || (first && waitsForOthers(first, chain, running))) target = await nextTarget(parts, exchange, chain);
  while (target !== undefined) {
    const calls = book.attemptCount;
    try {
      const answer = await serve(parts, exchange, target, first);
      // A model of another name was named before.
      if (!answer.headers.has(modelHeader)) answer.headers.set(modelHeader, modelInHeader(target.model.id));
      return answer;
    } catch (thrown) {
      if (running.isStopped) throw thrown;
      const error = asProxyError(thrown);
      const isRefusedHere = target !== first && book.attemptCount === calls && error.kind === "invalid_request";
      if (!isRefusedHere && !mayFallBackAfter(parts, error, book)) {
        if (target === first || error.kind === "internal" || isBlocked(parts, error)) throw thrown;
        chain.names = [];
        if (book.hasBegun) chain.cooling = [];
      }
      if (target === first) failure = error;
      failure ??= error;
      chain.isCopilotOut ||= ofEveryModel.test(error.details.code ?? "");
      const status = book.attemptCount === calls ? null : error.status;
      passOver(chain, running, target.model.id, status, error.words);
    }
    target = await nextTarget(parts, exchange, chain);
  }
  // The row is that of the model that the client asked for.
  if (first) book.setTarget(first, exchange.facts);
  throw unserved(failure!, chain);
}

type First = { first: ChatTarget; failure?: undefined } | { first?: undefined; failure: ProxyError };

/** The model that the client asked for; or why it is not known now, if its chain may be used for that. */
async function firstTarget(parts: RequestScope, exchange: Exchange): Promise<First> {
  const { incoming, book } = exchange;
  try {
    return { first: await targetNamed(parts, exchange, incoming.model) };
  } catch (thrown) {
    const hasChain = Object.hasOwn(parts.config.current.fallbacks, incoming.model);
    if (!hasChain || !(thrown instanceof ProxyError) || !mayFallBackAfter(parts, thrown, book)) throw thrown;
    return { failure: thrown };
  }
}

/** The names in the chain of a model, under whichever of its names the config has it. */
function chainOf(parts: RequestScope, target: ChatTarget): readonly string[] | undefined {
  const { fallbacks } = parts.config.current;
  return isEmpty(fallbacks) ? undefined : chainIn(fallbacks, parts, target);
}

function chainIn(
  fallbacks: Config["fallbacks"],
  { catalogue }: RequestScope,
  { model, provider }: ChatTarget,
): readonly string[] | undefined {
  if (Object.hasOwn(fallbacks, model.id)) return fallbacks[model.id];
  const models = provider ? undefined : catalogue.presentModels();
  const name = models && Object.keys(fallbacks).find((each) => findListed(each, models)?.id === model.id);
  return name === undefined ? undefined : fallbacks[name];
}

const isBlocked = ({ pool }: RequestScope, { details }: ProxyError): boolean =>
  details.code === "account_suspended" || pool.suspensionError() !== undefined;

function mayFallBackAfter(parts: RequestScope, error: ProxyError, book: Book): boolean {
  // A reply that had begun was generated and billed.
  if (book.hasBegun || error.kind === "internal" || isBlocked(parts, error)) return false;
  if (error.details.code === "budget_exceeded") return error.details.mayFallBack === true;
  return statusesForFallback.has(error.status);
}

/** A provider that fails all the time is asked only if no other model of the chain can serve. */
function waitsForOthers(target: ChatTarget, chain: Chain, running: RunningRequest): boolean {
  const why = target.provider?.breaker.cooling;
  if (why === undefined || chain.names.length === 0) return false;
  chain.cooling.push(target);
  passOver(chain, running, target.model.id, null, words`${why}`);
  return true;
}

/** @param status Null if the model was not asked. */
function passOver(chain: Chain, running: RunningRequest, model: string, status: number | null, why: Words): void {
  running.book.passOver({ model, status, why: why.written });
  chain.passedOver.push({ model, why });
}

interface Chain {
  /** Missing if no account could list it. */
  first: ChatTarget | undefined;
  /** The model that the client asked for, by its id if it is known. */
  wanted: string;
  /** The models that were not considered yet. */
  names: string[];
  /** The ids of the models that were asked. */
  asked: Set<string>;
  /** Copilot refuses every model. */
  isCopilotOut: boolean;
  /** The models that were put off because their providers cool down. */
  cooling: ChatTarget[];
  /** The models that did not serve, and why. */
  passedOver: { model: string; why: Words }[];
}

function targetNamed(parts: RequestScope, { dialect, key, running }: Exchange, name: string): Promise<ChatTarget> {
  const target = chooseTarget(parts, name, dialect, key);
  return parts.catalogue.presentModels() ? target : running.whileThere(target);
}

/** The next model that can take the request. The book says why others cannot. */
async function nextTarget(parts: RequestScope, exchange: Exchange, chain: Chain): Promise<ChatTarget | undefined> {
  const { running } = exchange;
  for (let name = chain.names.shift(); name !== undefined; name = chain.names.shift()) {
    if (running.isStopped) throw running.controller.signal.reason;
    // The first model is one of those that were asked.
    if (chain.asked.size > maxAsked) break;
    let target: ChatTarget;
    try {
      target = await targetNamed(parts, exchange, name);
    } catch (thrown) {
      if (running.isStopped || !(thrown instanceof ProxyError)) throw thrown;
      passOver(chain, running, name, null, thrown.words);
      continue;
    }
    const { model, provider } = target;
    if (chain.asked.has(model.id)) continue;
    const why =
      chain.isCopilotOut && !provider
        ? "the limit holds for every model of GitHub Copilot"
        : isAutoTarget(target) // What it chooses is looked at then.
          ? undefined
          : await unfitReason(parts, exchange, chain.first, target);
    if (why === undefined) {
      chain.asked.add(model.id);
      if (waitsForOthers(target, chain, running)) continue;
      return target;
    }
    passOver(chain, running, model.id, null, words`Not asked: ${why}.`);
  }
  return chain.cooling.shift();
}

/** The error of the model that the client asked for, with what became of the others. */
function unserved(failure: ProxyError, { passedOver, wanted }: Chain): ProxyError {
  const others = passedOver.filter(({ model }) => model !== wanted);
  if (others.length === 0) return failure;
  const reasons = others.map(({ model, why }) => words`${model}: ${inBoth(why, withoutFullStop)}`);
  const first = inBoth(failure.words, withFullStop);
  const sentence = words`${first} None of its fallbacks could serve: ${joined(reasons, "; ")}.`;
  return new ProxyError(failure.kind, sentence, failure.details);
}
