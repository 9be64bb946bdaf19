/** Same dialect: the client's bytes go up and the upstream's bytes come down, but for the named fixups. */

import { codecs, type TranslationOptions } from "../dialects/codecs";
import { cutReply, invalidEventCode } from "../dialects/hub/block-lifecycle";
import type { Conversation, Dialect, JsonObject } from "../dialects/hub/conversation";
import { deltaTemplate } from "../dialects/hub/delta-template";
import { omit } from "../dialects/hub/json";
import type { Block, ReplyError, ReplyEvent } from "../dialects/hub/reply";
import { isObject, parseSpelt } from "../json";
import { editedTo, editMembers } from "../net/json-edit";
import { type DeltaTemplate, jsonOf, type SseFrame } from "../net/sse";
import { bodyText, type Incoming } from "./incoming";
import type { RequestRecord } from "./request-record";
import { BrokenReply } from "./respond";
import { needsStream, type Target } from "./target";
import type { UpstreamCall } from "./upstream-call";

/**
 * A full reply that the model gives as a stream only is asked for as one, and gathered.
 * @param clientHeaders Some of them go up with a body of this dialect.
 * @param conversation What was asked, where it could be read.
 */
export function passthrough(
  incoming: Incoming,
  dialect: Dialect,
  target: Target,
  exchange: RequestRecord,
  options: TranslationOptions,
  clientHeaders: Headers,
  conversation?: Conversation,
): UpstreamCall {
  const codec = codecs[dialect];
  const gathers = !incoming.stream && conversation !== undefined && needsStream(conversation, target);
  const wanted = gathers ? { ...incoming.body, stream: true } : incoming.body;
  const { set, remove, fixups, dropped } = codec.fixRequest(wanted, target.model, options);
  if (dropped) exchange.addDropped(dropped);
  if (gathers) {
    set.stream = true;
    fixups.push("stream-gathered");
  }
  const sent = fixups.length === 0 ? incoming.bytes : editMembers(bodyText(incoming.bytes), set, remove);
  const body = fixups.length === 0 ? incoming.body : { ...omit(incoming.body, new Set(remove)), ...set };
  const own = codec.requestHeaders?.(clientHeaders, body, target.model);
  for (const fixup of [...fixups, ...(own?.fixups ?? [])]) exchange.addFixup(fixup);
  const context = codec.replyContext(incoming.body);
  /** The very same body where nothing had to change. */
  const fixReply = (json: JsonObject): JsonObject => {
    const mended = codec.fixReply(json, context);
    for (const fixup of mended.fixups) exchange.addFixup(fixup);
    return mended.fixups.length === 0 ? json : mended.body;
  };
  const gather = () => {
    const collector = codec.collectStream(exchange.addFixup);
    let last: ReplyEvent | undefined;
    const watch = codec.decodeStream(context)({
      push(event) {
        last = event;
        exchange.addEvent(event);
      },
      end() {},
    });
    return {
      feed: {
        push(frame: SseFrame) {
          if (last?.type === "finish" || last?.type === "error") return;
          collector.push(frame);
          watch.push(frame);
        },
        end: () => watch.end(),
      },
      text() {
        if (last?.type === "error") throw new BrokenReply(last, exchange.earlyError === undefined);
        return JSON.stringify(fixReply(collector.body()));
      },
    };
  };
  return {
    who: "GitHub Copilot",
    body: sent,
    stream: incoming.stream || gathers,
    headers: own?.headers ?? {},
    repaired: codec.repairRequest && (() => repairedText(codec.repairRequest!, bodyText(sent))),
    fitTools(text) {
      const parsed = parseSpelt(text);
      const fitted = isObject(parsed) ? codec.repairTools(parsed) : undefined;
      for (const fixup of fitted?.fixups ?? []) exchange.addFixup(fixup);
      exchange.addDropped(fitted?.dropped ?? []);
      return fitted && editMembers(text, fitted.set, []);
    },
    full(text, json) {
      for (const event of codec.decodeReply(json)) exchange.addEvent(event);
      const mended = fixReply(json);
      return mended === json ? text : editedTo(text, json, mended);
    },
    collect: gather,
    stages(out) {
      let last: SseFrame | undefined;
      const client = codec.fixStream(
        context,
        exchange.addFixup,
      )({
        push(frame) {
          last = frame;
          out.push(frame);
        },
        end: () => out.end(),
      });
      // The decoder only watches, for the books; but a reply it cannot follow must not end as if it were complete.
      let broken: ReplyError | undefined;
      let block: Block | undefined;
      let events = 0;
      let words: string | undefined;
      const watch = codec.decodeStream(context)({
        push(event) {
          events++;
          if (event.type === "block-delta") words = event.text;
          else if (event.type === "block-start") block = event.block;
          else if (event.type === "error") broken = event;
          exchange.addEvent(event);
        },
        end() {},
      });
      let repeat: DeltaTemplate | undefined;
      return {
        client: {
          keepAlive() {
            // What is said between may change what must be mended.
            repeat = undefined;
            client.keepAlive();
          },
          fail: client.fail,
        },
        feed: {
          push(frame) {
            if (frame.template !== undefined) return client.push(frame);
            events = 0;
            words = undefined;
            watch.push(frame);
            if (broken?.code === invalidEventCode) client.fail(broken);
            else client.push(frame);
            // More of the same words change nothing in the books and need no mend. A call's are watched until it is whole.
            const isPlain = events === 1 && words !== undefined && block?.kind !== "tool-call" && last === frame;
            repeat = isPlain ? deltaTemplate(frame, words!) : undefined;
          },
          pushDelta: () => repeat,
          end() {
            watch.end();
            client.end();
          },
        },
      };
    },
  };
}

