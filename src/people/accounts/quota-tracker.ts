/** The quota of one account, fetched from GitHub and updated from the answers of models, and the state that follows from it. */
import { asProxyError, ProxyError, words } from "../../lib/errors";
import { minuteMs } from "../../lib/format";
import { type NewState, reasonOf } from "./account-state";
import { type CopilotUser, fetchCopilotUser, type GithubCaller } from "./github";
import type { GithubTokens } from "./github-tokens";
import type { Mode } from "./hosts";
import { learnFromHeaders, type Quota, readQuota } from "./quota";
import type { AccountStatus } from "./status";

interface QuotaTrackerOptions {
  caller: GithubCaller;
  github: GithubTokens;
  mode(): Mode;
  status: AccountStatus;
  id(): string;
  /** Wall clock, ms. */
  now(): number;
  /** Called with each answer of the quota endpoint. */
  fetched(user: CopilotUser): void;
  /** Called with each quota of a model's answer, as it was sent; undefined for an answer without one. */
  inspect?(sent: unknown): void;
  /** Called when this server has learned newer numbers. */
  learned?(quota: Quota): void;
}

/** GitHub's endpoint knows persons only: what an installation may use is its organization's, which is billed in credits. */
const isOrganization = ({ kind }: GithubTokens) => kind === "app" || kind === "job";
const answerOfOrganization = { copilot_plan: "organization", token_based_billing: true };

/** Milliseconds an answer of the quota endpoint is reused. */
const reuseFor = 45_000;
/** Milliseconds from what set the state, and from one look to the next, in which nobody looks whether it has ended. */
const lookEvery = 3 * minuteMs;

export class QuotaTracker {
  readonly #options: QuotaTrackerOptions;
  #quota: Quota | undefined;
  /** `user` is missing where another server has asked. */
  #request: { at: number; answer: Promise<Quota>; user?: Promise<CopilotUser> } | undefined;
  #look: { at: number; done: Promise<void> } | undefined;

  constructor(options: QuotaTrackerOptions) {
    this.#options = options;
    if (isOrganization(options.github)) this.#quota = readQuota(answerOfOrganization, options.now());
  }

  get known(): Quota | undefined {
    return this.#quota;
  }

  /** The state by the quota alone: `ready` or `exhausted`. */
  get state(): NewState {
    return stateOf(this.#quota, this.#options.now());
  }

  /** As `Account.quota`. */
  async current(): Promise<Quota> {
    const { status, id } = this.#options;
    const stale = () => this.#quota && { ...this.#quota, stale: true };
    if (status.isBackingOff) {
      const quota = stale();
      if (quota) return quota;
      throw status.unusableError();
    }
    this.#request = this.#recent() ?? this.#ask();
    try {
      const answer = await this.#request.answer;
      return this.#quota ?? answer;
    } catch (thrown) {
      this.#request = undefined;
      const error = asProxyError(thrown);
      status.noteError(error);
      const quota = stale();
      if (quota) return quota;
      throw new ProxyError(error.kind, words`${id()}: ${error.words}`, error.details);
    }
  }

  /**
   * Asks whether a state is over that one answer has set for long. However many requests ask, GitHub is asked once in three
   * minutes, and not while what set the state is younger than that. Never rejects.
   */
  async lookAgain(): Promise<void> {
    const { status, now } = this.#options;
    const told = [status.enteredAt, this.#quota?.at ?? 0, this.#look?.at ?? 0];
    if (told.every((at) => Math.abs(now() - at) >= lookEvery)) {
      const known = () => {};
      this.#look = { at: now(), done: this.current().then(known, known) }; // an error leaves the state as it is
    }
    await this.#look?.done;
  }

  /** The answer of the quota endpoint, at most 45 s old. @throws ProxyError if GitHub cannot be asked */
  async user(): Promise<CopilotUser> {
    const recent = this.#recent();
    const asked = recent?.user ? { ...recent, user: recent.user } : this.#ask();
    this.#request = asked;
    try {
      return await asked.user;
    } catch (thrown) {
      this.#request = undefined;
      this.#options.status.noteError(thrown);
      throw thrown;
    }
  }

  learnHeaders(headers: Headers): void {
    const { now, inspect, learned } = this.#options;
    const fresh = learnFromHeaders(this.#quota, headers, now(), inspect);
    if (!fresh) return;
    this.#learn(fresh);
    learned?.(fresh);
  }

  /** Takes the numbers that another server has learned, if they are newer. */
  applyRemote(found: Quota): void {
    if (found.at <= (this.#quota?.at ?? 0)) return;
    // GitHub was asked a moment ago, by whichever server.
    if (Math.abs(this.#options.now() - found.at) < reuseFor)
      this.#request = { at: found.at, answer: Promise.resolve(found) };
    this.#learn(found);
  }

  #recent() {
    const request = this.#request;
    return request && Math.abs(this.#options.now() - request.at) < reuseFor ? request : undefined;
  }

  #ask() {
    const user = this.#askForUser();
    const answer = user.then((found) => this.#take(found));
    answer.catch(() => {}); // each caller of `current` and `user` gets it
    return { at: this.#options.now(), answer, user };
  }

  async #askForUser(): Promise<CopilotUser> {
    const { caller, github, mode } = this.#options;
    if (isOrganization(github)) return { answer: answerOfOrganization };
    return fetchCopilotUser(caller, (await github.get()).token, mode());
  }

  #take(user: CopilotUser): Quota {
    const { fetched, now, learned } = this.#options;
    fetched(user);
    const answer = readQuota(user.answer, now());
    this.#learn(answer, true);
    learned?.(answer);
    return answer;
  }

  /** @param authoritative From the quota endpoint, not from a model's answer. */
  #learn(fresh: Quota, authoritative = false): void {
    const { status, now } = this.#options;
    const { state } = status;
    const before = this.#quota;
    this.#quota = fresh;
    if (authoritative) status.endDoubtfulModels();
    const next = stateOf(fresh, now());
    if (state.name === "ready") {
      if (next.name === "exhausted") status.enter(next);
      return;
    }
    // Only the quota endpoint ends `exhausted` early, and only if its numbers count something.
    const mayEnd = authoritative || reasonOf(state) === reasonOf(stateOf(before, now()));
    if (state.name === "exhausted" && mayEnd && isAvailable(fresh, state)) status.enter(next);
    if (state.name === "cooling" && state.doubtful && authoritative) status.enter(next);
  }
}

/** Whether the numbers end the state. What is permitted beyond the plan says nothing about a budget that is spent. */
const isAvailable = ({ remaining, unlimited, isEmpty, overage }: Quota, { untilRaised }: { untilRaised?: boolean }) =>
  (remaining ?? 0) > 0 || (!untilRaised && ((unlimited && !isEmpty) || overage));

function stateOf(quota: Quota | undefined, now: number): NewState {
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
