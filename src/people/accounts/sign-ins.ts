/** Sign-ins that a page or the admin API has begun. Each runs on the server that began it; its state can be asked for. */
import type { Awaitable } from "../../lib/awaitable";
import { asProxyError, ProxyError } from "../../lib/errors";
import type { Logger } from "../../lib/logger";
import type { Account } from "./account";
import { type AccountStore, accountKeyOf, type SavedAccount } from "./account-store";
import type { Hosts, SignInApp } from "./hosts";
import type { GithubApp } from "./installation";
import type { SignInSteps } from "./sign-in";
import {
  type BegunSignIn,
  maxRecent,
  maxWaiting,
  type SignInState,
  type SignInStore,
  tooManyRecent,
  tooManySignIns,
} from "./sign-in-store";

interface SignInsOptions {
  hosts(name?: string): Hosts;
  version: string;
  store: AccountStore;
  kept: SignInStore;
  logger: Logger;
  /** Wall clock, ms. */
  now(): number;
  sleep?: SignInSteps["sleep"];
  /** A command may have removed the member while the person was at GitHub. */
  isMember(id: string): Promise<boolean>;
  /** An account was saved. */
  saved(): void;
  /** The active account of this key. */
  account(key: string): Account | undefined;
}

/** `fault`: why the account, though saved, cannot be used yet, as a sentence. */
export type AddedApp = Omit<Extract<SignInState, { name: "done" }>, "name">;

/** A sign-in as it is asked for. */
export interface Wanted {
  host: string | undefined;
  app: SignInApp;
  member?: string | undefined;
  /** Whether what it was begun by, such as a link, is still good when the person has approved it. */
  isMeant?: (() => Promise<boolean>) | undefined;
}

/** One sign-in from its first call on. */
interface Course extends Pick<Wanted, "isMeant"> {
  id: string;
  place: Hosts;
  app: SignInApp;
  member: string | null;
  show: SignInSteps["show"];
}

export class SignIns {
  readonly #options: SignInsOptions;
  readonly #running = new Map<string, AbortController>();
  /** Those that have no code yet, by their id: whose they are. */
  readonly #starting = new Map<string, string | null>();

  constructor(options: SignInsOptions) {
    this.#options = options;
    options.kept.follow((id) => this.#running.get(id)?.abort());
  }

  /** Settles when there is a code to show. @throws ProxyError if GitHub gives none, or too many wait already, or have begun */
  async begin(wanted: Wanted): Promise<BegunSignIn> {
    const { app, member = null, isMeant } = wanted;
    const { hosts, kept, now } = this.#options;
    const starting = [...this.#starting.values()].filter((other) => other === member).length;
    if (kept.waiting(member).length + starting >= maxWaiting) throw tooManySignIns();
    if (member !== null && kept.recent(member) + starting >= maxRecent) throw tooManyRecent();
    const { promise, resolve, reject } = Promise.withResolvers<BegunSignIn>();
    const id = crypto.getRandomValues(Buffer.alloc(16)).toString("base64url");
    const place = hosts(wanted.host);
    const show: SignInSteps["show"] = async (code) => {
      const expiresAt = now() + code.expiresIn * 1000;
      const begun = { id, host: place.name, app: app.name, member, code, expiresAt };
      await kept.add(begun);
      this.#starting.delete(id);
      resolve({ ...begun, state: { name: "waiting" } });
    };
    this.#starting.set(id, member);
    void this.#run({ id, place, app, member, isMeant, show }, reject);
    return promise;
  }

  /**
   * Signs in the owner's App, which no person has to approve here.
   * @throws ProxyError as `completeApp`
   */
  async addApp(host: string | undefined, given: GithubApp): Promise<AddedApp> {
    const { hosts, version, store, logger } = this.#options;
    const { completeApp } = await import("./complete-sign-in");
    const { saved, outcome } = await completeApp({ hosts: hosts(host), version }, given, store);
    logger.info(`The App ${given.app} at ${saved.login} was signed in on a page or by the admin API.`);
    return { login: saved.login, outcome, ...(await this.#added(saved)) };
  }

  /** Uses a saved account from now on. @returns Whether its first token could be had. */
  async #added(saved: SavedAccount): Promise<{ accountKey: string; fault: string | undefined }> {
    this.#options.saved();
    const accountKey = accountKeyOf(saved);
    return { accountKey, fault: await faultOf(this.#options.account(accountKey)) };
  }

  /** @throws ProxyError as `SignInStore.find` */
  find(id: string): Awaitable<BegunSignIn | undefined> {
    return this.#options.kept.find(id);
  }

  /** Those of one member, or of the owner (null), that wait for a person. */
  waiting(member: string | null): BegunSignIn[] {
    return this.#options.kept.waiting(member);
  }

  /** @returns False if there is no such sign-in. @throws ProxyError as `SignInStore.cancel` */
  cancel(id: string): Awaitable<boolean> {
    return this.#options.kept.cancel(id);
  }

  close(): void {
    for (const controller of this.#running.values()) controller.abort();
    this.#options.kept.close();
  }

  /** @param early Called with the error if the sign-in ends before it is kept. */
  async #run(course: Course, early: (thrown: unknown) => void): Promise<void> {
    const { id } = course;
    const controller = new AbortController();
    this.#running.set(id, controller);
    try {
      await this.#complete(course, controller.signal);
    } catch (thrown) {
      if (this.#starting.has(id)) early(thrown);
      else if (!controller.signal.aborted)
        await this.#options.kept.settle(id, { name: "failed", reason: asProxyError(thrown).message });
    } finally {
      this.#starting.delete(id);
      this.#running.delete(id);
    }
  }

  /** Runs the sign-in up to the saved account. */
  async #complete({ id, place, app, member, isMeant, show }: Course, signal: AbortSignal): Promise<void> {
    const { version, store, kept, logger, sleep, isMember } = this.#options;
    // Most servers never need it.
    const { completeSignIn } = await import("./complete-sign-in");
    const accounts: Pick<AccountStore, "prepare" | "add"> = {
      prepare: (host) => store.prepare(host),
      async add(added) {
        if (!(await kept.waits(id))) throw new ProxyError("conflict", "The sign-in was cancelled.");
        if (member !== null && !(await isMember(member))) throw new ProxyError("conflict", "The member was removed.");
        if (isMeant && !(await isMeant())) throw new ProxyError("conflict", "The link is not good any more.");
        const before = store.load().find((saved) => accountKeyOf(saved) === accountKeyOf(added))?.member;
        // Nobody's, where the members come from an older backup than the accounts.
        if (before !== undefined && before !== member && !(await isMember(before)))
          await store.remove(accountKeyOf(added));
        return store.add(added);
      },
    };
    const steps = { hosts: place, version, app, show, signal, sleep };
    const { saved, outcome } = await completeSignIn(steps, accounts, member ?? undefined);
    logger.info(`${saved.login} at ${saved.host} was signed in on a page or by the admin API.`);
    await kept.settle(id, { name: "done", login: saved.login, outcome, ...(await this.#added(saved)) });
  }
}

/** Whether the new account can use Copilot: its first token is asked for. */
async function faultOf(account: Account | undefined): Promise<string | undefined> {
  try {
    await account?.copilotToken();
    return undefined;
  } catch (thrown) {
    return asProxyError(thrown).message;
  }
}
