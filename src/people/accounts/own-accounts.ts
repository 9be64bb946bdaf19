/** What a person does with their own accounts: sign in, pause, order, remove. Nobody else's can be reached from it. */
import { checkEnterpriseHost } from "../../config/environment";
import { repeatChange } from "../../config/repeat-change";
import type { ConfigStore } from "../../config/store";
import { ProxyError } from "../../lib/errors";
import type { Logger } from "../../lib/logger";
import type { Account } from "./account";
import { type AccountStore, accountKeyOf, accountNotFound } from "./account-store";
import { revocationPage, signInApp } from "./hosts";
import type { BegunSignIn } from "./sign-in-store";
import type { AddedApp, SignIns, Wanted } from "./sign-ins";
import { githubApp } from "./temporary-account";

/** A GitHub App as a person enters it. */
interface NewApp {
  host?: string | undefined;
  app: string;
  installation: string;
  repository?: string | undefined;
  privateKey: string;
}

interface Parts {
  /** The owner's accounts. */
  ownersAccounts(): readonly Account[];
  store: AccountStore;
  signIns: SignIns;
  /** To be called after a change. */
  refresh(): void;
  config: ConfigStore;
  /** What a sign-in uses that does not say otherwise. */
  defaults: SignInDefaults;
  logger: Pick<Logger, "info">;
}

interface SignInDefaults {
  enterpriseHost?: string | undefined;
  oauthApp?: string | undefined;
}

export class OwnAccounts {
  readonly #member: string | null;
  readonly #accounts: () => readonly Account[];
  readonly #parts: Parts;

  /** @param member The person's id; null for the owner. @param accounts The person's, in the order in which they are used. */
  constructor(member: string | null, accounts: () => readonly Account[], parts: Parts) {
    this.#member = member;
    this.#accounts = accounts;
    this.#parts = parts;
  }

  get signInDefaults(): SignInDefaults {
    return this.#parts.defaults;
  }

