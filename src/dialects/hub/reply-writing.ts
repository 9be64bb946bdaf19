/** What the writers of all dialects share: each event of a reply has its place, and nothing follows the end. */
import type { SseFrame } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";
import type { ClientSink } from "../codec";
import { cutReply } from "./block-lifecycle";
import type { Conversation } from "./conversation";
import type { Block, BlockEnd, ReplyError, ReplyEvent, Usage } from "./reply";
import { isEmptyInput } from "./tool-input";

export type Finish = Extract<ReplyEvent, { type: "finish" }>;

/** Writes a reply event by event. A dialect says how each is written. */
export abstract class WireWriter {
  /** Later numbers replace earlier ones. */
  protected readonly usage: Partial<Usage> = {};
  protected ended = false;
  /** A call has begun whose input is JSON. Models write `null` and `[]` in one piece where they have none to give. */
  #awaitsInput = false;

  push(event: ReplyEvent): void {
    if (this.ended) return;
    if (event.type === "block-delta") {
      if (this.#awaitsInput && event.text.trim() !== "" && isEmptyInput(event.text)) return;
      this.#awaitsInput = false;
      this.addText(event.text);
    } else if (event.type === "block-start") {
      this.#awaitsInput = event.block.kind === "tool-call" && !event.block.freeform;
      this.openBlock(event.block);
    } else if (event.type === "block-end") this.closeBlock(event);
    else if (event.type === "start") {
      Object.assign(this.usage, event.usage);
      this.start(event.id);
    } else if (event.type === "usage") Object.assign(this.usage, event.usage);
    else if (event.type === "error") this.fail(event);
    else {
      this.finish(event);
      this.ended = true;
    }
  }

  /** Ends the reply with an error; does nothing after its end. */
  fail(error: ReplyError): void {
    if (this.ended) return;
    this.writeError(error);
    this.ended = true;
  }

  /** The events are over: without a last one among them, the reply was cut. */
  end(): void {
    this.fail({ type: "error", ...cutReply });
  }

  protected abstract start(id: string): void;
  protected abstract openBlock(block: Block): void;
  protected abstract addText(text: string): void;
  protected abstract closeBlock(end: BlockEnd): void;
  protected abstract finish(event: Finish): void;
  protected abstract writeError(error: ReplyError): void;
}

/** Writes a reply as frames of a stream. */
export abstract class FrameWriter extends WireWriter implements ClientSink<ReplyEvent> {
  constructor(
    protected readonly conversation: Conversation,
    protected readonly next: Sink<SseFrame>,
  ) {
    super();
  }

  override end(): void {
    super.end();
    this.next.end();
  }

  keepAlive(): void {
    if (!this.ended) this.next.push(this.beat());
  }

  /** What clients count as activity and nothing else. */
  protected abstract beat(): SseFrame;
}

interface GatheredReply {
  /** Empty if the reply never started. */
  id: string;
  usage: Partial<Usage>;
  blocks: { block: Block; text: string; end: BlockEnd }[];
  /** Missing if the reply was cut. */
  finish: Finish | undefined;
}

/** Collects the events of a full reply. */
export function gatheredReply(events: Iterable<ReplyEvent>): GatheredReply {
  const reply: GatheredReply = { id: "", usage: {}, blocks: [], finish: undefined };
  let block: Block | undefined;
  let text = "";
  for (const event of events) {
    if (event.type === "start") reply.id = event.id;
    else if (event.type === "usage") Object.assign(reply.usage, event.usage);
    else if (event.type === "block-start") [block, text] = [event.block, ""];
    else if (event.type === "block-delta") text += event.text;
    else if (event.type === "block-end" && block) reply.blocks.push({ block, text, end: event });
    else if (event.type === "finish") reply.finish = event;
  }
  return reply;
}
