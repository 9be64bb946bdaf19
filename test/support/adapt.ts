/** A conversation that is adapted to an upstream, with what was noted of it. */
import { adapt as adaptTo } from "../../src/dialects/hub/adapt";
import type { Conversation, Dialect } from "../../src/dialects/hub/conversation";
import { noted } from "./noted";

export function adapt(conversation: Conversation, target: Dialect, vendor = "") {
  const { body, ...notes } = noted((each) => adaptTo(conversation, target, vendor, each));
  return { ...body, ...notes };
}
