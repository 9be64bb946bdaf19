/** A conversation that is adapted to an upstream, with what was noted of it. */
import { adapt as adaptTo } from "../../src/dialects/hub/adapt";
import type { Conversation, Dialect } from "../../src/dialects/hub/conversation";

export function adapt(conversation: Conversation, target: Dialect, vendor = "") {
  const [fixups, dropped] = [new Set<string>(), new Set<string>()];
  const result = adaptTo(conversation, target, vendor, { fixups, dropped });
  return { ...result, fixups: [...fixups], dropped: [...dropped] };
}
