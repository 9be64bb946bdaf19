/** What the rest of the program works with: the parts of one running server, and what one person's request may use of them. */
import type { Account } from "./accounts/account";
import type { AccountStore } from "./accounts/account-store";
import type { Affinity } from "./accounts/affinity";
import type { OwnAccounts } from "./accounts/own-accounts";
import type { SignIns } from "./accounts/sign-ins";
import type { WaitingRoom } from "./accounts/waiting-room";
import type { BudgetGuard } from "./budgets/guard";
import type { Environment } from "./config/environment";
import type { ScopedConfigStore } from "./config/scoped-config";
import type { ConfigStore } from "./config/store";
import type { ProxyError } from "./errors";
import type { History } from "./history/history";
import type { ClientKey, OpenTo } from "./keys/client-keys";
import type { Logins } from "./keys/logins";
import type { Members } from "./keys/members";
import type { Membership } from "./keys/membership";
import type { Team } from "./keys/team";
import type { InFlight } from "./live/in-flight";
import type { LiveRequests, RunningRequests } from "./live/running-requests";
import type { SessionPrompts } from "./live/session-prompts";
import type { Logger } from "./logger";
import type { ClientSockets } from "./net/in/client-sockets";
import type { WrongSecrets } from "./net/in/failed-tries";
import type { HeldBodies } from "./net/in/held-bytes";
import type { TrustedProxies } from "./net/in/trusted-proxies";
import type { CallLimits } from "./net/out/clock";
import type { Notices } from "./notices/notices";
import type { ExchangeMetrics } from "./observe/exchange-metrics";
import type { Tracing } from "./observe/tracing";
import type { PageState } from "./stores";
import type { TokenCounts } from "./tokens/token-counts";
import type { Tokenizer } from "./tokens/tokenizer";
import type { CacheWatch } from "./upstream/cache-watch";
import type { Drift } from "./upstream/changes/drift";
import type { Losses } from "./upstream/changes/losses";
import type { Auto } from "./upstream/copilot/auto";
import type { Copilot } from "./upstream/copilot/copilot";
import type { CopilotCounter } from "./upstream/copilot/copilot-counter";
import type { Lessons } from "./upstream/copilot/lessons";
import type { UnsupportedParams } from "./upstream/copilot/unsupported-params";
import type { BilledPrices } from "./upstream/models/billed-prices";
import type { Routing } from "./upstream/routing";
import type { SearchEngine } from "./upstream/search-engines";

/** What the requests of everybody share: nothing in it belongs to one person. */
interface Services {
  version: string;
  /** The upstream is the embedded demo. */
  demo: boolean;
  logger: Logger;
  limits: Limits;
  /** Wall clock, ms. */
  now(): number;
  /** Aborts when the process must stop at once: streams then end with an error. */
  stopping: AbortSignal;
  affinity: Affinity;
  auto: Auto;
  billedPrices: BilledPrices;
  budgets: BudgetGuard;
  cacheWatch: CacheWatch;
  copilot: Copilot;
  copilotCounter: CopilotCounter;
  drift: Drift;
  exchangeMetrics: ExchangeMetrics;
  /** What members' requests hold in memory on this server. */
  heldBodies: HeldBodies;
  losses: Losses;
  sessionPrompts: SessionPrompts;
  sockets: ClientSockets;
  tokenCounts: TokenCounts;
  tracing: Tracing;
  /** Where requests wait for a limit to end, on this server. */
  waitingRoom: WaitingRoom;
}

/** All that one person's requests may use. For a member it holds nothing of the owner's, nor of another member's. */
export interface Scope extends Services, Routing {
  /** All that there is, for the owner only. */
  readonly owner: App | undefined;
  /** The person as a member; undefined for the owner. */
  readonly membership: Membership | undefined;
  config: ScopedConfigStore;
  /** The person's own requests; for the owner those of everybody. */
  history: History;
  /** What pages and the admin API show: what this server runs, for a member only the member's own. */
  running: RunningRequests;
  /** Where the relay reports its requests. */
  inFlight: Pick<InFlight, "begin" | "notify" | "end" | "count" | "countOf">;
  ownAccounts: OwnAccounts;
  /** Who searches the web, if not a model. */
  searchEngine(): SearchEngine | undefined;
  unsupportedParams: UnsupportedParams;
  lessons: Lessons;
  /** The error for every request while this server has been cut off from its team for too long. Read it at use. */
  readonly isolation: ProxyError | undefined;
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

/** Milliseconds. */
export interface Limits {
  /** Of a call for a streamed answer. */
  stream: CallLimits;
  /** Of a call for a full answer, whose headers come when the model is done. */
  full: CallLimits;
  /** Of a call for a model list, which never takes long. */
  list: CallLimits;
  /** Silence on a client's stream until a keep-alive is sent. */
  keepAlive: number;
  /** A client's WebSocket, however busy it is. */
  socketAge: number;
  /** A client's connection after an answer that had to be waited for; not while a stream goes on. */
  connectionIdle: number;
}

/** @param upstreamSilence The owner's limit for a silent upstream; undefined if none is set. */
export function limitsFor(upstreamSilence: number | undefined): Limits {
  const [headers, idle] = [upstreamSilence ?? 120_000, upstreamSilence ?? 300_000];
  return {
    stream: { headers, idle, total: 3_600_000 },
    full: { headers: upstreamSilence ?? 600_000, idle, total: 3_600_000 },
    list: { headers: Math.min(headers, 30_000), idle: Math.min(idle, 30_000), total: 60_000 },
    keepAlive: 15_000,
    socketAge: 3_600_000,
    connectionIdle: 60_000,
  };
}
