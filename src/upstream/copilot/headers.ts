/** To what each header of a call belongs, which matters where a WebSocket serves several requests with the headers it began with. */

/**
 * - `connection`: a socket with another value is another socket.
 * - `request`: over a socket it is not sent; what a message needs of it is in the message.
 * - `first request`: a socket begins with that of its first request, and serves others too.
 *
 * Headers without a row, such as the config's, belong to the connection.
 */
const belongsTo = {
  accept: "request",
  "accept-encoding": "request",
  authorization: "connection",
  "content-type": "request",
  "copilot-integration-id": "connection",
  // A later request may hold an image. The header is harmless without one, so over a socket it is always sent.
  "copilot-vision-request": "connection",
  "editor-plugin-version": "connection",
  "editor-version": "connection",
  "openai-intent": "connection",
  "user-agent": "connection",
  "x-github-api-version": "connection",
  "x-initiator": "request",
  "x-request-id": "first request",
} as const;

/** The headers that `copilot.ts` sends. One more needs a row. */
export type OwnHeaders = Partial<Record<keyof typeof belongsTo, string>>;

type Headers = Record<string, string>;

const places: ReadonlyMap<string, string> = new Map(Object.entries(belongsTo));

/** The headers with which a socket begins. */
export const openingHeaders = (headers: Headers): Headers => ({
  ...Object.fromEntries(Object.entries(headers).filter(([name]) => places.get(name) !== "request")),
  "copilot-vision-request": "true",
});

/** What tells a socket from others to the same address. @param headers Those with which it begins. */
export const identityOf = (headers: Headers): string =>
  JSON.stringify(Object.entries(headers).filter(([name]) => places.get(name) !== "first request"));
