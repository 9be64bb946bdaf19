/** Calls to GitHub Copilot over a WebSocket, where there is one; over HTTP otherwise. */
import { bodyText } from "../../net/in/request-body";
import type { CallResponse } from "../../net/out/body";
import { callOut, type OutgoingCall } from "../../net/out/fetch";
import { openingHeaders } from "./headers";
import { callOverSocket, SocketBroken, type SocketCall } from "./socket-call";
import { SocketPool } from "./socket-pool";

export interface CopilotSockets {
  /**
   * @param out The same call over HTTP: it is made if there is no WebSocket, if one that had served before breaks before it
   * has answered anything, or if the upstream takes the request neither on that socket nor on a new one.
   * @throws ProxyError `upstream`, `timeout`
   */
  call(call: CopilotSocketCall, out: OutgoingCall): Promise<CallResponse>;
  close(): void;
}

type CopilotSocketCall = Pick<SocketCall, "url" | "initiator" | "session" | "quota"> & { body: string | Uint8Array };

export function openCopilotSockets(): CopilotSockets {
  const pool = new SocketPool();
  return {
    async call(call, out) {
      const { limits, controller, who } = out;
      const headers = openingHeaders(out.headers);
      const body = bodyText(call.body);
      let { initiator } = call;
      let overHttp = out;
      for (const mayOpenAnother of [true, false]) {
        try {
          const response = await callOverSocket(pool, { ...call, initiator, body, headers, limits, controller, who });
          if (response) return response;
          out.retried?.("no WebSocket");
          break;
        } catch (thrown) {
          if (!(thrown instanceof SocketBroken)) throw thrown;
          if (!out.resent) throw thrown.error;
          out.resent(thrown.error);
          overHttp = { ...out, headers: out.headersAgain?.(out.headers) ?? out.headers, resent: undefined };
          initiator = initiator && "agent";
          if (!thrown.isSpent || !mayOpenAnother) break;
        }
      }
      return callOut(call.url, overHttp);
    },
    close: () => pool.close(),
  };
}