/**
 * For an upstream that speaks the messages dialect in its own way: every byte as it came, both ways. The decoder only
 * watches; what it does not know is none of its business. A stream that is cut or is no JSON ends with an error.
 */
export function untouched(incoming: Incoming, exchange: RequestRecord, who: string): UpstreamCall {
  const codec = codecs.messages;
  return {
    who,
    body: incoming.bytes,
    stream: incoming.stream,
    headers: {},
    full(text, json) {
      for (const event of codec.decodeReply(json)) if (event.type !== "error") exchange.addEvent(event);
      return text;
    },
    stages(out) {
      const own = codec.fixStream(codec.replyContext(incoming.body), exchange.addFixup)(out);
      /** How the frame that is being read ends the stream, if it does. */
      let end: ReplyEvent | undefined;
      const watch = codec.decodeStream()({
        push(event) {
          if (event.type !== "error" || end?.type === "error") exchange.addEvent(event);
        },
        end() {},
      });
      const breakOff = (error: Omit<ReplyError, "type">) => {
        if (exchange.isOver) return;
        const told = { type: "error" as const, ...error };
        own.fail(told);
        exchange.addEvent(told);
      };
      return {
        client: { keepAlive: own.keepAlive, fail: breakOff },
        feed: {
          push(frame) {
            if (frame.data && frame.data !== "[DONE]" && !isObject(jsonOf(frame))) return breakOff(notJson(who));
            end = codec.endIn?.(frame);
            watch.push(frame);
            // For the books, where the decoder had lost the thread.
            if (end && !exchange.isOver) exchange.addEvent(end);
            out.push(frame);
          },
          end: () => breakOff(cutReply),
        },
      };
    },
  };
}

function repairedText(repair: (body: JsonObject) => JsonObject, text: string): string {
  const body = parseSpelt(text);
  return isObject(body) ? editedTo(text, body, repair(body)) : text;
}

const notJson = (who: string) => ({ code: "upstream_invalid", message: `${who} sent an event that is not JSON.` });
