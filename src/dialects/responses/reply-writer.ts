/** Writes replies of the responses dialect: a list of items, each streamed as several events. */

import { isObject } from "../../lib/json";
import { commentFrame, jsonFrame } from "../../lib/net/stream/sse";
import type { ToClient } from "../codec";
import type { Conversation, JsonObject } from "../hub/conversation";
import { numberPlace, textPlace, writeDeltas } from "../hub/delta-frames";
import { omitUndefined, textIn } from "../hub/json";
import {
  type Block,
  type BlockEnd,
  type CompleteBlock,
  isDeltaBlock,
  type ReplyError,
  type ReplyEvent,
} from "../hub/reply";
import { type Finish, WireWriter } from "../hub/reply-writing";
import { isToolSearch, searches } from "../hub/searches";
import { echoOf } from "./echo";
import { ownId } from "./ids";
import {
  callItem,
  foreignItem,
  type OpenItem,
  reasoningItem,
  type ShownItem,
  textPart,
  type Wire,
} from "./item-writer";
import { thinkingText } from "./parts";
import { searchWriter } from "./search-writer";
import { pagesAsked } from "./server-tools";
import { clientSearchItem, isClientSearchCall, toolSearchWriter } from "./tool-search";
import { wireName } from "./tools";
import { encodeUsage } from "./usage";

/** Writes a full reply: the response of the stream's last event. */
export function encodeReply(events: Iterable<ReplyEvent>, conversation: Conversation): JsonObject {
  let response: JsonObject = {};
  const writer = new ResponseWriter(conversation, {
    send(_type, members) {
      if (isObject(members.response)) response = members.response;
    },
    deltas: () => () => {},
  });
  for (const event of events) writer.push(event);
  return response;
}

/** Writes a stream. */
export function encodeStream(conversation: Conversation): ToClient<ReplyEvent> {
  return (next) => {
    let sequence = 0;
    const writer = new ResponseWriter(conversation, {
      send: (type, members) => next.push(jsonFrame({ type, sequence_number: sequence++, ...members }, type)),
      deltas(type, members) {
        const frameOf = writeDeltas(type, { type, sequence_number: numberPlace, delta: textPlace, ...members });
        return (delta) => next.push(frameOf(delta, sequence++));
      },
    });
    return {
      push: (event) => writer.push(event),
      end() {
        writer.end();
        next.end();
      },
      keepAlive() {
        if (!writer.keepAlive()) next.push(commentFrame("waiting"));
      },
      fail: (error) => writer.fail(error),
    };
  };
}

/** Writes the wire's events in the complete order that the strictest client needs. */
class ResponseWriter extends WireWriter {
  private readonly output: JsonObject[] = [];
  private readonly echo: JsonObject;
  private readonly searches: ReturnType<typeof searchWriter>;
  private readonly toolSearches: ReturnType<typeof toolSearchWriter>;
  private readonly createdAt = secondsNow();
  /** Empty until the response has started. */
  private id = "";
  private open: OpenItem | undefined;
  private refused = false;

  constructor(
    private readonly conversation: Conversation,
    private readonly wire: Wire,
  ) {
    super();
    this.echo = echoOf(conversation);
    const include = conversation.extras?.openai?.include;
    const withSources = Array.isArray(include) && include.includes(pagesAsked);
    const add = (prefix: string, item: JsonObject) => this.addAtOnce(prefix, item);
    this.searches = searchWriter(wire, add, withSources);
    this.toolSearches = toolSearchWriter(conversation, add, wire);
  }

  /**
   * Codex only counts events as activity, and the OpenAI SDK throws on `ping`; repeating `in_progress` suits both.
   * Returns false before the response has started.
   */
  keepAlive(): boolean {
    if (this.id === "") return false;
    if (!this.ended) this.wire.send("response.in_progress", { response: this.response("in_progress") });
    return true;
  }

  protected openBlock(block: Block) {
    this.open = this.openItem(block);
  }

  protected addText(text: string) {
    this.open?.delta(text);
  }

  protected closeBlock(end: BlockEnd) {
    this.open?.endBlock(end);
  }

  protected start(from: string) {
    if (this.id !== "") return;
    this.id = /^resp_[\w-]{1,59}$/.test(from) ? from : ownId("resp");
    this.wire.send("response.created", { response: this.response("in_progress") });
    this.wire.send("response.in_progress", { response: this.response("in_progress") });
  }

