/** What the servers of a team tell each other about their accounts, so that each is asked about once and all know the answer. */

import type { AccountState, Cooling } from "./account-state";
import type { FreshToken, Unavailable } from "./copilot-token";
import type { Quota } from "./quota";

/** Of one account: its state, and the models that cool down by themselves. */
export interface SharedState {
  account: AccountState;
  models: Record<string, Cooling>;
}

export interface AccountUpdate {
  state?: SharedState;
  quota?: Quota;
}

/** What was found out with one sign-in says nothing about a later one of the same account. */
export interface SharedSignIn {
  /** The account's key. */
  key: string;
  /** Distinguishes the sign-ins of an account. */
  signIn: string;
}

/** @param secret Of the sign-in. It cannot be found out from the result. */
export const signInOf = (secret: string): string =>
  new Bun.CryptoHasher("sha256").update(`a sign-in\0${secret}`).digest("hex").slice(0, 16);

export interface AccountSync {
  /**
   * The token that another server has stored, unless it is due; else the result of an exchange, which only one server makes
   * at a time.
   * @param refused The token that the model host has refused: a stored token with it is not used.
   */
  copilotToken(
    account: SharedSignIn,
    refused: string | undefined,
    exchange: () => Promise<FreshToken | Unavailable>,
  ): Promise<FreshToken | Unavailable>;
  /** Tells the others what this server has found out. Never throws, never waits. */
  publish(account: SharedSignIn, found: AccountUpdate): void;
  /** What is known of an account with this sign-in. */
  cached(account: SharedSignIn): AccountUpdate;
  /** Calls back with what another server has found out. */
  follow(listener: (account: SharedSignIn, found: AccountUpdate) => void): void;
}

/** Milliseconds before its end at which a token is renewed. */
export const renewBefore = 60_000;
