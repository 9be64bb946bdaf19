/** One call to the upstream and the way back of its answer; made by passthrough or translation, run by `relay`. */
import type { ClientSink, TranslationOptions } from "../dialects/codecs";
import type { JsonObject } from "../dialects/hub/conversation";
import type { ResponseBody } from "../net/out/body";
import type { SseFrame } from "../net/stream/sse";
import type { Sink } from "../net/stream/stream";

export interface UpstreamCall {
  /** Who is called, for messages: `GitHub Copilot`. */
  who: string;
  /** The request body for the upstream. */
  body: string | Uint8Array;
  /** Whether the upstream is asked for a stream; it may be even if the client asked for a full reply. */
  stream: boolean;
  /** Headers of this upstream dialect only. */
  headers: Record<string, string>;
  /** The same body without the parts that only another account can read; sent once when the upstream asks for it. */
  repaired?: () => string | Uint8Array;
  /** The body and headers without a beta that was refused and its fields; undefined where one of them is essential. */
  withoutBeta?(beta: string): Pick<UpstreamCall, "body" | "headers"> | undefined;
  /** The body with simplified tool schemas, for a retry after one was refused; undefined where nothing can be changed. */
  fitTools?(body: string): string | undefined;
  /** The text of a full reply for the client. @param text The upstream's reply. @param json The same, parsed. */
  full(text: string, json: JsonObject): string;
  /** Makes a full reply of a stream: its frames go into `feed`, then `text` returns the reply. */
  collect?(): { feed: Sink<SseFrame>; text(): string };
  /** The content type of the stream to the client, if it is not an event stream. */
  streamType?: string;
  /** The stages from the upstream's frames to the client's. */
  stages(out: Sink<SseFrame>): { feed: Sink<SseFrame>; client: Pick<ClientSink<never>, "keepAlive" | "fail"> };
  /** Set if tools may run while the model answers: the reply then goes on with further answers of the upstream. */
  turns?: TurnedReply;
}

/** Reads a reply of several answers of the upstream. Each function is given the body of the first one. */
export interface TurnedReply {
  /** @param isStream Whether the first answer is a stream; else it is a full reply. */
  collect(first: ResponseBody, isStream: boolean): TurnedBody & { text(): string };
  stages(first: ResponseBody, out: Sink<SseFrame>): TurnedBody & Pick<ReturnType<UpstreamCall["stages"]>, "client">;
}

/** The bodies of all answers as one, and where their bytes go. */
interface TurnedBody {
  body: ResponseBody;
  bytes: Sink<Uint8Array>;
}

/**
 * What is sent without a beta that was refused; undefined where a field that the request cannot be without needs it.
 * @param prepare Makes body and headers anew.
 */
export function withoutBeta<Sent extends Pick<UpstreamCall, "headers">>(
  beta: string,
  options: TranslationOptions,
  prepare: (options: TranslationOptions) => Sent,
): Sent | undefined {
  const sent = prepare({ ...options, refusedBetas: [...(options.refusedBetas ?? []), beta] });
  return Object.values(sent.headers).some((value) => value.includes(beta)) ? undefined : sent;
}
