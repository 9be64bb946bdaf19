/**
 * Auto: GitHub Copilot chooses the model of a conversation. Which of its protocols serves an account is found out and
 * remembered. A choice and its session token are kept with the account that they belong to, and go nowhere else.
 *
 * The protocols as in VS Code's client, 2026-10, and in notes of other clients, 2026-03 to 2026-09: `POST /auto`;
 * `POST /models/session` with `/models/session/intent`; on plans with nothing else, a chat request without a model.
 */

import { countIn } from "../../../dialects/hub/json";
import { BoundedMap } from "../../../lib/bounded-map";
import { inBoth, ProxyError } from "../../../lib/errors";
import { dayMs, hourMs, withoutFullStop } from "../../../lib/format";
import { isObject, parseJson } from "../../../lib/json";
import type { Logger } from "../../../lib/logger";
import { singleLimit } from "../../../lib/net/out/clock";
import type { Account } from "../../../people/accounts/account";
import { isSuspension } from "../../../people/accounts/suspension";
import { type Model, shareOf, textsIn } from "../models/model";
import { askAccount } from "./ask-account";
import {
  asUnavailable,
  labelOf,
  mayOmitAfter,
  modelOf,
  strongest,
  type TurnPlan,
  tokenOf,
  turnPlanOf,
  unavailable,
} from "./auto-answer";
import { type AutoTier, autoId } from "./auto-model";
import { hasTier } from "./auto-tiers";
import type { Copilot } from "./copilot";

/** Statuses of an account or a host that does not have the protocol, or not in this form; 503 means later. */
const notForYou: ReadonlySet<number> = new Set([400, 404, 405, 410, 422]);

/** Takes the token of a choice along with a request. */
export const autoTokenHeader = "copilot-session-token";

/** In the order in which they are tried. */
export const autoProtocols = ["auto", "session", "omission"] as const;
type AutoProtocol = (typeof autoProtocols)[number];

/** What was chosen, for one conversation of one account. */
export interface AutoChoice {
  by: AutoProtocol;
  account: Account;
  /** Missing with `omission`: only the answer tells it, each time anew. */
  model?: Model;
  /** Goes with the requests of this account only. */
  token?: string;
  /** Why this model, in the upstream's words; null if it gave no reason. */
  why: string | null;
  /** The share of the price that Auto takes off, 0 … 1, as the upstream hints; null if it names none. */
  discount: number | null;
}

/** What a choice is made from. */
export interface AutoQuestion {
  /** The newest words of the person. They are sent to GitHub. */
  prompt: string;
  hasImage: boolean;
  /** Turns of the model so far. */
  turns: number;
  /** Turns of the person so far, with the newest. */
  asks: number;
  /** Missing for GitHub's default, which weighs both. */
  tier?: AutoTier;
  mayUse(model: string): boolean;
  /** The models that the account lists. */
  listed: readonly Model[];
  /** The plan has nothing else, and the key may use whichever model serves: the request may go without a model. */
  mayOmit: boolean;
  /** As in `OutgoingCall`; read at each call. */
  controller(): AbortController;
}

interface AutoOptions {
  copilot: Copilot;
  logger: Logger;
  /** Wall clock, ms. */
  now(): number;
  /** Milliseconds. */
  monotonic(): number;
}

/** Milliseconds for one choice, however many calls it takes. */
const timeoutMs = 5_000;
/** Milliseconds until a protocol that the account may not use is tried again. */
const refusedFor = 6 * hourMs;
/** Milliseconds before its end at which a token is not used any more: the request has to arrive. */
const spareMs = 60_000;
/** Conversations of one account whose choices are kept. */
const maxKept = 500;
const maxBytes = 1024 * 1024;
/** Characters of a prompt that are sent for a choice. */
const maxPrompt = 32_000;

interface Kept extends AutoChoice {
  until: number;
  turns: number;
  tier?: AutoTier;
  plan?: TurnPlan;
  /** Turns of the person when it was made. */
  asks: number;
}

interface Known {
  works?: boolean;
  /** What `GET /meta` said of each tier, and until when that counts, by the monotonic clock. */
  tiers: Map<AutoTier, { isOffered: boolean; until: number }>;
  /** Until when each is not tried, by the monotonic clock. */
  refused: Map<AutoProtocol, number>;
  kept: BoundedMap<string, Kept>;
}

export class Auto {
  readonly #known = new WeakMap<Account, Known>();
  #revision = 0;

