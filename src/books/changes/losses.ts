/**
 * Notices what GitHub Copilot no longer sends though it always did, and prices, limits, quotas or usage are read from it: such
 * a number is unknown from then on, and whoever relies on it must hear so. What is new is counted in `drift.ts`.
 *
 * "Always" means: in every known generation of the answer, or before in the answers to the same account (and for the same
 * model). It is kept in memory: after a restart, a member that answers may lack is missed only once it was seen again.
 */

import type { Dialect, JsonObject } from "../../dialects/hub/conversation";
import type { Usage } from "../../dialects/hub/reply";
import { BoundedMap } from "../../lib/bounded-map";
import { dayMs, zonedTime } from "../../lib/format";
import { isObject } from "../../lib/json";
import type { Logger } from "../../lib/logger";
import {
  type AnswerKind,
  type AnswerMember,
  answerMembers,
  hasMember,
  type ReadMember,
  type UsageMember,
  usageMembers,
} from "./read-members";

/** Something that is missing now. */
export interface Loss {
  where: AnswerKind;
  /** The path of the member, with its names in all generations. */
  member: string;
  /** What is wrong without it: the beginning of a sentence that ends in `since …`. */
  affects: string;
  /** Answers that lacked it. */
  count: number;
  /** An answer had it since the start. */
  wasThere: boolean;
  /** Unix ms. */
  firstAt: number;
  lastAt: number;
}

/** Replies that must have had a number before it counts as always there, and that must lack it before it counts as gone. */
const repliesToKnow = 3;
/** Pairs of an account and a kind of answer, or of an account and a model. */
const maxKnown = 20_000;

/** The members that were seen in a kind of an account's answers. Of a model list, with the ids of the models that had them. */
type Seen = Map<AnswerMember, ReadonlySet<string>>;
/** Whether the replies to one account by one model always have a number. */
interface Regularity<Member = ReadMember> {
  readonly member: Member;
  /** Replies that had it. */
  had: number;
  /** Replies in a row that lacked it. */
  missed: number;
  /** It came back after it was missing: the model states it only now and then. */
  isIrregular: boolean;
}

const membersOf = Object.groupBy(answerMembers, ({ where }) => where);
const numbersOf = Object.groupBy(usageMembers, ({ where }) => where);
const newSeen = (): Seen => new Map();
const newCount = <Member>(member: Member): Regularity<Member> => ({ member, had: 0, missed: 0, isIrregular: false });
const noIds: ReadonlySet<string> = new Set();

export class Losses {
  readonly #lost = new Map<ReadMember, Loss & { from: Set<string> }>();
  // An account that answers is not forgotten for others.
  readonly #seen = new BoundedMap<string, Seen>(maxKnown);
  readonly #counts = new BoundedMap<string, readonly Regularity<UsageMember>[]>(maxKnown);
  readonly #gradual = new BoundedMap<string, Regularity>(maxKnown);

  constructor(private readonly options: { logger: Pick<Logger, "warn" | "info">; now(): number }) {}

  /** @param account The account whose answer it is. */
  inspect(where: AnswerKind, account: string, answer: unknown): void {
    if (!isObject(answer)) return;
    const from = `${where} ${account}`;
    const seen = this.#seen.renewed(from, newSeen);
    for (const row of membersOf[where] ?? []) {
      const isThere = hasMember(answer, row);
      if (row.isGradual) this.#isMissing(this.#gradualOf(row, from), isThere === true, from);
      else if (isThere) {
        seen.set(row, noIds);
        this.#find(row, from);
      } else if (isThere === false && (!row.isOptional || seen.has(row))) this.#miss(row, from, seen.has(row));
    }
  }

