/**
 * Two weeks of history for the demo, made up from a seed, so that its pages show what they are for: days and nights of work,
 * prompts with subagents, cold caches, failures. The demo and its pages say that it is made up.
 */

import { type Entry, nothingKnown } from "../../books/history/entry";
import { packed } from "../../books/history/portions";
import { anthropicId } from "../../clients/claude-code-names";
import { dayMs, hourMs, minuteMs } from "../../lib/format";
import { portionsOf } from "../../proxy/tokens/portions-of";
import { exampleModels } from "../../proxy/upstream/models/known-models";
import { costOf } from "../../proxy/upstream/models/price";
import { tokenRates } from "../../proxy/upstream/models/token-rates";
import { madeOf } from "./demo-prompts";

type Kind = keyof typeof exampleModels;

/** AI credits for a million tokens. `cacheWrite` is missing where writing to the cache costs nothing more. */
export type PricesOf = (model: string) => { input: number; cacheRead: number; cacheWrite?: number; output: number };

/** How an upstream of each dialect says that the model had finished. */
const stopReasons = { messages: "end_turn", responses: "completed", chat: "stop" };

export interface Tool {
  client: string;
  dialect: keyof typeof stopReasons;
  path: string;
  endpoint: string;
  models: Kind[];
  /** For titles, topics and subagents. */
  small?: Kind;
  /** Tokens of its system prompt and tools. */
  head: number;
  key: string | null;
  /** The id of the member who uses it; missing for the owner. */
  member?: string;
  account: string;
  projects: string[];
  /** Hours of the day at which its sessions may begin, by the clock of this machine. */
  hours: number[];
  /** Sessions on a day of the week; on a weekend a third of them. */
  sessions: number;
}

export const tools: Tool[] = [
  {
    client: "claude-cli/2.1.330",
    dialect: "messages",
    path: "/v1/messages",
    endpoint: "/v1/messages",
    models: ["claude", "claude", "opus"],
    small: "haiku",
    head: 17_400,
    key: "laptop",
    account: "octo-demo",
    projects: ["web-shop", "web-shop", "billing"],
    hours: [9, 10, 11, 13, 14, 15, 16, 17],
    sessions: 4,
  },
  {
    client: "codex_cli_rs/0.169.0",
    dialect: "responses",
    path: "/v1/responses",
    endpoint: "/responses",
    models: ["gpt", "gpt", "small"],
    head: 9_800,
    key: "laptop",
    account: "plus-demo",
    projects: ["billing", "infra"],
    hours: [9, 11, 14, 16, 21],
    sessions: 2,
  },
  {
    client: "opencode/1.18.33",
    dialect: "chat",
    path: "/v1/chat/completions",
    endpoint: "/chat/completions",
    models: ["gemini", "flash"],
    head: 12_100,
    key: "desktop",
    account: "plus-demo",
    projects: ["notes"],
    hours: [19, 20, 21, 22],
    sessions: 1,
  },
  {
    client: "codex_exec/0.169.0",
    dialect: "responses",
    path: "/v1/responses",
    endpoint: "/responses",
    models: ["gpt"],
    head: 9_800,
    key: "ci",
    account: "work-demo",
    projects: ["web-shop"],
    hours: [2],
    sessions: 1,
  },
];

const days = 14;
/** After so long without a request the upstream has dropped a prompt. */
const coldAfterMs = 5 * minuteMs;

/** Numbers that look random and are always the same (mulberry32). */
function openNumbers(seed: number) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return {
    next,
    /** A whole number of this range, its ends included. */
    between: (from: number, to: number) => from + Math.floor(next() * (to - from + 1)),
    pick: <Value>(values: readonly Value[]): Value => values[Math.floor(next() * values.length)]!,
    hex: (digits: number) => Array.from({ length: digits }, () => Math.floor(next() * 16).toString(16)).join(""),
  };
}
type Numbers = ReturnType<typeof openNumbers>;

/** How a request ended that did not go well. */
type Trouble = Partial<Entry> & { tries?: { account?: string; status: number; error?: string }[] };

const troubles: { share: number; trouble: Trouble }[] = [
  {
    share: 0.012,
    trouble: {
      tries: [
        { status: 429, error: "rate_limited" },
        { account: "work-demo", status: 200 },
      ],
    },
  },
  {
    share: 0.006,
    trouble: {
      http_status: 503,
      error_type: "overloaded",
      stop_reason: null,
      error_message: "The upstream is overloaded. Try again in a moment.",
      tries: [{ status: 503, error: "overloaded" }],
    },
  },
  {
    share: 0.006,
    trouble: {
      http_status: 499,
      error_type: "client_closed",
      stop_reason: null,
      error_message: "The client hung up before the reply was complete.",
    },
  },
];

