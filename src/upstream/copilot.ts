/** GitHub Copilot's model host: a call, and the headers we present ourselves with. */
import type { Session } from "../accounts/account";
import type { ConfigStore } from "../config/store";
import type { ProxyError } from "../errors";
import type { CallResponse } from "../net/body";
import type { CallLimits } from "../net/clock";
import { callOut } from "../net/fetch";

export interface Copilot {
  /** One call with one account's session. @throws ProxyError `upstream`, `timeout`, or what the session could not be had for. */
  call(session: Session, call: CopilotCall): Promise<CallResponse>;
}

export interface CopilotCall {
  path: string;
  body?: string | Uint8Array;
  /** Ours, so that a line in our log and one in GitHub's can be matched. */
  requestId: string;
  /** What a call of this kind is for, in the upstream's words. */
  intent: "conversation-agent" | "model-access" | "copilot-panel";
  /** Whether a person's turn or an agent's follow-up made the call. */
  initiator?: "user" | "agent";
  /** The request holds an image. */
  vision?: boolean;
  /** Headers only this dialect has. */
  headers?: Record<string, string>;
  /** As in `OutgoingCall`. */
  controller?: AbortController;
  limits: CallLimits;
  retried?: (why: string) => void;
  /** Told what came of the first try when a request is sent a second time, as an agent's; without it, it is sent once. */
  resent?: (error: ProxyError) => void;
}

/**
 * The integration the sign-in app's tokens are scoped to; without it the host refuses them.
 * A retired version is answered with status 466: `upstreamHeaders` in the config can then replace it.
 */
const integration = "vscode-chat";
const apiVersion = "2026-08-01";

export function openCopilot(config: Pick<ConfigStore, "current">, version: string): Copilot {
  const product = `dragoman/${version}`;
  const ownHeaders = lowerCaseNames(() => config.current.upstreamHeaders);
  return {
    call(session, call) {
      const headers: Record<string, string> = {
        authorization: `Bearer ${session.token}`,
        accept: "*/*",
        // A compressed answer saves nothing on a stream of small events, and could unfold to any size.
        "accept-encoding": "identity",
        "user-agent": product,
        "openai-intent": call.intent,
        "x-request-id": call.requestId,
        "x-github-api-version": apiVersion,
        "copilot-integration-id": integration,
      };
      if (session.mode === "exchange") {
        headers["editor-version"] = product;
        headers["editor-plugin-version"] = product;
      }
      if (call.body !== undefined) headers["content-type"] = "application/json";
      if (call.initiator) headers["x-initiator"] = call.initiator;
      if (call.vision) headers["copilot-vision-request"] = "true";
      if (call.headers) Object.assign(headers, call.headers);
      Object.assign(headers, ownHeaders());
      return callOut(session.baseUrl + call.path, {
        method: call.body === undefined ? "GET" : "POST",
        headers,
        body: call.body,
        controller: call.controller,
        limits: call.limits,
        who: "GitHub Copilot",
        retried: call.retried,
        resent:
          call.resent &&
          ((error) => {
            call.resent!(error);
            // The person's turn was announced by the first try.
            return call.initiator ? { ...headers, "x-initiator": "agent" } : headers;
          }),
      });
    },
  };
}

/** The headers with their names in lower case, made once for each config. */
function lowerCaseNames(read: () => Record<string, string>): () => Record<string, string> {
  let source: Record<string, string> | undefined;
  let lowered: Record<string, string> = {};
  return () => {
    if (source !== read()) {
      source = read();
      lowered = Object.fromEntries(Object.entries(source).map(([name, value]) => [name.toLowerCase(), value]));
    }
    return lowered;
  };
}