  #gradualOf(row: AnswerMember, from: string): Regularity {
    return this.#gradual.renewed(`${row.path} ${from}`, () => newCount(row));
  }

  /** The items of one model list. */
  inspectModels(account: string, items: readonly JsonObject[]): void {
    const from = `models ${account}`;
    const seen = this.#seen.renewed(from, newSeen);
    for (const row of membersOf.models ?? []) this.#judgeList(row, from, items, seen);
  }

  /**
   * The usage of a reply that came to its end.
   * @returns It without the numbers that are wrong because a part of them is missing, and the numbers that it lacks although
   * the replies always had them.
   */
  inspectUsage(
    dialect: Dialect,
    account: string,
    model: string,
    usage: Partial<Usage>,
  ): { usage: Partial<Usage>; lost: (keyof Usage)[] } {
    const from = `${dialect} ${account} ${model}`;
    const lost: (keyof Usage)[] = [];
    const counts = this.#counts.renewed(from, () => numbersOf[dialect]?.map(newCount) ?? []);
    for (const count of counts) {
      const name = count.member.usage;
      if (this.#isMissing(count, usage[name] !== undefined, from)) lost.push(name);
    }
    // Anthropic counts cached tokens beside the input, which is too small without them.
    const isPartial = dialect === "messages" && (lost.includes("cachedInput") || lost.includes("cacheWrite"));
    if (!isPartial) return { usage, lost };
    const { input: _, ...rest } = usage;
    return { usage: rest, lost };
  }

  /** What was missing within the last day, the newest first. */
  get current(): readonly Loss[] {
    return [...this.#lost.values()]
      .filter(({ lastAt }) => this.options.now() - lastAt < dayMs)
      .map(({ from: _, ...loss }) => loss)
      .sort((one, other) => other.firstAt - one.firstAt);
  }

  /** Counts an answer that has a member or lacks it. @returns Whether it should have had it. */
  #isMissing(count: Regularity, isThere: boolean, from: string): boolean {
    const row = count.member;
    if (isThere) {
      count.isIrregular ||= count.missed > 0;
      count.had++;
      count.missed = 0;
      this.#find(row, from);
      return false;
    }
    count.missed++;
    if (row.isOptional && (count.isIrregular || count.had < repliesToKnow)) return false;
    if (count.missed >= repliesToKnow) this.#miss(row, from, count.had > 0);
    return true;
  }

  #miss(row: ReadMember, from: string, wasThere: boolean): void {
    const { logger, now } = this.options;
    const loss = this.#lost.get(row);
    if (loss && now() - loss.lastAt < dayMs) {
      loss.count++;
      loss.wasThere ||= wasThere;
      loss.lastAt = now();
      loss.from.add(from);
      return;
    }
    const { where, path: member, affects } = row;
    const found = { where, member, affects, wasThere, count: 1, firstAt: now(), lastAt: now() };
    this.#lost.set(row, { ...found, from: new Set([from]) });
    logger.warn(lossInWords(found, now()));
  }

  #find(row: ReadMember, from: string): void {
    const loss = this.#lost.get(row);
    if (!loss?.from.delete(from) || loss.from.size > 0) return;
    this.#lost.delete(row);
    this.options.logger.info(`${places[row.where]} has ${namesOf(row.path)} again.`);
  }

  /** A rename is one of the whole list: no model has the member any more. A single model may be without it. */
  #judgeList(row: AnswerMember, from: string, items: readonly JsonObject[], seen: Seen): void {
    const idsWhere = (isThere: boolean) =>
      items.filter((item) => hasMember(item, row) === isThere).map(({ id }) => String(id));
    const having = new Set(idsWhere(true));
    if (having.size > 0) {
      seen.set(row, having);
      this.#find(row, from);
      return;
    }
    const lacking = idsWhere(false);
    const isMissed = row.isOptional ? lacking.some((id) => seen.get(row)?.has(id)) : lacking.length > 0;
    if (isMissed) this.#miss(row, from, seen.has(row));
  }
}

const places = {
  models: "GitHub Copilot's model list",
  token: "GitHub's answer with the Copilot token",
  user: "GitHub's answer with the quota",
  answers: "Each answer of GitHub Copilot",
  "quota headers": "The quota in headers of GitHub Copilot's answers",
  chat: "GitHub Copilot's usage on /chat/completions",
  responses: "GitHub Copilot's usage on /responses",
  messages: "GitHub Copilot's usage on /v1/messages",
} satisfies Record<AnswerKind, string>;

/** `a.b (or c)` */
function namesOf(path: string): string {
  const [first = "", ...others] = path.split(".").at(-1)!.split("|");
  const around = path
    .split(".")
    .slice(0, -1)
    .map((step) => `${step.split("|")[0]}.`)
    .join("");
  return around + first + (others.length > 0 ? ` (or ${others.join(", ")})` : "");
}

/** What is missing, and since when which number is unknown. */
export const lossInWords = ({ where, member, affects, wasThere, firstAt }: Loss, now: number): string =>
  `${places[where]} ${wasThere ? "no longer has" : "lacks"} ${namesOf(member)}: ${affects} since ${zonedTime(firstAt, now)}. Look for an update of dragoman; if there is none, \`dragoman doctor --deep\` writes what helps to mend it.`;
