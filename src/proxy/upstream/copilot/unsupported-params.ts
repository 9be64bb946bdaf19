/**
 * Parameters that a model's endpoint does not support. Clients add new ones faster than upstreams accept them. If an
 * error names one, the request is sent again without it, before any byte goes to the client. If that succeeds, the
 * parameter is remembered for an hour, and later requests are sent without it.
 */

import { BoundedMap } from "../../../lib/bounded-map";
import { hourMs } from "../../../lib/format";
import { isObject } from "../../../lib/json";
import { editMembers, removePaths } from "../../../lib/net/json/json-edit";
import { withoutEnd } from "../../../lib/without-end";

/** Milliseconds. */
const rememberFor = hourMs;
const none: readonly string[] = [];
/** A client could send a new name with each request, so the oldest pattern is dropped beyond this number. */
const maxPatterns = 500;

/** `unsupported-params.test.ts` lists the forms that upstreams use. */
export class UnsupportedParams {
  readonly #until = new BoundedMap<string, { model: string; pattern: string; until: number }>(maxPatterns);

  constructor(private readonly now: () => number) {}

  /** Everything that is remembered; `until` is a timestamp in milliseconds. */
  all(): { model: string; pattern: string; until: number }[] {
    for (const [key, param] of this.#until) if (param.until <= this.now()) this.#until.delete(key);
    return [...this.#until.values()];
  }

  /** The remembered patterns of a model. */
  known(model: string): readonly string[] {
    return this.#until.size === 0 ? none : this.#knownOf(model);
  }

  #knownOf(model: string): string[] {
    return this.all().flatMap((param) => (param.model === model ? [param.pattern] : []));
  }

  /** Remembers a parameter: the model accepted a request without it that it had refused with it. */
  learn(model: string, pattern: string): void {
    this.#until.set(`${model} ${pattern}`, { model, pattern, until: this.now() + rememberFor });
  }
}

/**
 * The pattern of a parameter that an upstream named. An index in it becomes `*`, for every element of the list.
 * @param param In OpenAI's notation (`input[0].phase`) or Anthropic's (`messages.0.content.1.thinking.mark`).
 * @returns Undefined for a parameter that no request can be sent without.
 */
export function patternOf(param: string): string | undefined {
  const segments = param
    .replace(/\[(\d+)\]/g, ".$1")
    .split(".")
    .map((segment) => (/^\d+$/.test(segment) ? "*" : segment));
  return isRemovable(segments) ? segments.join(".") : undefined;
}

function isRemovable(segments: readonly string[]): boolean {
  const last = segments.at(-1)!;
  if (segments.some((segment) => !/^(?:[\w-]+|\*)$/.test(segment)) || last === "*") return false;
  if (required.has(last) || essential.has(segments.join("."))) return false;
  // Names inside these members belong to the client's tools or to the model's output.
  return !segments.slice(1, -1).some((segment) => opaque.has(segment));
}

const wordsIn = (text: string) => new Set(text.trim().split(/\s+/));

/** Members that a message, a block, an item or a tool cannot be without, at any depth. */
const required = wordsIn(`
  type role name id text thinking signature data content input input_schema parameters schema function arguments output
  call_id tool_call_id tool_use_id tool_calls source media_type url file_id file_data image_url summary
  encrypted_content model messages namespace
`);

/** Members that change what the client asked for: without them it would get the answer to another request. */
const essential = wordsIn(`
  system instructions prompt previous_response_id conversation tools tool_choice functions function_call mcp_servers
  response_format output_format text.format output_config.format n stop stop_sequences stream modalities audio
  max_tokens max_completion_tokens max_output_tokens web_search_options compaction
`);

const opaque = wordsIn("input input_schema parameters arguments schema");

/**
 * The request without the parameters. All other bytes stay as they are; a text without any of them is returned unchanged.
 * @param text A JSON object.
 * @returns The text, and the patterns that were found in it.
 */
export function withoutParams(text: string, patterns: readonly string[]): { text: string; removed: string[] } {
  // Most requests have none of them, and need no parsing to find that out.
  const likely = patterns.filter((pattern) => text.includes(`"${pattern.split(".").at(-1)}"`));
  if (likely.length === 0) return { text, removed: [] };
  const body: unknown = JSON.parse(text);
  const found = likely.map((pattern) => ({ pattern, paths: [...find(body, pattern.split("."), [])] }));
  const removed = found.flatMap(({ pattern, paths }) => (paths.length > 0 ? [pattern] : []));
  const left = removePaths(
    text,
    found.flatMap(({ pattern, paths }) => (pattern === disabledThinking ? [] : paths)),
  );
  return { text: removed.includes(disabledThinking) ? editMembers(left, replacedThinking, []) : left, removed };
}

/** A model that refuses this always thinks, and may refuse a request without thinking, too: it is asked to think. */
const disabledThinking = "thinking.disabled";
const replacedThinking = { thinking: { type: "adaptive", display: "summarized" } };

type Path = (string | number)[];

/** The paths of the members that match a pattern. */
function* find(value: unknown, [segment, ...rest]: string[], at: Path): Generator<Path> {
  if (segment === undefined) return;
  if (Array.isArray(value)) {
    if (segment === "*") for (const [index, item] of value.entries()) yield* find(item, rest, [...at, index]);
    return;
  }
  if (!isObject(value)) return;
  const member = Object.hasOwn(value, segment) ? value[segment] : undefined;
  if (rest.length === 0) {
    if (Object.hasOwn(value, segment)) yield [...at, segment];
    // As in `thinking.disabled`: the parameter itself, where it is of this type.
    else if (at.length === 1 && !essential.has(String(at[0])) && segment === kindOf(value, at)) yield at;
  } else if (typeof member === "object" && member !== null) yield* find(member, rest, [...at, segment]);
  // Anthropic adds an object's type to the path, as in `cache_control.ephemeral.scope`: only objects of that type match.
  else if (segment === kindOf(value, at)) yield* find(value, rest, at);
}

function kindOf({ type }: Record<string, unknown>, at: Path): unknown {
  return type ?? (at.length === 2 && at[0] === "tools" ? "custom" : undefined);
}

/**
 * The parameter that a 400 names as unsupported, in the upstream's notation.
 * Source of the codes and messages: the errors of OpenAI's API, of Anthropic's, and of models on Copilot.
 */
export function refusedParam({
  code,
  message,
  param,
}: {
  code: string;
  message: string;
  param?: string;
}): string | undefined {
  if (param !== undefined && /^un(?:known|supported|recognized)_(?:parameter|argument)/.test(code)) return param;
  const beta = refusedBeta.exec(message)?.[1];
  if (beta !== undefined) return betaPrefix + beta;
  if (refusedCompaction.test(message)) return `${betaPrefix}compact-2026-01-12`;
  for (const pattern of unsupportedParams) {
    const [, ...segments] = pattern.exec(message) ?? [];
    if (segments.length > 0) return withoutEnd(segments.join("."), ".");
  }
  return undefined;
}

/** Betas are refused like parameters; their header's name tells them apart. */
const betaPrefix = "anthropic-beta.";
const refusedBeta = /Unexpected value\(s\) `([\w-]+)`[^.]* for the `anthropic-beta` header/;

/** Of a model that makes no summaries: the edit that asks for them, or a summary in the conversation. */
const refusedCompaction = /Input tag '(?:compact_20260112|compaction)' found/;

/** The beta that a pattern stands for; undefined for a parameter. */
export const betaIn = (pattern: string): string | undefined =>
  pattern.startsWith(betaPrefix) ? pattern.slice(betaPrefix.length) : undefined;

const unsupportedParams = [
  // Claude Fable 5 and Opus 5.5 always think (Anthropic's answers, 2026-08 and 2026-09).
  /"(thinking)\.type\.(disabled)" is not supported/,
  /\b(thinking): Input tag '(disabled)' found/,
  /(?:^|[\s'"`])([\w.[\]-]+)['"`]?: Extra inputs are not permitted/,
  /(?:Unknown|Unsupported|Unrecognized) (?:request )?(?:parameter|argument)(?: supplied)?: ['"`]?([\w.[\]-]+)/i,
  /^Function tools with ([\w.]+) are not supported\b/,
];
