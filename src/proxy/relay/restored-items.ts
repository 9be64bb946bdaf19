/** Items that a client names by their ids are put back into its request, and those of the answer are kept for its next one. */
import type { JsonObject } from "../../dialects/hub/conversation";
import { longTexts } from "../../dialects/long-texts";
import { itemIn, withItems } from "../../dialects/responses/references";
import { inOnePiece, requestBody } from "../../lib/net/in/request-body";
import type { SseFrame } from "../../lib/net/stream/sse";
import type { Stage } from "../../lib/net/stream/stream";
import type { KeyedCaller } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import { editIncoming, type Incoming } from "./incoming";
import type { RunningRequest } from "./running-request";

/** Whose requests may name an item by its id: those of one client key, or of everybody where none is asked for. */
const ownerOf = ({ key }: KeyedCaller): string =>
  key ? `${key.member ?? ""}/${key.name ?? key.digest.toString("hex")}` : "";

/**
 * The request with the items that it names by their ids, as far as this server gave them to the same key within the hour. What
 * it is answered is kept for its next turn, unless the client says that it sends items itself.
 */
export function withRecentItems(
  { recentItems }: Pick<RequestScope, "recentItems">,
  running: RunningRequest,
  caller: KeyedCaller,
  incoming: Incoming,
): Incoming {
  return running.book.clientDialect === "responses" ? restored(recentItems, running, caller, incoming) : incoming;
}

function restored(
  recentItems: RequestScope["recentItems"],
  running: RunningRequest,
  caller: KeyedCaller,
  incoming: Incoming,
): Incoming {
  const owner = ownerOf(caller);
  if (incoming.body.store !== false) running.keepItem = (item) => recentItems.keep(owner, item);
  const body = withKeptItems({ recentItems }, caller, incoming.body);
  if (body === incoming.body) return incoming;
  running.book.addFixup("items-restored");
  const sent = inOnePiece(editIncoming(incoming, body));
  return { ...incoming, ...requestBody(Buffer.from(sent), longTexts.responses) };
}

/** The body with the items that it names by their ids; the very same if none of them is kept. */
export function withKeptItems(
  { recentItems }: Pick<RequestScope, "recentItems">,
  caller: KeyedCaller,
  body: JsonObject,
): JsonObject {
  const owner = ownerOf(caller);
  return withItems(body, (id) => recentItems.find(owner, id));
}

/** Hands on the frames of a stream, and keeps the items that they complete. */
export const keepingItems =
  (keep: (item: JsonObject) => void): Stage<SseFrame, SseFrame> =>
  (next) => ({
    push(frame) {
      const item = itemIn(frame);
      if (item) keep(item);
      next.push(frame);
    },
    end: () => next.end(),
  });
