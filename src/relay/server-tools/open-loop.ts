/** Wires the loop of tools into a translated request: how the upstream is asked again, and how its answers are read. */

import type { Conversation } from "../../dialects/hub/conversation";
import type { ReplyEvent } from "../../dialects/hub/reply";
import { goOn, type OfferedTools, offerFunctions } from "../../dialects/hub/server-offers";
import type { ResponseBody } from "../../net/body";
import type { Sink } from "../../net/stream";
import type { RequestRecord } from "../request-record";
import { ServerToolLoop } from "./loop";
import type { ToolParts } from "./run";
import { serverTools } from "./tools";
import { turnedBody, type UpstreamTurn } from "./turned-body";

/** Named in the history where functions were offered. */
export const offeredFixup = "server-tools-here";

/** The request with functions for the tools that run here; undefined if there are none. */
export async function planServerTools(parts: ToolParts, conversation: Conversation): Promise<OfferedTools | undefined> {
  if (!conversation.tools.some((tool) => tool.kind === "foreign" && tool.server)) return undefined;
  // A provider's model may be the first that is asked for. Without a list no model searches; an engine still may.
  if (!parts.catalogue.presentModels()) await parts.catalogue.models().catch(() => []);
  return offerFunctions(conversation, (offer) => {
    const tool = serverTools[offer.tool];
    return tool.isAvailable(parts) ? tool.form(offer) : undefined;
  });
}

export interface LoopRequest {
  parts: ToolParts;
  offered: OfferedTools;
  record: RequestRecord;
  /** Asks the upstream to go on. @param events Where the events of its answer go. */
  ask(conversation: Conversation, events: Sink<ReplyEvent>): Promise<UpstreamTurn>;
}

/**
 * @param first The body of the upstream's first answer.
 * @param read Makes the sink for the first answer's bytes.
 * @param next Gets the events of the whole reply.
 */
export function openLoop(
  { parts, offered, record, ask }: LoopRequest,
  first: ResponseBody,
  read: (events: Sink<ReplyEvent>) => Sink<Uint8Array>,
  next: Sink<ReplyEvent>,
): UpstreamTurn {
  const loop = new ServerToolLoop({
    tools: offered.offers,
    run: (call, offer) => serverTools[call.tool].run({ parts, record }, call, offer),
    next,
  });
  return turnedBody({
    first: { body: first, bytes: read(loop) },
    isWaiting: () => loop.isWaiting,
    async advance() {
      if (!(await loop.advance())) return undefined;
      record.beginTurn();
      return ask(goOn(offered, loop.said, loop.mayCall), loop);
    },
    signal: record.controller.signal,
  });
}
