/**
 * The scripted upstream with a second measure: it counts the tokens of each prompt that arrives with a vocabulary of its own, and
 * reports and bills these. Nothing of the product takes part in it.
 */
import { countTokens } from "gpt-tokenizer";
import type { Demo, SeenRequest } from "../../src/demo/demo";
import { eventsIn } from "../support/event-stream";

type Json = Record<string, unknown>;

/** One reply that was billed. */
export interface Billed {
  model: string;
  account: string | undefined;
  /** The body as it arrived. */
  text: string;
  /** Tokens of the tools that the model sees, by MCP server or by name, in their order. */
  tools: Map<string, number>;
  /** Tokens; the cache had `cached` of the input, and `written` were written to it. */
  input: number;
  cached: number;
  written: number;
  output: number;
  /** Billionths of a credit. */
  cost: number;
}

const paths = /\/(?:messages|responses|chat\/completions)$/;

/** @param usage What the demo would have reported. */
export type Scripted = (text: string, usage: () => object) => string | undefined;

/**
 * @param scripted What is said in place of the demo's own script.
 * @returns What was billed so far, in the order in which it ended.
 */
export function countAgain(demo: Demo, scripted: Scripted = () => undefined): Billed[] {
  const billed: Billed[] = [];
  let hasFallenSilent = false;
  const answer = async (seen: SeenRequest, { signal }: Request) => {
    if ("x-counted" in seen.headers) return undefined;
    const asked = new TextDecoder().decode(seen.bytes);
    if (!hasFallenSilent && asked.includes("[demo: silence")) {
      // It has no end to correct.
      hasFallenSilent = true;
      return undefined;
    }
    const { "content-length": _, "accept-encoding": __, ...headers } = seen.headers;
    const url = (seen.host === "business" ? demo.businessUrl : demo.url) + seen.path;
    const init = { method: seen.method, headers: { ...headers, "x-counted": "1" }, body: seen.bytes, signal };
    const reply = await fetch(url, init);
    if (!reply.ok) return reply;
    const whole = await reply.text();
    const own = scripted(asked, () => eventsIn(whole).findLast(({ usage }) => usage).usage);
    const text = corrected(own ?? whole, seen, demo, billed);
    const kept = new Headers(reply.headers);
    kept.delete("content-length");
    return new Response(text, { status: reply.status, headers: kept });
  };
  demo.intercept(paths, answer, Number.POSITIVE_INFINITY);
  return billed;
}

function corrected(reply: string, seen: SeenRequest, demo: Demo, billed: Billed[]): string {
  const body = seen.body as Json;
  const tools = toolsIn(body);
  const talk = tokensIn([body.system, body.instructions, body.messages, body.input]);
  const input = [...tools.values()].reduce((sum, tokens) => sum + tokens, talk);
  const correct = (json: Json): Json => {
    const holder = [json, json.message, json.response].find((each) => (each as Json | undefined)?.usage) as Json;
    if (!holder || !json.copilot_usage) return json;
    const usage = holder.usage as Json;
    const details = (usage.input_tokens_details ?? usage.prompt_tokens_details ?? {}) as Json;
    const written = Number(usage.cache_creation_input_tokens ?? details.cache_write_tokens ?? 0);
    const cached = Number(usage.cache_read_input_tokens ?? details.cached_tokens ?? 0);
    const isMessages = "cache_read_input_tokens" in usage;
    const before = Number(usage.input_tokens ?? usage.prompt_tokens) + (isMessages ? cached + written : 0);
    const scaled = (tokens: number) => Math.round((tokens / before) * input);
    const output = Number(usage.output_tokens ?? usage.completion_tokens);
    const own = { input, cached: scaled(cached), written: scaled(written), output };
    const cost = priceOf(demo.pricesOf(String(body.model)), own);
    billed.push({
      ...{ model: String(body.model), account: seen.account, text: new TextDecoder().decode(seen.bytes), tools },
      ...{ ...own, cost },
    });
    if (isMessages) {
      usage.input_tokens = input - own.cached - own.written;
      usage.cache_read_input_tokens = own.cached;
      usage.cache_creation_input_tokens = own.written;
      usage.cache_creation = { ephemeral_5m_input_tokens: own.written, ephemeral_1h_input_tokens: 0 };
    } else {
      usage["input_tokens" in usage ? "input_tokens" : "prompt_tokens"] = input;
      usage.total_tokens = input + output;
      details.cached_tokens = own.cached;
      if ("cache_write_tokens" in details) details.cache_write_tokens = own.written;
    }
    for (const place of new Set([json, holder]))
      if (place.copilot_usage) place.copilot_usage = { total_nano_aiu: cost };
    return json;
  };
  if (reply.startsWith("{")) return JSON.stringify(correct(JSON.parse(reply)));
  return reply.replace(/^data: (\{.*\})$/gm, (_, data: string) => `data: ${JSON.stringify(correct(JSON.parse(data)))}`);
}

/** Billionths of a credit. @param prices Credits for a million tokens. */
export function priceOf(
  prices: ReturnType<Demo["pricesOf"]>,
  { input, cached, written, output }: Pick<Billed, "input" | "cached" | "written" | "output">,
): number {
  const ofInput = (input - cached - written) * prices.input + cached * prices.cacheRead;
  return Math.round((ofInput + written * (prices.cacheWrite ?? 0) + output * prices.output) * 1_000);
}

function toolsIn(body: Json): Map<string, number> {
  const tools = new Map<string, number>();
  const add = (tool: Json, namespace = ""): void => {
    for (const each of Array.isArray(tool.tools) ? tool.tools : []) add(each, `${tool.name}__`);
    if (Array.isArray(tool.tools) || tool.defer_loading === true) return;
    const { cache_control: _, ...sent } = tool;
    const name = namespace + String((tool.function as Json | undefined)?.name ?? tool.name ?? tool.type);
    const group = /^mcp__[^_]+(?=__)/.exec(name)?.[0] ?? name;
    tools.set(group, (tools.get(group) ?? 0) + tokensOf(JSON.stringify(sent)));
  };
  for (const tool of (body.tools as Json[] | undefined) ?? []) add(tool);
  for (const item of Array.isArray(body.input) ? body.input : [])
    if (item.type === "additional_tools") for (const tool of item.tools) add(tool);
  return tools;
}

/** Members in which there is something that a model reads. */
const read = new Set(["text", "content", "thinking", "parts", "output", "summary"]);
/** Members whose JSON it reads. */
const written = new Set(["input", "arguments"]);

function tokensIn(value: unknown): number {
  if (typeof value === "string") return tokensOf(value);
  if (Array.isArray(value)) return value.reduce((sum: number, each) => sum + tokensIn(each), 0);
  if (typeof value !== "object" || value === null) return 0;
  return Object.entries(value).reduce((sum, [name, member]) => {
    if (written.has(name)) return sum + tokensOf(typeof member === "string" ? member : JSON.stringify(member));
    return sum + (read.has(name) ? tokensIn(member) : 0);
  }, 0);
}

const known = new Map<string, number>();

function tokensOf(text: string): number {
  const tokens = known.get(text) ?? countTokens(text, { allowedSpecial: "all" });
  known.set(text, tokens);
  return tokens;
}
