/** What the table of failures says of an error of GitHub Copilot. */
import type { ErrorKind } from "../../../lib/errors";

export interface FailureRow {
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
  /** What to try; nothing when missing. `renew-token-or-host` sends the request again even if the token and the host stay the same. */
  remedy?:
    | "renew-token"
    | "renew-token-or-host"
    | "relearn-host"
    | "next-account"
    | "repair"
    | "fit-tools"
    | "free-choice"
    | "fold-system";
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
  /** What the error means, where there is no `sentence`: it is written down, and the client has the upstream's message. */
  meaning?: string;
  /** What to do. */
  hint?: string;
}
