/** What passthrough and translation have in common: both make a call of this shape, and `relay` runs it. */
import type { ClientSink } from "../dialects/codecs";
import type { JsonObject } from "../dialects/hub/conversation";
import type { FrameSink, SseFrame } from "../net/sse";
import type { Sink } from "../net/stream";

export interface UpstreamCall {
  /** Who is asked, for sentences. */
  who: string;
  /** What the upstream is sent. */
  body: string | Uint8Array;
  /** Whether the upstream is asked for a stream; it may be although the client is not. */
  stream: boolean;
  /** Headers only this upstream dialect has. */
  headers: Record<string, string>;
  /** The same body without what only another account could read. */
  repaired?: () => string;
  /** A body with tool schemas that are not refused, for a retry when one was; undefined where there is nothing to mend. */
  fitTools?(body: string): string | undefined;
  /** A full reply for the client: its text, given the upstream's text and JSON. */
  full(text: string, json: JsonObject): string;
  /** A streamed reply for a client that asked for a full one: where its frames go, and then its text. */
  collect?(): { feed: FrameSink; text(): string };
  /** The chain from the upstream's frames to the client's. */
  stages(out: Sink<SseFrame>): { feed: FrameSink; client: Pick<ClientSink<never>, "keepAlive" | "fail"> };
}
