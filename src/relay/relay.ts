/** One request of a client: read, sent to the upstream, answered and recorded. */

import { type App, callLimits } from "../app";
import { type ClientCodec, type CompactionCodec, codecs } from "../dialects/codecs";
import type { ClientDialect, Conversation, JsonObject } from "../dialects/hub/conversation";
import { asProxyError, ProxyError } from "../errors";
import type { KeyedCaller } from "../keys/client-keys";
import type { ClientConnection } from "../net/in/guard";
import { readUnmarked } from "../net/json/json-skeleton";
import type { CallResponse, ResponseBody } from "../net/out/body";
import { type AutoChoice, autoTokenHeader } from "../upstream/copilot/auto";
import { autoOnlyCode } from "../upstream/copilot/auto-model";
import { betaIn } from "../upstream/copilot/unsupported-params";
import type { Prompt } from "../upstream/tokens/token-counts";
import { affinityOf, clientSession } from "./affinity-keys";
import { type AutoParts, type AutoRequest, serveByAuto, withoutModel } from "./auto-choice";
import { cacheUseOf } from "./cache-hints";
import type { FailoverParts } from "./failover";
import { whyUnfit } from "./fallback-fit";
import { type ChainRequest, withFallbacks } from "./fallbacks";
import {
  type AddressMembers,
  conversationReader,
  type Facts,
  type Incoming,
  type ReadConversation,
  readFacts,
  readIncoming,
} from "./incoming";
import type { Initiator } from "./initiator";
import { judged } from "./judge";
import { answerNothing, asksNothing, nothingSent } from "./nothing";
import { passthrough, verbatim } from "./passthrough";
import { planTools, promptOf } from "./prompt";
import { checkPromptLimit } from "./prompt-limit";
import { withHeaders } from "./provider-send";
import { refuseReferences } from "./references";
import { openRequestRecord, type RecordParts, type RequestRecord } from "./request-record";
import { type RespondParts, requireEvents, respondFull, respondStream } from "./respond";
import { send } from "./send";
import {
  type ChatTarget,
  directTarget,
  isAutoTarget,
  isProvided,
  messagesProvider,
  requireFurtherModels,
  type TargetParts,
  whoOf,
} from "./target";
import { type EncodedTurn, translation } from "./translation";
import type { Dispatch, Outgoing, UpstreamCall } from "./upstream-call";
import { orWait, type WaitingParts } from "./waiting";

/** What the relay uses of the app. */
export type RelayParts = FailoverParts &
  RecordParts &
  TargetParts &
  RespondParts &
  AutoParts &
  WaitingParts &
  Pick<App, "drift" | "tokenCounts">;

/**
 * @param inAddress For a dialect whose address names the model.
 * @throws ProxyError for the server to send in the client's dialect; its row is written.
 */
export async function relay(
  parts: RelayParts,
  request: Request,
  caller: KeyedCaller,
  dialect: ClientDialect,
  inAddress?: AddressMembers,
): Promise<Response> {
  const record = openRequestRecord(parts, request, caller, dialect);
  const { incoming, answer } = await relayRecorded(parts, request, caller, dialect, { record, inAddress });
  // The owner chose the model, so the limits of the client's key are none for it.
  const ask = async (question: Request, own: RequestRecord) =>
    (await relayRecorded(parts, question, { ...caller, key: undefined }, dialect, { record: own, facts: judging }))
      .answer;
  return dialect === "messages" ? judged(parts, { request, incoming, record, ask }, answer) : answer;
}

interface Recorded {
  record: RequestRecord;
  inAddress?: AddressMembers;
  /** Instead of what the request shows. */
  facts?: Initiator;
}

