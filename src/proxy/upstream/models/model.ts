/** One model as the upstream lists it (`GET /models`), read leniently: a missing value is unknown. */

import { type ModelWarning, readWarnings } from "../../../books/changes/warnings";
import { type Dialect, dialects, type JsonObject } from "../../../dialects/hub/conversation";
import { countIn } from "../../../dialects/hub/json";
import type { ModelFacts } from "../../../dialects/hub/model";
import { upstreamPaths } from "../../../lib/api-paths";
import { isObject } from "../../../lib/json";
import { isKnownFor, namedAbilities } from "./known-models";
import { type Price, readPrice } from "./price-list";

export interface Model extends ModelFacts {
  /** The display name. */
  name: string;
  /** What the id resolves to, often the same. */
  version: string;
  /** `decision` answers questions about a state at a path of its own (`microsoft-decision-1`, seen 2026-11). */
  kind: (typeof modelKinds)[number];
  preview: boolean;
  /** Meant for small tasks. */
  light: boolean;
  /** GitHub's word for what it costs: `low`, `medium`, `high`, `very_high`. */
  priceCategory?: string;
  /** Offered in the official model picker; hidden ones are usually callable. */
  picked: boolean;
  /** The account's last list lacks it, an earlier one had it: it is kept for a day. */
  isAbsent?: true;
  /** The list says that the picker does not offer it. */
  unpicked?: true;
  /** Its terms are accepted, or it has none. */
  enabled: boolean;
  price: Price;
  /** The share of its price that Auto takes off, 0 … 1; missing if the list names none. */
  autoDiscount?: number;
  tokenizer?: string;
  /** What GitHub tells of it; missing if there is nothing. */
  warnings?: readonly ModelWarning[];
}

/** Undefined if there is no usable id. */
export function readModel(item: unknown): Model | undefined {
  if (!isObject(item) || typeof item.id !== "string" || item.id === "" || item.id.length > 256) return undefined;
  const capabilities = objectIn(item.capabilities);
  const limits = objectIn(capabilities.limits);
  const supports = objectIn(capabilities.supports);
  const warnings = readWarnings(item);
  const endpoints = item.supported_endpoints;
  const decides = Array.isArray(endpoints) ? endpoints.includes(decisionPath) : isKnownFor("decides", item.id);
  const kind = decides ? "decision" : (modelKinds.find((each) => each === capabilities.type) ?? "chat");
  return {
    id: item.id,
    name: shortText(item.name) ?? item.id,
    vendor: shortText(item.vendor) ?? "unknown",
    version: shortText(item.version) ?? item.id,
    kind,
    preview: item.preview === true,
    light: isLight(item, item.id),
    priceCategory: shortText(item.model_picker_price_category),
    picked: item.model_picker_enabled === true,
    enabled: isObject(item.policy) ? item.policy.state === "enabled" : true,
    dialects: kind === "chat" ? readDialects(item.supported_endpoints) : [],
    price: readPrice(item.billing, isKnownFor("isLongFromBoundary", item.id)),
    ...(item.model_picker_enabled === false && { unpicked: true }),
    ...readDiscount(objectIn(item.billing).auto_discount),
    tokenizer: shortText(capabilities.tokenizer),
    ...(warnings.length > 0 && { warnings }),
    limits: {
      context: countIn(limits.max_context_window_tokens),
      prompt: countIn(limits.max_prompt_tokens),
      output: countIn(limits.max_output_tokens),
      fullOutput: countIn(limits.max_non_streaming_output_tokens),
      inputs: countIn(limits.max_inputs),
      vision: readVision(limits.vision),
    },
    supports: {
      tools: supports.tool_calls === true,
      parallelTools: supports.parallel_tool_calls === true,
      vision: supports.vision === true,
      structuredOutputs: supports.structured_outputs === true,
      adaptiveThinking: supports.adaptive_thinking === true || isAbleIn(supports.adaptive_thinking),
      thinkingBudget: readBudget(supports),
      efforts: textsIn(supports.reasoning_effort),
      ...namedAbilities(item.id),
      // A model that always thinks has a word of its own.
      ...((typeof supports.adaptive_thinking === "string" || supports.adaptive_thinking === false) && {
        alwaysThinks: supports.adaptive_thinking === "adaptive_only",
      }),
      ...(typeof supports.tool_search === "boolean" && { toolSearch: supports.tool_search }),
      ...(typeof supports.context_editing === "boolean" && { contextEditing: supports.context_editing }),
    },
  };
}

/** A boolean on the wire until now (2026-07); GitHub's SDK has words for it (2026-09), of which one says no. */
const isAbleIn = (word: unknown): boolean => typeof word === "string" && word !== "" && word !== "unsupported";

/**
 * Each list since 2026-03 has the category. Only where it is missing the price decides, or the name: a low price has also the
 * middle of a family.
 */
function isLight({ model_picker_category: category, model_picker_price_category: price }: JsonObject, id: string) {
  if (category !== undefined) return category === "lightweight";
  return price === undefined ? isKnownFor("light", id) : price === "low";
}

export const modelKinds = ["chat", "embeddings", "completion", "decision"] as const;

/** Its list calls it a chat model, and names this endpoint alone. */
const decisionPath = "/v1/systemone";

const dialectByPath = new Map<string, Dialect>(dialects.map((dialect) => [upstreamPaths[dialect], dialect]));

/** A chat model without a list is an older one, which supports chat completions only. */
function readDialects(listed: unknown): Dialect[] {
  if (!Array.isArray(listed)) return ["chat"];
  return textsIn(listed).flatMap((endpoint) => dialectByPath.get(endpoint) ?? []);
}

function readDiscount(value: unknown): Pick<Model, "autoDiscount"> {
  const autoDiscount = shareOf(value);
  return autoDiscount === undefined ? {} : { autoDiscount };
}

/** A discount as a share, 0 … 1: lists and answers write percent (`10`) or shares (`0.1`). Undefined for none. */
export function shareOf(discount: unknown): number | undefined {
  const number = typeof discount === "string" && discount !== "" ? Number(discount) : discount;
  if (typeof number !== "number" || !(number > 0 && number <= 100)) return undefined;
  return number < 1 ? number : number / 100;
}

function readVision(value: unknown) {
  if (!isObject(value)) return undefined;
  return {
    imageBytes: countIn(value.max_prompt_image_size),
    images: countIn(value.max_prompt_images),
    mediaTypes: textsIn(value.supported_media_types),
  };
}

function readBudget(supports: JsonObject) {
  const max = countIn(supports.max_thinking_budget);
  return max ? { min: countIn(supports.min_thinking_budget) ?? 1, max } : undefined;
}

const objectIn = (value: unknown): JsonObject => (isObject(value) ? value : {});
const shortText = (value: unknown) => (typeof value === "string" && value !== "" ? value.slice(0, 256) : undefined);
/** The texts among the items of a list; none for any other value. */
export const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
