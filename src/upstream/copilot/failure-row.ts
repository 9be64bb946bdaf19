/** An error of GitHub Copilot, and what the table of failures says of it. */
import type { ErrorKind } from "../../errors";

export interface UpstreamError {
  code: string;
  message: string;
  param?: string;
  /** The body is a page for a browser, as something on the way to GitHub answers it. Its words are not read. */
  isPage?: boolean;
}

export interface FailureRow {
  /** An answer that this row is for. */
  example: readonly [status: number, code: string, message: string, param?: string];
  status: number[];
  /** Matches the error's code. GitHub appends `:plan` to some, so only the beginning is compared. */
  code?: RegExp;
  /** The status that the code stands for where it comes without one: in the body of a 200. */
  stream?: number;
  /** Matches the field named by the error, in addition to `code`. */
  param?: RegExp;
  /**
   * Matches the message. Beside `code` both must match, and such a row goes before those that match the code alone: some
   * codes say less than their text. Without `code` it counts if no row of this status matches the code.
   */
  words?: Pick<RegExp, "test">;
  /** What to try; nothing when missing. `renew-session` sends the request again even if the session stays the same. */
  remedy?: "refresh-session" | "renew-session" | "relearn-host" | "next-account" | "repair" | "fit-tools";
  /** The new state of the account. */
  state?: "cooling" | "exhausted" | "failed";
  /** What the state applies to: this model only, or all premium models; the whole account when missing. */
  scope?: "model" | "premium";
  /** Upper limit for the wait that the answer asks for, in seconds; a day when missing. */
  maxWait?: number;
  /** The state ends when a person changes a setting at GitHub, which no answer tells in advance. */
  untilRaised?: boolean;
  /**
   * The account was refused the model, by a word that GitHub also has for a client that the account's organization does
   * not allow. `model`: the account does not have this model, whatever its list says.
   */
  denies?: "model" | "right";
  /** No account is used until a person has acted. */
  suspended?: boolean;
  kind?: ErrorKind;
  /** The status the client gets instead of the upstream's. */
  clientStatus?: number;
  /** The code the client gets instead of the upstream's. */
  clientCode?: string;
  /** The reason, appended to the upstream's message; `{until}` becomes ` until <time>` if that is known. */
  sentence?: string;
  /** What to do. */
  hint?: string;
}
