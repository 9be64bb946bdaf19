/** What the rest of the program works with: every long-lived part of one running proxy. */
import type { Account } from "./accounts/account";
import type { AccountStore } from "./accounts/account-store";
import type { Affinity } from "./accounts/affinity";
import type { Breaker } from "./accounts/breaker";
import type { Pool } from "./accounts/pool";
import type { SignIns } from "./accounts/sign-ins";
import type { WaitingRoom } from "./accounts/waiting-room";
import type { BudgetGuard } from "./budgets/guard";
import type { Environment } from "./config/environment";
import type { ConfigStore } from "./config/store";
import type { Tokenizer } from "./dialects/tokenizer";
import type { ProxyError } from "./errors";
import type { History } from "./history/history";
import type { InFlight } from "./history/in-flight";
import type { RunningRequests } from "./history/running-requests";
import type { ClientKey } from "./keys/client-keys";
import type { Members } from "./keys/members";
import type { Team } from "./keys/team";
import type { Logger } from "./logger";
import type { ClientSockets } from "./net/in/client-sockets";
import type { FailedTries } from "./net/in/failed-tries";
import type { HeldBodies } from "./net/in/held-bytes";
import type { TrustedProxies } from "./net/in/trusted-proxies";
import type { CallLimits } from "./net/out/clock";
import type { Notices } from "./notices/notices";
import type { ExchangeMetrics } from "./observe/exchange-metrics";
import type { Tracing } from "./observe/tracing";
import type { PageState } from "./stores";
import type { CacheWatch } from "./upstream/cache-watch";
import type { Drift } from "./upstream/changes/drift";
import type { Losses } from "./upstream/changes/losses";
import type { Auto } from "./upstream/copilot/auto";
import type { Copilot } from "./upstream/copilot/copilot";
import type { CopilotCounter } from "./upstream/copilot/copilot-counter";
import type { UnsupportedParams } from "./upstream/copilot/unsupported-params";
import type { BilledPrices } from "./upstream/models/billed-prices";
import type { Catalogue } from "./upstream/models/catalogue";
import type { Providers } from "./upstream/providers/provider";
import type { ProviderModels } from "./upstream/providers/provider-models";
import type { TokenCounts } from "./upstream/tokens/token-counts";

/** Of `forMember` it has what one person may use; the rest is the same for everybody. */
export interface App {
  version: string;
  /** The upstream is the embedded demo. */
  demo: boolean;
  environment: Environment;
  config: ConfigStore;
  /** The owner's keys. Read it at use: the config may change. */
  readonly clientKeys: readonly ClientKey[];
  /** There is a key of the owner, or a member. Read it at use. */
  readonly hasKeys: boolean;
  /** A client must send one of the owner's keys, or that of a member; where there is none, nobody is served. Read it at use. */
  readonly requiresKey: boolean;
  /** Missing where one person has everything. */
  members: Members | undefined;
  /** Missing where this is the only server. */
  team: Team | undefined;
  /** Whether this server does what only one of a team has to do. Read at each use. */
  readonly isLeader: boolean;
  /** This app with the accounts of one person only: all that a request of this person may use. @param member Null for the owner. */
  forMember(member: string | null): App;
  /** Who must send the admin token: other machines, or this one too. */
  adminAuth: AdminAuth;
  /** While there is no key, requests are served without one. */
  allowOpen: boolean;
  /** Reverse proxies whose word on the client's address is taken. */
  trustedProxies: TrustedProxies | undefined;
  logger: Logger;
  /** Of the admin API and the metrics together. */
  tokenTries: FailedTries;
  /**
   * The owner's, in the order of `/usage`: a temporary one first, then those of `accountOrder` in the config, then as registered. Read it at
   * use: it changes when somebody signs in or out.
   */
  readonly accounts: Account[];
  /** The owner's and those of all members: for what concerns the server, never to serve a request. */
  readonly allAccounts: Account[];
  /** The saved accounts. Call `refreshAccounts` after a change. */
  accountStore: AccountStore;
  refreshAccounts(): void;
  /** Sign-ins that were begun on a page or by the admin API. */
  signIns: SignIns;
  pageState: PageState;
  pool: Pool;
  affinity: Affinity;
  cacheWatch: CacheWatch;
  breaker: Breaker;
  copilot: Copilot;
  auto: Auto;
  providers: Providers;
  providerModels: ProviderModels;
  catalogue: Catalogue;
  drift: Drift;
  billedPrices: BilledPrices;
  losses: Losses;
  budgets: BudgetGuard;
  notices: Notices;
  history: History;
  /** Of everybody, on this server. */
  inFlight: InFlight;
  /** Where requests wait for a limit to end, on this server. */
  waitingRoom: WaitingRoom;
  /** What members' requests hold in memory on this server. */
  heldBodies: HeldBodies;
  /** What pages and the admin API show: in a team of all servers, for a member only the member's own. */
  running: RunningRequests;
  exchangeMetrics: ExchangeMetrics;
  tracing: Tracing;
  sockets: ClientSockets;
  tokenizer: Tokenizer;
  tokenCounts: TokenCounts;
  copilotCounter: CopilotCounter;
  unsupportedParams: UnsupportedParams;
  limits: Limits;
  /** The error for every request while this server has been cut off from its team for too long. Read it at use. */
  readonly isolation: ProxyError | undefined;
  /** Wall clock, ms. */
  now(): number;
  /** A signal to stop has come, and health checks say so. */
  readonly draining: boolean;
  /** Sets `draining`. */
  drain(): void;
  /** New requests are refused; running ones may end. */
  readonly refusing: boolean;
  /** Sets `refusing`. */
  refuse(): void;
  /** Aborts when the process must stop at once: streams then end with an error. */
  stopping: AbortSignal;
  /** Aborts `stopping`, writes pending data and closes all files. */
  close(): void;
}

export type AdminAuth = "remote" | "always";

/** Milliseconds. */
export interface Limits {
  /** Until the headers of a streamed answer. */
  streamHeaders: number;
  /** Until the headers of a full answer, which come when the model is done. */
  fullHeaders: number;
  /** Silence on a client's stream until a keep-alive is sent. */
  keepAlive: number;
  /** For the verdict on a reply's tool uses, see `autoModeModel`. */
  verdict: number;
  /** Silence of an upstream in the middle of its answer until the call is given up. */
  idle: number;
  /** A whole call, its answer included. */
  total: number;
  /** A client's WebSocket, however busy it is. */
  socketAge: number;
  /** A client's connection after an answer that had to be waited for; not while a stream goes on. */
  connectionIdle: number;
}

/** Of one call for an answer, streamed or full. */
export const callLimits = ({ streamHeaders, fullHeaders, idle, total }: Limits, stream: boolean): CallLimits => ({
  headers: stream ? streamHeaders : fullHeaders,
  idle,
  total,
});
