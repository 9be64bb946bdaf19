/** The headers of a call to GitHub Copilot, a row for each: what it says, and to what it belongs where a WebSocket serves several requests. */
import type { Session } from "../../accounts/session";

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
  session: Session;
  /** `dragoman/` and the version. */
  product: string;
}

interface Row {
  /**
   * - `connection`: a socket with another value is another socket.
   * - `request`: over a socket it is not sent; what a message needs of it is in the message.
   * - `first request`: a socket begins with that of its first request, and serves others too.
   *
   * What differs between two requests of one session is never `connection`: each would need a socket of its own. Headers without
   * a row, such as the config's, belong to the connection.
   */
  belongsTo: "connection" | "request" | "first request";
  /** The same for every call, or what it is for this one. Without a value it is not sent. */
  value: string | ((sending: Sending) => string | undefined);
}

/** The name and version of an editor, which the token exchange expects. */
const editor = ({ session, product }: Sending) => (session.mode === "exchange" ? product : undefined);

const rows: Record<string, Row> = {
  authorization: { belongsTo: "connection", value: ({ session }) => `Bearer ${session.token}` },
  accept: { belongsTo: "request", value: "*/*" },
  // Compression saves nothing on a stream of small events, and a compressed answer can expand to any size.
  "accept-encoding": { belongsTo: "request", value: "identity" },
  "user-agent": { belongsTo: "connection", value: ({ product }) => product },
  "openai-intent": { belongsTo: "connection", value: ({ call }) => call.intent },
  "x-request-id": { belongsTo: "first request", value: ({ call }) => call.requestId },
  "x-github-api-version": { belongsTo: "connection", value: "2026-08-01" },
  // The integration the sign-in app's tokens are scoped to; without it the host refuses them.
  // A retired version is answered with status 466: `upstreamHeaders` in the config can then replace it.
  "copilot-integration-id": { belongsTo: "connection", value: "vscode-chat" },
  "editor-version": { belongsTo: "connection", value: editor },
  "editor-plugin-version": { belongsTo: "connection", value: editor },
  "content-type": {
    belongsTo: "request",
    value: ({ call }) => (call.body === undefined ? undefined : "application/json"),
  },
  "x-initiator": { belongsTo: "request", value: ({ call }) => call.initiator },
  // A later request may hold an image. The header is harmless without one, so over a socket it is always sent.
  "copilot-vision-request": { belongsTo: "connection", value: ({ call }) => (call.vision ? "true" : undefined) },
};

type Headers = Record<string, string>;

const table = Object.entries(rows).map(([name, row]) => ({ name, ...row }));
const namesOf = (place: Row["belongsTo"]) =>
  new Set(table.filter(({ belongsTo }) => belongsTo === place).map(({ name }) => name));
const ofRequest = namesOf("request");
const ofFirst = namesOf("first request");

/** The headers of a call that have a value. */
export function headersOf(sending: Sending): Headers {
  const headers: Headers = {};
  for (const { name, value } of table) {
    const said = typeof value === "string" ? value : value(sending);
    if (said !== undefined) headers[name] = said;
  }
  return headers;
}

/** The headers with which a socket begins. */
export const openingHeaders = (headers: Headers): Headers => ({
  ...Object.fromEntries(Object.entries(headers).filter(([name]) => !ofRequest.has(name))),
  "copilot-vision-request": "true",
});

/** What tells a socket from others to the same address. @param headers Those with which it begins. */
export const identityOf = (headers: Headers): string =>
  JSON.stringify(Object.entries(headers).filter(([name]) => !ofFirst.has(name)));
