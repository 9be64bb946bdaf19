/** What a service says of reasoning that it was sent and did not show to its model. */
import { isObject } from "../../lib/json";
import { plainName } from "../../lib/json-shape";

/** No service has more reasons than this. */
const most = 8;

/**
 * Why reasoning of earlier turns was left out, in the service's own words: `prefix_mismatch`. Reasoning that a model never
 * looks at after its turn (`turn_boundary`) does not count.
 * Sources: pi 1.6.0 (2026-11-20), which reads OpenAI's `{type: "reasoning", id, action: "removed", reason}`, and Anthropic's
 * package for Python (2026-09), which has `{type: "thinking_dropped", path, reason}`.
 * @param changes The list `input_transformations` of a reply.
 */
export function lostReasoningIn(changes: unknown): string[] {
  const reasons = new Set<string>();
  for (const change of Array.isArray(changes) ? changes : []) {
    if (!isObject(change) || reasons.size === most) continue;
    const isLoss = change.type === "thinking_dropped" || (change.type === "reasoning" && change.action === "removed");
    if (isLoss && change.reason !== "turn_boundary") reasons.add(plainName(String(change.reason ?? "unknown")));
  }
  return [...reasons];
}
