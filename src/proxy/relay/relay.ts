/** One request of a client: read, sent to the upstream, answered and recorded. */

import { codecs, type TranslationOptions } from "../../dialects/codecs";
import type { ClientDialect, Dialect, JsonObject } from "../../dialects/hub/conversation";
import { hasRefusedName } from "../../dialects/hub/property-names";
import type { OfferedTools } from "../../dialects/hub/server-offers";
import { vendorRow } from "../../dialects/hub/tool-schema";
import { longTexts } from "../../dialects/long-texts";
import type { Awaitable } from "../../lib/awaitable";
import type { ClientConnection } from "../../lib/net/in/caller";
import { asSent } from "../../lib/net/in/request-body";
import type { CallResponse, ResponseBody } from "../../lib/net/out/body";
import type { KeyedCaller } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import { PlannedPrompt, planTools } from "../server-tools/plan";
import { betaIn } from "../upstream/copilot/unsupported-params";
import { withHeaders } from "../upstream/providers/provider-error";
import { affinityOf, type Preference } from "./affinity-keys";
import { asChosen } from "./auto-choice";
import { withMendedSchemas, withoutRefused } from "./body-remedies";
import { tellRemaining } from "./budget-lines";
import { cacheUseOf, recordedPrompt } from "./cache-hints";
import { Exchange } from "./exchange";
import { type AddressMembers, readIncoming } from "./incoming";
import { answerNothing, asksNothing, nothingSent } from "./nothing";
import { passthrough, verbatim } from "./passthrough";
import { checkPromptLimit } from "./prompt-limit";
import { refuseReferences } from "./references";
import { isEvents, notEvents, respondFull, respondStream } from "./respond";
import { withRecentItems } from "./restored-items";
import { answerOf } from "./route";
import { openRequest, type RunningRequest } from "./running-request";
import { send } from "./send";
import { type ChatTarget, directTarget, isProvided, messagesProvider, requireFurtherModels, whoOf } from "./target";
import { translation } from "./translation";
import type { BodyRules, Dispatch, Outgoing, UpstreamCall } from "./upstream-call";
import { orWait } from "./waiting";

/**
 * @param inAddress For a dialect whose address names the model.
 * @throws ProxyError for the server to send in the client's dialect; its row is written.
 */
export async function relay(
  parts: RequestScope,
  request: Request,
  caller: KeyedCaller,
  dialect: ClientDialect,
  inAddress?: AddressMembers,
): Promise<Response> {
  const running = openRequest(parts, request, caller, dialect);
  try {
    const sent = await readIncoming(request, longTexts[dialect], inAddress, running.held);
    const incoming = withRecentItems(parts, running, caller, sent);
    caller.connection.keepOpen();
    running.book.setRequest(incoming);
    const codec = codecs[dialect];
    codec.checkRequest(incoming.body);
    const summary = codec.compaction?.inWords.request(incoming.body);
    const reshape = summary && codec.compaction?.inWords.reply;
    const exchange = new Exchange(running, request, caller, dialect, incoming, summary, reshape);
    return await orWait(parts, exchange, serveOnce);
  } catch (thrown) {
    throw running.fail(thrown);
  }
}

/** The body may have been sent slowly, and the request may have waited: whether the key still holds is asked again. */
function serveOnce(parts: RequestScope, exchange: Exchange): Awaitable<Response> {
  const heard = exchange.key?.hear?.();
  return heard ? serveAfter(heard, parts, exchange) : answerOf(parts, exchange, serve);
}

async function serveAfter(heard: Promise<void>, parts: RequestScope, exchange: Exchange): Promise<Response> {
  await heard;
  return answerOf(parts, exchange, serve);
}

/**
 * One request at a provider's own path: its bytes pass unchanged, both ways.
 * @throws ProxyError for the server to send; its row is written, except for an unknown provider.
 */
