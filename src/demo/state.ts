/** The state of a running demo, which tests read and change. */
import { type DemoAccount, demoAccounts, type HostName } from "./accounts";

/** Of the model list and its rules: A counts premium requests, C prices tokens (since August 2026). */
type Generation = "A" | "C";

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
  status?: number;
  /** The time (ms) at which the caller hung up, if that was before the end of the answer. */
  aborted?: number;
}

export type Interceptor = (seen: SeenRequest, request: Request) => Response | undefined | Promise<Response | undefined>;

/** The input of a route's handler. */
export interface Arrival {
  demo: DemoState;
  seen: SeenRequest;
  /** Aborted when the caller hangs up. */
  signal: AbortSignal;
  /** Counts the request as open after the handler has returned, until the returned function is called. */
  hold(): (aborted: boolean) => void;
}

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

/** What of the state a start may choose. */
export type DemoOptions = Partial<Pick<DemoState, "accounts" | "generation" | "pace" | "now" | "keep" | "change">> & {
  device?: Partial<DeviceScript>;
};

export class DemoState {
  /** The live accounts: tests change quotas or remove accounts. */
  readonly accounts: DemoAccount[] = demoAccounts();
  readonly generation: Generation = "A";
  /** A warning that each model of the list has. */
  warning: { code: string; message: string } | undefined;
  /** Milliseconds between the events of a stream. Tests use 0. */
  readonly pace: number = 15;
  /** A clock in milliseconds. */
  readonly now: () => number = Date.now;
  /** How many journal entries to keep. */
  readonly keep: number = Number.POSITIVE_INFINITY;
  /** Changes an answer before it is sent. */
  readonly change: ChangeAnswer | undefined;
  /** By default a sign-in is approved after one pending poll. */
  readonly device: DeviceScript = { interval: 5, pending: 1, outcome: "success" };
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
  /** Of each sign-in, in order. */
  readonly signIns: DemoAccount[] = [];
  /** By device code. */
  readonly grants = new Map<
    string,
    { clientId: string; interval: number; polls: number; lastPoll: number; until: number }
  >();
  /** Of the web flow. */
  readonly codes = new Map<
    string,
    { clientId: string; redirect: string; challenge: string | null; login: string | null }
  >();
  /** Of every app. */
  readonly clientSecret = "demo-client-secret";
  /** The prompt cache: the beginnings of prompts, as hashes, and until when (ms) each is kept. The oldest come first. */
  readonly cached = new Map<string, number>();
  /** How many requests without a cache key an account has sent to a model. */
  readonly keyless = new Map<string, number>();
  /** Directives marked `once` that were carried out. */
  readonly spent = new Set<string>();
  /** Model requests in progress, including streams. */
  open = 0;

  constructor({ device, ...chosen }: DemoOptions) {
    for (const [name, value] of Object.entries(chosen)) if (value !== undefined) Object.assign(this, { [name]: value });
    Object.assign(this.device, device);
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
    if (this.journal.length > this.keep) this.journal.shift();
  }

  /** Adds up a day of UTC, as the report of it does, and takes from the account's quota what was charged in this month. */
  charge(charge: Charge): void {
    const quota = this.accounts.find(({ login }) => login === charge.login)?.quota;
    const monthOf = (at: number) => new Date(at).toISOString().slice(0, 7);
    if (quota?.tokenBilling && monthOf(charge.at) === monthOf(this.now())) {
      quota.premium.creditsUsed = (quota.premium.creditsUsed ?? 0) + charge.credits;
      if (quota.premium.entitlement > 0) quota.premium.remaining -= charge.credits;
    }
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
