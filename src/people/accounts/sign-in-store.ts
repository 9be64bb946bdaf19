/** Where sign-ins are kept that wait for a person, so that their state can be asked for until a while after they have ended. */
import type { Awaitable } from "../../lib/awaitable";
import { BoundedMap } from "../../lib/bounded-map";
import { ProxyError } from "../../lib/errors";
import type { ShownCode } from "./sign-in";

export interface BegunSignIn {
  /** Random; whoever knows it may see the code. */
  readonly id: string;
  readonly host: string;
  readonly app: string;
  /** The id of the member whose account it will be; null for the owner's. */
  readonly member: string | null;
  readonly code: ShownCode;
  /** Wall clock, ms. */
  readonly expiresAt: number;
  readonly state: SignInState;
}

export type SignInState =
  | { name: "waiting" }
  /** `fault`: why the account, though saved, cannot be used yet, as a sentence. */
  | { name: "done"; login: string; accountKey: string; outcome: "added" | "replaced"; fault: string | undefined }
  | { name: "failed"; reason: string }
  | { name: "cancelled" };

/** A sign-in when it begins to wait. */
export type WaitingSignIn = Omit<BegunSignIn, "state">;

export interface SignInStore {
  /**
   * Keeps a sign-in that this server has begun.
   * @throws ProxyError `conflict` if too many of this person wait; `unable`
   */
  add(signIn: WaitingSignIn): Awaitable<void>;
  /** @throws ProxyError `unable` if it is not known here and cannot be asked for now. */
  find(id: string): Awaitable<BegunSignIn | undefined>;
  /** Those of one member, or of the owner (null), that wait for a person. */
  waiting(member: string | null): BegunSignIn[];
  /** How many of a member are kept, those that have ended too. */
  recent(member: string): number;
  /** Whether it still waits. @throws ProxyError `unable` */
  waits(id: string): Awaitable<boolean>;
  /** How a sign-in of this server has ended. A failure does not change one that was cancelled. Never throws. */
  settle(id: string, state: SignInState): Awaitable<void>;
  /** @returns False if there is no such sign-in. @throws ProxyError `unable` */
  cancel(id: string): Awaitable<boolean>;
  /** @param stop Called with each sign-in that was cancelled. */
  follow(stop: (id: string) => void): void;
  close(): void;
}

/** Each waiting sign-in of a person polls GitHub. */
export const maxWaiting = 4;
/** Each asks GitHub for a code, which GitHub limits for all that come from one address. */
export const maxRecent = 20;
const maxKept = 32;

export const tooManySignIns = () =>
  new ProxyError("conflict", `${maxWaiting} sign-ins wait for a person. Finish or cancel one of them first.`, {
    code: "too_many_sign_ins",
  });

export const tooManyRecent = () =>
  new ProxyError(
    "rate_limit",
    `${maxRecent} of your sign-ins have begun a short while ago. Try again in ten minutes.`,
    {
      headers: { "retry-after": "600" },
    },
  );

/** For one process: they end with it. */
export function openMemorySignIns(): SignInStore {
  let stop = (_: string) => {};
  const all = new BoundedMap<string, BegunSignIn>(maxKept, ({ id }) => stop(id));
  const waits = (id: string) => all.get(id)?.state.name === "waiting";
  /** Its place among the others stays. */
  const set = (id: string, state: SignInState) => {
    const found = all.get(id);
    if (found) Object.assign(found, { state });
  };
  return {
    add(signIn) {
      all.set(signIn.id, { ...signIn, state: { name: "waiting" } });
    },
    find: (id) => all.get(id),
    waiting: (member) => [...all.values()].filter(({ id, member: of }) => of === member && waits(id)),
    recent: (member) => [...all.values()].filter((each) => each.member === member).length,
    waits,
    settle(id, state) {
      if (state.name === "done" || waits(id)) set(id, state);
    },
    cancel(id) {
      if (waits(id)) set(id, { name: "cancelled" });
      stop(id);
      return all.has(id);
    },
    follow(given) {
      stop = given;
    },
    close() {
      for (const id of all.keys()) if (waits(id)) set(id, { name: "cancelled" });
    },
  };
}
