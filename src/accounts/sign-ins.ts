/** Sign-ins that a page or the admin API has begun. Each runs on one server at a time until it ends; its state can be asked for. */
import type { Awaitable } from "../awaitable";
import { asProxyError, ProxyError } from "../errors";
import type { Logger } from "../logger";
import type { Account } from "./account";
import { type AccountStore, accountKeyOf } from "./account-store";
import { type Hosts, type SignInApp, signInApp } from "./hosts";
import type { DeviceGrant, SignInSteps } from "./sign-in";
import {
  type BegunSignIn,
  maxRecent,
  maxWaiting,
  type SignInStore,
  tooManyRecent,
  tooManySignIns,
  type WaitingSignIn,
} from "./sign-in-store";

export interface SignIns {
  /** Settles when there is a code to show. @throws ProxyError if GitHub gives none, or too many wait already, or have begun */
  begin(wanted: { host: string | undefined; app: SignInApp; member?: string }): Promise<BegunSignIn>;
  /** @throws ProxyError as `SignInStore.find` */
  find(id: string): Awaitable<BegunSignIn | undefined>;
  /** Those of one member, or of the owner (null), that wait for a person. */
  waiting(member: string | null): BegunSignIn[];
  /** @returns False if there is no such sign-in. @throws ProxyError as `SignInStore.cancel` */
  cancel(id: string): Awaitable<boolean>;
  close(): void;
}

export interface SignInsOptions {
  hosts(name?: string): Hosts;
  version: string;
  store: AccountStore;
  kept: SignInStore;
  logger: Logger;
  /** Wall clock, ms. */
  now(): number;
  sleep?: SignInSteps["sleep"];
  /** An account was saved. */
  saved(): void;
  /** The active account of this key. */
  account(key: string): Account | undefined;
}

/** One sign-in from its first call on, or from where another server left it. */
interface Course {
  id: string;
  place: Hosts;
  app: SignInApp;
  member: string | null;
  device?: DeviceGrant;
  show: SignInSteps["show"];
}

export function openSignIns(options: SignInsOptions): SignIns {
  const { hosts, version, store, kept, logger, now, sleep } = options;
  const running = new Map<string, AbortController>();
  /** Those that have no code yet, by their id: whose they are. */
  const starting = new Map<string, string | null>();
  const startingOf = (wanted: string | null) => [...starting.values()].filter((member) => member === wanted);

  /** Runs the sign-in up to the saved account. */
  async function complete({ id, place, app, member, device, show }: Course, signal: AbortSignal): Promise<void> {
    // Most servers never need it.
    const { completeSignIn } = await import("./complete-sign-in");
    const accounts: Pick<AccountStore, "prepare" | "add"> = {
      prepare: (host) => store.prepare(host),
      async add(account) {
        if (!(await kept.isMine(id))) throw new ProxyError("conflict", "The sign-in was cancelled.");
        return store.add(account);
      },
    };
    const steps = { hosts: place, version, app, show, device, signal, sleep };
    const { saved, outcome } = await completeSignIn(steps, accounts, member ?? undefined);
    options.saved();
    logger.info(`${saved.login} at ${saved.host} was signed in on a page or by the admin API.`);
    const accountKey = accountKeyOf(saved);
    const fault = await faultOf(options.account(accountKey));
    await kept.settle(id, { name: "done", login: saved.login, accountKey, outcome, fault });
  }

  /** @param early Called with the error if the sign-in ends before it is kept. */
  async function run(course: Course, early?: (thrown: unknown) => void): Promise<void> {
    const { id } = course;
    const controller = new AbortController();
    running.set(id, controller);
    try {
      await complete(course, controller.signal);
    } catch (thrown) {
      if (starting.has(id)) early?.(thrown);
      else if (!controller.signal.aborted)
        await kept.settle(id, { name: "failed", reason: asProxyError(thrown).message });
    } finally {
      starting.delete(id);
      if (running.get(id) === controller) running.delete(id);
    }
  }

  kept.follow({
    stop: (id) => running.get(id)?.abort(),
    resume({ id, host, app, member, device, expiresAt }: WaitingSignIn) {
      running.get(id)?.abort();
      logger.info(`A sign-in at ${host} that another server began goes on here.`);
      const expiresIn = Math.max(0, (expiresAt - now()) / 1_000);
      void run({ id, place: hosts(host), app: signInApp(app), member, device: { ...device, expiresIn }, show() {} });
    },
  });

  return {
    begin({ host, app, member = null }: { host: string | undefined; app: SignInApp; member?: string | null }) {
      if (kept.waiting(member).length + startingOf(member).length >= maxWaiting)
        return Promise.reject(tooManySignIns());
      if (member !== null && kept.recent(member) + startingOf(member).length >= maxRecent)
        return Promise.reject(tooManyRecent());
      const { promise, resolve, reject } = Promise.withResolvers<BegunSignIn>();
      const id = crypto.getRandomValues(Buffer.alloc(16)).toString("base64url");
      const place = hosts(host);
      const show: SignInSteps["show"] = async (code, device) => {
        const expiresAt = now() + code.expiresIn * 1000;
        const begun = { id, host: place.name, app: app.name, member, code, expiresAt };
        const isHere = await kept.add({ ...begun, device });
        starting.delete(id);
        resolve({ ...begun, state: { name: "waiting" } });
        if (!isHere) running.get(id)?.abort();
      };
      starting.set(id, member);
      void run({ id, place, app, member, show }, reject);
      return promise;
    },
    find: (id) => kept.find(id),
    waiting: (member) => kept.waiting(member),
    cancel: (id) => kept.cancel(id),
    close() {
      for (const controller of running.values()) controller.abort();
      kept.close();
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
