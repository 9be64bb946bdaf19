/** Accounts of a large team. Most of them are only listed on this server, so each is opened when it is first used. */
import { type Account, pausedState, type ShownState } from "./account";
import type { AccountShare, FoundOut, SharedSignIn } from "./account-share";
import { signInOf } from "./account-share";
import { accountKeyOf, type SavedAccount } from "./account-store";
import { isUsedUp } from "./quota";

export interface DormantParts {
  open(saved: SavedAccount): Account;
  /** Whether requests are kept off it. */
  isPaused(saved: SavedAccount, key: string): boolean;
  share: Pick<AccountShare, "known">;
}

/** An account that takes a tenth of the memory until it is used. @param parts The same object for all accounts. */
export const openLater = (saved: SavedAccount, parts: DormantParts): Account => new DormantAccount(saved, parts);

/** A class, because an object with closures takes far more memory. */
class DormantAccount implements Account {
  readonly key: string;
  #opened: Account | undefined;

  constructor(
    readonly saved: SavedAccount,
    readonly parts: DormantParts,
  ) {
    this.key = accountKeyOf(saved);
  }

  #open(): Account {
    if (!this.#opened) {
      this.#opened = this.parts.open(this.saved);
      this.#opened.adopt(this.identity, this.parts.share.known(this.identity));
    }
    return this.#opened;
  }

  #restingState(): ShownState {
    return this.parts.isPaused(this.saved, this.key) ? pausedState : { name: "ready" };
  }

  get id() {
    return this.saved.login;
  }
  get host() {
    return this.saved.host;
  }
  get app() {
    return this.saved.app;
  }
  get temporary() {
    return false;
  }
  get member() {
    return this.saved.member ?? null;
  }
  get identity(): SharedSignIn {
    return this.#opened?.identity ?? { key: this.key, signIn: signInOf(this.saved.githubToken) };
  }
  get state() {
    return this.#opened?.state ?? this.#restingState();
  }
  get knownQuota() {
    return this.#opened ? this.#opened.knownQuota : this.parts.share.known(this.identity).quota;
  }
  get limitedModels() {
    return this.#opened?.limitedModels ?? [];
  }

  stateFor(model: string | undefined, premium?: boolean) {
    return this.#opened?.stateFor(model, premium) ?? this.#restingState();
  }
  presentSession() {
    return this.#opened?.presentSession();
  }
  session() {
    return this.#open().session();
  }
  refresh(...given: Parameters<Account["refresh"]>) {
    return this.#open().refresh(...given);
  }
  renew(...given: Parameters<Account["renew"]>) {
    return this.#open().renew(...given);
  }
  refreshModelHost(...given: Parameters<Account["refreshModelHost"]>) {
    return this.#open().refreshModelHost(...given);
  }
  quota() {
    return this.#open().quota();
  }
  learnQuota(headers: Headers) {
    this.#open().learnQuota(headers);
  }
  learnQuotaSnapshots(snapshots: unknown) {
    this.#open().learnQuotaSnapshots(snapshots);
  }
  mark(...given: Parameters<Account["mark"]>) {
    this.#open().mark(...given);
  }
  adopt(account: SharedSignIn, found: FoundOut) {
    if (this.#opened) this.#opened.adopt(account, found);
    // Numbers of a quota are looked up when somebody asks. What keeps requests off it counts at once.
    else if (found.state || (found.quota && isUsedUp(found.quota))) this.#open().adopt(account, found);
  }
}