  private response(status: string, more: JsonObject = {}): JsonObject {
    const { output, usage } = this;
    return {
      id: this.id,
      object: "response",
      created_at: this.createdAt,
      completed_at: status === "completed" ? secondsNow() : null,
      status,
      error: null,
      incomplete_details: null,
      ...this.echo,
      output: status === "in_progress" ? [] : output,
      usage: status === "in_progress" ? null : encodeUsage(usage, lengthOfThinking(output)),
      ...more,
    };
  }

  private openItem(block: Block): OpenItem | undefined {
    const { wire } = this;
    if (!isDeltaBlock(block)) return this.openWhole(block);
    const extras = block.extras?.openai ?? {};
    if (block.kind === "text") {
      this.refused ||= block.refusal === true;
      return textPart(this.messageFor(extras.phase), block.refusal === true, wire);
    }
    this.endItem("completed");
    if (block.kind === "thinking")
      return reasoningItem(this.add("rs", { type: "reasoning", summary: [] }, extras.id), wire);
    const { freeform } = block;
    if (isClientSearchCall(this.conversation, block.name)) {
      const call = {
        type: searches["tool-search"].responses.call,
        execution: "client",
        call_id: block.id,
        status: "in_progress",
      };
      return clientSearchItem(this.add("tsc", { ...call, arguments: {} }));
    }
    const type = freeform ? "custom_tool_call" : "function_call";
    const call = { ...extras, type, status: "in_progress", call_id: block.id, ...wireName(this.conversation, block) };
    return callItem(this.add(freeform ? "ctc" : "fc", { ...call, [freeform ? "input" : "arguments"]: "" }), wire);
  }

  private openWhole(block: CompleteBlock): OpenItem | undefined {
    this.endItem("completed");
    if (block.kind === "server-call" || block.kind === "server-result") return this.writeServerTool(block);
    if (block.dialect !== "responses") return undefined;
    return foreignItem(this.add(textIn(block.value.type), block.value, block.value.id));
  }

  private writeServerTool(block: Exclude<CompleteBlock, { kind: "foreign" }>): undefined {
    if (block.isHidden) return;
    const writer = isToolSearch(block.tool) ? this.toolSearches : this.searches;
    if (block.kind === "server-call") writer.call(block);
    else writer.result(block);
  }

  /** The open message, or a new one. */
  private messageFor(phase: unknown): ShownItem {
    if (this.open?.item.type === "message" && phase === undefined) return this.open;
    this.endItem("completed");
    const item = { type: "message", status: "in_progress", role: "assistant", content: [], phase };
    return this.add("msg", omitUndefined(item));
  }

  private add(prefix: string, item: JsonObject, ownedId?: unknown): ShownItem {
    const index = this.output.length;
    const shown = { id: textIn(ownedId) || ownId(prefix), ...item };
    this.wire.send("response.output_item.added", { output_index: index, item: shown });
    return { index, id: shown.id, item: { ...shown } };
  }

  /** An item that ends by itself. */
  private addAtOnce(prefix: string, item: JsonObject): ShownItem {
    const shown = this.add(prefix, item);
    this.output.push(shown.item);
    return shown;
  }

  private endItem(status: "completed" | "incomplete") {
    if (!this.open) return;
    const { index, item } = this.open;
    this.open = undefined;
    if (item.status === "in_progress") item.status = status;
    this.output.push(item);
    this.wire.send("response.output_item.done", { output_index: index, item });
  }

  protected finish({ reason, explanation }: Finish) {
    this.start("");
    // A refusal with text finishes as completed; without text the status must say it.
    const filtered = reason === "refusal" && !this.refused;
    const isUnfinished = reason === "length" || reason === "pause";
    const incomplete = isUnfinished ? "max_output_tokens" : filtered ? "content_filter" : undefined;
    const status = incomplete === undefined ? "completed" : "incomplete";
    if (filtered && explanation) {
      this.openBlock({ kind: "text", refusal: true });
      this.addText(explanation);
      this.closeBlock({});
    }
    this.endItem(status);
    const details = incomplete === undefined ? {} : { incomplete_details: { reason: incomplete } };
    this.wire.send(`response.${status}`, { response: this.response(status, details) });
  }

  protected writeError({ code, message }: ReplyError) {
    this.searches.fail();
    const error = { code: code || "server_error", message };
    if (this.id === "") return this.wire.send("error", { ...error, param: null });
    this.wire.send("response.failed", { response: this.response("failed", { error }) });
  }
}

const lengthOfThinking = (output: JsonObject[]): number =>
  output.reduce((sum, item) => (item.type === "reasoning" ? sum + thinkingText(item).length : sum), 0);

/** Of the clock, since 1970. */
const secondsNow = (): number => Math.floor(Date.now() / 1000);
