/**
 * Members of one family's bags whose loss changes nothing for who asked in the other family's words: bookkeeping of the
 * wire, and marks for a cache that the other side keeps by itself. Every other lost member is named as dropped.
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
  anthropic: new Set(["billing header", "eager_input_streaming", "cache_control.ttl", "cache_control.scope", "type"]),
};