  constructor(private readonly options: AutoOptions) {}

  /**
   * The choice of a conversation: the one that is kept, or a new one. A new one is made when the upstream's plan of turns says
   * so, which then hears what it planned before. All begins anew for another tier, for a picture that the model cannot see,
   * and where fewer turns than before mean that the conversation was compacted.
   * @param conversation Undefined if it cannot be told apart from others: then nothing is kept.
   * @throws ProxyError why nothing could be chosen; the code is `auto_not_offered` if the account does not have Auto.
   */
  async choose(account: Account, conversation: string | undefined, question: AutoQuestion): Promise<AutoChoice> {
    const { kept } = this.#knownOf(account);
    const before = conversation === undefined ? undefined : kept.get(conversation);
    const isSame = before !== undefined && !isShorter(before, question) && suits(before, question);
    if (isSame && before.until - spareMs > this.options.now() && !isDue(before, question)) {
      before.turns = Math.max(before.turns, question.turns);
      return before;
    }
    const made = await this.#replace(account, question, isSame ? before : undefined);
    if (conversation !== undefined && made.token !== undefined) kept.set(conversation, made);
    return made;
  }

  async #replace(account: Account, question: AutoQuestion, before: Kept | undefined): Promise<Kept> {
    const { tier, asks, turns } = question;
    try {
      const { until, ...choice } = await this.#chooseNow(account, question, before);
      const made = { account, ...choice, until, tier, asks, turns };
      // The turns that a token's renewal falls into count as before.
      if (!before?.plan || !made.plan || isDue(before, question)) return made;
      return { ...made, asks: before.asks, plan: { ...made.plan, skip: before.plan.skip } };
    } catch (thrown) {
      const isUsable = before !== undefined && before.until - spareMs > this.options.now();
      if (!isUsable || !(thrown instanceof ProxyError) || !mayOmitAfter(thrown)) throw thrown;
      return before;
    }
  }

  /** Whether a choice is kept for the conversation. */
  keeps(account: Account, conversation: string | undefined): boolean {
    return conversation !== undefined && (this.#known.get(account)?.kept.has(conversation) ?? false);
  }

  /** Drops the choice: its token was refused, or the conversation was compacted. */
  forget(account: Account, conversation: string | undefined): void {
    if (conversation !== undefined) this.#known.get(account)?.kept.delete(conversation);
  }

  /** The account does not serve requests without a model. */
  refuseOmission(account: Account): void {
    this.#knownOf(account).refused.set("omission", this.options.monotonic() + refusedFor);
  }

  /** Whether Auto was found to work for the account; undefined if nobody has asked. */
  worksFor(account: Account): boolean | undefined {
    return this.#known.get(account)?.works;
  }

  /** Changes with each answer of {@link worksFor}. */
  get revision(): number {
    return this.#revision;
  }

  #knownOf(account: Account): Known {
    const known: Known = this.#known.get(account) ?? {
      refused: new Map(),
      tiers: new Map(),
      kept: new BoundedMap(maxKept),
    };
    this.#known.set(account, known);
    return known;
  }

  #learn(account: Account, works: boolean): void {
    const about = this.#knownOf(account);
    if (about.works !== works) this.#revision++;
    about.works = works;
  }

  #isRefused({ refused }: Known, protocol: AutoProtocol): boolean {
    return (refused.get(protocol) ?? Number.NEGATIVE_INFINITY) > this.options.monotonic();
  }

  async #chooseNow(account: Account, question: AutoQuestion, before?: Kept): Promise<Found & { by: AutoProtocol }> {
    const about = this.#knownOf(account);
    const deadline = performance.now() + timeoutMs;
    let failure: ProxyError | undefined;
    for (const by of autoProtocols) {
      // Both are the same service: what it cannot do now it cannot do the other way either.
      if (this.#isRefused(about, by) || (failure && by !== "omission")) continue;
      try {
        const choice = await this.#ways[by]({ account, question, deadline, before });
        if (choice !== "refused") {
          this.#learn(account, true);
          return { ...choice, by };
        }
        // Whether a request may go without a model depends on the key too.
        if (by !== "omission") about.refused.set(by, this.options.monotonic() + refusedFor);
      } catch (thrown) {
        if (question.controller().signal.aborted && !(thrown instanceof ProxyError && thrown.kind === "timeout"))
          throw thrown;
        if (!(thrown instanceof ProxyError) || !mayOmitAfter(thrown)) throw thrown;
        failure = thrown;
        this.options.logger.debug(`Auto's choice failed for ${account.id}. ${thrown.written}`);
      }
    }
    if (failure) throw asUnavailable(failure);
    this.#learn(account, false);
    throw new ProxyError("no_account", `GitHub Copilot does not offer Auto to ${account.id}: name a model instead.`, {
      code: "auto_not_offered",
      headers: { "x-should-retry": "false" },
    });
  }

  readonly #ways: Record<AutoProtocol, (to: ChoiceTo) => Promise<Found | "refused">> = {
    auto: async (to) => {
      const json = await this.#askAuto(to);
      if (json === "refused") return json;
      const model = modelOf(json.selected_model, to.question.listed);
      return { ...this.#choiceOf(json, model, strongest(json.hydra_scores)), plan: turnPlanOf(json) };
    },
    session: async ({ question, ...to }) => {
      const { controller, listed, mayUse, hasImage, turns } = question;
      const session = await this.#ask({ ...to, path: "/models/session", body: sessionBody, controller });
      if (session === "refused") return session;
      const usable = textsIn(session.available_models).filter((id) => {
        const model = listed.find((each) => each.id === id);
        return mayUse(id) && (!hasImage || model?.supports.vision !== false);
      });
      const token = tokenOf(session);
      const intent = {
        prompt: question.prompt.slice(-maxPrompt),
        available_models: usable,
        turn_number: turns + 1,
        prompt_char_count: question.prompt.length,
      };
      if (usable.length === 0) throw unavailable("it offers no model that this request may use", "permission");
      const chosen = await this.#ask({ ...to, path: "/models/session/intent", body: intent, token, controller }).catch(
        (thrown: unknown) => {
          if (controller().signal.aborted || isSuspension(thrown)) throw thrown;
          this.options.logger.debug("Auto's router did not answer; its first choice serves.", thrown);
          return "refused" as const;
        },
      );
      const [first, why] =
        chosen === "refused"
          ? [session.selected_model, null]
          : [chosen.chosen_model ?? session.selected_model, labelOf(chosen.predicted_label)];
      const offered = modelOf(first, listed);
      const model = usable.includes(offered.id) ? offered : modelOf(usable[0], listed);
      return this.#choiceOf(session, model, why);
    },
    omission: async ({ question }) => (question.mayOmit ? { why: null, discount: null, until: 0 } : "refused"),
  };

  /**
   * `multi_turn` is left out: an object may be there, which asks for another way to keep a choice (VS Code's tests and
   * opencode's plugin, 2026-11). A state that is refused, and a tier that is, are left out once.
   */
  async #askAuto(to: ChoiceTo): Promise<Record<string, unknown> | "refused"> {
    const { question, before, account } = to;
    const plan = before?.plan;
    const tier = question.tier && (await this.#offersTier(to, question.tier)) ? question.tier : undefined;
    // A token that is renewed earlier is no new turn for the plan.
    const advance = before !== undefined && isDue(before, question);
    const body = { prompt: question.prompt.slice(-maxPrompt), has_image: question.hasImage };
    const fresh = { ...body, ...(tier && { tier }), hydra_rl_multi_turn: {} };
    const tries: { body: object; passOn: ReadonlySet<number> }[] = [
      ...(plan
        ? [{ body: { ...fresh, hydra_rl_multi_turn: { state_token: plan.state, advance } }, passOn: badOnly }]
        : []),
      ...(tier ? [{ body: fresh, passOn: tierRefused }] : []),
      { body: { ...body, hydra_rl_multi_turn: {} }, passOn: none },
    ];
    for (const { body: each, passOn } of tries) {
      const json = await this.#ask({ ...to, path: "/auto", body: each, controller: question.controller, passOn });
      if (json === "again") continue;
      if (tier && json !== "refused" && each === tries.at(-1)!.body) this.#tellOfTier(account, tier);
      return json;
    }
    return "refused";
  }

  /** Whether the account may ask for the tier, as far as `GET /meta` says: where it says nothing, `/auto` does. */
  async #offersTier({ account, question, deadline }: ChoiceTo, tier: AutoTier): Promise<boolean> {
    const { tiers } = this.#knownOf(account);
    const known = tiers.get(tier);
    if (known && known.until > this.options.monotonic()) return known.isOffered;
    let json: Record<string, unknown> | "refused" | "again" = "refused";
    try {
      json = await this.#ask({ account, path: "/meta", controller: question.controller, deadline });
    } catch (thrown) {
      if (question.controller().signal.aborted || isSuspension(thrown)) throw thrown;
      this.options.logger.debug(`The tiers of Auto could not be read for ${account.id}.`, thrown);
    }
    const isOffered = typeof json === "string" || hasTier(json, tier);
    tiers.set(tier, { isOffered, until: this.options.monotonic() + refusedFor });
    if (!isOffered) this.#tellOfTier(account, tier);
    return isOffered;
  }

  #tellOfTier(account: Account, tier: AutoTier): void {
    this.#knownOf(account).tiers.set(tier, { isOffered: false, until: this.options.monotonic() + refusedFor });
    this.options.logger.warn(
      `GitHub does not offer ${account.id} Auto's tier ${tier} now: for the next six hours its default tier chooses.`,
    );
  }

  #choiceOf(json: Record<string, unknown>, model: Model, why: string | null): Found {
    const costs = json.discounted_costs;
    const hint = isObject(costs) ? shareOf(costs[model.id]) : undefined;
    const end = (countIn(json.expires_at) ?? 0) * 1000;
    return {
      model,
      token: tokenOf(json),
      why,
      discount: hint ?? model.autoDiscount ?? null,
      until: end > 0 ? Math.min(end, this.options.now() + dayMs) : this.options.now() + dayMs,
    };
  }

  async #ask(
    call: ChoiceCall & { passOn: ReadonlySet<number> },
  ): Promise<Record<string, unknown> | "refused" | "again">;
  async #ask(call: ChoiceCall): Promise<Record<string, unknown> | "refused">;
  async #ask(call: ChoiceCall): Promise<Record<string, unknown> | "refused" | "again"> {
    const { account, path, body, token, controller, deadline, passOn = none } = call;
    const left = Math.max(1, Math.round(deadline - performance.now()));
    const { status, text, failure } = await askAccount(
      account,
      (copilotToken) =>
        this.options.copilot.call(copilotToken, {
          path,
          body: body && JSON.stringify(body),
          requestId: crypto.randomUUID(),
          intent: "model-access",
          headers: token === undefined ? undefined : { [autoTokenHeader]: token },
          controller: controller(),
          limits: singleLimit(left),
        }),
      { maxBytes, now: this.options.now },
    );
    if (!failure) {
      const json = parseJson(text);
      if (isObject(json)) return json;
      throw unavailable("GitHub Copilot's answer is not JSON");
    }
    if (passOn.has(status)) return "again";
    if (notForYou.has(status)) return "refused";
    if (failure.account) account.setState(failure.account);
    if (failure.account || isSuspension(failure.error) || status === 401) throw failure.error;
    if (status === 403) return "refused";
    throw unavailable(inBoth(failure.error.words, withoutFullStop));
  }
}