/** @throws ProxyError for the client; the row is written */
async function relayRecorded(
  parts: RelayParts,
  request: Request,
  caller: KeyedCaller,
  dialect: ClientDialect,
  { record, inAddress, facts: given }: Recorded,
): Promise<{ incoming: Incoming; answer: Response }> {
  try {
    const codec = codecs[dialect];
    const incoming = await readIncoming(request, codec.longTexts, inAddress, record.held);
    caller.connection.keepOpen();
    record.setRequest(incoming);
    codec.checkRequest(incoming.body);
    const summary = codec.compaction?.inWords.request(incoming.body);
    const body = summary ?? incoming.body;
    const facts = readFacts(codec, incoming, request.headers);
    Object.assign(facts, given ?? (summary && summarized));
    const conversation = conversationReader(codec, body);
    const asked: AskedReply = {
      request,
      connection: caller.connection,
      codec,
      dialect,
      incoming,
      body,
      reshape: summary && codec.compaction?.inWords.reply,
      facts,
      conversation,
      prompt: { conversation, whole: incoming.skeleton?.whole },
      bodySession: codec.session?.(incoming.body),
      record,
    };
    record.setSession(clientSession(request.headers, asked.bodySession));
    const { prompt } = asked;
    const { model: name, bytes } = incoming;
    const chained = { name, client: dialect, key: caller.key, facts, prompt, bytes: bytes.length, record };
    const serveOnce = () =>
      withFallbacks(parts, chained, async (target, first) => {
        requireFurtherModels(caller.key, target.provider, incoming.body);
        // What asks for nothing needs no choice.
        const isAuto = isAutoTarget(target) && !nothingIn(asked, target);
        if (isAuto) return byAuto(parts, asked, chained, first === target ? undefined : first);
        try {
          return await answer(parts, asked, target);
        } catch (thrown) {
          if (!parts.config.current.autoWhenOnly || !isAutoOnly(thrown)) throw thrown;
          record.passOver({ model: target.model.id, status: thrown.status, why: thrown.message });
          return byAuto(parts, asked, chained, undefined);
        }
      });
    return { incoming, answer: await orWait(parts, { ...asked, key: caller.key }, serveOnce) };
  } catch (thrown) {
    throw record.fail(thrown);
  }
}

/**
 * One request at a provider's own path: its bytes pass unchanged, both ways.
 * @throws ProxyError for the server to send; its row is written, except for an unknown provider.
 */
export async function relayToProvider(
  parts: RelayParts & Pick<App, "providers">,
  request: Request,
  caller: KeyedCaller,
  name: string,
): Promise<Response> {
  const provider = messagesProvider(parts, name);
  const { dialect } = provider;
  const codec = codecs[dialect];
  const record = openRequestRecord(parts, request, caller, dialect);
  try {
    const incoming = await readIncoming(request, codec.longTexts, undefined, record.held);
    caller.connection.keepOpen();
    record.setRequest(incoming);
    record.setSession(clientSession(request.headers, codec.session?.(incoming.body)));
    const target = directTarget(parts, provider, incoming.model, caller.key);
    requireFurtherModels(caller.key, provider, incoming.body);
    const facts = readFacts(codec, incoming, request.headers);
    record.setTarget(target, facts);
    const call = verbatim({ incoming, dialect, target, record });
    const outgoing = outgoingOf(parts, target, call, facts);
    const sent = { ...outgoing, passesHeaders: true, isVerbatim: true };
    return await sendCall(parts, { request, connection: caller.connection, incoming, record }, target, call, sent);
  } catch (thrown) {
    throw record.fail(thrown);
  }
}

const isAutoOnly = (thrown: unknown): thrown is ProxyError =>
  thrown instanceof ProxyError && thrown.details.code === autoOnlyCode;

/** The answer of the model that Auto chooses. @param first The model in whose place it serves. */
async function byAuto(
  parts: RelayParts,
  asked: AskedReply,
  chained: ChainRequest,
  first: ChatTarget | undefined,
): Promise<Response> {
  const { request, bodySession, conversation, dialect, incoming, reshape, facts, record } = asked;
  const { preferredAccount } = await affinityOf(parts, { headers: request.headers, bodySession, conversation });
  const toAuto: AutoRequest = {
    ...{ client: dialect, key: chained.key, facts, isSummary: reshape !== undefined, record, preferredAccount },
    conversation: conversation(),
    whole: incoming.skeleton?.whole ?? readUnmarked,
    session: clientSession(request.headers, bodySession),
    unfit: first && ((target) => whyUnfit(parts, chained, first, target)),
  };
  return serveByAuto(parts, toAuto, (target) => answer(parts, asked, target));
}

const nothingIn = ({ codec, incoming, conversation }: AskedReply, target: ChatTarget, translated?: Conversation) =>
  asksNothing({ codec, incoming, conversation, translated, target });

const judging = { initiator: "agent", reason: "it judges the tool uses of auto mode" } as const;

/** No person asks for a summary: the client does, when the conversation has become long. */
const summarized = { initiator: "agent", reason: "the conversation is summarized" } as const;

