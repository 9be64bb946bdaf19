/** Web searches that a client asks for by themselves. Each has a row of its own beside that of the request. */

import { textIn } from "../../dialects/hub/json";
import type { ServerToolOffer } from "../../dialects/hub/server-tools";
import {
  decodeSearchCommands,
  encodeSearchAnswer,
  type Lookup,
  type LookupResult,
} from "../../dialects/responses/search-commands";
import { beginningOf } from "../../lib/beginning";
import { bodyLimit, readJson } from "../../lib/net/in/request-body";
import { type KeyedCaller, requireUnrevoked } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import type { ToolContext } from "../server-tools/context";
import { serverTools } from "../server-tools/tools";
import { longestModelName } from "../upstream/models/model-name";
import { openRequest } from "./running-request";
import { toolContext } from "./searches";
import { clientSession } from "./session-id";

/** @throws ProxyError for the server to send in the client's dialect; its row is written. */
export async function search(parts: RequestScope, request: Request, caller: KeyedCaller): Promise<Response> {
  const running = openRequest(parts, request, caller, "responses");
  const { book } = running;
  try {
    const { bytes, isMended, body } = await readJson(request, bodyLimit, running.held);
    await caller.key?.hear?.();
    requireUnrevoked(caller.key);
    caller.connection.keepOpen();
    book.setSession(clientSession(request.headers, undefined), { kind: "search" });
    const model = beginningOf(textIn(body.model), longestModelName);
    book.setRequest({ bytes, isMended, model, stream: false });
    const { lookups, offer, maxLength } = decodeSearchCommands(body, parts.now());
    // Which model searches is decided by those that are known. An engine of the config needs none.
    if (!parts.searchEngine() && !parts.catalogue.presentModels()) await running.whileThere(parts.catalogue.models());
    const found = await Promise.all(lookups.map((lookup) => lookUp(toolContext(parts, running), lookup, offer)));
    book.markFirstByte();
    running.end(200);
    return Response.json(encodeSearchAnswer(found, maxLength));
  } catch (thrown) {
    throw running.fail(thrown);
  }
}

async function lookUp(
  context: ToolContext,
  { title, query, domains, text }: Lookup,
  offer: ServerToolOffer,
): Promise<LookupResult> {
  if (query === undefined) return { title, output: text ?? "" };
  const { isAvailable, run } = serverTools["web-search"];
  if (!isAvailable(context.parts)) return { title, output: { kind: "error", code: "unavailable" } };
  const limits = limitTo(domains, offer);
  if (limits.allowedDomains?.length === 0) return { title, output: "The settings do not allow these sites." };
  const call = { id: crypto.randomUUID(), tool: "web-search" as const, input: { query } };
  const output = await run(context, call, { ...offer, ...limits });
  // A client that has gone needs no answer.
  context.signal.throwIfAborted();
  return { title, output };
}

/** The command's domains, as far as the settings allow them. */
function limitTo(domains: string[] | undefined, { allowedDomains }: ServerToolOffer): Partial<ServerToolOffer> {
  if (!domains) return {};
  const isAllowed = (domain: string) =>
    allowedDomains?.some((allowed) => domain === allowed || domain.endsWith(`.${allowed}`)) ?? true;
  return { allowedDomains: domains.filter(isAllowed) };
}