interface ChoiceTo {
  account: Account;
  question: AutoQuestion;
  /** The choice that this one replaces. */
  before?: Kept;
  /** Of the clock that never jumps, ms. */
  deadline: number;
}

interface ChoiceCall extends Pick<ChoiceTo, "account" | "deadline">, Pick<AutoQuestion, "controller"> {
  path: string;
  /** Missing for a GET. */
  body?: object;
  /** Statuses for which the question is asked in another way. */
  passOn?: ReadonlySet<number>;
  token?: string;
}

type Found = Pick<AutoChoice, "model" | "token" | "why" | "discount"> & { until: number; plan?: TurnPlan };

const none: ReadonlySet<number> = new Set();
/** A state of the conversation that the upstream does not know any more. */
const badOnly: ReadonlySet<number> = new Set([400]);
const tierRefused: ReadonlySet<number> = new Set([400, 403, 422]);

const sessionBody = { auto_mode: { model_hints: [autoId] } };

/** A request with one turn may be about the conversation, such as for its title: it does not replace the choice. */
const isShorter = (before: Kept, { turns }: AutoQuestion): boolean => turns > 0 && turns < before.turns;

/** The upstream wants to be asked again after so many turns of the person. */
const isDue = ({ plan, asks }: Kept, question: AutoQuestion): boolean =>
  plan !== undefined && question.asks > asks + plan.skip;

/** The same tier; and a model that can see, if there is something to see. */
const suits = ({ tier, model }: Kept, question: AutoQuestion): boolean =>
  tier === question.tier && !(question.hasImage && model?.supports.vision === false);
