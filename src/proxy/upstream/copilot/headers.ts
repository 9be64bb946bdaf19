/** The headers of a call to GitHub Copilot, a row for each. */
import type { CopilotToken } from "../../../people/accounts/copilot-token";

/** What the headers say of a request. */
export interface HeaderFacts {
  /** dragoman's request id, so that GitHub's log lines can be matched with ours. */
  requestId: string;
  /** The purpose of the call, in the upstream's terms. */
  intent: "conversation-agent" | "model-access" | "copilot-panel";
  /** Whether a person's turn or an agent's follow-up made the call. */
  initiator?: "user" | "agent";
  /** The request holds an image. */
  vision?: boolean;
}

interface Sending {
  call: HeaderFacts & { body?: unknown };
  token: CopilotToken;
  /** `dragoman/` and the version. */
  product: string;
}

/** The same for every call, or what it is for this one. Without a value it is not sent. */
type Value = string | ((sending: Sending) => string | undefined);

/** The name and version of an editor, which the token exchange expects. */
const editor = ({ token, product }: Sending) => (token.mode === "exchange" ? product : undefined);

const rows: Record<string, Value> = {
  authorization: ({ token }) => `Bearer ${token.bearer}`,
  accept: "*/*",
  // Compression saves nothing on a stream of small events, and a compressed answer can expand to any size.
  "accept-encoding": "identity",
  "user-agent": ({ product }) => product,
  "openai-intent": ({ call }) => call.intent,
  "x-request-id": ({ call }) => call.requestId,
  "x-github-api-version": "2026-08-01",
  // The integration the sign-in app's tokens are scoped to; without it the host refuses them.
  // A retired version is answered with status 466: `upstreamHeaders` in the config can then replace it.
  "copilot-integration-id": "vscode-chat",
  "editor-version": editor,
  "editor-plugin-version": editor,
  "content-type": ({ call }) => (call.body === undefined ? undefined : "application/json"),
  "x-initiator": ({ call }) => call.initiator,
  "copilot-vision-request": ({ call }) => (call.vision ? "true" : undefined),
};

const table = Object.entries(rows);

/** The headers of a call that have a value. */
export function headersOf(sending: Sending): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of table) {
    const said = typeof value === "string" ? value : value(sending);
    if (said !== undefined) headers[name] = said;
  }
  const { headers: wanted } = sending.token;
  // GitHub's own program says who it is, and dragoman that it is there too.
  return wanted
    ? { ...headers, ...wanted, "user-agent": `${wanted["user-agent"] ?? ""} ${sending.product}`.trim() }
    : headers;
}
