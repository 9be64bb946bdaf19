/** Remedies for a value that an upstream refused, where its error says what it takes. */

import { isObject } from "../../lib/json";
import type { JsonObject } from "./conversation";
import { nearestEffort } from "./reasoning";

/** Where a request states the effort, in one dialect or another. */
const effortPaths: readonly (readonly string[])[] = [
  ["reasoning_effort"],
  ["reasoning", "effort"],
  ["output_config", "effort"],
];

/** The request with the nearest effort that the model takes; undefined where it states none that could be another. */
export function withNearestEffort(body: JsonObject, efforts: readonly string[]): JsonObject | undefined {
  for (const [outer, inner] of effortPaths) {
    const member = body[outer!];
    const effort = inner === undefined ? member : isObject(member) ? member[inner] : undefined;
    if (typeof effort !== "string" || efforts.includes(effort)) continue;
    const nearest = nearestEffort(effort, efforts);
    if (nearest === undefined) continue;
    return { ...body, [outer!]: inner === undefined ? nearest : { ...(member as JsonObject), [inner]: nearest } };
  }
  return undefined;
}

/**
 * The request without the tools that the upstream rejects. Undefined if it has none of them, no other tool, or asks for one
 * of them: then the answer would be one to another request.
 */
export function withoutTools(body: JsonObject, rejected: readonly string[]): JsonObject | undefined {
  const all = Array.isArray(body.tools) ? body.tools : [];
  const isRejected = (value: unknown) => rejected.some((name) => value === name || isVersionOf(value, name));
  const kept = all.filter((tool) => !isObject(tool) || !(isRejected(tool.type) || isRejected(tool.name)));
  const choice = isObject(body.tool_choice) ? body.tool_choice : {};
  if (kept.length === all.length || kept.length === 0 || isRejected(choice.name) || isRejected(choice.type)) return;
  return { ...body, tools: kept };
}

/** `web_fetch_20250910` is a version of `web_fetch`. */
const isVersionOf = (value: unknown, name: string): boolean =>
  typeof value === "string" && value.startsWith(`${name}_`) && /^\d{4,8}$/.test(value.slice(name.length + 1));
