/**
 * A simulated GitHub and Copilot on loopback, with their wire formats, for `start --demo` and for the tests.
 * It deliberately shares no code with the dialects: the same mistake on both sides would be invisible.
 */

import {
  type ChangeAnswer,
  type DemoAccount,
  type DemoState,
  type DeviceScript,
  demoAccounts,
  type Generation,
} from "./accounts";
import type { Interceptor, RequestLog, SeenRequest } from "./request-log";
import { githubRoutes, modelRoutes } from "./routes";
import { listen } from "./server";

export type { Interceptor, SeenRequest } from "./request-log";

export interface DemoOptions {
  /** Milliseconds between the events of a stream; the default is 15. Tests use 0. */
  pace?: number;
  /** The default is `demoAccounts()`. */
  accounts?: DemoAccount[];
  /** Billing generation of the model list; A by default. */
  generation?: Generation;
  /** Ids that every second model list leaves out, although the models serve. */
  unsteady?: readonly string[];
  /** A clock in milliseconds. */
  now?: () => number;
  /** How many journal entries to keep; all by default. */
  keep?: number;
  /** False refuses WebSockets. */
  sockets?: boolean;
  /** Error frames of WebSockets: with `status` and `headers` beside the error (default), or the bare error inside. */
  socketErrors?: DemoState["socketErrors"];
  change?: ChangeAnswer;
  /** The course of the device flow; by default it is approved after one pending poll. */
  device?: Partial<DeviceScript>;
}

export interface Demo {
  /** github.com, its REST host, and the model host of `individual` accounts. */
  url: string;
  /** The model host of `business` accounts. */
  businessUrl: string;
  /** The live accounts: tests change quotas, remove accounts or make the exchange fail. */
  accounts: DemoAccount[];
  /** All requests, in order. */
  journal: SeenRequest[];
  /** The next `times` (1) requests with a matching path get this answer, or the normal one if it returns `undefined`. */
  intercept(path: string | RegExp, answer: Interceptor, times?: number): void;
  /** Expires every Copilot token that was issued: it gets 401 "unauthorized: token expired". */
  expireTokens(): void;
  /** Ends every session token of Auto: it gets 400 "Invalid Copilot-Session-Token". */
  endAutoTokens(): void;
  /** The course of the device flow from now on. */
  device: DeviceScript;
  /** The device codes that wait for an approval. */
  deviceCodes(): string[];
  /** Model requests in progress, including streams. */
  readonly open: number;
  /** The most model requests at any one time. */
  readonly peak: number;
  /** WebSockets that were opened. */
  readonly sockets: number;
  stop(): Promise<void>;
}

export function startDemo(options: DemoOptions = {}): Demo {
  const demo: DemoState = {
    accounts: options.accounts ?? demoAccounts(),
    generation: options.generation ?? "A",
    listed: new Map(),
    unsteady: new Set(options.unsteady),
    pace: options.pace ?? 15,
    now: options.now ?? Date.now,
    urls: { individual: "", business: "" },
    issued: new Map(),
    grants: new Map(),
    device: { interval: 5, pending: 1, outcome: "success", ...options.device },
    counted: [],
    cached: new Map(),
    keyless: new Map(),
    autoTokens: new Map(),
    spent: new Set(),
    open: 0,
    peak: 0,
    sockets: options.sockets === false ? -1 : 0,
    change: options.change,
    socketErrors: options.socketErrors ?? "status",
  };
  const journal: SeenRequest[] = [];
  const log: RequestLog = {
    interceptions: [],
    remember(seen) {
      journal.push(seen);
      if (journal.length > (options.keep ?? Number.POSITIVE_INFINITY)) journal.shift();
    },
  };
  const main = listen(demo, "individual", [...githubRoutes, ...modelRoutes], log);
  const business = listen(demo, "business", modelRoutes, log);
  demo.urls = { individual: main.url.origin, business: business.url.origin };

  return {
    url: demo.urls.individual,
    businessUrl: demo.urls.business,
    accounts: demo.accounts,
    journal,
    intercept(path, answer, times = 1) {
      log.interceptions.push({ path, answer, times });
    },
    expireTokens() {
      for (const issued of demo.issued.values()) issued.until = 0;
    },
    endAutoTokens: () => demo.autoTokens.clear(),
    device: demo.device,
    deviceCodes: () => [...demo.grants.keys()],
    get open() {
      return demo.open;
    },
    get peak() {
      return demo.peak;
    },
    get sockets() {
      return demo.sockets;
    },
    async stop() {
      await Promise.all([main.stop(true), business.stop(true)]);
    },
  };
}
