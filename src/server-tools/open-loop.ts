/** The loop of tools around the upstream's answers: how their bodies become one, and when the next one is asked for. */
import type { Conversation } from "../dialects/hub/conversation";
import type { ReplyEvent } from "../dialects/hub/reply";
import { continueConversation, type OfferedTools } from "../dialects/hub/server-offers";
import type { ResponseBody } from "../net/out/body";
import type { Sink } from "../net/stream/stream";
import type { ToolContext } from "./context";
import { ServerToolLoop } from "./loop";
import { joinedBody, type Round } from "./rounds";
import { serverTools } from "./tools";

interface LoopRequest {
  offered: OfferedTools;
  /** For a tool that runs now. */
  context(): ToolContext;
  /** Asks the upstream to go on. @param events Where the events of its answer go. */
  ask(conversation: Conversation, events: Sink<ReplyEvent>): Promise<Round>;
}

/**
 * @param first The body of the upstream's first answer.
 * @param read Makes the sink for the first answer's bytes.
 * @param next Gets the events of the whole reply.
 */
export function openLoop(
  { offered, context, ask }: LoopRequest,
  first: ResponseBody,
  read: (events: Sink<ReplyEvent>) => Sink<Uint8Array>,
  next: Sink<ReplyEvent>,
): Round & Pick<ServerToolLoop, "hasCalled"> {
  const loop: ServerToolLoop = new ServerToolLoop({
    tools: offered.offers,
    run: (call, offer) => serverTools[call.tool].run(context(), call, offer),
    next,
  });
  const joined = joinedBody({
    first: { body: first, bytes: read(loop) },
    isWaiting: () => loop.isWaiting,
    async advance() {
      if (!(await loop.advance())) return undefined;
      return ask(continueConversation(offered, loop.produced, loop.mayCall), loop);
    },
    signal: context().signal,
  });
  return {
    ...joined,
    get hasCalled() {
      return loop.hasCalled;
    },
  };
}