export async function relayToProvider(
  parts: RequestScope,
  request: Request,
  caller: KeyedCaller,
  name: string,
): Promise<Response> {
  const provider = messagesProvider(parts, name);
  const running = openRequest(parts, request, caller, provider.dialect);
  try {
    const incoming = await readIncoming(request, longTexts[provider.dialect], undefined, running.held);
    await caller.key?.hear?.();
    caller.connection.keepOpen();
    running.book.setRequest(incoming);
    const exchange = new Exchange(running, request, caller, provider.dialect, incoming);
    const target = directTarget(parts, provider, exchange.incoming.model, caller.key);
    requireFurtherModels(caller.key, provider, exchange.body);
    exchange.book.setTarget(target, exchange.facts);
    const call = verbatim(exchange, target);
    const answer = sendCall(parts, exchange, target, call, outgoingOf(parts, exchange, target, call));
    exchange.book.setPrompt(recordedPrompt(exchange, "prompt"), undefined);
    exchange.sent();
    return await answer;
  } catch (thrown) {
    throw running.fail(thrown);
  }
}

/** The answer of one model. @throws ProxyError */
async function serve(parts: RequestScope, exchange: Exchange, target: ChatTarget): Promise<Response> {
  const { incoming, book } = exchange;
  const plan = exchange.reshape ? undefined : await planTools(parts, exchange.prompt, target, book);
  // Another model serves after an answer that says so, and an answer with tools goes on.
  if (plan || parts.config.current.autoWhenOnly) exchange.keep();
  const isPassed = !exchange.reshape && !plan && isPassable(exchange, target);
  // A provider may have stored what it said.
  if (!(isPassed && isProvided(target))) await refuseReferences(parts.affinity, exchange.prompt.outline);
  const nothing = asksNothing(exchange, target, isPassed);
  book.setTarget(target, nothing ? nothingSent : exchange.facts);
  if (nothing) return answerNothing(nothing, exchange);

  const prompt = new PlannedPrompt(exchange.prompt, plan, target);
  await checkPromptLimit(parts, { prompt, book }, target.model, incoming.bytes.length);
  const cache = cacheUseOf(parts, exchange, target);
  const { useResponsesApiWebSearch: webSearch, promptCache } = parts.config.current;
  const options: TranslationOptions = {
    webSearch,
    cache: cache.hints,
    hourCache: promptCache === "1h" && !isProvided(target),
    refusedBetas: betasAmong(parts.unsupportedParams.known(target.model.id)),
    notes: book,
  };
  const ownHeaders = exchange.dialect === target.dialect ? exchange.headers : null;
  const rules: BodyRules = {
    codec: codecs[target.dialect],
    dialect: target.dialect,
    model: target.upstreamModel,
    options,
    clientHeaders: isPassed && isProvided(target) ? undefined : ownHeaders,
  };
  const affinity = await affinityOf(parts, exchange, target.model.id);
  const call = isPassed
    ? passthrough(exchange, target, options)
    : translated(parts, exchange, target, { plan, prompt, rules, affinity });
  const answer = sendCall(parts, exchange, target, call, outgoingOf(parts, exchange, target, call, rules, affinity));
  // What is needed of the prompt later is made now, while the upstream works.
  const lesson = parts.tokenCounts.beginLesson(target.model.id, prompt, incoming.bytes.length);
  book.setPrompt(recordedPrompt(exchange, cache.address), lesson);
  exchange.sent();
  return answer;
}

interface Translated {
  plan: OfferedTools | undefined;
  prompt: PlannedPrompt;
  rules: BodyRules;
  affinity: Preference;
}

/** The call in the upstream's dialect, which may be followed by others of the same reply. */
function translated(parts: RequestScope, exchange: Exchange, target: ChatTarget, given: Translated): UpstreamCall {
  const { plan, prompt, rules, affinity } = given;
  const { codec } = exchange;
  return translation(exchange, target, rules.options, {
    plan,
    parts,
    send: (encoded, stream) =>
      sendAgain(parts, exchange, target, outgoingOf(parts, exchange, target, { ...encoded, stream }, rules, affinity)),
    // A client that requires the numbers of tokens gets estimates of those that the upstream does not report, or not yet.
    estimate: codec.facts.startsWithUsage && parts.tokenCounts.beginEstimate(prompt, target.model.id),
  });
}

const betasAmong = (patterns: readonly string[]) =>
  patterns.length === 0 ? patterns : patterns.flatMap((pattern) => betaIn(pattern) ?? []);

/** Whether the upstream takes the client's bytes. */
function isPassable({ dialect, prompt: { body, outline } }: Exchange, target: ChatTarget): boolean {
  if (dialect !== target.dialect) return false;
  if (isProvided(target)) return !outline.hasOwnResults?.();
  return !(outline.hasServerCalls?.() || hasRefusedNames(body, target.dialect, target.upstreamModel.vendor));
}

