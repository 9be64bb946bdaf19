/** Wires the loop of tools into a translated request: how the upstream is asked again, and how its answers are read. */

import type { Changes } from "../../dialects/hub/changes";
import { documentsIn } from "../../dialects/hub/citations";
import type { ClientDialect, Conversation } from "../../dialects/hub/conversation";
import type { ReplyEvent } from "../../dialects/hub/reply";
import { goOn, type OfferedTools, offerFunctions } from "../../dialects/hub/server-offers";
import { deferTools, hasToolSearch } from "../../dialects/hub/tool-search";
import { withNativeSearch } from "../../dialects/native-search";
import type { ReadText } from "../../net/json/json-skeleton";
import type { ResponseBody } from "../../net/out/body";
import type { Sink } from "../../net/stream/stream";
import type { RunningRequest } from "../running-request";
import type { ChatTarget } from "../target";
import { ServerToolLoop } from "./loop";
import { maySearchNatively } from "./model-engine";
import type { ToolParts } from "./run";
import { maySearchTools } from "./tool-search";
import { serverTools } from "./tools";
import { turnedBody, type UpstreamTurn } from "./turned-body";

export type ServerToolPlan = OfferedTools & Pick<Changes, "fixups">;

/**
 * The request with functions for the tools that run here, and without the tools that the model is to search for.
 * @param client Where the upstream speaks it as well, its own search of tools is used.
 * @returns Undefined if nothing changed.
 */
export async function planServerTools(
  parts: ToolParts,
  conversation: Conversation,
  client: ClientDialect,
  target: ChatTarget,
): Promise<ServerToolPlan | undefined> {
  const { dialect, upstreamModel } = target;
  const isNative = client === dialect && hasToolSearch(upstreamModel, dialect);
  const deferred = maySearchTools(parts) ? deferTools(conversation, dialect, isNative) : undefined;
  const searching = deferred?.conversation ?? conversation;
  const native =
    client !== dialect && dialect === "responses" && maySearchNatively(parts, target)
      ? withNativeSearch(searching)
      : undefined;
  const request = native ?? searching;
  const offering = request.tools.flatMap((tool) => (tool.kind === "foreign" && tool.server ? [tool.server] : []));
  // A provider's model may be the first that is asked for. Without a list no model searches; an engine still may.
  if (offering.some(({ tool }) => tool === "web-search") && !parts.catalogue.presentModels())
    await parts.catalogue.models().catch(() => []);
  const offered = offerFunctions(request, (offer) => {
    const tool = serverTools[offer.tool];
    return tool.isAvailable(parts) ? tool.form(offer) : undefined;
  });
  if (!offered && !deferred && !native) return undefined;
  const isShown = [...(offered?.offers.values() ?? [])].some(({ isHidden }) => !isHidden);
  return {
    conversation: offered?.conversation ?? request,
    offers: offered?.offers ?? new Map(),
    waiting: deferred?.waiting,
    fixups: [
      ...(isShown ? ["server-tools-here"] : []),
      ...(deferred && deferred.waiting.tools.size > deferred.overflow ? ["tools-deferred"] : []),
      ...(deferred && deferred.overflow > 0 ? ["tools-over-limit"] : []),
    ],
  };
}

interface LoopRequest {
  parts: ToolParts;
  offered: OfferedTools;
  running: RunningRequest;
  /** Missing if no text is marked. */
  whole?: ReadText;
  /** Asks the upstream to go on. @param events Where the events of its answer go. */
  ask(conversation: Conversation, events: Sink<ReplyEvent>): Promise<UpstreamTurn>;
}

/**
 * @param first The body of the upstream's first answer.
 * @param read Makes the sink for the first answer's bytes.
 * @param next Gets the events of the whole reply.
 */
export function openLoop(
  { parts, offered, running, whole, ask }: LoopRequest,
  first: ResponseBody,
  read: (events: Sink<ReplyEvent>) => Sink<Uint8Array>,
  next: Sink<ReplyEvent>,
): UpstreamTurn & Pick<ServerToolLoop, "hasCalled"> {
  const turns = () => [...offered.conversation.turns, ...loop.said];
  const loop: ServerToolLoop = new ServerToolLoop({
    tools: offered.offers,
    documentsBefore: documentsIn(offered.conversation.turns),
    run: (call, offer) => serverTools[call.tool].run({ parts, running, turns, whole }, call, offer),
    next,
  });
  const turned = turnedBody({
    first: { body: first, bytes: read(loop) },
    isWaiting: () => loop.isWaiting,
    async advance() {
      if (!(await loop.advance())) return undefined;
      running.askAgain();
      return ask(goOn(offered, loop.said, loop.mayCall), loop);
    },
    signal: running.controller.signal,
  });
  return {
    ...turned,
    get hasCalled() {
      return loop.hasCalled;
    },
  };
}
