/** The loop of tools around the upstream's answers: how their bodies become one, and when the next one is asked for. */
import type { Beat } from "../../dialects/hub/beat";
import type { Conversation } from "../../dialects/hub/conversation";
import type { ReplyEvent } from "../../dialects/hub/reply";
import { continueConversation, type OfferedTools } from "../../dialects/hub/server-offers";
import type { ResponseBody } from "../../lib/net/out/body";
import type { Sink, Stage } from "../../lib/net/stream/stream";
import type { ToolContext } from "./context";
import { ServerToolLoop } from "./loop";
import { joinedBody, type Round } from "./rounds";
import { serverTools } from "./tools";

interface LoopRequest {
  offered: OfferedTools;
  /** For a tool that runs now. */
  context(): ToolContext;
  /** Asks the upstream to go on. @param beats Where the beats of its answer go. */
  ask(conversation: Conversation, beats: Sink<Beat>): Promise<Round>;
  /** What is to be done with the events of the whole reply. */
  shape?: Stage<ReplyEvent, ReplyEvent>;
}

/** The upstream's first answer. */
interface First {
  body: ResponseBody;
  /** Makes the sink for its bytes. */
  read(beats: Sink<Beat>): Sink<Uint8Array>;
}

/** @param next Gets the beats of the whole reply: those of the upstream as they are, until the model calls a tool that runs here. */
export function openLoop({ offered, context, ask, shape }: LoopRequest, first: First, next: Sink<Beat>): Round {
  /** What is said of the present beat; undefined between the answers. */
  let present: ReplyEvent[] | undefined;
  const events: Sink<ReplyEvent> = {
    push: (event) => void (present ? present.push(event) : next.push({ events: [event] })),
    end: () => next.end(),
  };
  const loop = new ServerToolLoop({
    tools: offered.offers,
    run: (call, offer) => serverTools[call.tool].run(context(), call, offer),
    next: shape?.(events) ?? events,
  });
  const beats: Sink<Beat> = {
    push(beat) {
      present = [];
      for (const event of beat.events) loop.push(event);
      next.push(loop.hasCalled ? { events: present } : { ...beat, events: present });
      present = undefined;
    },
    end: () => loop.end(),
  };
  return joinedBody({
    first: { body: first.body, bytes: first.read(beats) },
    isWaiting: () => loop.isWaiting,
    async advance() {
      if (!(await loop.advance())) return undefined;
      return ask(continueConversation(offered, loop.produced, loop.mayCall), beats);
    },
    signal: context().signal,
  });
}
