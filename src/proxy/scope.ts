/** The parts of the server that one person's requests may use. */

import type { Drift } from "../books/changes/drift";
import type { Losses } from "../books/changes/losses";
import type { History } from "../books/history/history";
import type { InFlight } from "../books/live/in-flight";
import type { RunningRequests } from "../books/live/running-requests";
import type { SessionPrompts } from "../books/live/session-prompts";
import type { ExchangeMetrics } from "../books/observe/exchange-metrics";
import type { Tracing } from "../books/observe/tracing";
import type { ScopedConfigStore } from "../config/scoped-config";
import type { ProxyError } from "../lib/errors";
import type { Logger } from "../lib/logger";
import type { ClientSockets } from "../lib/net/in/client-sockets";
import type { HeldBodies } from "../lib/net/in/held-bytes";
import type { CallLimits } from "../lib/net/out/clock";
import type { Affinity } from "../people/accounts/affinity";
import type { OwnAccounts } from "../people/accounts/own-accounts";
import type { WaitingRoom } from "../people/accounts/waiting-room";
import type { BudgetGuard } from "../people/budgets/guard";
import type { Membership } from "../people/keys/membership";
import type { RecentItems } from "./recent-items";
import type { AnthropicCounter } from "./tokens/anthropic-counter";
import type { TokenCounts } from "./tokens/token-counts";
import type { CacheWatch } from "./upstream/cache-watch";
import type { Auto } from "./upstream/copilot/auto";
import type { Copilot } from "./upstream/copilot/copilot";
import type { CopilotCounter } from "./upstream/copilot/copilot-counter";
import type { Lessons } from "./upstream/copilot/lessons";
import type { UnsupportedParams } from "./upstream/copilot/unsupported-params";
import type { BilledPrices } from "./upstream/models/billed-prices";
import type { Routing } from "./upstream/routing";
import type { SearchEngine } from "./upstream/search-engines";

/** What the requests of everybody share: nothing in it belongs to one person. */
export interface Services {
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
  /** Where the relay reports its requests. */
  inFlight: Pick<InFlight, "begin" | "notify" | "end" | "count" | "countOf">;
  losses: Losses;
  recentItems: RecentItems;
  /** Who searches the web, if not a model. */
  searchEngine(): SearchEngine | undefined;
  sessionPrompts: SessionPrompts;
  sockets: ClientSockets;
  tokenCounts: TokenCounts;
  tracing: Tracing;
  /** Where requests wait for a limit to end, on this server. */
  waitingRoom: WaitingRoom;
}

/** All that one person's requests may use. For a member it holds nothing of the owner's, nor of another member's. */
export interface RequestScope extends Services, Routing {
  /** The person as a member; undefined for the owner. */
  readonly membership: Membership | undefined;
  config: ScopedConfigStore;
  /** The person's own requests; for the owner those of everybody. */
  history: History;
  /** What pages and the admin API show: what this server runs, for a member only the member's own. */
  running: RunningRequests;
  ownAccounts: OwnAccounts;
  unsupportedParams: UnsupportedParams;
  lessons: Lessons;
  /** The owner's, who pays for the key; undefined for a member. */
  anthropicCounter: AnthropicCounter | undefined;
  /** The error for every request while this server has been cut off from its team for too long. Read it at use. */
  readonly isolation: ProxyError | undefined;
}

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
