/** One call to the upstream and the way back of its answer; made by passthrough or translation, run by `relay`. */

import type { ReplyWatch } from "../../books/changes/drift";
import type { ClientSink, Codec, FullReply, TranslationOptions } from "../../dialects/codec";
import type { Beat } from "../../dialects/hub/beat";
import type { Dialect } from "../../dialects/hub/conversation";
import type { ModelFacts } from "../../dialects/hub/model";
import type { Body } from "../../lib/net/in/request-body";
import type { CallResponse, ResponseBody } from "../../lib/net/out/body";
import type { SseFrame } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";
import type { Account } from "../../people/accounts/account";
import type { CopilotCall } from "../upstream/copilot/copilot";
import type { RunningRequest } from "./running-request";
import type { Target } from "./target";

export interface UpstreamCall {
  /** Who is called, for messages: `GitHub Copilot`. */
  who: string;
  /** The request body for the upstream. */
  body: Body;
  /** Whether the upstream is asked for a stream; it may be even if the client asked for a full reply. */
  stream: boolean;
  /** Headers of this upstream dialect only. */
  headers: Record<string, string>;
  reply: UpstreamReply;
}

/** The way back of the answer. */
export interface UpstreamReply {
  /** @param next Gets the beats of the whole reply: one of the writers. */
  open(first: Answer, next: Sink<Beat>): Reading;
  /** The writer of a stream. */
  stream(out: Sink<SseFrame>): ClientSink<Beat>;
  /** The writer of a full reply, whose `text` throws BrokenReply where the reply failed. */
  full(): FullReply;
}

/** The upstream's answer. */
export interface Answer {
  body: ResponseBody;
  /** Whether it is a stream; else it is a full reply. */
  isStream: boolean;
  /** Looks at what is new in it. */
  watch?: ReplyWatch;
}

/** How an answer is read: the body, which goes on with those of further answers, and where its bytes go. */
export interface Reading {
  body: ResponseBody;
  bytes: Sink<Uint8Array> & {
    /** Takes all of a full reply in place of its bytes; missing where further answers may follow. */
    takeText?(text: string): void;
  };
}

/** By which a request of an upstream's dialect is changed after it was refused. */
export interface BodyRules {
  codec: Codec;
  dialect: Dialect;
  model: ModelFacts;
  options: TranslationOptions;
  /** The client's, if it speaks the dialect too; undefined where the upstream gets them as they are. */
  clientHeaders: Headers | null | undefined;
}

/** What is sent, whichever account serves it. */
export type Outgoing = Pick<CopilotCall, "path" | "intent" | "initiator" | "vision" | "headers" | "limits"> &
  Required<Pick<CopilotCall, "body">> & {
    /** How the body is changed after it was refused; missing where it is no request for a reply. */
    rules?: BodyRules;
    /** The account that is asked first if it can serve. */
    preferredAccount?: Account;
    /** The conversation and the client's session, where later requests of them prefer the account that serves this one. */
    marks?: readonly string[];
    /** The client speaks the dialect of the provider, which then gets a few of its headers. */
    passesHeaders?: boolean;
    /** A provider gets the body as it is, and the client gets the provider's errors as they are. */
    isVerbatim?: boolean;
  };

/** One request that is being sent. */
export interface Dispatch<Answer> {
  target: Target;
  outgoing: Outgoing;
  running: RunningRequest;
  /** The client's request; missing for a call of dragoman's own. */
  request?: Request;
  /** Makes the result of a successful answer whose body is unread. @throws BrokenReply when the body is an error. */
  accept(response: CallResponse): Promise<Answer>;
}
