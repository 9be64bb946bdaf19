/** What arrived, and how a test can answer it itself. */
import type { HostName } from "./accounts";

/** One request as it arrived, and what became of it. */
export interface Seen {
  /** ms */
  at: number;
  host: HostName;
  method: string;
  path: string;
  query: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  /** Parsed JSON, or the text. */
  body: unknown;
  /** The body exactly as it was received. */
  bytes: Uint8Array;
  account?: string;
  status?: number;
  /** ms: when the caller hung up before the answer was complete. */
  aborted?: number;
}

export type Interceptor = (seen: Seen, request: Request) => Response | undefined | Promise<Response | undefined>;

export interface Interception {
  path: string | RegExp;
  answer: Interceptor;
  times: number;
}

/** Everything the listeners write down and look up. */
export interface Desk {
  remember(seen: Seen): void;
  interceptions: Interception[];
}
