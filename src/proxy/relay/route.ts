/**
 * Who may serve a request for a reply, in the order of trying: the model that the client asked for, a choice of Auto in its
 * place, and the models of its chain; each asked for the client's own summary first, and for one in words where the upstream
 * makes none. `after.ts` says what follows a try.
 */

import type { CompactionCodec } from "../../dialects/codecs";
import { asProxyError, ProxyError } from "../../lib/errors";
import { isSuspension } from "../../people/accounts/suspension";
import type { RequestScope } from "../scope";
import { autoId, autoOnlyCode } from "../upstream/copilot/auto-model";
import { after, asksNextModel, modelTrouble, type Step, type Trouble, table } from "./after";
import { AutoSeats } from "./auto-choice";
import { Chain, chainOf, targetNamed } from "./chain";
import type { Exchange } from "./exchange";
import { asksNothing } from "./nothing";
import { routedTarget } from "./owners-routes";
import {
  type ChatTarget,
  isAutoTarget,
  isProvided,
  modelHeader,
  modelInHeader,
  presentTarget,
  requireFurtherModels,
} from "./target";

/** Serves a request with one model. @throws ProxyError */
type Serve = (parts: RequestScope, exchange: Exchange, target: ChatTarget) => Promise<Response>;

/**
 * The answer of the first who serves.
 * @throws ProxyError That of the model that the client asked for, which says why no other one could serve.
 */
export function answerOf(parts: RequestScope, exchange: Exchange, serve: Serve): Promise<Response> {
  const { dialect, key, incoming } = exchange;
  const present = routedTarget(parts, exchange) ?? presentTarget(parts, incoming.model, dialect, key);
  if (!present) return lookUpAndAnswer(parts, exchange, serve);
  return answerFrom(parts, exchange, serve, present);
}

async function lookUpAndAnswer(parts: RequestScope, exchange: Exchange, serve: Serve): Promise<Response> {
  const { model } = exchange.incoming;
  let first: ChatTarget;
  try {
    first = await targetNamed(parts, exchange, model);
  } catch (thrown) {
    const { fallbacks } = parts.config.current;
    const names = Object.hasOwn(fallbacks, model) ? fallbacks[model] : undefined;
    if (!names || !(thrown instanceof ProxyError)) throw thrown;
    // The model is not known now; its chain may be used for that.
    const trouble = modelTrouble(thrown, { hasBegun: false, isBlocked: isBlocked(parts, thrown), isUnasked: false });
    if (after([trouble], { isLeft: (step) => step === "next model" }) === "end") throw thrown;
    const chain = new Chain(parts, exchange, undefined, names, thrown);
    return new Route(parts, exchange, serve, chain).answer();
  }
  return answerFrom(parts, exchange, serve, first);
}

function answerFrom(parts: RequestScope, exchange: Exchange, serve: Serve, first: ChatTarget): Promise<Response> {
  const names = chainOf(parts, first);
  const isAlone = !names && !exchange.reshape && !parts.config.current.autoWhenOnly && !isAutoTarget(first);
  if (isAlone) return answerAlone(parts, exchange, serve, first);
  const chain = names && new Chain(parts, exchange, first, names);
  return new Route(parts, exchange, serve, chain).answer(first);
}

/** Nothing else could follow. */
function answerAlone(parts: RequestScope, exchange: Exchange, serve: Serve, target: ChatTarget): Promise<Response> {
  const { key, incoming, book } = exchange;
  requireFurtherModels(key, target.provider, incoming.body);
  // The request itself is not kept while the answer is awaited.
  const asked = incoming.model;
  const answer = serve(parts, exchange, target);
  return asked === target.model.id && !target.named ? answer : namedLater(asked, book, target, answer);
}

async function namedLater(asked: string, book: Exchange["book"], target: ChatTarget, answer: Promise<Response>) {
  return named(asked, book, target, await answer);
}

/** A header names the model where the client asked for another name. */
function named(asked: string, { model }: Exchange["book"], target: ChatTarget, answer: Response): Response {
  const served = model ?? target.model.id;
  if (served !== asked) answer.headers.set(modelHeader, modelInHeader(served));
  return answer;
}

const isBlocked = ({ pool }: RequestScope, error: ProxyError): boolean =>
  isSuspension(error) || pool.suspensionError() !== undefined;

class Route {
  /** The model of the chain, or the only one. */
  private model!: ChatTarget;
  /** How many calls were made before it. */
  #calls = 0;
  #auto: AutoSeats | undefined;
  /** Who is asked now: Auto's choice, or the model itself. */
  private target!: ChatTarget;
  /** Whether the upstream makes the summary that the client asks for: it is asked, or has refused. */
  #summary: "asked" | "refused" | undefined;

  constructor(
    private readonly parts: RequestScope,
    private readonly exchange: Exchange,
    private readonly serve: Serve,
    private readonly chain: Chain | undefined,
  ) {}

  /** @param first The model that the client asked for; with a chain it may be missing. */
  async answer(first?: ChatTarget): Promise<Response> {
    const { chain, exchange } = this;
    exchange.keep();
    this.model = chain ? await chain.begin() : first!;
    for (let step: Step = "next model"; ; ) {
      try {
        this.target = await this.#take(step);
        const answer = named(exchange.incoming.model, exchange.book, this.target, await this.#served());
        // A model of another name was named before.
        if (chain && !answer.headers.has(modelHeader))
          answer.headers.set(modelHeader, modelInHeader(this.model.model.id));
        return answer;
      } catch (thrown) {
        step = this.#after(thrown);
      }
      if (step === "put-off model") chain?.end();
      if (chain && asksNextModel(step)) this.model = await chain.next();
    }
  }

  get #wasAsked(): boolean {
    return this.exchange.book.attempts.length > this.#calls;
  }

