/** The quota of one account, fetched from GitHub and updated from the answers of models, and the state that follows from it. */
import { asProxyError, ProxyError } from "../errors";
import { type CopilotUser, fetchCopilotUser, type GithubCaller } from "./github";
import type { Mode } from "./hosts";
import { learnFromHeaders, learnFromStream, type Quota, type QuotaForm, readQuota } from "./quota";
import type { AccountState, AccountStatus } from "./status";

export interface QuotaTracker {
  /** As `Account.quota`. */
  current(): Promise<Quota>;
  /** The answer of the quota endpoint, at most 45 s old. @throws ProxyError if GitHub cannot be asked */
  user(): Promise<CopilotUser>;
  readonly known: Quota | undefined;
  /** The state by the quota alone: `ready` or `exhausted`. */
  state(): AccountState;
  learnHeaders(headers: Headers): void;
  learnSnapshots(snapshots: unknown): void;
  /** Takes the numbers that another server has learned, if they are newer. */
  adopt(found: Quota): void;
}

export interface QuotaTrackerOptions {
  caller: GithubCaller;
  githubToken: string;
  mode(): Mode;
  status: AccountStatus;
  id(): string;
  /** Wall clock, ms. */
  now(): number;
  /** Called with each answer of the quota endpoint. */
  fetched(user: CopilotUser): void;
  /** Called with each quota of a model's answer, as it was sent. */
  inspect?(form: QuotaForm, snapshot: unknown): void;
  /** Called when this server has learned newer numbers. */
  learned?(quota: Quota): void;
}

/** Milliseconds an answer of the quota endpoint is reused. */
const reuseFor = 45_000;

export function openQuotaTracker(options: QuotaTrackerOptions): QuotaTracker {
  const { caller, githubToken, mode, status, id, now, fetched, learned = () => {}, inspect } = options;
  let quota: Quota | undefined;
  /** `user` is missing where another server has asked. */
  let request: { at: number; answer: Promise<Quota>; user?: Promise<CopilotUser> } | undefined;

  async function current(): Promise<Quota> {
    if (status.isBackingOff && quota) return { ...quota, stale: true };
    if (status.isBackingOff) throw status.unusableError();
    request = lately() ?? ask();
    try {
      const answer = await request.answer;
      return quota ?? answer;
    } catch (thrown) {
      request = undefined;
      const error = asProxyError(thrown);
      status.noteError(error);
      if (quota) return { ...quota, stale: true };
      throw new ProxyError(error.kind, `${id()}: ${error.message}`, error.details);
    }
  }

  const lately = () => (request && Math.abs(now() - request.at) < reuseFor ? request : undefined);

  function ask() {
    const user = fetchCopilotUser(caller, githubToken, mode());
    const answer = user.then(take);
    answer.catch(() => {}); // each caller of `current` and `user` gets it
    return { at: now(), answer, user };
  }

  async function askedUser(): Promise<CopilotUser> {
    const latest = lately();
    const own = latest?.user ? latest : ask();
    request = own;
    try {
      return await own.user!;
    } catch (thrown) {
      request = undefined;
      status.noteError(thrown);
      throw thrown;
    }
  }

  function take(user: CopilotUser): Quota {
    fetched(user);
    const answer = readQuota(user.answer, now());
    learn(answer, true);
    learned(answer);
    return answer;
  }

  /** @param authoritative From the quota endpoint, not from a model's answer. */
  function learn(fresh: Quota | undefined, authoritative = false): void {
    if (!fresh) return;
    const { state } = status;
    const before = stateOf(quota, now());
    const next = stateOf(fresh, now());
    quota = fresh;
    if (state.name === "ready" && next.name === "exhausted") status.enter(next);
    // Only the quota endpoint ends `exhausted` early, and only if its numbers count something.
    const isLeft = (fresh.remaining ?? 0) > 0;
    // What is permitted beyond the plan says nothing about a budget that is spent.
    const available = isLeft || (!state.untilRaised && ((fresh.unlimited && !fresh.isEmpty) || fresh.overage));
    if (state.name === "exhausted" && available && (authoritative || state.reason === before.reason))
      status.enter(next);
    if (state.name === "cooling" && state.doubtful && authoritative) status.enter(next);
  }

  function learnFromAnswer(fresh: Quota | undefined): void {
    learn(fresh);
    if (fresh) learned(fresh);
  }

  return {
    current,
    user: askedUser,
    get known() {
      return quota;
    },
    state: () => stateOf(quota, now()),
    learnHeaders: (headers) => learnFromAnswer(learnFromHeaders(quota, headers, now(), inspect)),
    learnSnapshots: (snapshots) => learnFromAnswer(learnFromStream(quota, snapshots, now(), inspect)),
    adopt(found) {
      if (found.at <= (quota?.at ?? 0)) return;
      // GitHub was asked a moment ago, by whichever server.
      if (Math.abs(now() - found.at) < reuseFor) request = { at: found.at, answer: Promise.resolve(found) };
      learn(found);
    },
  };
}

function stateOf(quota: Quota | undefined, now: number): AccountState {
  if (!quota?.exhausted || (quota.resetAt !== null && quota.resetAt <= now)) return { name: "ready" };
  const { unit, resetAt } = quota;
  return {
    name: "exhausted",
    until: resetAt ?? undefined,
    reason: `Its ${quotaNames[unit]} used up.`,
    alsoFree: unit === "chat",
  };
}

const quotaNames = {
  premium: "premium requests are",
  credits: "AI credits are",
  chat: "chat messages are",
  unknown: "quota is",
};
