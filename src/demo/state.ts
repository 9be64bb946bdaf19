/** The state of a running demo, which tests read and change. */
import { type DemoAccount, demoAccounts, type HostName } from "./accounts";

/** Of the model list and its rules: A counts premium requests, C prices tokens (since August 2026). */
export type Generation = "A" | "C";

export interface DemoOptions {
  /** Milliseconds between the events of a stream; the default is 15. Tests use 0. */
  pace?: number;
  /** The default is `demoAccounts()`. */
  accounts?: DemoAccount[];
  /** Billing generation of the model list; A by default. */
  generation?: Generation;
  /** A clock in milliseconds. */
  now?: () => number;
  /** How many journal entries to keep; all by default. */
  keep?: number;
  /** False refuses WebSockets. */
  sockets?: boolean;
  /** Error frames of WebSockets: with `status` and `headers` beside the error (default), or the bare error inside. */
  socketErrors?: "status" | "nested";
  /** Changes an answer before it is sent. */
  change?: ChangeAnswer;
  /** The course of the device flow; by default it is approved after one pending poll. */
  device?: Partial<DeviceScript>;
}

export type ChangeAnswer = (response: Response, path: string) => Promise<Response>;

/** The course of the device flow: `pending` polls, then the outcome. */
interface DeviceScript {
  /** Seconds; 5. */
  interval: number;
  pending: number;
  outcome: "success" | "access_denied" | "expired_token";
}

/** One request, and how it ended. */
export interface SeenRequest {
  /** ms */
  at: number;
  host: HostName;
  method: string;
  path: string;
  query: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  /** The parsed JSON; the text if it is not JSON. */
  body: unknown;
  /** The body exactly as it was received. */
  bytes: Uint8Array;
  account?: string;
  /** The WebSocket that it came over, counted from 1. */
  socket?: number;
  status?: number;
  /** The time (ms) at which the caller hung up, if that was before the end of the answer. */
  aborted?: number;
}

export type Interceptor = (seen: SeenRequest, request: Request) => Response | undefined | Promise<Response | undefined>;

/** What an account was charged. Tests add what other clients did. */
interface Charge {
  login: string;
  /** ms */
  at: number;
  /** The display name. */
  model: string;
  credits: number;
}

/** What belongs to an account until a time (ms). */
type Issued = Map<string, { account: DemoAccount; until: number }>;

export class DemoState {
  /** The live accounts: tests change quotas, remove accounts or make the exchange fail. */
  readonly accounts: DemoAccount[];
  readonly generation: Generation;
  readonly pace: number;
  readonly now: () => number;
  readonly device: DeviceScript;
  readonly socketErrors: "status" | "nested";
  readonly change: ChangeAnswer | undefined;
  urls: Record<HostName, string> = { individual: "", business: "" };
  /** All requests, in order. */
  readonly journal: SeenRequest[] = [];
  /** Under token billing, in order. */
  readonly charges: Charge[] = [];
  readonly interceptions: { path: string | RegExp; answer: Interceptor; times: number }[] = [];
  /** Copilot tokens that were issued. */
  readonly issued: Issued = new Map();
  /** Session tokens of Auto. */
  readonly autoTokens: Issued = new Map();
  /** By device code. */
  readonly grants = new Map<
    string,
    { clientId: string; interval: number; polls: number; lastPoll: number; until: number }
  >();
  /** The prompt cache: the beginnings of prompts, as hashes, and until when (ms) each is kept. The oldest come first. */
  readonly cached = new Map<string, number>();
  /** How many requests without a cache key an account has sent to a model. */
  readonly keyless = new Map<string, number>();
  /** Directives marked `once` that were carried out. */
  readonly spent = new Set<string>();
  /** Model requests in progress, including streams. */
  open = 0;
  /** WebSockets that were opened; -1 if they are refused. */
  sockets: number;
  readonly #keep: number;

  constructor({
    accounts = demoAccounts(),
    generation = "A",
    pace = 15,
    now = Date.now,
    keep = Number.POSITIVE_INFINITY,
    sockets = true,
    socketErrors = "status",
    change,
    device,
  }: DemoOptions) {
    this.accounts = accounts;
    this.generation = generation;
    this.pace = pace;
    this.now = now;
    this.sockets = sockets ? 0 : -1;
    this.socketErrors = socketErrors;
    this.change = change;
    this.device = { interval: 5, pending: 1, outcome: "success", ...device };
    this.#keep = keep;
  }

  /** github.com, its REST host, and the model host of `individual` accounts. */
  get url(): string {
    return this.urls.individual;
  }

  /** The model host of `business` accounts. */
  get businessUrl(): string {
    return this.urls.business;
  }

  remember(seen: SeenRequest): void {
    this.journal.push(seen);
    if (this.journal.length > this.#keep) this.journal.shift();
  }

  /** Adds up a day of UTC, as the report of it does. */
  charge(charge: Charge): void {
    const dayOf = (at: number) => Math.floor(at / 86_400_000);
    const same = this.charges.find(
      ({ login, model, at }) => login === charge.login && model === charge.model && dayOf(at) === dayOf(charge.at),
    );
    if (same) same.credits += charge.credits;
    else this.charges.push({ ...charge });
  }

  /** The next `times` requests with a matching path get this answer, or the normal one if it returns `undefined`. */
  intercept(path: string | RegExp, answer: Interceptor, times = 1): void {
    this.interceptions.push({ path, answer, times });
  }

  /** Expires every Copilot token that was issued: it gets 401 "unauthorized: token expired". */
  expireTokens(): void {
    for (const issued of this.issued.values()) issued.until = 0;
  }

  /** Ends every session token of Auto: it gets 400 "Invalid Copilot-Session-Token". */
  endAutoTokens(): void {
    this.autoTokens.clear();
  }

  /** The device codes that wait for an approval. */
  deviceCodes(): string[] {
    return [...this.grants.keys()];
  }
}
