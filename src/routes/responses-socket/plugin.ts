/** OpenAI's Responses over a WebSocket. */
import { Elysia } from "elysia";
import { ProxyError } from "../../lib/errors";
import type { Scope } from "../../parts/app";
import type { KeyedCaller } from "../../people/keys/client-keys";
import { access } from "../../web/access";
import { described } from "../../web/described";

export const responsesSocket = new Elysia({ name: "responses-socket" })
  .use(access)
  .get("/responses", ({ scope, request, caller }) => openSocket(scope, request, caller), {
    access: "models",
    detail: described({
      dialect: "responses",
      about: "Responses over a WebSocket: a message for each request, and one for each event.",
      errors: ["upgrade_required", "method_not_allowed"],
      reference: "https://developers.openai.com/api/docs/guides/websocket-mode",
    }),
  });

/** After a 426, Codex falls back to POST at once; after any other answer it keeps trying. */
async function openSocket({ sockets, limits }: Scope, request: Request, caller: KeyedCaller): Promise<Response> {
  const useHttp = "Send the request as POST to the same path.";
  if (!/^websocket$/i.test(request.headers.get("upgrade") ?? "")) {
    // A proxy on the way passes on the handshake without the header that belongs to the connection.
    const isLost = request.headers.has("sec-websocket-key");
    throw isLost
      ? new ProxyError("upgrade_required", `A proxy on the way removed the Upgrade header. ${useHttp}`)
      : new ProxyError("method_not_allowed", `Only a WebSocket can be opened with GET here. ${useHttp}`);
  }
  const { ResponsesSocket } = await import("./socket");
  const member = caller.key?.member ?? null;
  const isOpen =
    !sockets.isFullFor(member) &&
    caller.connection.upgrade((answer) => new ResponsesSocket(sockets, limits.socketAge, request, member, answer));
  if (!isOpen) throw new ProxyError("upgrade_required", `No WebSocket can be opened now. ${useHttp}`);
  // The connection is no longer HTTP: nothing reads this.
  return new Response(null, { status: 204 });
}
