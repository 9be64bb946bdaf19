/**
 * Extras of one API family that clients do not miss when the upstream is of another family: ids, statuses, and hints
 * for a cache that the other family manages itself. All other extras that are lost are reported as dropped.
 */
import { plainName } from "../../lib/json-shape";
import type { Family, JsonObject, WithExtras } from "./conversation";
import type { Notes } from "./notes";

const ignorableFields: Record<Family, ReadonlySet<string>> = {
  openai: new Set([
    ...["id", "status", "type", "role", "phase", "index", "object", "annotations", "logprobs", "detail"],
    ...["namespace", "store", "include", "stream_options", "prompt_cache_key"],
    ...["prompt_cache_retention", "client_metadata", "safety_identifier"],
  ]),
  anthropic: new Set(["eager_input_streaming", "cache_control.ttl", "cache_control.scope", "type", "prompt_cache_key"]),
  google: new Set(["alt"]),
};

/** The value of a responses request's `include` that asks for the probabilities of tokens. */
export const includedLogprobs = "message.output_text.logprobs";

/** The probabilities of tokens are missed where they are asked for, and not where they come back in what was said. */
const isWished = (key: string, value: unknown): boolean =>
  key === "logprobs" ? value === true : key === "include" && Array.isArray(value) && value.includes(includedLogprobs);

/** Whether clients of another family, or of its other API, do not miss the extra. */
export const isIgnorable = (family: Family, key: string, value: unknown): boolean =>
  value == null || (ignorableFields[family].has(key) && !isWished(key, value));

/** Notes the extras of these families as dropped: of all families that the upstream does not belong to. */
export function dropOthers({ extras }: WithExtras, others: readonly Family[], notes: Notes): void {
  if (!extras) return;
  for (const family of others)
    for (const [key, value] of Object.entries(extras[family] ?? {}))
      if (!isIgnorable(family, key, value)) notes.addDropped(plainName(key));
}

/** The same for what only the chat API has. */
export function dropChat({ extras }: WithExtras, notes: Notes): void {
  for (const [key, value] of Object.entries(extras?.chat ?? {}))
    if (!isIgnorable("openai", key, value)) notes.addDropped(plainName(key));
}

/** The same for the extras that a field of the request itself took the place of. */
export function dropOverwritten(extras: JsonObject, body: JsonObject, notes: Notes): void {
  for (const key of Object.keys(extras))
    if (extras[key] != null && body[key] !== extras[key]) notes.addDropped(plainName(key));
}
