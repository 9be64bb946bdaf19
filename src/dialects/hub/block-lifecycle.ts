/** Enforces the order of reply events in one place: decoders report what they read, the writer opens and closes blocks. */
import type { Sink } from "../../net/stream/stream";
import type { Signature, WithExtras } from "./conversation";
import type { Block, ReplyEvent, StopReason, Usage } from "./reply";

export interface ReplyWriter {
  /** Only the first call has an effect. */
  start(id: string, model: string, usage?: Partial<Usage>): void;
  /** Opens a block and closes the one that is open; does nothing if a block with this key is open already. */
  open(key: string, block: Block): void;
  /** The key of the open block. */
  readonly openKey: string | undefined;
  /** Appends text to the open block; empty text writes no event. */
  delta(text: string): void;
  /** Closes the open block, if there is one. */
  close(end?: { signature?: Signature } & WithExtras): void;
  usage(usage: Partial<Usage>): void;
  /** Ends the reply normally. */
  finish(reason: StopReason, raw?: string, stopSequence?: string, explanation?: string): void;
  /** Ends the reply with an error; the open block is closed first. */
  error(code: string, message: string): void;
  /** Whether a terminal event was written; later calls are ignored. */
  readonly ended: boolean;
}

export function replyWriter(next: Sink<ReplyEvent>): ReplyWriter {
  let started = false;
  let openKey: string | undefined;
  let ended = false;

  const start: ReplyWriter["start"] = (id, model, usage) => {
    if (started || ended) return;
    started = true;
    next.push({ type: "start", id, model, ...(usage ? { usage } : {}) });
  };
  const close: ReplyWriter["close"] = (end = {}) => {
    if (openKey === undefined || ended) return;
    openKey = undefined;
    next.push({ type: "block-end", ...end });
  };

  return {
    start,
    open(key, block) {
      if (openKey === key || ended) return;
      start("", "");
      close();
      openKey = key;
      next.push({ type: "block-start", block });
    },
    get openKey() {
      return openKey;
    },
    delta(text) {
      if (text !== "" && openKey !== undefined && !ended) next.push({ type: "block-delta", text });
    },
    close,
    usage(usage) {
      if (ended) return;
      start("", "");
      next.push({ type: "usage", usage });
    },
    finish(reason, raw, stopSequence, explanation) {
      if (ended) return;
      start("", "");
      close();
      ended = true;
      next.push({
        type: "finish",
        reason,
        ...(raw === undefined ? {} : { raw }),
        ...(stopSequence === undefined ? {} : { stopSequence }),
        ...(explanation === undefined ? {} : { explanation }),
      });
    },
    error(code, message) {
      if (ended) return;
      close();
      ended = true;
      next.push({ type: "error", code, message });
    },
    get ended() {
      return ended;
    },
  };
}

/** The error code of every decoder for an event it cannot read, as opposed to an error that the upstream reported. */
export const invalidEventCode = "upstream_bad_event";

/** The error of every decoder when the upstream closes without a terminal event. */
export const cutReply = {
  code: "upstream_disconnected",
  message: "The upstream closed the connection before its reply was complete; nothing after this point is known.",
} as const;