/** Whether a tool or its properties are sent under other names, which the reply has to be rid of. */
function hasRefusedNames(body: JsonObject, dialect: Dialect, vendor: string): boolean {
  const { names, toolNames } = vendorRow(dialect, vendor);
  if (!names && !toolNames) return false;
  let hasOne = false;
  codecs[dialect].schemas.mapFunctions(body, (offered) => {
    hasOne ||= (names && hasRefusedName(offered.schema, names)) || toolNames?.test(String(offered.name)) === false;
    return offered;
  });
  return hasOne;
}

/** @param rules None for a body that is passed on as it is. */
function outgoingOf(
  parts: RequestScope,
  { dialect, facts, book }: Exchange,
  target: ChatTarget,
  call: Pick<UpstreamCall, "body" | "headers" | "stream">,
  rules?: BodyRules,
  affinity?: Preference,
): Outgoing {
  const { choice } = target;
  const chosen = choice ? asChosen(choice, call) : call;
  const body = rules
    ? withMendedSchemas(parts, target, rules, withoutRefused(parts, target, chosen.body, book), book)
    : chosen.body;
  return {
    path: target.endpoint,
    intent: "conversation-agent",
    initiator: facts.initiator,
    vision: facts.vision,
    limits: call.stream ? parts.limits.stream : parts.limits.full,
    headers: chosen.headers,
    body: asSent(body),
    rules,
    isVerbatim: !rules,
    passesHeaders: dialect === target.dialect,
    preferredAccount: affinity?.preferredAccount,
    marks: affinity?.marks,
  };
}

/** Sends the call, and makes the client's answer of what comes back. @throws ProxyError */
function sendCall(
  parts: RequestScope,
  exchange: Exchange,
  target: ChatTarget,
  call: UpstreamCall,
  outgoing: Outgoing,
): Promise<Response> {
  return send(parts, new ReplyDispatch(parts, exchange, target, call, outgoing));
}

/** Nothing of the prompt. */
class ReplyDispatch implements Dispatch<Response> {
  readonly running: RunningRequest;
  readonly request: Request;
  readonly #connection: ClientConnection;
  readonly #isStream: boolean;
  readonly #call: Omit<UpstreamCall, "body" | "headers">;

  constructor(
    private readonly parts: RequestScope,
    { connection, incoming, request, running }: Exchange,
    readonly target: ChatTarget,
    { who, stream, reply }: UpstreamCall,
    readonly outgoing: Outgoing,
  ) {
    this.running = running;
    this.request = request;
    this.#connection = connection;
    this.#isStream = incoming.stream;
    this.#call = { who, stream, reply };
  }

  accept(response: CallResponse): Promise<Response> {
    const { parts, request, running, target } = this;
    const call = this.#call;
    const reply = { response, call, running, watch: watchOf(parts, target, call.stream, response) };
    const answer = this.#isStream
      ? respondStream(parts, { ...reply, clientGone: request.signal, connection: this.#connection })
      : respondFull(reply);
    return running.book.lines || isProvided(target) ? this.#withHeaders(answer, response) : answer;
  }

  async #withHeaders(answer: Promise<Response>, response: CallResponse): Promise<Response> {
    const { running, target } = this;
    const made = await answer;
    return tellRemaining(running, isProvided(target) ? withHeaders(made, target.provider, response) : made);
  }
}

/** Watches an answer of GitHub Copilot for what is new in it, once a minute. Undefined for all others. */
function watchOf({ drift }: RequestScope, target: ChatTarget, stream: boolean, { headers }: CallResponse) {
  const watch = isProvided(target) ? undefined : drift.watch(target.dialect, target.model.id, stream);
  watch?.headers(headers);
  return watch;
}

/** Asks for a further answer of the same reply: from the account that gave the first, which can read its signatures. */
function sendAgain(
  parts: RequestScope,
  { request, running }: Exchange,
  target: ChatTarget,
  first: Outgoing,
): Promise<ResponseBody> {
  const accept = async (response: CallResponse) => {
    if (!isEvents(response)) throw await notEvents(response, whoOf(target));
    return response.body;
  };
  const preferredAccount = running.book.chapter.answeredBy ?? first.preferredAccount;
  const outgoing: Outgoing = { ...first, initiator: "agent", preferredAccount };
  return send(parts, { target, outgoing, running, request, accept });
}
