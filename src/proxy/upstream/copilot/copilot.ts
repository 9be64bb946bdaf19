/** Calls to GitHub Copilot's model host, with the headers that identify the client. */

import type { ConfigStore } from "../../../config/store";
import type { CallResponse } from "../../../lib/net/out/body";
import { type CallOptions, callOut } from "../../../lib/net/out/fetch";
import type { CopilotToken } from "../../../people/accounts/copilot-token";
import { type HeaderFacts, headersOf } from "./headers";

export interface Copilot {
  /** One call with one account's token. @throws ProxyError `upstream`, `timeout` */
  call(token: CopilotToken, call: CopilotCall): Promise<CallResponse>;
}

export interface CopilotCall extends CallOptions, HeaderFacts {
  path: string;
}

export function openCopilot(config: Pick<ConfigStore, "current">, version: string): Copilot {
  const product = `dragoman/${version}`;
  const ownHeaders = lowerCaseNames(() => config.current.upstreamHeaders);
  return {
    call(token, call) {
      const headers = headersOf({ call, token, product });
      if (call.headers) Object.assign(headers, call.headers);
      Object.assign(headers, ownHeaders());
      const { body, controller, limits, listener } = call;
      const method = body === undefined ? "GET" : "POST";
      const out = { method, headers, body, controller, limits, who, listener, headersAgain } as const;
      return callOut(token.baseUrl + call.path, out);
    },
  };
}

const who = "GitHub Copilot";

/** The first try counted as the person's turn. */
const headersAgain = (headers: Record<string, string>) =>
  "x-initiator" in headers ? { ...headers, "x-initiator": "agent" } : headers;

/** The headers with lower-case names. They are converted once for each config. */
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
