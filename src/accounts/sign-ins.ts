/** Sign-ins that a page or the admin API has begun. Each runs here until it ends; its state can be asked for. */
import { BoundedMap } from "../bounded-map";
import { asProxyError, ProxyError } from "../errors";
import type { Logger } from "../logger";
import type { Account } from "./account";
import { type AccountStore, accountKeyOf } from "./account-store";
import type { Hosts, SignInApp } from "./hosts";
import type { ShownCode, SignInSteps } from "./sign-in";

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

export interface SignIns {
  /** Settles when there is a code to show. @throws ProxyError if GitHub gives none, or too many wait already */
  begin(wanted: { host: string | undefined; app: SignInApp; member?: string }): Promise<BegunSignIn>;
  find(id: string): BegunSignIn | undefined;
  /** Those of one member, or of the owner (null), that wait for a person. */
  waiting(member: string | null): BegunSignIn[];
  /** @returns False if there is no such sign-in. */
  cancel(id: string): boolean;
  close(): void;
}

export interface SignInsOptions {
  hosts(name?: string): Hosts;
  version: string;
  store: AccountStore;
  logger: Logger;
  /** Wall clock, ms. */
  now(): number;
  sleep?: SignInSteps["sleep"];
  /** An account was saved. */
  saved(): void;
  /** The active account of this key. */
  account(key: string): Account | undefined;
}

/** Each waiting sign-in of a person polls GitHub. */
const maxWaiting = 4;
const maxKept = 32;

interface Running extends BegunSignIn {
  state: SignInState;
  controller: AbortController;
}

export function openSignIns(options: SignInsOptions): SignIns {
  const { hosts, version, store, logger, now, sleep } = options;
  const all = new BoundedMap<string, Running>(maxKept, ({ controller }) => controller.abort());
  const starting = new Map<AbortController, string | null>();
  const waiting = (member: string | null) =>
    [...all.values()].filter((each) => each.state.name === "waiting" && each.member === member);
  const startingOf = (wanted: string | null) => [...starting.values()].filter((member) => member === wanted);

  /** Runs the whole sign-in; resolves `shown` when there is a code. */
  async function run(wanted: Parameters<SignIns["begin"]>[0], shown: (begun: Running) => void): Promise<void> {
    const controller = new AbortController();
    const { member } = wanted;
    starting.set(controller, member ?? null);
    const place = hosts(wanted.host);
    let begun: Running | undefined;
    const show = (code: ShownCode) => {
      starting.delete(controller);
      begun = {
        id: crypto.getRandomValues(Buffer.alloc(16)).toString("base64url"),
        host: place.name,
        app: wanted.app.name,
        member: member ?? null,
        code,
        expiresAt: now() + code.expiresIn * 1000,
        state: { name: "waiting" },
        controller,
      };
      all.set(begun.id, begun);
      shown(begun);
    };
    const { signal } = controller;
    try {
      // Most servers never need it.
      const { completeSignIn } = await import("./complete-sign-in");
      const steps = { hosts: place, version, app: wanted.app, show, signal, sleep };
      const { saved, outcome } = await completeSignIn(steps, store, member);
      options.saved();
      logger.info(`${saved.login} at ${saved.host} was signed in on a page or by the admin API.`);
      const accountKey = accountKeyOf(saved);
      const fault = await faultOf(options.account(accountKey));
      begun!.state = { name: "done", login: saved.login, accountKey, outcome, fault };
    } catch (thrown) {
      starting.delete(controller);
      if (!begun) throw thrown;
      begun.state = signal.aborted ? { name: "cancelled" } : { name: "failed", reason: asProxyError(thrown).message };
    }
  }

  return {
    begin(wanted) {
      const person = wanted.member ?? null;
      if (waiting(person).length + startingOf(person).length >= maxWaiting)
        return Promise.reject(
          new ProxyError("conflict", `${maxWaiting} sign-ins wait for a person. Finish or cancel one of them first.`, {
            code: "too_many_sign_ins",
          }),
        );
      const { promise, resolve, reject } = Promise.withResolvers<BegunSignIn>();
      run(wanted, resolve).catch(reject);
      return promise;
    },
    find: (id) => all.get(id),
    waiting,
    cancel(id) {
      const found = all.get(id);
      found?.controller.abort();
      if (found?.state.name === "waiting") found.state = { name: "cancelled" };
      return found !== undefined;
    },
    close() {
      for (const controller of starting.keys()) controller.abort();
      for (const { controller } of all.values()) controller.abort();
    },
  };
}

/** Whether the new account can use Copilot: its first token is asked for. */
async function faultOf(account: Account | undefined): Promise<string | undefined> {
  try {
    await account?.session();
    return undefined;
  } catch (thrown) {
    return asProxyError(thrown).message;
  }
}