/** What the client asked for, whichever model serves it. */
interface AskedReply {
  request: Request;
  connection: ClientConnection;
  codec: ClientCodec;
  dialect: ClientDialect;
  incoming: Incoming;
  /** The client's, or the request for a summary that it stands for. */
  body: JsonObject;
  /** Makes of the model's reply the summary that the client expects, if it asked for one. */
  reshape?: CompactionCodec["reply"];
  facts: Facts;
  conversation: ReadConversation;
  prompt: Prompt;
  /** The session's id in the body; not validated. */
  bodySession: unknown;
  record: RequestRecord;
}

const answer = (parts: RelayParts, asked: AskedReply, target: ChatTarget): Promise<Response> =>
  asked.reshape ? compact(parts, asked, target) : serve(parts, asked, target);

/**
 * A summary by the upstream itself, or in words where it does not make one: a refusal is remembered as that of a parameter.
 * @throws ProxyError
 */
async function compact(parts: RelayParts, asked: AskedReply, target: ChatTarget): Promise<Response> {
  const { codec, incoming, dialect, record } = asked;
  const { trigger, reply, isNotMade } = codec.compaction!;
  const model = target.model.id;
  const isRefused = () => parts.unsupportedParams.known(model).includes(trigger);
  if (isProvided(target) || target.dialect !== dialect || isRefused()) return serve(parts, asked, target);
  const learn = () => parts.unsupportedParams.learn(model, trigger);
  const reshape: CompactionCodec["reply"] = (next) =>
    reply({
      push(event) {
        if (isNotMade(event)) learn();
        next.push(event);
      },
      end: () => next.end(),
    });
  const conversation = conversationReader(codec, incoming.body);
  const own = { ...asked, body: incoming.body, conversation, prompt: { ...asked.prompt, conversation }, reshape };
  try {
    return await serve(parts, own, target);
  } catch (thrown) {
    const { status, details } = asProxyError(thrown);
    // The same prompt would be too long for a summary in words.
    const isTooLong = details.code === "context_length_exceeded";
    if (record.isStopped || isTooLong || (status !== 400 && !isRefused())) throw thrown;
    const answer = await serve(parts, asked, target);
    learn();
    record.addFixup(`refused:${trigger}`);
    return answer;
  }
}

/** The answer of one model. @throws ProxyError */
async function serve(parts: RelayParts, asked: AskedReply, target: ChatTarget): Promise<Response> {
  const { request, codec, dialect, incoming, body, reshape, facts, conversation, prompt, bodySession, record } = asked;
  const offered = reshape ? undefined : await planTools(parts, asked, target);
  const isPassed = !reshape && !offered && isPassable(dialect, body, target);
  // A provider may have stored what it said.
  if (!(isPassed && isProvided(target))) await refuseReferences(parts.affinity, codec, body);
  const translated = isPassed ? undefined : conversation();
  const nothing = nothingIn(asked, target, translated);
  if (nothing) {
    record.setTarget(target, nothingSent);
    return answerNothing(nothing, dialect, record);
  }
  record.setTarget(target, facts);
  const sent = promptOf(prompt, offered, asked, target);
  await checkPromptLimit(parts, { prompt: sent, model: target.model, bytes: incoming.bytes.length });
  record.onServed(({ input }) => void parts.tokenCounts.learn(target.model.id, sent, input));
  const cache = cacheUseOf(parts, { headers: request.headers, bodySession, client: dialect }, target);
  record.setPrompt({ address: cache.address, head: () => codec.promptHead(incoming.body) });
  const { useResponsesApiWebSearch: webSearch, promptCache } = parts.config.current;
  const options = {
    webSearch,
    cache: cache.hints,
    hourCache: promptCache === "1h" && !isProvided(target),
    refusedBetas: parts.unsupportedParams.known(target.model.id).flatMap((pattern) => betaIn(pattern) ?? []),
  };
  const clientHeaders = request.headers;
  const { choice } = target;
  const sendTurn = (turn: EncodedTurn) =>
    askOn(parts, { target, outgoing: { ...outgoing, ...turn, ...asChosen(choice, turn) }, record, request });
  const call = isPassed
    ? passthrough({ incoming, dialect: target.dialect, target, record, options, clientHeaders, conversation })
    : translation({
        conversation: translated ?? codec.decodeRequest(body),
        skeleton: incoming.skeleton,
        client: dialect,
        target,
        record,
        options,
        clientHeaders: dialect === target.dialect ? clientHeaders : undefined,
        offered,
        own: dialect === target.dialect ? ownReplies(target.dialect, incoming) : undefined,
        serverTools: { parts, send: sendTurn },
        reshape,
        estimate: codec.facts.startsWithUsage && estimateOf(parts, sent, target.model.id, incoming.stream),
      });
  const affine = affinityOf(parts, { headers: request.headers, bodySession, conversation });
  const { preferredAccount, session } = affine instanceof Promise ? await affine : affine;
  const outgoing: Outgoing = {
    ...outgoingOf(parts, target, call, facts),
    passesHeaders: dialect === target.dialect,
    preferredAccount,
    onlyAccount: choice?.account,
    session,
    overSocket:
      // The token goes with a request, and a socket has its headers from its beginning.
      !choice && target.model.socket && call.stream && target.dialect === "responses"
        ? { session: clientSession(request.headers, bodySession) }
        : undefined,
  };
  return sendCall(parts, asked, target, call, outgoing);
}