/**
 * @param now Wall clock, ms. The past ends a few minutes before it.
 * @param pricesOf What a model costs, as the demo lists it.
 * @param used The tools that were used.
 * @returns The oldest first; the same for the same minute.
 */
export function pastOf(now: number, pricesOf: PricesOf, used = tools): Entry[] {
  const numbers = openNumbers(20_261_123);
  const rows: Entry[] = [];
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  for (let day = days; day >= 0; day -= 1) {
    const start = midnight - day * dayMs;
    const isWeekend = [0, 6].includes(new Date(start).getDay());
    for (const tool of used) {
      const count = isWeekend && tool.key !== "ci" ? Math.floor(tool.sessions / 3) : tool.sessions;
      for (let session = 0; session < count; session += 1)
        rows.push(
          ...sessionOf(tool, start + numbers.pick(tool.hours) * hourMs + numbers.between(0, 3_000) * 1_000, numbers),
        );
    }
  }
  return (
    rows
      // What is older the history would drop within an hour, and the budgets would count more than it has.
      .filter(({ started_at_ms }) => started_at_ms > now - days * dayMs + hourMs)
      .filter((row) => row.started_at_ms + row.duration_ms < now - 3 * minuteMs)
      .map((row) => priced(row, pricesOf))
      .sort((one, other) => one.started_at_ms + one.duration_ms - other.started_at_ms - other.duration_ms)
  );
}

/** One conversation: prompts of a person, and what the tool does for each. */
function sessionOf(tool: Tool, startedAt: number, numbers: Numbers): Entry[] {
  const rows: Entry[] = [];
  const session = numbers.hex(16);
  const model = numbers.pick(tool.models);
  const project = numbers.pick(tool.projects);
  const isNight = tool.key === "ci";
  let at = startedAt;
  let context = tool.head;
  let cached = 0;
  let lastAt = 0;
  for (let prompts = isNight ? 1 : numbers.between(2, 6); prompts > 0; prompts -= 1) {
    // opencode names no prompts.
    const named = tool.client.startsWith("opencode") ? {} : { prompt: numbers.hex(12), kind: "main" };
    const common: Partial<Entry> = { session, project, ...named };
    const ask = (part: Partial<Entry>, used: Kind, tokens: { input: number; cached: number }) => {
      const row = rowOf(tool, used, numbers, { started_at_ms: at, ...common, ...part }, tokens);
      rows.push(row);
      return row;
    };
    const steps = numbers.between(2, isNight ? 16 : 11);
    for (let step = 0; step < steps; step += 1) {
      const isFirst = step === 0;
      const idle = lastAt === 0 ? 0 : at - lastAt;
      const isCold = idle > coldAfterMs;
      context += isFirst ? numbers.between(60, 900) : numbers.between(300, 4_200);
      if (context > 150_000) {
        const compacted = ask({ initiator: "agent", kind: "compaction" }, model, { input: context, cached });
        at += compacted.duration_ms + 300;
        context = tool.head + numbers.between(3_000, 6_000);
        cached = tool.head;
      }
      const row = ask(
        {
          initiator: isFirst && !isNight ? "user" : "agent",
          initiator_reason: isFirst ? "the last message is a person's" : "the last message has tool results",
          cache_miss: isCold ? "expired" : null,
          cache_idle_ms: isCold ? idle : null,
        },
        model,
        { input: context, cached: isCold ? 0 : cached },
      );
      cached = row.error_type === null ? context : cached;
      context += row.output_tokens ?? 0;
      lastAt = at + row.duration_ms;
      at = lastAt + numbers.between(200, 2_500);
      if (!isFirst || !tool.small) continue;
      ask({ initiator: "agent", kind: "auxiliary" }, tool.small, { input: numbers.between(350, 900), cached: 0 });
      if (numbers.next() < 0.3) at = subagents(tool, numbers, { at, common, rows });
    }
    // A person reads, thinks, has lunch.
    at += numbers.next() < 0.15 ? numbers.between(6, 40) * minuteMs : numbers.between(20, 200) * 1_000;
  }
  return rows;
}

