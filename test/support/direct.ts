/**
 * What a client directly at the upstream would have got, beside what it got through the proxy: every member, numbers by
 * their text, none of our codecs. What differs must be what the history names, and what it names must differ.
 */

/** A place where the two differ, as `reply choices.0.message.content`. */
type Difference = string;

type Json = null | boolean | string | { number: string } | Json[] | Map<string, Json>;

/** Numbers as they are spelt, members in any order. */
export function readWithSource(text: string): Json {
  const read = (value: unknown): Json => {
    if (Array.isArray(value)) return value.map(read);
    if (value instanceof NumberText) return { number: value.text };
    if (typeof value === "object" && value !== null)
      return new Map(Object.entries(value).map(([key, each]) => [key, read(each)]));
    return value as null | boolean | string;
  };
  return read(
    JSON.parse(text, (_key, value, { source }) => (typeof value === "number" ? new NumberText(source ?? "") : value)),
  );
}

class NumberText {
  constructor(readonly text: string) {}
}

/** Each place where `after` is not `before`; lists of other lengths differ as a whole. */
export function differences(before: Json | undefined, after: Json | undefined, path: string): Difference[] {
  if (before instanceof Map && after instanceof Map) {
    const keys = new Set([...before.keys(), ...after.keys()]);
    return [...keys].flatMap((key) => differences(before.get(key), after.get(key), `${path}.${key}`));
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    return before.flatMap((each, at) => differences(each, after[at], `${path}.${at}`));
  return Bun.deepEquals(before, after) ? [] : [path];
}

// ── Streams ──

interface Event {
  name: string | undefined;
  data: Json;
}

/** The events of a stream as a client reads them (WHATWG HTML, 9.2.6), and bare lines of JSON as a kind of their own. */
export function readEvents(text: string): Event[] {
  return text.split(/\r\n\r\n|\n\n|\r\r/).flatMap((block) => {
    let name: string | undefined;
    const data: string[] = [];
    for (const line of block.split(/\r\n|\n|\r/)) {
      const [, field = "", value = ""] = /^(\w*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (field === "event") name = value;
      else if (field === "data") data.push(value);
      else if (line.startsWith("{")) data.push(line);
    }
    if (data.length === 0) return [];
    const whole = data.join("\n");
    return [{ name, data: isJson(whole) ? readWithSource(whole) : whole }];
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const eventDifferences = (before: Event, after: Event): Difference[] => [
  ...(before.name === after.name ? [] : ["event name"]),
  ...differences(before.data, after.data, "event"),
];

/** The events side by side, with as few differences as can be; `left out` and `added` where one has no match. */
export function streamDifferences(before: Event[], after: Event[]): Difference[] {
  interface Way {
    cost: number;
    found: Difference[];
    from: Way | undefined;
  }
  const step = (from: Way, found: Difference[], cost = found.length): Way => ({ cost: from.cost + cost, found, from });
  const alone = 4;
  let row: Way[] = [{ cost: 0, found: [], from: undefined }];
  for (const each of after) row.push(step(row.at(-1)!, [`added ${kindOf(each)}`], alone));
  for (const one of before) {
    const next: Way[] = [step(row[0]!, [`left out ${kindOf(one)}`], alone)];
    after.forEach((other, at) => {
      const ways = [
        ...(kindOf(one) === kindOf(other) ? [step(row[at]!, eventDifferences(one, other))] : []),
        step(row[at + 1]!, [`left out ${kindOf(one)}`], alone),
        step(next[at]!, [`added ${kindOf(other)}`], alone),
      ];
      next.push(ways.reduce((best, way) => (way.cost < best.cost ? way : best)));
    });
    row = next;
  }
  const found: Difference[] = [];
  for (let way: Way | undefined = row.at(-1); way; way = way.from) found.unshift(...way.found);
  return [...new Set(found)];
}

function kindOf({ data }: Event): string {
  if (!(data instanceof Map)) return data === "[DONE]" ? "[DONE]" : data === "" ? "empty" : "text";
  const type = data.get("type");
  if (typeof type === "string") return type;
  const choices = data.get("choices");
  return Array.isArray(choices) && choices.length > 0 ? "chunk" : "wordless chunk";
}

// ── What the history names ──

/** Where mends may change something: names of mends, and the place of all of them. */
const placesOf: Record<string, RegExp> = {
  "model-name": /^(request|reply|event)(\.message|\.response)?\.model$/,
  "stream-gathered": /^request\.stream$/,
  "usage-asked": /^request\.stream_options/,
  "max-tokens": /^request\.max_tokens$/,
  "max-tokens-name": /^request\.max_(completion_)?tokens$/,
  "max-tokens-limit": /^request\.max_(completion_|output_)?tokens$/,
  reasoning: /^request\.(reasoning_effort|thinking_budget)$/,
  effort: /^request\.(reasoning|output_config)/,
  sampling: /^request\.(temperature|top_[pk])$/,
  "stop-limit": /^request\.stop$/,
  "unsupported-fields":
    /^request\.(store|metadata|inference_geo|container|mcp_servers|speed|service_tier|diagnostics|fallbacks|thread)$/,
  safeguards: /^request\.safeguards$/,
  "billing-header": /^request\.system$/,
  "beta-fields": /^request\.(thinking\.block_binding|output_config|context_management)/,
  "thinking-type": /^request\.thinking\.type$/,
  "thinking-display thinking-shown": /^request\.thinking\.display$/,
  "always-thinks thinking-adaptive": /^request\.(thinking|output_config)/,
  "forced-choice": /^request\.(tool_choice|system)/,
  "tool-schema": /^request\.tools\.\d+\.function\.parameters/,
  "input-schema": /^request\.tools\.\d+\.input_schema/,
  "schema-dialect": /^request\.tools\.\d+\.(input_schema|function\.parameters)\.\$schema$/,
  "output-schema": /^request\.(output_format|output_config)/,
  "structured-output": /^request\.(messages|response_format|output_format|output_config|system)/,
  "developer-role": /^request\.messages\.\d+\.role$/,
  "system-role system-alone empty-text": /^request\.(messages|system)/,
  "tool-changes": /^request\.(messages|tools)/,
  "message-output-config": /^request\.(messages|output_config)/,
  "cleared-reminders compaction tool-results failed-result tool-result-order": /^request\.messages/,
  "missing-tool-result orphan-tool-result tool-images tool-reference no-prefill server-calls": /^request\.messages/,
  "call-pairs repeated-item-ids": /^request\.input/,
  "call-namespace": /^request\.input\.\d+\.namespace$/,
  "namespace-description": /^request\.(input\.\d+\.)?tools\.\d+\.description$/,
  "call-input": /^request\.messages\.\d+\.(tool_calls\.\d+\.function\.arguments|content\.\d+\.input)/,
  "call-ids": /^request\.(input\.\d+\.call_id|messages\.\d+\.(tool_call_id|tool_calls\.\d+\.id))$/,
  "repeated-call-ids": /^request\.(input\.\d+\.call_id|messages.*\.(tool_use_|tool_call_)?id)$/,
  "image-type foreign-thinking": /^request\.(messages|input)/,
  "tool-ids": /^request\.messages.*\.(tool_use_)?id$/,
  "tool-fields defer-loading": /^request\.tools\.\d+\./,
  "eager-input-streaming": /^request\.tools\.\d+\.eager_input_streaming$/,
  "server-tools schema-null schema-types schema-enum schema-item-types": /^request\.tools/,
  "empty-tools": /^request\.(tools|tool_choice|parallel_tool_calls)$/,
  "schema-draft": /^request\.(tools|input|output_config)/,
  "schema-boolean schema-tuple schema-items schema-union schema-type image-generation web-search":
    /^request\.(tools|input)/,
  "schema-pattern": /^request\.(tools|input|text|response_format)/,
  "schema-words": /^request\.(tools|input|text|instructions|response_format|messages|system|output_config)/,
  "blank-stop": /^request\.stop_sequences/,
  "tool-choice-without-tools": /^request\.tool_choice/,
  "tool-choice-with-thinking thinking-in-tool-loop thinking-budget": /^request\.thinking/,
  "cache-marks": /^request\.messages\.\d+\./,
  "cache-marks-added": /^request\.messages\.\d+\.copilot_cache_control/,
  "cache-top-level": /^request\.(cache_control|messages\.\d+\.content)/,
  "cache-scope": /\.cache_control\.scope$/,
  "cache-ttl": /\.cache_control\.ttl$/,
  "cache-limit cache-on-thinking cache-in-tool-result": /\.cache_control$/,
  "lost-citations": /^request\.messages\.\d+\.content\.\d+\.citations/,
  "own-searches item-reference unsigned-reasoning": /^request\.input$/,
  "file-name": /^request\.(messages|input)\..*\.filename$/,
  "clear-thinking": /^request\.context_management/,
  // Such a request goes through the hub, which writes its numbers anew.
  "schema-names": /^request\./,
  store: /^request\.store$/,
  background: /^request\.background$/,
  "service-tier": /^request\.service_tier$/,
  "include-reasoning": /^request\.include$/,
  "strict-default": /^request\.(tools|input).*\.strict$/,
  "message-metadata": /^request\.input\.\d+\.internal_chat_message_metadata_passthrough$/,
  "object-field": /^(reply|event)\.object$/,
  "created-field": /^(reply|event)\.created$/,
  "split-choices": /^(reply\.choices|event\.choices\.\d+\.index$)/,
  "choice-index": /^reply\.choices\.\d+\.index$/,
  "choices-field": /^event\.choices$/,
  "finish-reason": /^reply\.choices\.\d+\.finish_reason$|^added chunk$/,
  padding: /\.padding$/,
  annotations: /^(reply|event)\.choices\.\d+\.(message|delta)\.annotations$/,
  role: /^(reply|event)\.choices\.\d+\.(message|delta)\.role$/,
  "content-key": /^reply\.choices\.\d+\.message\.content$/,
  "tool-id": /\.tool_calls\.\d+\.id$/,
  "done-event": /^added \[DONE\]$/,
  "tool-index": /\.tool_calls\.\d+\.index$/,
  "empty-data": /^left out empty$/,
  "usage-chunk bill-chunk": /^left out wordless chunk$/,
  "copilot-fields": /\.copilot_\w+$/,
  "block-start": /^added content_block_start$/,
  "event-name": /^event name$|^event\.type$/,
  "foreign-event": /^left out /,
  "usage-field": /\.usage$/,
  "item-ids": /\.(id|item_id)$/,
  "sequence-number": /\.sequence_number$/,
  "response-id": /^event\.response\.id$/,
  "empty-output": /\.output$/,
};
const places: Record<string, RegExp> = Object.fromEntries(
  Object.entries(placesOf).flatMap(([names, place]) => names.split(" ").map((name) => [name, place])),
);

/** What differs and is not named, and what is named and does not differ. Betas are headers, which are not compared. */
export function unexplained(found: readonly Difference[], fixups: readonly string[]) {
  // A reply that could not be followed is passed on as it is.
  const named = fixups.filter((fixup) => !fixup.startsWith("beta:") && fixup !== "reply-unfollowed");
  const explains = (fixup: string, difference: Difference) => places[fixup]?.test(difference) ?? false;
  return {
    unnamed: found.filter((difference) => !named.some((fixup) => explains(fixup, difference))),
    idle: named.filter((fixup) => !found.some((difference) => explains(fixup, difference))),
  };
}
