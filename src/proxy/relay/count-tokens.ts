/** Counts of input tokens: exact by Anthropic's or GitHub Copilot's counter, else an estimate; always an estimate for a provider. */

import { codecs, type TokenCountFormat, tokenCountFormats } from "../../dialects/codecs";
import type { Conversation, JsonObject } from "../../dialects/hub/conversation";
import { longTexts } from "../../dialects/long-texts";
import { overviewOf } from "../../dialects/overview";
import { ProxyError } from "../../lib/errors";
import type { Skeleton } from "../../lib/net/json/json-skeleton";
import { withTimeLimit } from "../../lib/net/time-limit";
import type { Account } from "../../people/accounts/account";
import { type ClientKey, hasModelLimits, type KeyedCaller, requireModel } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import { PlannedPrompt, type PlannedRequest, planTools } from "../server-tools/plan";
import type { Prompt } from "../tokens/token-counts";
import { autoId, isAutoName } from "../upstream/copilot/auto-model";
import type { CountedRequest } from "../upstream/copilot/copilot-counter";
import { type AddressMembers, readIncoming } from "./incoming";
import { type AskedModel, findNamedModel } from "./named-model";
import { withKeptItems } from "./restored-items";
import { type ChatTarget, chooseTarget, isAutoTarget, isProvided, messagesProvider } from "./target";

/**
 * `POST /v1/messages/count_tokens`, `POST /v1/responses/input_tokens` and Google's `countTokens`.
 * @param inAddress For a dialect whose address names the model.
 */
export async function countTokens(
  app: RequestScope,
  request: Request,
  caller: KeyedCaller,
  dialect: keyof typeof tokenCountFormats,
  inAddress?: AddressMembers,
): Promise<Response> {
  using held = app.heldBodies.of(caller.key?.member ?? null);
  const { body: sent, model, skeleton } = await readIncoming(request, longTexts[dialect], inAddress, held);
  await caller.key?.hear?.();
  caller.connection.keepOpen();
  const asked = { name: model, client: dialect, key: caller.key };
  const id = hasModelLimits(caller.key) ? await idOf(app, asked) : autoId;
  // Which model a key may use by `auto` is known when it is chosen.
  if (!isAutoName(id)) requireModel(caller.key, id);
  const { decode, encode } = tokenCountFormats[dialect];
  const body = dialect === "responses" ? withKeptItems(app, caller, sent) : sent;
  const conversation = decode(body);
  const exact = dialect === "messages" ? await app.anthropicCounter?.count(model, body, skeleton) : undefined;
  if (exact !== undefined) return counted(encode(exact), "exact");
  const outline = codecs[dialect].outline(body);
  const planned = { dialect, body, outline, conversation: () => conversation, whole: skeleton?.whole };
  const { headers } = request;
  const known = await withTimeLimit(
    knownOf(app, asked, planned, headers, skeleton),
    listTimeoutMs,
    () => ({ model }) as Known,
  );
  // Both at once: the estimate is there when the upstream has not answered in time.
  const [upstream, here] = await Promise.all([
    known.counted && countUpstream(app, known.model, known.counted),
    countHere(app, encode, known.prompt ?? conversation, known.model, skeleton?.whole),
  ]);
  if (upstream !== undefined) return counted(encode(upstream), "exact");
  app.tokenCounts.want(known.model);
  return here;
}

interface Known {
  model: string;
  /** What of the conversation is in the prompt; all of it where it is missing. */
  prompt?: Conversation;
  /** The request as GitHub Copilot would get it, if the model has the client's API. */
  counted?: CountedRequest;
}

/** The model's id and what it would be sent; the name alone if no model has it. */
async function knownOf(
  app: RequestScope,
  asked: AskedModel & { key?: ClientKey },
  planned: PlannedRequest & Pick<Prompt, "whole">,
  headers: Headers,
  skeleton: Skeleton | undefined,
): Promise<Known> {
  try {
    const target = await chooseTarget(app, asked.name, asked.client, asked.key);
    const offered = await planTools(app, planned, target);
    const prompt = new PlannedPrompt(planned, offered, target).conversation();
    const isUnknown = isProvided(target) || isAutoTarget(target);
    const isSent = target.dialect === "messages" && planned.dialect === "messages" && !offered && !isUnknown;
    return {
      model: target.model.id,
      ...(prompt && { prompt }),
      ...(isSent && { counted: { ...sentFor(planned.body, target, headers), skeleton } }),
    };
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    return { model: await idOf(app, asked) };
  }
}

/** The request as it would be sent for a reply. @throws ProxyError `invalid_request` for what would be refused. */
function sentFor(body: JsonObject, { upstreamModel }: ChatTarget, client: Headers): CountedRequest {
  const codec = codecs.messages;
  const sent = codec.fixRequest(body, upstreamModel);
  return {
    body: sent,
    headers: codec.requestHeaders?.(client, sent, upstreamModel) ?? {},
    vision: overviewOf(codec.outline(sent)).image,
  };
}

/** Undefined if GitHub Copilot does not count the request. */
function countUpstream(app: RequestScope, model: string, request: CountedRequest): Promise<number | undefined> {
  const capable = (account: Account) => app.catalogue.offers(account, model);
  // A count costs no quota.
  const accounts = app.pool.candidates({ premium: false, model, capable });
  return app.copilotCounter.count(accounts, request, crypto.randomUUID());
}

/** The id of the model that a request names; the name itself if no model has it, because estimates need none. */
async function idOf(app: RequestScope, asked: AskedModel): Promise<string> {
  try {
    return (await findNamedModel(app, asked)).model.id;
  } catch (thrown) {
    if (thrown instanceof ProxyError) return asked.name;
    throw thrown;
  }
}

/** `POST /:provider/v1/messages/count_tokens`: estimated here, without a call to the provider. */
export async function countForProvider(
  app: RequestScope,
  request: Request,
  caller: KeyedCaller,
  name: string,
): Promise<Response> {
  messagesProvider(app, name);
  const { body, model } = await readIncoming(request);
  await caller.key?.hear?.();
  caller.connection.keepOpen();
  requireModel(caller.key, `${name}/${model}`);
  const { decode, encode } = tokenCountFormats.messages;
  return countHere(app, encode, decode(body));
}

/** @param model The upstream's id; undefined for a provider's model, of which nothing is learnt. */
async function countHere(
  { tokenCounts }: RequestScope,
  encode: TokenCountFormat["encode"],
  conversation: Conversation,
  model?: string,
  whole?: Prompt["whole"],
): Promise<Response> {
  const { tokens } = await tokenCounts.count(conversation, model, whole);
  return counted(encode(tokens), "estimate");
}

const counted = (body: JsonObject, how: "exact" | "estimate"): Response =>
  Response.json(body, { headers: { "x-token-count": how } });

/** Milliseconds that a count waits for the model list, on which it does not depend. */
const listTimeoutMs = 500;