  /** Whether the model serves in place of another one. */
  get #isFallback(): boolean {
    return this.chain !== undefined && this.model !== this.chain.first;
  }

  /** Finds who is asked now. @throws ProxyError where that turns out to be nobody. */
  async #take(step: Step): Promise<ChatTarget> {
    const { chain, exchange, model, parts } = this;
    if (step === "in words") return this.target;
    this.#summary = undefined;
    if (asksNextModel(step)) {
      this.#auto = undefined;
      this.#calls = exchange.book.attempts.length;
      requireFurtherModels(exchange.key, model.provider, exchange.incoming.body);
      // A request that asks for nothing needs no choice.
      if (!isAutoTarget(model) || asksNothing(exchange, model, true)) return model;
      this.#auto = new AutoSeats(parts, exchange, model.model.id, this.#isFallback ? chain?.first : undefined);
    } else if (step === "Auto") this.#auto = new AutoSeats(parts, exchange, autoId);
    return this.#auto!.choose(step);
  }

  /** The answer of the one who is asked now; after a summary the conversation goes on with a new choice of Auto. */
  async #served(): Promise<Response> {
    const { exchange, parts, serve } = this;
    const target = this.target;
    if (!exchange.reshape) return serve(parts, exchange, target);
    if (this.#summary === undefined && mayMakeSummary(parts, exchange, target)) this.#summary = "asked";
    const asked = this.#summary === "asked" ? exchange.unchanged(ownSummary(parts, exchange, target)) : exchange;
    const answer = await serve(parts, asked, target);
    if (this.#summary === "refused") learnRefusal(parts, exchange, target);
    this.#auto?.forget();
    return answer;
  }

  /** What follows. @throws ProxyError where nothing does. */
  #after(thrown: unknown): Step {
    const { chain, exchange, model } = this;
    const { book, codec } = exchange;
    const error = asProxyError(thrown);
    const troubles = this.#troubles(error);
    const step = after(troubles, this);
    if (step === "in words") {
      this.#summary = "refused";
      book.beginChapter();
      book.addFixup(`refused:${codec.compaction!.trigger}`);
    }
    if (step === "Auto") book.passOver(model.model.id, error.status, error.words);
    if (step !== "end" && !asksNextModel(step)) return step;
    // Of the first model, and of what concerns all models, the client gets the very error.
    const isTold = step === "end" && (!this.#isFallback || troubles.some((trouble) => table[trouble].isOfRequest));
    if (!chain || isTold) throw thrown;
    chain.failed(model, error, this.#wasAsked ? error.status : null);
    if (step === "end") throw chain.unserved();
    return step;
  }

  isLeft(step: Step): boolean {
    if (step === "next choice") return this.#auto?.hasNext ?? false;
    if (step === "Auto") return !this.#auto && this.parts.config.current.autoWhenOnly;
    if (step === "next model") return this.chain !== undefined;
    if (step === "put-off model") return this.#isFallback && this.chain!.hasPutOff;
    return step === "in words" || step === "new choice";
  }

  #troubles(error: ProxyError): Trouble[] {
    const { exchange, parts } = this;
    const { book, running } = exchange;
    if (running.isStopped) return ["stopped"];
    if (this.#summary === "asked" && isNoSummary(parts, exchange, this.target, error)) return ["noSummary"];
    const troubles: Trouble[] = [];
    const ofChoice = this.#auto?.troubleOf(error);
    if (ofChoice) troubles.push(ofChoice);
    else if (error.details.code === autoOnlyCode) troubles.push("onlyAuto");
    const isUnasked = this.#isFallback && !this.#wasAsked;
    troubles.push(modelTrouble(error, { hasBegun: book.hasBegun, isBlocked: isBlocked(parts, error), isUnasked }));
    return troubles;
  }
}

// ── A summary that the upstream itself makes: what refuses it is remembered as that of a parameter. ──

const isKnownToRefuse = ({ unsupportedParams }: RequestScope, { codec }: Exchange, { model }: ChatTarget): boolean =>
  unsupportedParams.known(model.id).includes(codec.compaction!.trigger);

const learnRefusal = ({ unsupportedParams }: RequestScope, { codec }: Exchange, { model }: ChatTarget): void =>
  unsupportedParams.learn(model.id, codec.compaction!.trigger);

const mayMakeSummary = (parts: RequestScope, exchange: Exchange, target: ChatTarget): boolean =>
  !isProvided(target) && target.dialect === exchange.dialect && !isKnownToRefuse(parts, exchange, target);

const ownSummary =
  (parts: RequestScope, exchange: Exchange, target: ChatTarget): CompactionCodec["reply"] =>
  (next) => {
    const { isNotMade, reply } = exchange.codec.compaction!;
    return reply({
      push(event) {
        if (isNotMade(event)) learnRefusal(parts, exchange, target);
        next.push(event);
      },
      end: () => next.end(),
    });
  };

/** The same prompt would be too long for a summary in words. */
const isNoSummary = (
  parts: RequestScope,
  exchange: Exchange,
  target: ChatTarget,
  { status, details }: ProxyError,
): boolean =>
  details.code !== "context_length_exceeded" && (status === 400 || isKnownToRefuse(parts, exchange, target));
