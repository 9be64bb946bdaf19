/** `count_tokens`: exact for Claude models with an Anthropic key, else by the learnt factor or an estimate; always an estimate for a provider. */
import type { App } from "../app";
import { codecs } from "../dialects/codecs";
import type { Conversation, JsonObject } from "../dialects/hub/conversation";
import { ProxyError } from "../errors";
import { type KeyedCaller, requireModel } from "../keys/client-keys";
import { withTimeLimit } from "../net/time-limit";
import { readIncoming } from "../relay/incoming";
import { findNamedModel } from "../relay/named-model";
import { messagesProvider } from "../relay/provider";
import { countExactly } from "../upstream/token-counter";

/** `POST /v1/messages/count_tokens` */
export async function countTokens(app: App, request: Request, caller: KeyedCaller): Promise<Response> {
  const { body, model } = await readIncoming(request);
  caller.keepOpen();
  if (caller.key?.models) requireModel(caller.key, await idOf(app, model));
  const conversation = codecs.messages.decodeRequest(body);
  const exact = await countByService(app, model, body);
  return exact === undefined ? countHere(app, conversation, await idSoon(app, model)) : counted(exact, "exact");
}

/** The id of the model that a request names; the name itself if no model has it, because estimates need none. */
async function idOf(app: App, name: string): Promise<string> {
  try {
    return (await findNamedModel(app, name)).model.id;
  } catch (thrown) {
    if (thrown instanceof ProxyError) return name;
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
  caller.keepOpen();
  requireModel(caller.key, `${name}/${model}`);
  return countHere(app, codecs.messages.decodeRequest(body));
}

/** @param model The upstream's id; undefined for a provider's model, of which nothing is learnt. */
async function countHere({ tokenCounts }: App, conversation: Conversation, model?: string): Promise<Response> {
  const { tokens, how } = await tokenCounts.count(conversation, model);
  return counted(tokens, how);
}

const counted = (tokens: number, how: "exact" | "calibrated" | "estimate"): Response =>
  Response.json({ input_tokens: tokens }, { headers: { "x-token-count": how } });

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

/** Milliseconds that a count waits for the model list. */
const listTimeoutMs = 500;

/** The same within a moment, for a count that does not depend on it. */
const idSoon = (app: App, name: string): Promise<string> =>
  withTimeLimit<string, string>(idOf(app, name), listTimeoutMs, () => name);
