/** An account's present token and host. */
import type { Mode } from "./hosts";

/** What the model host wants to see. Compared by identity: another object is another session. */
export interface Session {
  /** The bearer: a Copilot token, or the GitHub token itself in direct mode. */
  readonly token: string;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly mode: Mode;
  /** ms timestamp by GitHub's clock, for display; missing if GitHub did not state it. */
  readonly expiresAt?: number;
}

/** A session and its lifetime, in ms from now. */
export interface FreshSession {
  session: Session;
  /** Certainly accepted until then; some tokens are refused afterwards, long before their stated end. */
  freshFor: number;
  lifetime: number;
}

/** GitHub cannot issue a session now. `after`: ms to wait, if GitHub says so. */
export interface Unavailable {
  reason: string;
  after?: number;
  cause?: unknown;
}
