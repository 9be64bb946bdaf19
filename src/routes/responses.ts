/** OpenAI's Responses, over HTTP and over a WebSocket; and what Codex asks besides. */
import { Elysia } from "elysia";
import { z } from "zod";
import { ProxyError } from "../lib/errors";
import type { Scope } from "../parts/app";
import type { KeyedCaller } from "../people/keys/client-keys";
import { relay } from "../proxy/relay/relay";
import { search } from "../proxy/relay/search";
import { access } from "../web/access";
import { described } from "../web/described";
import { compactConversation } from "./compact";
import { relayed, upstreamErrors } from "./descriptions";
import { dialectBody, searchAnswer, searchBody } from "./schemas";

export const responses = new Elysia({ name: "responses" })
  .use(access)
  .post("/responses", ({ scope, request, caller }) => relay(scope, request, caller, "responses"), {
    access: "models",
    detail: described({
      ...relayed,
      dialect: "responses",
      about: "Responses, full or streamed.",
      reference: "https://platform.openai.com/docs/api-reference/responses/create",
    }),
  })
  .get("/responses", ({ scope, request, caller }) => openSocket(scope, request, caller), {
    access: "models",
    detail: described({
      dialect: "responses",
      about: "Responses over a WebSocket: a message for each request, and one for each event.",
      errors: ["upgrade_required", "method_not_allowed"],
      reference: "https://developers.openai.com/api/docs/guides/websocket-mode",
    }),
  })
  .post("/responses/compact", ({ scope, request, caller }) => compactConversation(scope, request, caller), {
    access: "models",
    detail: described({
      dialect: "responses",
      about: "A conversation in short: the newest messages of the user, and a summary that the model writes.",
      reads: dialectBody,
      answers: () => z.looseObject({}),
      errors: upstreamErrors,
      reference: "https://platform.openai.com/docs/api-reference/responses/compact",
    }),
  })
  // Codex calls it where it takes dragoman for OpenAI.
  .post("/alpha/search", ({ scope, request, caller }) => search(scope, request, caller), {
    access: "models",
    detail: described({
      dialect: "responses",
      about: "Web searches for Codex: its commands are answered with one text.",
      reads: searchBody,
      answers: searchAnswer,
      errors: ["rate_limit"],
    }),
  });

/** After a 426, Codex falls back to POST at once; after any other answer it keeps trying. */
async function openSocket(scope: Scope, request: Request, caller: KeyedCaller): Promise<Response> {
  const useHttp = "Send the request as POST to the same path.";
  if (!/^websocket$/i.test(request.headers.get("upgrade") ?? "")) {
    // A proxy on the way passes on the handshake without the header that belongs to the connection.
    const isLost = request.headers.has("sec-websocket-key");
    throw isLost
      ? new ProxyError("upgrade_required", `A proxy on the way removed the Upgrade header. ${useHttp}`)
      : new ProxyError("method_not_allowed", `Only a WebSocket can be opened with GET here. ${useHttp}`);
  }
  const { responsesSocket } = await import("./responses-socket");
  const member = caller.key?.member ?? null;
  const isOpen =
    !scope.sockets.isFullFor(member) &&
    caller.connection.upgrade((answer) => responsesSocket(scope, request, member, answer));
  if (!isOpen) throw new ProxyError("upgrade_required", `No WebSocket can be opened now. ${useHttp}`);
  // The connection is no longer HTTP: nothing reads this.
  return new Response(null, { status: 204 });
}
