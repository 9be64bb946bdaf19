/**
 * The reply beside a tool that runs here, for a client of the upstream's own dialect: until the model uses a tool, the client
 * gets the upstream's bytes, as if there were no such tool. Only then is it written anew.
 */
import type { ClientSink } from "../dialects/codecs";
import type { ReplyError, ReplyEvent } from "../dialects/hub/reply";
import { isObject, notJson, parseWithSource } from "../json";
import type { SseFrame } from "../net/stream/sse";
import type { Sink } from "../net/stream/stream";
import type { PassedReply } from "./passthrough";
import { type Answer, readFrames } from "./upstream-call";

/**
 * A full reply.
 * @param isUsed Whether the model has used a tool that runs here.
 * @throws ProxyError `upstream` from `end` if it is no JSON.
 */
export function fullUnused(reply: PassedReply, isUsed: () => boolean, who: string, watch: Answer["watch"]) {
  const pieces: Uint8Array[] = [];
  let text = "";
  let json: Record<string, unknown> | undefined;
  return {
    /** The sink for the bytes, which pass on the events of the reply. */
    bytes: (events: Sink<ReplyEvent>): Sink<Uint8Array> => ({
      push: (piece) => void pieces.push(piece),
      end() {
        text = new TextDecoder().decode(Buffer.concat(pieces));
        const parsed = parseWithSource(text);
        if (!isObject(parsed)) throw notJson(`${who}'s answer`);
        json = parsed;
        watch?.full(parsed);
        for (const event of reply.codec.decodeReply(parsed)) events.push(event);
      },
    }),
    /** The upstream's own text; undefined where the reply has to be written. */
    text: () => (json && !isUsed() ? reply.fixed(text, json) : undefined),
  };
}

/**
 * A stream.
 * @param isUsed As in {@link fullUnused}.
 * @param write Opens the writer of the events.
 */
export function streamUnused(
  reply: PassedReply,
  isUsed: () => boolean,
  write: (out: Sink<SseFrame>) => ClientSink<ReplyEvent>,
  out: Sink<SseFrame>,
  answer: Pick<Answer, "watch">,
) {
  const { codec, context, running } = reply;
  const { record } = running;
  let isWritten = false;
  /** The frames that the writer has made of the upstream's present one. */
  let made: SseFrame[] = [];
  const writer = write({ push: (frame) => (isWritten ? out.push(frame) : void made.push(frame)), end() {} });
  let passed: ClientSink<SseFrame> | undefined;
  const client = () => (isWritten ? writer : passed);
  return {
    /** The writer, which is given all events. */
    writer,
    bytes(events: Sink<ReplyEvent>): Sink<Uint8Array> {
      const unchanged: Sink<SseFrame> = { push: (frame) => void (isUsed() || out.push(frame)), end() {} };
      const onFixup = (name: string) => void (isWritten || record.addFixup(name));
      const stage = codec.fixStream(context, onFixup, events)(unchanged);
      passed = stage;
      return readFrames(answer, {
        push(frame) {
          made = [];
          stage.push(frame);
          if (isWritten || !isUsed()) return;
          isWritten = true;
          for (const each of made) out.push(each);
        },
        end() {
          made = [];
          stage.end();
        },
      });
    },
    client: {
      keepAlive: () => client()?.keepAlive(),
      fail: (error: ReplyError) => client()?.fail(error),
    },
  };
}
