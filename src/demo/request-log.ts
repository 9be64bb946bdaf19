/** The journal of requests, and answers that tests give themselves. */
import type { HostName } from "./accounts";

/** One request, and how it ended. */
export interface SeenRequest {
  /** ms */
  at: number;
  host: HostName;
  method: string;
  path: string;
  query: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  /** The parsed JSON; the text if it is not JSON. */
  body: unknown;
  /** The body exactly as it was received. */
  bytes: Uint8Array;
  account?: string;
  /** The WebSocket that it came over, counted from 1. */
  socket?: number;
  status?: number;
  /** The time (ms) at which the caller hung up, if that was before the end of the answer. */
  aborted?: number;
}

export type Interceptor = (seen: SeenRequest, request: Request) => Response | undefined | Promise<Response | undefined>;

export interface Interception {
  path: string | RegExp;
  answer: Interceptor;
  times: number;
}

/** The state that the listeners share. */
export interface RequestLog {
  remember(seen: SeenRequest): void;
  interceptions: Interception[];
}