const outgoingOf = ({ limits }: RelayParts, target: ChatTarget, call: UpstreamCall, facts: Facts): Outgoing => ({
  path: target.endpoint,
  intent: "conversation-agent",
  initiator: facts.initiator,
  vision: facts.vision,
  limits: callLimits(limits, call.stream),
  ...asChosen(target.choice, call),
  fitTools: call.fitTools,
  withoutBeta: call.withoutBeta,
});

/** Sends the call, and makes the client's answer of what comes back. @throws ProxyError */
async function sendCall(
  parts: RelayParts,
  { request, connection, incoming, record }: Pick<AskedReply, "request" | "connection" | "incoming" | "record">,
  target: ChatTarget,
  call: UpstreamCall,
  outgoing: Outgoing,
): Promise<Response> {
  const accept = async (response: CallResponse) => {
    const reply = { response, call, record, watch: watchOf(parts, target, call, response) };
    const answer = incoming.stream
      ? await respondStream(parts, { ...reply, clientGone: request.signal, connection })
      : await respondFull(reply);
    return isProvided(target) ? withHeaders(answer, target.provider, response) : answer;
  };
  return record.budget.addTo(await send(parts, { target, outgoing, record, request, accept }));
}

/** Looks at this answer for what is new in it: mostly nobody, and once a minute at one of GitHub Copilot. */
function watchOf({ drift }: RelayParts, target: ChatTarget, call: UpstreamCall, { headers }: CallResponse) {
  const watch = isProvided(target) ? undefined : drift.watch(target.dialect, target.model.id, call.stream);
  watch?.headers(headers);
  return watch;
}

/** What Auto's choice adds to a request: its token; where it names no model, the request does not either. */
function asChosen(choice: AutoChoice | undefined, { body, headers, repaired }: SentParts): SentParts {
  if (choice?.token !== undefined) return { body, repaired, headers: { ...headers, [autoTokenHeader]: choice.token } };
  if (!choice || choice.model) return { body, headers, repaired };
  return { body: withoutModel(body), headers, repaired: repaired && (() => withoutModel(repaired())) };
}

type SentParts = Pick<EncodedTurn, "body" | "headers" | "repaired">;

/** How replies of the client's own dialect are passed on. Events of the responses dialect are numbered: a stream is written by one writer. */
const ownReplies = (dialect: ChatTarget["dialect"], { body, stream }: Incoming) =>
  dialect === "responses" && stream
    ? undefined
    : { codec: codecs[dialect], context: codecs[dialect].replyContext(body) };

/** Whether the upstream takes the client's bytes. */
function isPassable(client: ClientDialect, body: JsonObject, target: ChatTarget): boolean {
  if (client !== target.dialect) return false;
  const codec = codecs[target.dialect];
  return !(isProvided(target) ? codec.hasOwnResults?.(body) : codec.hasServerCalls?.(body));
}

/** Asks for a further answer of the same reply: from the account that gave the first, which can read its signatures. */
function askOn(
  parts: RelayParts,
  { target, outgoing, record, request }: Omit<Dispatch<ResponseBody>, "accept">,
): Promise<ResponseBody> {
  const preferredAccount = record.account ?? outgoing.preferredAccount;
  const accept = async (response: CallResponse) => {
    await requireEvents(response, whoOf(target));
    return response.body;
  };
  const next: Outgoing = { ...outgoing, initiator: "agent", preferredAccount };
  return send(parts, { target, outgoing: next, record, request, accept });
}

/** A client that requires the numbers of tokens gets estimates of those that the upstream does not report, or not yet. */
function estimateOf({ tokenCounts }: RelayParts, prompt: Prompt, model: string, isStream: boolean) {
  return isStream ? tokenCounts.beginCount(prompt, model) : () => tokenCounts.roughly(prompt, model);
}
