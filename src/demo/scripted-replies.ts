/** The demo's "model": a deterministic answer to a request, independent of any dialect, with text, thinking and tool calls. */

import type { Effects } from "./faults";
import type { Model } from "./model";
import type { Call, ModelReply, ModelRequest, Usage } from "./parse-prompt";
import { sample } from "./sample";
import { isHostedSearch, scriptedCalls, searchWish } from "./tool-scripts";
import { parse } from "./wire";

export function answer(ask: ModelRequest, model: Model, effects: Effects): ModelReply {
  const verdict = verdictOn(ask);
  const calls = verdict || effects.refuse || effects.long !== undefined ? [] : scriptedCalls(ask);
  const thinking = wantsThinking(ask, model) ? thoughts(ask) : "";
  const whole = verdict ?? (effects.long === undefined ? words(ask, calls, effects) : longText(effects.long));
  const { text, finish, stopSequence } = limit(whole, ask);
  const kept = finish === "length" ? [] : calls;
  return {
    thinking: pieces(thinking),
    redacted: effects.redacted === true && thinking !== "",
    text: effects.long === undefined ? pieces(text) : text.split(/(?<=\n)/),
    calls: kept,
    finish: effects.refuse ? "refusal" : kept.length > 0 ? "tool" : finish,
    stopSequence,
    search: calls.length === 0 ? searchQuery(ask) : undefined,
    usage: measure(ask, model, thinking, text, kept),
  };
}

/** Splits by code points, so that no piece ends inside a character. */
export const pieces = (text: string, size = 12): string[] => text.match(new RegExp(`.{1,${size}}`, "gsu")) ?? [];

function wantsThinking(ask: ModelRequest, model: Model): boolean {
  return model.reasons && (ask.thinks ?? /\bthink/i.test(ask.prompt));
}

const thoughts = (ask: ModelRequest): string =>
  ask.results.length > 0
    ? "The tool has answered. 🔎 I will say what it said."
    : `The person wrote ${ask.prompt.length} characters. Let me think… 🤔 A demo can only follow its script.`;

/**
 * What Claude Code's auto mode is told of a tool call, before which it has a model judge it: nothing speaks against it. Its
 * instructions begin so, and want this form (2.1.332, 2026-11). Without a verdict no tool runs in its default mode.
 */
const verdictOn = ({ background }: ModelRequest): string | undefined =>
  background.some((text) => /^[ \t]*You are a security monitor for autonomous AI coding agents\./m.test(text))
    ? "<severity>0</severity>"
    : undefined;

function words(ask: ModelRequest, calls: Call[], effects: Effects): string {
  if (effects.help) return effects.help;
  if (effects.refuse) return "DEMO: I can't help with that.";
  if (calls.length > 0) return `DEMO: I will call ${calls.map((call) => call.tool.name).join(" and ")}. 🔧`;
  const schema = ask.schema ?? schemaInWords(ask.background);
  if (schema) return JSON.stringify(sample(schema));
  if (ask.results.length > 0) return resultInWords(ask.results);
  const quoted = firstCharacters(ask.prompt.slice(0, 300).replace(/\s+/g, " "), 60);
  return `DEMO: Hello! 👋 You wrote “${quoted}”. This answer is scripted: no model took part 🧪, and nothing left your machine.`;
}

/** The schema of models without structured output: clients put it into the prompt. */
const schemaInWords = (background: string[]): unknown =>
  background
    .map((text) => parse(/JSON Schema: (\{.*\})/s.exec(text)?.[1] ?? ""))
    .find((written) => typeof written === "object");

/** What a tool said; of a list of pages, the first one as a link. */
function resultInWords(results: string[]): string {
  const [, title, url] = /^1\. (.+)\n(https?:\/\/\S+)/m.exec(results.join("\n")) ?? [];
  const link = url ? ` See [${title}](${url}).` : "";
  return `DEMO: done ✅ The tool said: “${firstCharacters(results.join(" | "), url ? 12 : 60)}”${link}`;
}

const firstCharacters = (text: string, count: number): string => [...text.slice(0, count * 2)].slice(0, count).join("");

const longText = (count: number): string =>
  Array.from({ length: count }, (_, index) => `Line ${index + 1} of ${count}, 第${index + 1}行 🧵\n`).join("");

/** Stop sequences, then the token limit. A call does not fit into less than 16 tokens. */
function limit(whole: string, ask: ModelRequest): Pick<ModelReply, "finish" | "stopSequence"> & { text: string } {
  const stops = ask.stops.filter((stop) => stop && whole.includes(stop));
  const stopSequence = stops.sort((a, b) => whole.indexOf(a) - whole.indexOf(b))[0];
  const text = stopSequence === undefined ? whole : whole.slice(0, whole.indexOf(stopSequence));
  if (ask.maxTokens !== undefined && (tokens(text) > ask.maxTokens || ask.maxTokens < 16))
    return { text: firstCharacters(text, ask.maxTokens * 4), finish: "length" };
  return { text, finish: stopSequence === undefined ? "stop" : "stop-sequence", stopSequence };
}

function searchQuery({ prompt, results, tools }: ModelRequest): string | undefined {
  const wanted = results.length === 0 ? searchWish.exec(prompt)?.[1] : undefined;
  return wanted !== undefined && tools.some(isHostedSearch) ? wanted.trim().slice(0, 200) || "DEMO" : undefined;
}

/** What the cache had is not known here. */
function measure(ask: ModelRequest, model: Model, thinking: string, text: string, calls: Call[]): Usage {
  const reasoning = tokens(thinking);
  const called = calls.reduce((sum, call) => sum + tokens(JSON.stringify(call.input)) + 8, 0);
  return {
    input: promptTokens(ask, model.id) + 3,
    cacheRead: 0,
    cacheWrite: 0,
    output: reasoning + tokens(text) + called,
    reasoning,
  };
}

/** How a family's own tokenizer differs from four characters for a token: in texts, and in tools, which it sees rewritten. */
interface Factors {
  texts: number;
  tools: number;
}

const families: [RegExp, Factors][] = [
  // Claude 4.7 and later have a newer tokenizer than earlier ones.
  [/^claude-(?:[a-z]+-)?(?:4[.-][7-9]|5)/, { texts: 1.53, tools: 1.6 }],
  [/^claude-/, { texts: 1.18, tools: 1.3 }],
  [/^gemini-/, { texts: 1.06, tools: 0.9 }],
];

export const factorsOf = (model: string): Factors =>
  families.find(([pattern]) => pattern.test(model))?.[1] ?? { texts: 1, tools: 1 };

/** What the model's own tokenizer makes of a prompt. */
export function promptTokens({ weight, toolWeight }: ModelRequest, model: string): number {
  const { texts, tools } = factorsOf(model);
  return tokens(weight * texts + toolWeight * tools);
}

/** Of an answer, four characters are a token. */
export const tokens = (size: string | number): number => Math.ceil((typeof size === "string" ? size.length : size) / 4);
