/** The model host takes no token of this kind: a person has to sign in in another way, or to change a setting at GitHub. */
import {
  personalTokenReason,
  personalTokenWords,
  serverTokenReason,
  serverTokenWords,
} from "../../../people/accounts/token-exchange";
import type { FailureRow } from "./failure-row";

const refusedToken = {
  state: "failed",
  remedy: "next-account",
  kind: "no_account",
  clientStatus: 503,
} as const;

export const refusedTokenRows: FailureRow[] = [
  {
    status: [401],
    words: /Personal Access Token does not have Copilot Requests permission/i,
    ...refusedToken,
    sentence: "Sign in again, on the page Accounts or with `dragoman auth`.",
  },
  { status: [400, 403], words: personalTokenWords, ...refusedToken, sentence: personalTokenReason },
  { status: [400, 403], words: serverTokenWords, ...refusedToken, sentence: serverTokenReason },
];
