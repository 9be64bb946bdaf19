/** Same dialect: the client's bytes go up and the upstream's bytes come down, but for the named mends. */

import { codecs, type Wishes } from "../dialects/codecs";
import type { Conversation, Dialect, JsonObject } from "../dialects/hub/conversation";
import { rest } from "../dialects/hub/json";
import type { Block, ReplyError, ReplyEvent } from "../dialects/hub/reply";
import { wordsApart } from "../dialects/hub/words-apart";
import { badEventCode, cutReply } from "../dialects/hub/writer";
import { isObject, parseSpelt } from "../json";
import { editedTo, editMembers } from "../net/json-edit";
import { jsonOf, type Repeat, type SseFrame } from "../net/sse";
import { BrokenReply } from "./answer";
import type { Call } from "./call";
import type { Exchange } from "./exchange";
import { type Incoming, textOf } from "./incoming";
import { needsStream, type Target } from "./target";

/**
 * A full reply that the model gives as a stream only is asked for as one, and gathered.
 * @param clientHeaders Some of them go up with a body of this dialect.
 * @param conversation What was asked, where it could be read.
 */
export function passthrough(
  incoming: Incoming,
  dialect: Dialect,
  target: Target,
  exchange: Exchange,
  wishes: Wishes,
  clientHeaders: Headers,
  conversation?: Conversation,
): Call {
  const codec = codecs[dialect];
  const gathers = !incoming.stream && conversation !== undefined && needsStream(conversation, target);
  const wanted = gathers ? { ...incoming.body, stream: true } : incoming.body;
  const { set, remove, mends, dropped } = codec.mendRequest(wanted, target.model, wishes);
  if (dropped) exchange.dropped(dropped);
  if (gathers) {
    set.stream = true;
    mends.push("stream-gathered");
  }
  const sent = mends.length === 0 ? incoming.bytes : editMembers(textOf(incoming.bytes), set, remove);
  const body = mends.length === 0 ? incoming.body : { ...rest(incoming.body, new Set(remove)), ...set };
  const own = codec.requestHeaders?.(clientHeaders, body, target.model);
  for (const mend of [...mends, ...(own?.mends ?? [])]) exchange.mended(mend);
  const asked = codec.asked(incoming.body);
  /** The very same body where nothing had to change. */
  const mendReply = (json: JsonObject): JsonObject => {
    const mended = codec.mendReply(json, asked);
    for (const mend of mended.mends) exchange.mended(mend);
    return mended.mends.length === 0 ? json : mended.body;
  };
  const gather = () => {
    const collector = codec.collectStream(exchange.mended);
    let last: ReplyEvent | undefined;
    const watch = codec.decodeStream(asked)({
      push(event) {
        last = event;
        exchange.see(event);
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
        if (last?.type === "error") throw new BrokenReply(last, exchange.brokenAtOnce === undefined);
        return JSON.stringify(mendReply(collector.body()));
      },
    };
  };
  return {
    who: "GitHub Copilot",
    body: sent,
    stream: incoming.stream || gathers,
    headers: own?.headers ?? {},
    repaired: codec.repairRequest && (() => repairedText(codec.repairRequest!, textOf(sent))),
    fitTools(text) {
      const parsed = parseSpelt(text);
      const fitted = isObject(parsed) ? codec.repairTools(parsed) : undefined;
      for (const mend of fitted?.mends ?? []) exchange.mended(mend);
      exchange.dropped(fitted?.dropped ?? []);
      return fitted && editMembers(text, fitted.set, []);
    },
    full(text, json) {
      for (const event of codec.decodeReply(json)) exchange.see(event);
      const mended = mendReply(json);
      return mended === json ? text : editedTo(text, json, mended);
    },
    collect: gather,
    stages(out) {
      let last: SseFrame | undefined;
      const client = codec.mendStream(
        asked,
        exchange.mended,
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
      const watch = codec.decodeStream(asked)({
        push(event) {
          events++;
          if (event.type === "block-delta") words = event.text;
          else if (event.type === "block-start") block = event.block;
          else if (event.type === "error") broken = event;
          exchange.see(event);
        },
        end() {},
      });
      let repeat: Repeat | undefined;
      return {
        client: {
          beat() {
            // What is said between may change what must be mended.
            repeat = undefined;
            client.beat();
          },
          fail: client.fail,
        },
        feed: {
          push(frame) {
            if (frame.repeats !== undefined) return client.push(frame);
            events = 0;
            words = undefined;
            watch.push(frame);
            if (broken?.code === badEventCode) client.fail(broken);
            else client.push(frame);
            // More of the same words change nothing in the books and need no mend. A call's are watched until it is whole.
            const isPlain = events === 1 && words !== undefined && block?.kind !== "tool-call" && last === frame;
            repeat = isPlain ? wordsApart(frame, words!) : undefined;
          },
          repeat: () => repeat,
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
export function untouched(incoming: Incoming, exchange: Exchange, who: string): Call {
  const codec = codecs.messages;
  return {
    who,
    body: incoming.bytes,
    stream: incoming.stream,
    headers: {},
    full(text, json) {
      for (const event of codec.decodeReply(json)) if (event.type !== "error") exchange.see(event);
      return text;
    },
    stages(out) {
      const own = codec.mendStream(codec.asked(incoming.body), exchange.mended)(out);
      /** How the frame that is being read ends the stream, if it does. */
      let end: ReplyEvent | undefined;
      const watch = codec.decodeStream()({
        push(event) {
          if (event.type !== "error" || end?.type === "error") exchange.see(event);
        },
        end() {},
      });
      const breakOff = (error: Omit<ReplyError, "type">) => {
        if (exchange.isOver) return;
        const told = { type: "error" as const, ...error };
        own.fail(told);
        exchange.see(told);
      };
      return {
        client: { beat: own.beat, fail: breakOff },
        feed: {
          push(frame) {
            if (frame.data && frame.data !== "[DONE]" && !isObject(jsonOf(frame))) return breakOff(notJson(who));
            end = codec.endIn?.(frame);
            watch.push(frame);
            // For the books, where the decoder had lost the thread.
            if (end && !exchange.isOver) exchange.see(end);
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
