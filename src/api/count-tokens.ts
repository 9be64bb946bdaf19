/** Counts of input tokens: exact for Claude models with an Anthropic key, else by the learnt factor or an estimate; always an estimate for a provider. */
import type { App } from "../app";
import { codecs, type TokenCountFormat, tokenCountFormats } from "../dialects/codecs";
import type { Conversation, JsonObject } from "../dialects/hub/conversation";
import { ProxyError } from "../errors";
import { type ClientKey, hasModelLimits, type KeyedCaller, requireModel } from "../keys/client-keys";
import { withTimeLimit } from "../net/time-limit";
import { type AddressMembers, readIncoming } from "../relay/incoming";
import { type AskedModel, findNamedModel } from "../relay/named-model";
import { type PlannedRequest, planTools, promptOf } from "../relay/prompt";
import { messagesProvider } from "../relay/provider";
import { chooseTarget } from "../relay/target";
import { countExactly } from "../upstream/token-counter";

/**
 * `POST /v1/messages/count_tokens` and Google's `countTokens`.
 * @param inAddress For a dialect whose address names the model.
 */
export async function countTokens(
  app: App,
  request: Request,
  caller: KeyedCaller,
  dialect: keyof typeof tokenCountFormats,
  inAddress?: AddressMembers,
): Promise<Response> {
  using held = app.heldBodies.of(caller.key?.member ?? null);
  const { body, model } = await readIncoming(request, undefined, inAddress, held);
  caller.connection.keepOpen();
  const asked = { name: model, client: dialect, key: caller.key };
  if (hasModelLimits(caller.key)) requireModel(caller.key, await idOf(app, asked));
  const { decode, encode } = tokenCountFormats[dialect];
  const conversation = decode(body);
  const exact = dialect === "messages" ? await countByService(app, model, body) : undefined;
  if (exact !== undefined) return counted(encode(exact), "exact");
  const planned = { codec: codecs[dialect], dialect, body, conversation: () => conversation };
  const known = await withTimeLimit(knownOf(app, asked, planned), listTimeoutMs, () => ({ model, prompt: undefined }));
  return await countHere(app, encode, known.prompt ?? conversation, known.model);
}

/** The model's id, and what of the conversation is in its prompt; all of it if no model has the name. */
async function knownOf(
  app: App,
  asked: AskedModel & { key?: ClientKey },
  planned: PlannedRequest,
): Promise<{ model: string; prompt: Conversation | undefined }> {
  const { conversation } = planned;
  try {
    const target = await chooseTarget(app, asked.name, asked.client, asked.key);
    const offered = await planTools(app, planned, target);
    return { model: target.model.id, prompt: promptOf({ conversation }, offered, planned, target).conversation() };
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    return { model: await idOf(app, asked), prompt: undefined };
  }
}

/** The id of the model that a request names; the name itself if no model has it, because estimates need none. */
async function idOf(app: App, asked: AskedModel): Promise<string> {
  try {
    return (await findNamedModel(app, asked)).model.id;
  } catch (thrown) {
    if (thrown instanceof ProxyError) return asked.name;
    throw thrown;
  }
}

/** `POST /:provider/v1/messages/count_tokens`: estimated here, without a call to the provider. */
export async function countForProvider(
  app: App,
  request: Request,
  caller: KeyedCaller,
  name: string,
): Promise<Response> {
  messagesProvider(app, name);
  const { body, model } = await readIncoming(request);
  caller.connection.keepOpen();
  requireModel(caller.key, `${name}/${model}`);
  const { decode, encode } = tokenCountFormats.messages;
  return countHere(app, encode, decode(body));
}

/** @param model The upstream's id; undefined for a provider's model, of which nothing is learnt. */
async function countHere(
  { tokenCounts }: App,
  encode: TokenCountFormat["encode"],
  conversation: Conversation,
  model?: string,
): Promise<Response> {
  const { tokens, how } = await tokenCounts.count(conversation, model);
  return counted(encode(tokens), how);
}

const counted = (body: JsonObject, how: "exact" | "calibrated" | "estimate"): Response =>
  Response.json(body, { headers: { "x-token-count": how } });

/** Undefined without a key, or when the service fails or times out: the client then gets an estimate. */
async function countByService(app: App, model: string, body: JsonObject): Promise<number | undefined> {
  const key = app.config.current.anthropicApiKey ?? app.environment.anthropicApiKey;
  if (!key || !/^claude/i.test(model)) return undefined;
  try {
    return await countExactly(app.environment.anthropicApiUrl ?? "https://api.anthropic.com", key, model, body);
  } catch (thrown) {
    app.logger.debug("Tokens are estimated: Anthropic's token counter failed.", thrown);
    return undefined;
  }
}

/** Milliseconds that a count waits for the model list, on which it does not depend. */
const listTimeoutMs = 500;
