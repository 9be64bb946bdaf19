/** Begins a new paragraph with each text after a tool's result, for clients that see all texts of a reply as one. */
import type { Stage } from "../../lib/net/stream/stream";
import type { ReplyEvent } from "./reply";

const separator = "\n\n";

export const separateTexts: Stage<ReplyEvent, ReplyEvent> = (next) => {
  let hasText = false;
  let isAfterResult = false;
  /** The open block is a text. */
  let isText = false;
  /** How far the separator has moved the open text. */
  let moved = 0;
  return {
    push(event) {
      if (event.type === "block-start") {
        isText = event.block.kind === "text";
        isAfterResult ||= event.block.kind === "server-result";
        moved = 0;
        next.push(event);
      } else if (event.type === "block-delta" && isText && event.text !== "") {
        const isDue = isAfterResult && hasText;
        hasText = true;
        isAfterResult = false;
        if (isDue) moved = separator.length;
        next.push(isDue ? { type: "block-delta", text: separator + event.text } : event);
      } else if (event.type === "block-end" && event.citations) {
        const citations = event.citations.map((citation) => ({
          ...citation,
          start: citation.start + moved,
          end: citation.end + moved,
        }));
        next.push({ ...event, citations });
      } else next.push(event);
    },
    end: () => next.end(),
  };
};