/** @returns When the last of them has ended. */
function subagents(
  tool: Tool,
  numbers: Numbers,
  { at, common, rows }: { at: number; common: Partial<Entry>; rows: Entry[] },
): number {
  let end = at;
  for (let agents = numbers.between(1, 3); agents > 0; agents -= 1) {
    let moment = at + agents * 150;
    let input = 6_200;
    let cached = 0;
    for (let steps = numbers.between(2, 6); steps > 0; steps -= 1) {
      const part = { started_at_ms: moment, ...common, initiator: "agent", kind: "subagent", agent_type: "Explore" };
      const row = rowOf(tool, tool.small!, numbers, part, { input, cached });
      rows.push(row);
      cached = input;
      input += numbers.between(800, 5_000);
      moment += row.duration_ms + 400;
    }
    end = Math.max(end, moment);
  }
  return end;
}

function rowOf(
  tool: Tool,
  kind: Kind,
  numbers: Numbers,
  part: Partial<Entry> & Pick<Entry, "started_at_ms">,
  tokens: { input: number; cached: number },
): Entry {
  const output = numbers.between(40, 900);
  const chance = numbers.next();
  // No account of the owner's comes to the aid of a member.
  const { tries = [{ status: 200 }], ...ends } = (tool.member ? undefined : troubleAt(chance)) ?? {};
  const isServed = ends.error_type === undefined;
  const firstByte = numbers.between(380, 1_700) + (tokens.input - tokens.cached) / 60;
  const writing = output * numbers.between(9, 16);
  const isAnswered = tries.at(-1)?.status === 200;
  const model = exampleModels[kind];
  const account = tries.at(-1)?.account ?? tool.account;
  const attempts = tries.map(({ account: tried = tool.account, ...answer }) => ({
    account: tried,
    ...answer,
    ms: Math.round(firstByte / tries.length),
  }));
  return {
    ...nothingKnown,
    request_id: crypto.randomUUID(),
    duration_ms: Math.round(firstByte + (isAnswered ? writing : 0)),
    first_byte_ms: isServed ? Math.round(firstByte) : null,
    path: tool.path,
    client_dialect: tool.dialect,
    upstream_dialect: tool.dialect,
    upstream_endpoint: tool.endpoint,
    account_id: account,
    account_key: `github.com/${account}`,
    client_model: tool.dialect === "messages" ? anthropicId(model) : model,
    upstream_model: model,
    stream: 1,
    initiator: "agent",
    attempts: JSON.stringify(attempts),
    http_status: 200,
    stop_reason: stopReasons[tool.dialect],
    client_name: tool.client,
    input_tokens: isServed ? tokens.input : null,
    output_tokens: isServed ? output : null,
    cached_tokens: isServed ? tokens.cached : null,
    tokens_estimated: 0,
    cost_at_least: 0,
    fixups: "[]",
    dropped: "[]",
    key_name: tool.key,
    member: tool.member ?? null,
    ...ends,
    ...part,
  };
}

/** The row with what it cost, and what was written to the cache where that has a price. */
function priced(row: Entry, pricesOf: PricesOf): Entry {
  const { input_tokens: sent, output_tokens: output, cached_tokens: cached } = row;
  if (sent === null || output === null || cached === null) return row;
  const { input, cacheRead, cacheWrite, output: perOutput } = pricesOf(row.upstream_model!);
  const written = cacheWrite === undefined ? undefined : sent - cached;
  const tokens = { input, cachedInput: cacheRead, cacheWrite, cacheWriteHour: undefined, output: perOutput };
  const price = { premium: true, units: undefined, tokens: { ...tokens, per: 1_000_000 } };
  const usage = { input: sent, output, cachedInput: cached, cacheWrite: written };
  const cost = costOf(price, usage, row.initiator === "user");
  const rates = tokenRates(price, usage, cost.amount);
  const { portions, marked } = portionsOf(madeOf(headOf(row), sent), usage, rates, undefined);
  return {
    ...row,
    cache_write_tokens: written ?? null,
    cost: cost.amount,
    cost_unit: cost.unit,
    portions: packed(portions),
    marked_tokens: row.client_dialect === "messages" ? marked : 0,
    cache_lost_cost: row.cache_miss === null || !rates ? null : Math.round(sent * (rates.input - rates.cachedInput)),
  };
}

/** Tokens of the row's tools and instructions, which are always as long. */
function headOf({ client_name, agent_type }: Entry): number {
  const { head = 0 } = tools.find(({ client }) => client === client_name) ?? {};
  return agent_type === null ? head : head / 3;
}

function troubleAt(chance: number): Trouble | undefined {
  let below = 0;
  return troubles.find(({ share }) => {
    below += share;
    return chance < below;
  })?.trouble;
}
