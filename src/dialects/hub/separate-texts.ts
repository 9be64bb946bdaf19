/** Begins a new paragraph with each text after a tool's result, for clients that see all texts of a reply as one. */
import type { Stage } from "../../lib/net/stream/stream";
import type { ReplyEvent } from "./reply";

const separator = "\n\n";

export const separateTexts: Stage<ReplyEvent, ReplyEvent> = (next) => {
  let hasText = false;
  let isAfterResult = false;
  /** The open text has not begun yet, and begins with the separator. */
  let isDue = false;
  /** How far the separator has moved the open text. */
  let moved = 0;
  return {
    push(event) {
      if (event.type === "block-start") {
        const { kind } = event.block;
        if (kind === "server-result") isAfterResult = true;
        isDue = kind === "text" && isAfterResult && hasText;
        moved = 0;
        if (kind === "text") isAfterResult = false;
        next.push(event);
        if (kind === "text") hasText = true;
      } else if (event.type === "block-delta" && isDue) {
        isDue = false;
        moved = separator.length;
        next.push({ type: "block-delta", text: separator + event.text });
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