  /** @throws ProxyError `invalid_request`, `conflict`; `permission` for a member's host that is not GitHub's; or what GitHub answered */
  async beginSignIn(wanted: {
    host?: string | undefined;
    app?: string | undefined;
    isMeant?: Wanted["isMeant"];
  }): Promise<BegunSignIn> {
    const { enterpriseHost, oauthApp } = this.signInDefaults;
    const host = wanted.host === undefined ? enterpriseHost : checkEnterpriseHost("host", wanted.host);
    if (this.#member !== null && wanted.host !== undefined) this.#refuseOtherHost(host!);
    const app = signInApp(wanted.app ?? oauthApp, host);
    return this.#parts.signIns.begin({ host, app, member: this.#member ?? undefined, isMeant: wanted.isMeant });
  }

  /**
   * A GitHub App in an organization, which is the owner's: it is nobody's seat.
   * @throws ProxyError `permission` for a member; `invalid_request`, `no_account` with what is missing at GitHub
   */
  async addApp({ host, ...given }: NewApp): Promise<AddedApp> {
    if (this.#member !== null)
      throw new ProxyError("permission", "Only the owner of this dragoman signs in a GitHub App.", {
        code: "app_not_allowed",
      });
    const at = host === undefined ? this.signInDefaults.enterpriseHost : checkEnterpriseHost("host", host);
    return this.#parts.signIns.addApp(at, githubApp(given));
  }

  /**
   * Whoever runs a host gets the headers of the config, and teaches all members what a model supports. So members use GitHub's,
   * and those that the owner uses. @throws ProxyError `permission`
   */
  #refuseOtherHost(host: string): void {
    const usual = ["github.com", this.signInDefaults.enterpriseHost];
    if (usual.includes(host) || /^[^.]+\.ghe\.com$/.test(host)) return;
    if (this.#parts.ownersAccounts().some(({ key }) => key.startsWith(`${host}/`))) return;
    throw new ProxyError(
      "permission",
      "Members sign in at github.com, at an enterprise's host below ghe.com, or where the owner of this dragoman has an account.",
      { code: "host_not_allowed", param: "host" },
    );
  }

  /** @throws ProxyError `not_found`. */
  async signIn(id: string): Promise<BegunSignIn> {
    const found = await this.#parts.signIns.find(id);
    if (found?.member === this.#member) return found;
    throw new ProxyError(
      "not_found",
      "There is no such sign-in. It may have ended a while ago, or be older than the last start of dragoman. Begin another.",
    );
  }

  /** Those that wait for the person. */
  waitingSignIns(): BegunSignIn[] {
    return this.#parts.signIns.waiting(this.#member);
  }

  /** @throws ProxyError `not_found`. */
  async cancelSignIn(id: string): Promise<BegunSignIn> {
    await this.signIn(id);
    await this.#parts.signIns.cancel(id);
    return this.signIn(id);
  }

  /**
   * A paused account gets no requests; those in progress finish. Members' pauses are kept with their accounts, the owner's in
   * the config. @throws ProxyError `not_found`, `conflict`
   */
  async pause(key: string, paused: boolean): Promise<void> {
    const { store, config, refresh, logger } = this.#parts;
    const saved = this.#savedKey(key);
    if (this.#member !== null) await store.choices!.pause(this.#member, saved, paused);
    else
      await repeatChange(config, ({ current: { pausedAccounts } }) => {
        const others = pausedAccounts.filter((each) => each !== saved);
        return { pausedAccounts: paused ? [...others, saved] : others };
      });
    refresh();
    logger.info(`${saved} was ${paused ? "paused" : "resumed"}.`);
  }

  /**
   * @param keys They come first, in this order; the others keep theirs.
   * @returns All keys in the new order.
   * @throws ProxyError `not_found`, `conflict`
   */
  async arrange(keys: readonly string[]): Promise<string[]> {
    const { store, config, refresh } = this.#parts;
    const wanted = [...new Set(keys.map((key) => this.#savedKey(key)))];
    const all = [...wanted, ...this.#savedKeys().filter((key) => !wanted.includes(key))];
    if (this.#member !== null) await store.choices!.arrange(this.#member, all);
    else await repeatChange(config, () => ({ accountOrder: all }));
    refresh();
    return all;
  }

  /** @param by Places, negative to the front. @throws as `arrange` */
  async move(key: string, by: number): Promise<void> {
    const keys = this.#savedKeys();
    const at = keys.indexOf(this.#savedKey(key));
    const to = Math.min(Math.max(at + by, 0), keys.length - 1);
    await this.arrange(keys.toSpliced(at, 1).toSpliced(to, 0, keys[at]!));
  }

  /** Requests in progress finish. @returns GitHub's page for revoking the sign-in too. @throws ProxyError `not_found`, `conflict` */
  async remove(key: string): Promise<string> {
    const { config, store, refresh, logger } = this.#parts;
    const { removed } = await store.remove(this.#savedKey(key));
    refresh();
    const gone = accountKeyOf(removed);
    // What the config has is about the owner's accounts.
    if (removed.member === undefined) await forgetInConfig(config, gone);
    logger.info(`${gone} was removed.`);
    return revocationPage(removed);
  }

  /** The saved accounts, in the order in which they are used. */
  #savedKeys(): string[] {
    return this.#accounts()
      .filter(({ temporary }) => !temporary)
      .map(({ key }) => key);
  }

  /** @throws ProxyError `not_found`; `conflict` for an account that was passed at start. */
  #savedKey(given: string): string {
    const key = given.toLowerCase();
    const account = this.#accounts().find((each) => each.key === key);
    if (account?.temporary)
      throw new ProxyError("conflict", "This account was passed at start and is not saved. Restart without it.");
    if (account) return key;
    throw accountNotFound(given);
  }
}

/** One of the owner's accounts that is added again later begins anew. @param gone Its key. */
export async function forgetInConfig(config: ConfigStore, gone: string): Promise<void> {
  const { accountOrder, pausedAccounts } = config.current;
  if ([...accountOrder, ...pausedAccounts].includes(gone))
    await repeatChange(config, ({ current }) => ({
      accountOrder: current.accountOrder.filter((each) => each !== gone),
      pausedAccounts: current.pausedAccounts.filter((each) => each !== gone),
    }));
}
