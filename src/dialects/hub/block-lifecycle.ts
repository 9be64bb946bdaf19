/** The grammar of a reply, kept in one place: decoders say what they saw, the writer opens, closes and ends in order. */
import type { Sink } from "../../net/stream";
import type { Signature, WithExtras } from "./conversation";
import type { Block, ReplyEvent, StopReason, Usage } from "./reply";

export interface ReplyWriter {
  /** The first one counts. */
  start(id: string, model: string): void;
  /** Opens a block, ending the open one first, unless it is this very one (same key). */
  open(key: string, block: Block): void;
  /** The key of the block that is open. */
  readonly openKey: string | undefined;
  /** A piece of the open block; empty pieces are no events. */
  delta(text: string): void;
  /** Ends the open block, if one is open. */
  close(end?: { signature?: Signature } & WithExtras): void;
  usage(usage: Partial<Usage>): void;
  /** The reply ended as the upstream meant it. */
  finish(reason: StopReason, raw?: string, stopSequence?: string, explanation?: string): void;
  /** The reply broke; what was open is ended, nothing more follows. */
  error(code: string, message: string): void;
  /** A terminal event was written: everything later is ignored. */
  readonly ended: boolean;
}

/** @param fallback Id and model of a reply that ends before its `start`. */
export function replyWriter(next: Sink<ReplyEvent>, fallback = { id: "", model: "" }): ReplyWriter {
  let started = false;
  let openKey: string | undefined;
  let ended = false;

  const start = (id: string, model: string) => {
    if (started || ended) return;
    started = true;
    next.push({ type: "start", id, model });
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
      start(fallback.id, fallback.model);
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
      start(fallback.id, fallback.model);
      next.push({ type: "usage", usage });
    },
    finish(reason, raw, stopSequence, explanation) {
      if (ended) return;
      start(fallback.id, fallback.model);
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

/** How every decoder calls what it cannot follow, in distinction from an error that the upstream told itself. */
export const invalidEventCode = "upstream_bad_event";

/** What every decoder says of an upstream that closed without a terminal event. */
export const cutReply = {
  code: "upstream_disconnected",
  message: "The upstream closed the connection before its reply was complete; nothing after this point is known.",
} as const;
