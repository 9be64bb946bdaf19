/**
 * The "model": a deterministic answer to a request, in no dialect. It talks, thinks, and runs small errands with the
 * tools it is offered.
 */

import type { Orders } from "./faults";
import type { Model } from "./models";
import type { Ask, Call, Plan, Usage } from "./parse-prompt";
import { sample } from "./sample";
import { errand } from "./tool-scripts";

export function answer(ask: Ask, model: Model, orders: Orders): Plan {
  const calls = ask.results.length > 0 || orders.refuse || orders.long !== undefined ? [] : errand(ask);
  const thinking = wantsThinking(ask, model) ? thoughts(ask) : "";
  const whole = orders.long === undefined ? words(ask, calls, orders) : longText(orders.long);
  const { text, finish, stopSequence } = limit(whole, ask);
  const kept = finish === "length" ? [] : calls;
  return {
    thinking: pieces(thinking),
    redacted: orders.redacted === true && thinking !== "",
    text: orders.long === undefined ? pieces(text) : text.split(/(?<=\n)/),
    calls: kept,
    finish: orders.refuse ? "refusal" : kept.length > 0 && !orders.wrongFinish ? "tool" : finish,
    stopSequence,
    search: calls.length === 0 ? searchQuery(ask) : undefined,
    usage: measure(ask, thinking, text, kept),
  };
}

/** Splits by code points, so that no piece ends inside a character. */
export const pieces = (text: string, size = 12): string[] => text.match(new RegExp(`.{1,${size}}`, "gsu")) ?? [];

/** The person's own words: what clients put around them in tags is not meant for the model's errands. */
export function ownWords(text: string): string {
  const tags = /<(system-reminder|environment_context|user_instructions|mode_notice)>/g;
  const unclosed = new Set<string>();
  let kept = "";
  let from = 0;
  for (let tag = tags.exec(text); tag; tag = tags.exec(text)) {
    const closing = `</${tag[1]}>`;
    // Searched for once: a text of nothing but opening tags would take minutes.
    const end = unclosed.has(closing) ? -1 : text.indexOf(closing, tags.lastIndex);
    if (end === -1) {
      unclosed.add(closing);
      continue;
    }
    kept += text.slice(from, tag.index);
    from = tags.lastIndex = end + closing.length;
  }
  // Around a person's own words.
  return (kept + text.slice(from)).replace(/<\/?user_input(?: mode="\w+")?>/g, "").trim();
}

/**
 * The newest words of a person, of what each message holds of them: since the model last spoke, or before it called
 * tools. A client's reminder alone makes it do nothing again.
 */
export const newestWords = (said: string[], sinceTheModel: string[], results: string[]): string =>
  (results.length > 0 ? said : sinceTheModel).findLast(Boolean) ?? "";

function wantsThinking(ask: Ask, model: Model): boolean {
  return model.reasons && (ask.thinks ?? /\bthink/i.test(ask.prompt));
}

const thoughts = (ask: Ask): string =>
  ask.results.length > 0
    ? "The tool has answered. 🔎 I will say what it said."
    : `The person wrote ${ask.prompt.length} characters. 让我想一想… 🤔 A demo can only follow its script.`;

function words(ask: Ask, calls: Call[], orders: Orders): string {
  if (orders.help) return orders.help;
  if (orders.refuse) return "DEMO: I can't help with that.";
  if (calls.length > 0) return `DEMO: I will call ${calls.map((call) => call.tool.name).join(" and ")}. 🔧`;
  const schema = ask.schema ?? schemaInWords(ask.background);
  if (schema) return JSON.stringify(sample(schema));
  if (ask.results.length > 0) return `DEMO: done ✅ The tool said: “${firstCharacters(ask.results.join(" | "), 60)}”`;
  const said = firstCharacters(ask.prompt.slice(0, 300).replace(/\s+/g, " "), 60);
  return `DEMO: Hello! 👋 You wrote “${said}”. This answer is scripted, 没有模型参与 🧪, and nothing left your machine.`;
}

/** A model that cannot be held to a schema may be asked to keep to one. */
function schemaInWords(background: string[]): unknown {
  for (const text of background) {
    const written = /JSON Schema: (\{.*\})/s.exec(text)?.[1];
    try {
      if (written) return JSON.parse(written);
    } catch {
      // Not a schema alone: the words mean something else.
    }
  }
  return undefined;
}

const firstCharacters = (text: string, count: number): string => [...text.slice(0, count * 2)].slice(0, count).join("");

const longText = (count: number): string =>
  Array.from({ length: count }, (_, index) => `Line ${index + 1} of ${count}, 第${index + 1}行 🧵\n`).join("");

/** Stop sequences, then the token limit. A call does not fit into less than 16 tokens. */
function limit(whole: string, ask: Ask): Pick<Plan, "finish" | "stopSequence"> & { text: string } {
  const stops = ask.stops.filter((stop) => stop && whole.includes(stop));
  const stopSequence = stops.sort((a, b) => whole.indexOf(a) - whole.indexOf(b))[0];
  const text = stopSequence === undefined ? whole : whole.slice(0, whole.indexOf(stopSequence));
  if (ask.maxTokens !== undefined && (tokens(text) > ask.maxTokens || ask.maxTokens < 16))
    return { text: firstCharacters(text, ask.maxTokens * 4), finish: "length" };
  return { text, finish: stopSequence === undefined ? "stop" : "stop-sequence", stopSequence };
}

function searchQuery({ prompt, results, tools }: Ask): string | undefined {
  const asked = results.length === 0 && /\bsearch (the web|online)\b|\bweb search\b/i.test(prompt);
  return asked && tools.some((tool) => tool.name === "web_search") ? prompt.slice(0, 200) : undefined;
}

/** Later turns read most of the conversation from the cache; a first turn with marks writes it there. */
function measure(ask: Ask, thinking: string, text: string, calls: Call[]): Usage {
  const input = tokens(ask.weight) + 3;
  const cached = Math.floor(input * 0.8);
  const reasoning = tokens(thinking);
  const called = calls.reduce((sum, call) => sum + tokens(JSON.stringify(call.input)) + 8, 0);
  return {
    input,
    cacheRead: ask.turns > 0 ? cached : 0,
    cacheWrite: ask.turns === 0 && ask.marks ? cached : 0,
    output: reasoning + tokens(text) + called,
    reasoning,
  };
}

/** Four characters are a token. */
export const tokens = (size: string | number): number => Math.ceil((typeof size === "string" ? size.length : size) / 4);
