/**
 * Auto: GitHub Copilot chooses the model of a conversation. Which of its protocols serves an account is found out and
 * remembered. A choice and its session token are kept with the account that they belong to, and go nowhere else.
 *
 * The protocols as in VS Code's client, 2026-10, and in notes of other clients, 2026-03 to 2026-09: `POST /auto`;
 * `POST /models/session` with `/models/session/intent`; on plans with nothing else, a chat request without a model.
 */
import type { Account } from "../../accounts/account";
import { isSuspension } from "../../accounts/suspension";
import { BoundedMap } from "../../bounded-map";
import { countIn } from "../../dialects/hub/json";
import { inBoth, ProxyError, retryHeaders, type Words, words } from "../../errors";
import { dayMs, hourMs, withoutFullStop } from "../../format";
import { isObject, parseJson } from "../../json";
import type { Logger } from "../../logger";
import { singleLimit } from "../../net/out/clock";
import { type Model, readModel, shareOf, textsIn } from "../models/model";
import { askAccount } from "./ask-account";
import { autoId } from "./auto-model";
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
}

interface Known {
  works?: boolean;
  /** Until when each is not tried, by the monotonic clock. */
  refused: Map<AutoProtocol, number>;
  kept: BoundedMap<string, Kept>;
}

export class Auto {
  readonly #known = new WeakMap<Account, Known>();
  #revision = 0;

  constructor(private readonly options: AutoOptions) {}

  /**
   * The choice of a conversation: the one that is kept, or a new one. Fewer turns than before mean that the conversation was
   * compacted, and a new choice is made.
   * @param conversation Undefined if it cannot be told apart from others: then nothing is kept.
   * @throws ProxyError why nothing could be chosen; the code is `auto_not_offered` if the account does not have Auto.
   */
  async choose(account: Account, conversation: string | undefined, question: AutoQuestion): Promise<AutoChoice> {
    const { kept } = this.#knownOf(account);
    const before = conversation === undefined ? undefined : kept.get(conversation);
    if (before && before.until - spareMs > this.options.now() && !isShorter(before, question)) {
      before.turns = Math.max(before.turns, question.turns);
      return before;
    }
    const { until, ...choice } = await this.#chooseNow(account, question);
    const made: Kept = { account, ...choice, until, turns: question.turns };
    if (conversation !== undefined && made.token !== undefined) kept.set(conversation, made);
    return made;
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
    const known: Known = this.#known.get(account) ?? { refused: new Map(), kept: new BoundedMap(maxKept) };
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

  async #chooseNow(account: Account, question: AutoQuestion): Promise<Found & { by: AutoProtocol }> {
    const about = this.#knownOf(account);
    const deadline = performance.now() + timeoutMs;
    let failure: ProxyError | undefined;
    for (const by of autoProtocols) {
      // Both are the same service: what it cannot do now it cannot do the other way either.
      if (this.#isRefused(about, by) || (failure && by !== "omission")) continue;
      try {
        const choice = await this.#ways[by]({ account, question, deadline });
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
    auto: async ({ question, ...to }) => {
      const body = {
        prompt: question.prompt.slice(-maxPrompt),
        has_image: question.hasImage,
        multi_turn: question.turns > 0,
      };
      const json = await this.#ask({ ...to, path: "/auto", body, controller: question.controller });
      if (json === "refused") return json;
      const model = modelOf(json.selected_model, question.listed);
      return this.#choiceOf(json, model, strongest(json.hydra_scores));
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

  async #ask(call: ChoiceCall): Promise<Record<string, unknown> | "refused"> {
    const { account, path, body, token, controller, deadline } = call;
    const left = Math.max(1, Math.round(deadline - performance.now()));
    const { status, text, failure } = await askAccount(
      account,
      (session) =>
        this.options.copilot.call(session, {
          path,
          body: JSON.stringify(body),
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
  /** Of the clock that never jumps, ms. */
  deadline: number;
}

interface ChoiceCall extends Omit<ChoiceTo, "question">, Pick<AutoQuestion, "controller"> {
  path: string;
  body: object;
  token?: string;
}

type Found = Pick<AutoChoice, "model" | "token" | "why" | "discount"> & { until: number };

const sessionBody = { auto_mode: { model_hints: [autoId] } };

/** A request with one turn may be about the conversation, such as for its title: it does not replace the choice. */
const isShorter = (before: Kept, { turns }: AutoQuestion): boolean => turns > 0 && turns < before.turns;

function tokenOf(json: Record<string, unknown>): string {
  const token = json.session_token;
  if (typeof token === "string" && /^[!-~]{1,8192}$/.test(token)) return token;
  throw unavailable("GitHub Copilot's answer has no session token");
}

/** The model as the account lists it, or as the choice describes it. @param chosen Its id, or an item of the model list. */
function modelOf(chosen: unknown, listed: readonly Model[]): Model {
  const id = isObject(chosen) ? chosen.id : chosen;
  const model = listed.find((each) => each.id === id) ?? readModel(isObject(chosen) ? chosen : { id });
  if (model) return { ...model, enabled: true };
  throw unavailable("GitHub Copilot's answer names no model");
}

/** The ability that the prompt needs most: `code_gen 0.82`. */
function strongest(scores: unknown): string | null {
  if (!isObject(scores)) return null;
  const [most] = Object.entries(scores)
    .filter((each): each is [string, number] => typeof each[1] === "number")
    .sort(([, one], [, other]) => other - one);
  return most ? `${labelOf(most[0])} ${most[1]}` : null;
}

/** A name, never a text: it could repeat the prompt. */
const labelOf = (label: unknown): string | null =>
  typeof label === "string" && /^[a-z][\w-]{0,63}$/i.test(label) ? label : null;

/** Whether a request without a model may still be served after this failure. */
const mayOmitAfter = ({ kind, details }: ProxyError): boolean =>
  details.code === unavailableCode || kind === "timeout" || kind === "upstream";

const unavailableCode = "auto_unavailable";

/** @param why Without a full stop. */
const unavailable = (why: string | Words, kind: "no_account" | "permission" = "no_account"): ProxyError =>
  new ProxyError(kind, words`Auto could not choose a model now: ${why}. Try again in a moment, or name a model.`, {
    code: unavailableCode,
    headers: kind === "permission" ? {} : retryHeaders(10),
  });

/** A call that timed out or broke. */
const asUnavailable = (failure: ProxyError): ProxyError =>
  failure.details.code === unavailableCode ? failure : unavailable(inBoth(failure.words, withoutFullStop));
