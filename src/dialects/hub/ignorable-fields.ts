/**
 * Extras of one API family that clients do not miss when the upstream is of the other family: ids, statuses, and hints
 * for a cache that the other family manages itself. All other extras that are lost are reported as dropped.
 */
import type { Family } from "./conversation";

export const ignorableFields: Record<Family, ReadonlySet<string>> = {
  openai: new Set([
    ...[
      "id",
      "status",
      "type",
      "role",
      "phase",
      "index",
      "object",
      "annotations",
      "logprobs",
      "detail",
      "instructions",
    ],
    ...["namespace", "local name", "additional_tools", "store", "include", "stream_options", "prompt_cache_key"],
    ...["prompt_cache_retention", "client_metadata", "safety_identifier"],
  ]),
  anthropic: new Set([
    "billing header",
    "eager_input_streaming",
    "cache_control.ttl",
    "cache_control.scope",
    "type",
    "prompt_cache_key",
  ]),
};
