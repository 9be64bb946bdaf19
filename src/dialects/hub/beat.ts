/**
 * A reply on its way from the reader of the upstream's answer to the writer for the client. A stage in between that changes
 * nothing hands a beat on; one that changes what the reply says hands on events without a frame. So a client of the
 * upstream's dialect gets the very frames as long as nobody has touched a beat.
 */
import type { SseFrame } from "../../lib/net/stream/sse";
import type { Stage } from "../../lib/net/stream/stream";
import type { JsonObject } from "./conversation";
import type { ReplyEvent, ReplyFailure } from "./reply";

/** One frame of the upstream, and what it says. */
export interface FramedBeat {
  /** As it arrived. */
  frame: SseFrame;
  type: string;
  /** What the frame holds, brought into the grammar of its vendor's own API: the same object if it is of it. */
  json: JsonObject;
  /** Nothing follows it. */
  isLast: boolean;
  /** It could not be brought into the grammar: who passes it on leaves it as it is, who has to read it cannot. */
  isOdd?: true;
  /** Always in the order of {@link ReplyEvent}, over all beats of a reply. */
  events: readonly ReplyEvent[];
  /**
   * Once in a reply at most: its reader could not follow. From there on it reads usage and end only.
   * `after` is how many of the events come before.
   */
  lost?: { error: ReplyFailure; after: number };
}

/** Without a frame it has to be written: something has changed the events, or no frame says them, like a stream's break. */
export type Beat = FramedBeat | (Pick<FramedBeat, "events" | "lost"> & { frame?: undefined });

/** The type of a frame that says nothing. */
export const comment = "comment";
/** The type of a frame that is a full reply. */
export const full = "full";

/** For who needs all of what was said: a reply that cannot be followed ends with an error, as it must not look complete. */
export const followed: Stage<Beat, Beat> = (next) => {
  let isLost = false;
  return {
    push(beat) {
      if (isLost) return;
      const { events, lost } = beat;
      if (!lost) return next.push(beat);
      isLost = true;
      next.push({ events: [...events.slice(0, lost.after), { type: "error", ...lost.error }] });
    },
    end: () => next.end(),
  };
};

/** The events alone: the reply is to be written anew. */
export const said: Stage<Beat, ReplyEvent> = (next) =>
  followed({
    push({ events }) {
      for (const event of events) next.push(event);
    },
    end: () => next.end(),
  });

/** Events that no frame of the upstream says in this way. */
export const unframed: Stage<ReplyEvent, Beat> = (next) => ({
  push: (event) => next.push({ events: [event] }),
  end: () => next.end(),
});
