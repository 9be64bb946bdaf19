/** What Claude Code's requests beside the conversation are for, where their form tells it. Seen in Claude Code 2.1.332, 2026-11. */
import { isObject } from "../../lib/json";
import { beginningOfLong, type LongText } from "../../lib/net/json/json-skeleton";
import type { JsonObject } from "../hub/conversation";

/** How the instructions begin by which its auto mode lets a model judge each tool call. */
const checkBeginning = "You are a security monitor for autonomous AI coding agents.";

export function auxiliaryKind({ system, output_config, output_format }: JsonObject): "check" | "title" | undefined {
  const parts = Array.isArray(system) ? system : [system];
  if (parts.some((part) => isCheck(isObject(part) ? part.text : part))) return "check";
  const format = [isObject(output_config) ? output_config.format : undefined, output_format].find(isObject);
  return isTitle(format?.schema) ? "title" : undefined;
}

const isCheck = (text: unknown): boolean =>
  typeof text === "string" &&
  beginningOfLong(text as LongText, 200)
    .trimStart()
    .startsWith(checkBeginning);

/** It asks for JSON that has a title and nothing else. */
function isTitle(schema: unknown): boolean {
  if (!isObject(schema) || !isObject(schema.properties)) return false;
  const names = Object.keys(schema.properties);
  return names.length === 1 && names[0] === "title";
}
