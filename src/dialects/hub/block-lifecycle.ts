/** Enforces the order of reply events in one place: readers report what they read, the emitter opens and closes blocks. */
import { OwnIds } from "./call-pairs";
import type { JsonObject } from "./conversation";
import { omitUndefined, textIn } from "./json";
import { lostReasoningIn } from "./lost-reasoning";
import type { Block, BlockEnd, ReplyEvent, ReplyFailure, StopReason, Usage } from "./reply";

export class ReplyEmitter {
  #hasStarted = false;
  #ended = false;
  #hasNoBlocks = false;
  /** The lanes that have not ended, from the one that is written. */
  #first: Lane | undefined;
  #last: Lane | undefined;
  #lostReasoning: string[] | undefined;
  /** The ids of calls: clients tell calls and their results apart by them. */
  #callIds: OwnIds | undefined;
  /** What was reported while a block is open, to be told behind it. */
  #usage: Partial<Usage> | undefined;

  #events: ReplyEvent[] | undefined;

  /** What was emitted since the last call; undefined if nothing was. */
  take(): ReplyEvent[] | undefined {
    const events = this.#events;
    this.#events = undefined;
    return events;
  }

  /** How many events the next call of `take` gives. */
  get count(): number {
    return this.#events?.length ?? 0;
  }

