/**
 * Parameters a model's endpoint does not take. Clients grow new ones faster than upstreams learn them: one that is
 * refused by name is left out and the request sent once more, before any byte went to the client. Once that was
 * accepted, the parameter is remembered for a while, so that the next request does not stumble again.
 */
import { BoundedMap } from "../bounded-map";
import { isObject } from "../json";
import { removePaths } from "../net/json-edit";

/** `unsupported-params.test.ts` holds the spellings upstreams use. */
export interface UnsupportedParams {
  /** Patterns that hold for the model now. */
  known(model: string): string[];
  /** The model took a request that it had refused with this parameter. */
  learn(model: string, pattern: string): void;
  /** One pattern of a model, or all of them; false when there was none. */
  forget(model: string, pattern?: string): boolean;
  /** Everything remembered, for people: until when as ms timestamp. */
  all(): { model: string; pattern: string; until: number }[];
}

/** Milliseconds. */
const rememberFor = 3600_000;
/** A client may invent a name with each request: the oldest pattern makes room. */
const maxPatterns = 500;

export function openUnsupportedParams(now: () => number = Date.now): UnsupportedParams {
  const until = new BoundedMap<string, { model: string; pattern: string; until: number }>(maxPatterns);
  const all = () => {
    for (const [key, param] of until) if (param.until <= now()) until.delete(key);
    return [...until.values()];
  };
  return {
    all,
    known: (model) =>
      until.size === 0 ? [] : all().flatMap((param) => (param.model === model ? [param.pattern] : [])),
    learn(model, pattern) {
      until.set(`${model} ${pattern}`, { model, pattern, until: now() + rememberFor });
    },
    forget(model, pattern) {
      const found = all().filter((param) => param.model === model && (pattern ?? param.pattern) === param.pattern);
      for (const param of found) until.delete(`${param.model} ${param.pattern}`);
      return found.length > 0;
    },
  };
}

/**
 * The pattern of a parameter that an upstream named: any element of a list stands for all of them.
 * @param param As spelt by OpenAI (`input[0].phase`) or Anthropic (`messages.0.content.1.thinking.mark`).
 * @returns Undefined for what no request may lose.
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
  if (required.has(last) || meant.has(segments.join("."))) return false;
  // Within these the names are the client's own, and what they hold is the model's or the tool's.
  return !segments.slice(1, -1).some((segment) => opaque.has(segment));
}

const wordsIn = (text: string) => new Set(text.trim().split(/\s+/));

/** Members without which a message, a block, an item or a tool is none, wherever they stand. */
const required = wordsIn(`
  type role name id text thinking signature data content input input_schema parameters schema function arguments output
  call_id tool_call_id tool_use_id tool_calls source media_type url file_id file_data image_url summary
  encrypted_content model messages
`);

/** Members without which the answer would be one to another question. */
const meant = wordsIn(`
  system instructions prompt previous_response_id conversation tools tool_choice functions function_call mcp_servers
  response_format output_format text.format output_config.format n stop stop_sequences stream modalities audio
  max_tokens max_completion_tokens max_output_tokens web_search_options
`);

const opaque = wordsIn("input input_schema parameters arguments schema");

/**
 * The request without the parameters; the very same text when it has none of them, every other byte as it was.
 * @param text A JSON object.
 * @returns Also which of the patterns it had.
 */
export function withoutParams(text: string, patterns: readonly string[]): { text: string; removed: string[] } {
  // Most requests have none, and need not be parsed for that.
  const likely = patterns.filter((pattern) => text.includes(`"${pattern.split(".").at(-1)}"`));
  if (likely.length === 0) return { text, removed: [] };
  const body: unknown = JSON.parse(text);
  const found = likely.map((pattern) => ({ pattern, paths: [...find(body, pattern.split("."), [])] }));
  const removed = found.flatMap(({ pattern, paths }) => (paths.length > 0 ? [pattern] : []));
  return {
    text: removePaths(
      text,
      found.flatMap(({ paths }) => paths),
    ),
    removed,
  };
}

type Path = (string | number)[];

/** Where the members stand that a pattern means. */
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
  } else if (typeof member === "object" && member !== null) yield* find(member, rest, [...at, segment]);
  // Anthropic names the kind on the way, as in `cache_control.ephemeral.scope`: only objects of that kind are meant.
  else if (segment === kindOf(value, at)) yield* find(value, rest, at);
}

function kindOf({ type }: Record<string, unknown>, at: Path): unknown {
  return type ?? (at.length === 2 && at[0] === "tools" ? "custom" : undefined);
}

/**
 * The parameter that a 400 names as one it does not take, as the upstream spells it.
 * The codes and sentences are those of OpenAI's API, of Anthropic's, and of models on Copilot.
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
  for (const pattern of unsupportedParams) {
    const found = pattern.exec(message)?.[1]?.replace(/\.+$/, "");
    if (found) return found;
  }
  return undefined;
}

const unsupportedParams = [
  /(?:^|[\s'"`])([\w.[\]-]+)['"`]?: Extra inputs are not permitted/,
  /(?:Unknown|Unsupported|Unrecognized) (?:request )?(?:parameter|argument)(?: supplied)?: ['"`]?([\w.[\]-]+)/i,
  /^Function tools with ([\w.]+) are not supported\b/,
];
