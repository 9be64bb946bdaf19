/** One request of a client: read, sent to the upstream, answered and recorded. */
import { type App, callLimits } from "../app";
import { codecs } from "../dialects/codecs";
import type { ClientDialect } from "../dialects/hub/conversation";
import type { KeyedCaller } from "../keys/client-keys";
import type { CallResponse } from "../net/body";
import type { Prompt } from "../upstream/token-counts";
import { affinityOf, clientSession } from "./affinity-keys";
import { cacheUseOf } from "./cache-hints";
import { type Dispatch, type FailoverParts, sendWithFailover } from "./failover";
import { type AddressMembers, conversationReader, readFacts, readIncoming } from "./incoming";
import { answerNothing, asksNothing, nothingSent } from "./nothing";
import { passthrough } from "./passthrough";
import { checkPromptLimit } from "./prompt-limit";
import { sendToProvider, withHeaders } from "./provider-send";
import { openRequestRecord, type RecordParts } from "./request-record";
import { type RespondParts, respondFull, respondStream } from "./respond";
import { chooseTarget, isProvided, type TargetParts } from "./target";
import { type TranslationRequest, translation } from "./translation";

/** What the relay uses of the app. */
export type RelayParts = FailoverParts & RecordParts & TargetParts & RespondParts & Pick<App, "tokenCounts">;

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
  try {
    const codec = codecs[dialect];
    const incoming = await readIncoming(request, codec.longTexts, inAddress);
    caller.connection.keepOpen();
    record.setRequest(incoming);
    codec.checkRequest(incoming.body);
    const target = await chooseTarget(parts, incoming.model, dialect, caller.key);
    const facts = readFacts(codec, incoming, request.headers);
    const conversation = conversationReader(codec, incoming.body);
    const translated = dialect === target.dialect ? undefined : conversation();
    const nothing = asksNothing({ codec, incoming, conversation, translated, target });
    if (nothing) {
      record.setTarget(target, nothingSent);
      return answerNothing(nothing, dialect, record);
    }
    record.setTarget(target, facts);
    const prompt: Prompt = { conversation, whole: incoming.skeleton?.whole };
    await checkPromptLimit(parts, { prompt, model: target.model, bytes: incoming.bytes.length });
    record.onServed(({ input }) => void parts.tokenCounts.learn(target.model.id, prompt, input));
    const bodySession = codec.session?.(incoming.body);
    const cache = cacheUseOf(parts, { headers: request.headers, bodySession, client: dialect }, target);
    record.setPrompt({ address: cache.address, head: () => codec.promptHead(incoming.body) });
    const options = { webSearch: parts.config.current.useResponsesApiWebSearch, cache: cache.hints };
    const call =
      dialect === target.dialect
        ? passthrough({
            incoming,
            dialect: target.dialect,
            target,
            record,
            options,
            clientHeaders: request.headers,
            conversation,
          })
        : translate(parts, prompt, {
            conversation: translated ?? codec.decodeRequest(incoming.body),
            skeleton: incoming.skeleton,
            client: dialect,
            target,
            record,
            options,
          });

    const { preferredAccount, session } = affinityOf(parts, { headers: request.headers, bodySession, conversation });
    record.setSession(clientSession(request.headers, bodySession));
    const outgoing = {
      path: target.endpoint,
      body: call.body,
      intent: "conversation-agent" as const,
      initiator: facts.initiator,
      vision: facts.vision,
      headers: call.headers,
      limits: callLimits(parts.limits, call.stream),
      repaired: call.repaired,
      fitTools: call.fitTools,
      preferredAccount,
      session,
    };
    const accept = (response: CallResponse) =>
      incoming.stream
        ? respondStream(parts, { response, call, record, clientGone: request.signal })
        : respondFull({ response, call, record });
    const answer = await send(parts, { target, outgoing, record, accept }, request, dialect);
    return await record.budget.addTo(answer);
  } catch (thrown) {
    throw record.fail(thrown);
  }
}

/** Sends the request to the upstream of the target. */
function send(
  parts: RelayParts,
  dispatch: Dispatch<Response>,
  request: Request,
  client: ClientDialect,
): Promise<Response> {
  const { target, accept } = dispatch;
  if (!isProvided(target)) return sendWithFailover(parts, dispatch);
  return sendToProvider(parts, {
    ...dispatch,
    target,
    asked: { operation: "generate", request, passesHeaders: target.dialect === client },
    accept: async (response) => withHeaders(await accept(response), response),
  });
}

/** A client whose stream begins with the number of input tokens gets an estimate there. */
function translate(
  { tokenCounts }: Pick<App, "tokenCounts">,
  prompt: Prompt,
  request: Omit<TranslationRequest, "estimate">,
) {
  const { conversation, client, target } = request;
  const isWanted = conversation.stream && codecs[client].startsWithUsage;
  return translation({
    ...request,
    estimate: isWanted ? tokenCounts.beginCount(prompt, target.model.id) : undefined,
  });
}