  /** Whether a terminal event was written; later calls are ignored. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Only the first call has an effect. */
  start(id: string, model: string, usage?: Partial<Usage>): void {
    if (this.#hasStarted || this.#ended) return;
    this.#hasStarted = true;
    this.#emit(usage ? { type: "start", id, model, usage } : { type: "start", id, model });
  }

  /** A place for blocks, after those of the lanes that were begun before. */
  lane(): Lane {
    const lane = new Lane(this, this.#first === undefined);
    if (this.#last) this.#last.next = lane;
    this.#first ??= lane;
    this.#last = lane;
    return lane;
  }

  /** Goes on with the first lane that has not ended. */
  advance(): void {
    while (this.#first?.hasEnded) {
      this.#first = this.#first.next;
      this.#first?.write();
    }
    if (!this.#first) this.#last = undefined;
  }

  /** Ends all lanes. */
  endLanes(): void {
    for (let lane = this.#first; lane; lane = lane.next) lane.end();
  }

  /** Closes the open block; nothing more is said of blocks. */
  leaveOutBlocks(): void {
    this.#first?.close();
    this.#hasNoBlocks = true;
  }

  usage(usage: Partial<Usage>): void {
    if (this.#ended) return;
    this.start("", "");
    if (this.#first?.isOpen && !this.#hasNoBlocks) this.#usage = { ...this.#usage, ...usage };
    else this.#emit({ type: "usage", usage });
  }

  /** What the reply's end says of reasoning that the service left out. @param changes Of the last list that it sent. */
  readInputChanges(changes: unknown): void {
    if (Array.isArray(changes)) this.#lostReasoning = lostReasoningIn(changes);
  }

  /** Ends the reply normally, after all lanes. */
  finish(reason: StopReason, raw?: string, stopSequence?: string, explanation?: string): void {
    if (this.#ended) return;
    this.start("", "");
    this.endLanes();
    this.#ended = true;
    const lostReasoning = this.#lostReasoning?.length ? this.#lostReasoning : undefined;
    this.#emit(omitUndefined({ type: "finish" as const, reason, raw, stopSequence, explanation, lostReasoning }));
  }

  /** Ends the reply with an error. The open block is closed; what waits for its end is left out. */
  error(failure: ReplyFailure): void {
    if (this.#ended) return;
    this.leaveOutBlocks();
    this.#ended = true;
    this.#emit({ type: "error", ...failure });
  }

  /** For a lane. */
  say(event: BlockEvent): void {
    if (this.#ended || this.#hasNoBlocks) return;
    this.start("", "");
    this.#emit(event.type === "block-start" ? this.#withOwnId(event) : event);
    if (event.type !== "block-end" || !this.#usage) return;
    this.#emit({ type: "usage", usage: this.#usage });
    this.#usage = undefined;
  }

  #withOwnId(event: BlockEvent & { type: "block-start" }): BlockEvent {
    const { block } = event;
    if (block.kind !== "tool-call") return event;
    this.#callIds ??= new OwnIds();
    const id = this.#callIds.give(block.id);
    return id === block.id ? event : { ...event, block: { ...block, id } };
  }

  /** Most frames say one thing. */
  #emit(event: ReplyEvent): void {
    if (this.#events) this.#events.push(event);
    else this.#events = [event];
  }
}

type BlockEvent = Extract<ReplyEvent, { type: `block-${string}` }>;

/**
 * Blocks that follow each other: an item of the upstream's reply, or a block of it. Upstreams may write several at once, but
 * readers of the events get one block at a time: the first lane is written as it grows, and the others wait until it ends.
 */
export class Lane {
  next: Lane | undefined;
  isOpen = false;
  hasEnded = false;
  /** What was said while a lane before this one was written. */
  #waiting: BlockEvent[] | undefined;

  constructor(
    private readonly reply: ReplyEmitter,
    isFirst: boolean,
  ) {
    if (!isFirst) this.#waiting = [];
  }

  /** Opens a block and closes the one that is open. */
  open(block: Block): void {
    this.close();
    if (this.hasEnded) return;
    this.isOpen = true;
    this.#say({ type: "block-start", block });
  }

  /** Appends text to the open block; empty text writes no event. */
  delta(text: string): void {
    if (text === "" || !this.isOpen) return;
    const last = this.#waiting?.at(-1);
    if (last?.type === "block-delta") last.text += text;
    else this.#say({ type: "block-delta", text });
  }

  /** Closes the open block, if there is one. */
  close(end: BlockEnd = {}): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#say({ type: "block-end", ...end });
  }

  /** Closes the open block; no other follows in this lane. */
  end(end?: BlockEnd): void {
    this.close(end);
    this.hasEnded = true;
    this.reply.advance();
  }

  /** To be called when all lanes before have ended. */
  write(): void {
    for (const event of this.#waiting ?? []) this.reply.say(event);
    this.#waiting = undefined;
  }

  #say(event: BlockEvent): void {
    if (this.#waiting) this.#waiting.push(event);
    else this.reply.say(event);
  }
}

/** The error code of every decoder for an event it cannot read, as opposed to an error that the upstream reported. */
const invalidEventCode = "upstream_bad_event";

/** What a dialect's decoder says of an event that it cannot read. @param event What every event is, with its article. */
export const invalidEventOf = (event: string): ReplyFailure => ({
  code: invalidEventCode,
  message: `The upstream's stream contains data that is not ${event}.`,
  isOurs: true,
});

/** What it says of a body that is no reply. @param reply What a reply is, with its article. */
export const invalidReplyOf = (reply: string): ReplyFailure => ({
  code: "upstream_bad_reply",
  message: `The upstream's answer is not ${reply}.`,
  isOurs: true,
});

/** The error for an upstream's error without a message. */
export const gaveUp = {
  code: "upstream_error",
  message: "The upstream ended its reply with an error that has no message.",
  isOurs: true,
} as const;

/**
 * An upstream's error in the form that all vendors share; what it does not say is {@link gaveUp}'s. Where an answer has begun,
 * some gateways and Google's own API state a status as its code.
 */
export function failureIn({ code, type, message }: JsonObject): ReplyFailure {
  const words = [code, type].map(textIn).filter((word) => word !== "" && word !== "error" && !/^\d+$/.test(word));
  return withWords(words[0] ?? codeOfStatus[Number(code)] ?? "", textIn(message));
}

/** As Anthropic's API and Copilot's name them. */
const codeOfStatus: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  408: "timeout_error",
  413: "request_too_large",
  422: "content_filter",
  429: "rate_limit_error",
  500: "api_error",
  503: "service_unavailable",
  504: "timeout_error",
  529: "overloaded_error",
};

/** An upstream's error with its words; {@link gaveUp}'s where it has none. */
const withWords = (code: string, message: string): ReplyFailure =>
  message === "" ? { ...gaveUp, code: code || gaveUp.code } : { code: code || gaveUp.code, message };

/** The error of every decoder when the upstream closes without a terminal event. */
export const cutReply = {
  code: "upstream_disconnected",
  message: "The upstream closed the connection before its reply was complete; nothing after this point is known.",
  isOurs: true,
} as const;
