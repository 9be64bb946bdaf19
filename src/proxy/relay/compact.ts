/** POST /v1/responses/compact: a conversation, summarized by its model. */

import { compactedReply, triggered } from "../../dialects/responses/compaction";
import { isObject } from "../../lib/json";
import { bodyLimit, bodyText, readJson } from "../../lib/net/in/request-body";
import type { KeyedCaller } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import { relay } from "./relay";

/** @throws ProxyError as {@link relay} does. */
export async function compactConversation(app: RequestScope, request: Request, caller: KeyedCaller): Promise<Response> {
  using held = app.heldBodies.of(caller.key?.member ?? null);
  const { bytes, body } = await readJson(request, bodyLimit, held);
  const headers = new Headers(request.headers);
  for (const name of ["content-encoding", "content-length"]) headers.delete(name);
  const { url, method, signal } = request;
  const asked = new Request(url, { method, headers, body: triggered(bodyText(bytes)), signal });
  const answer = await relay(app, asked, caller, "responses");
  const reply: unknown = await answer.json();
  return Response.json(compactedReply(body, isObject(reply) ? reply : {}), { headers: budgetHeaders(answer) });
}

const budgetHeaders = ({ headers }: Response): Headers =>
  new Headers([...headers].filter(([name]) => name.startsWith("x-dragoman-")));
