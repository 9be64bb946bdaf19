/** Changes the text of a reply's blocks piece by piece, as it is streamed. */
import type { Stage } from "../../lib/net/stream/stream";
import type { Block, ReplyEvent } from "./reply";

/** Changes one text. */
export interface TextChange {
  /** @returns The text that can be written by now. */
  push(piece: string): string;
  /** @returns The text that is left. */
  end(): string;
}

/** @param changeOf Gives what changes the text of a block; undefined for one that stays as it is. */
export const changeTexts =
  (changeOf: (block: Block) => TextChange | undefined): Stage<ReplyEvent, ReplyEvent> =>
  (next) => {
    let change: TextChange | undefined;
    const write = (text: string) => {
      if (text !== "") next.push({ type: "block-delta", text });
    };
    return {
      push(event) {
        if (event.type === "block-start") change = changeOf(event.block);
        if (event.type === "block-delta" && change) return write(change.push(event.text));
        if (event.type === "block-end" || event.type === "error") {
          write(change?.end() ?? "");
          change = undefined;
        }
        next.push(event);
      },
      end: () => next.end(),
    };
  };
