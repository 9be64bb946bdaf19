/** What the rest of the program works with: the parts of one running server, and what one person's request may use of them. */

import type { History } from "../books/history/history";
import type { InFlight } from "../books/live/in-flight";
import type { LiveRequests } from "../books/live/running-requests";
import type { Notices } from "../books/notices/notices";
import type { PageState } from "../books/stores";
import type { Environment } from "../config/environment";
import type { ConfigStore } from "../config/store";
import type { ProxyError } from "../lib/errors";
import type { WrongSecrets } from "../lib/net/in/failed-tries";
import type { TrustedProxies } from "../lib/net/in/trusted-proxies";
import type { Account } from "../people/accounts/account";
import type { AccountStore } from "../people/accounts/account-store";
import type { SignIns } from "../people/accounts/sign-ins";
import type { ClientKey, OpenTo } from "../people/keys/client-keys";
import type { Logins } from "../people/keys/logins";
import type { Members } from "../people/keys/members";
import type { Team } from "../people/keys/team";
import type { RequestScope, Services } from "../proxy/scope";
import type { Tokenizer } from "../proxy/tokens/tokenizer";

/** All that one person may use: what their requests may, and the server, for the owner. */
export interface Scope extends RequestScope {
  /** All that there is, for the owner only. */
  readonly owner: App | undefined;
}

/** One running server: its life, its policy, and what it keeps. What a request uses is in the `Scope` of its person. */
export interface Server extends Services {
  environment: Environment;
  /** What a person types for `dragoman` on this machine. */
  command: string;
  config: ConfigStore;
  /** The owner's keys. Read it at use: the config may change. */
  readonly clientKeys: readonly ClientKey[];
  /** There is a key of the owner, or a member. Read it at use. */
  readonly hasKeys: boolean;
  /** A client must send one of the owner's keys, or that of a member; where there is none, nobody is served. Read it at use. */
  readonly requiresKey: boolean;
  /** Missing where one person has everything. */
  members: Members | undefined;
  /** Sign-ins from tools. Missing where one person has everything. */
  logins: Logins | undefined;
  /** Missing where this is the only server. */
  team: Team | undefined;
  /** Whether this server does what only one of a team has to do. Read at each use. */
  readonly isLeader: boolean;
  /** As in `Scope`. */
  readonly isolation: ProxyError | undefined;
  /** What a person's requests may use. @param member Null for the owner. */
  forMember(member: string | null): Scope;
  /** What requests may use that are bound to these accounts: `host/login` each. */
  boundTo(accounts: readonly string[]): Scope;
  readonly owner: App;
  /** The request was sent by this process itself. */
  isOurOwn(headers: Headers): boolean;
  /** Who must send the admin token: other machines, or this one too. */
  adminAuth: AdminAuth;
  openTo: OpenTo;
  /** Other machines can reach the address that it listens on. Set when its handler is made. */
  exposed: boolean;
  /** Reverse proxies whose word on the client's address is taken. */
  trustedProxies: TrustedProxies | undefined;
  /** How often callers have sent wrong ones to this server. */
  wrongSecrets: WrongSecrets;
  /** The owner's and those of all members: for what concerns the server, never to serve a request. */
  readonly allAccounts: Account[];
  /** The saved accounts. Call `refreshAccounts` after a change. */
  accountStore: AccountStore;
  refreshAccounts(): void;
  /** Sign-ins that were begun on a page or by the admin API, by everybody. */
  signIns: SignIns;
  pageState: PageState;
  tokenizer: Tokenizer;
  notices: Notices;
  history: History;
  /** Of everybody, on this server. */
  inFlight: InFlight;
  /** Who watches what runs here. */
  live: LiveRequests;
  /** A signal to stop has come, and health checks say so. */
  readonly draining: boolean;
  /** Sets `draining`. */
  drain(): void;
  /** New requests are refused; running ones may end. */
  readonly refusing: boolean;
  /** Sets `refusing`. */
  refuse(): void;
  /** Aborts `stopping`, writes pending data and closes all files. */
  close(): void;
}

/**
 * All that there is: the server, and the scope of its owner. `accounts` are in the order of `/usage`: a temporary one first, then
 * those of `accountOrder` in the config, then as registered.
 */
export interface App extends Server, Scope {
  readonly owner: App;
  readonly membership: undefined;
  config: ConfigStore;
  inFlight: InFlight;
}

export type AdminAuth = "remote" | "always";
