/** Parameters of sampling, whose names are the same in OpenAI's and Anthropic's APIs. */
import type { Conversation, JsonObject, Sampling } from "./conversation";
import type { Fields } from "./fields";
import { omitUndefined } from "./json";

const wireNames: Record<keyof Sampling, string> = {
  topK: "top_k",
  seed: "seed",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
};

/**
 * Reads the parameters that a dialect has; undefined if none is set.
 * @throws ProxyError `invalid_request` naming the field.
 */
export function decodeSampling(request: Fields, own: readonly (keyof Sampling)[]): Sampling | undefined {
  const sampling: Sampling = {};
  for (const key of own) sampling[key] = request.optionalNumber(wireNames[key]);
  return Object.values(sampling).some((value) => value !== undefined) ? omitUndefined(sampling) : undefined;
}

/** The fields of a request for an upstream whose dialect has these parameters; the names of the others are added to `dropped`. */
export function encodeSampling(
  { sampling = {} }: Conversation,
  own: readonly (keyof Sampling)[],
  dropped: Set<string>,
): JsonObject {
  const fields: JsonObject = {};
  for (const [key, name] of Object.entries(wireNames) as [keyof Sampling, string][])
    if (sampling[key] === undefined) continue;
    else if (own.includes(key)) fields[name] = sampling[key];
    else dropped.add(name);
  return fields;
}
