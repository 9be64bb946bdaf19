/** What lets an account's requests in at the model host: its Copilot token, with the host that takes it. */
import type { Mode } from "./hosts";

/** Compared by identity: another object is another token. */
export interface CopilotToken {
  /** The bearer: a Copilot token, or the GitHub token itself in direct mode. */
  readonly bearer: string;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly mode: Mode;
  /** What GitHub's own Copilot CLI wants to be sent with it; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** ms timestamp by GitHub's clock, for display; missing if GitHub did not state it. */
  readonly expiresAt?: number;
}

/** A token and its lifetime, in ms from now. */
export interface FreshToken {
  token: CopilotToken;
  /** Certainly accepted until then; some tokens are refused afterwards, long before their stated end. */
  freshFor: number;
  lifetime: number;
}

/** GitHub cannot issue a token now. `after`: ms to wait, if GitHub says so. */
export interface Unavailable {
  reason: string;
  after?: number;
  cause?: unknown;
}
