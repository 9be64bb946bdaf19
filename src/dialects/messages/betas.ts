/** The `anthropic-beta` header: which betas the upstream accepts, which fields need one, and which the body needs. */

import { isObject } from "../../lib/json";
import type { TranslationOptions } from "../codec";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { unnoted } from "../hub/notes";
import { toolSearchNames } from "../hub/searches";
import { objectsIn } from "./traverse";

const beta = {
  interleavedThinking: "interleaved-thinking-2025-05-14",
  advancedToolUse: "advanced-tool-use-2025-11-20",
  contextManagement: "context-management-2025-06-27",
  extendedCacheTtl: "extended-cache-ttl-2025-04-11",
  computerUse: "computer-use-2025-11-24",
  turnControl: "per-turn-control-2026-07-01",
  compact: "compact-2026-01-12",
} as const;

/** The upstream refuses a request with an unknown value, so only these are sent when a client asks for them. */
const supported: ReadonlySet<string> = new Set([
  beta.interleavedThinking,
  beta.advancedToolUse,
  beta.contextManagement,
  beta.computerUse,
]);

interface BetaField {
  /** Where the field stands in a request. */
  field: string;
  /** The value that needs the beta, by its beginning; any value if it is missing. */
  value?: string;
  beta: string;
  /** Whether a request has the field. Missing where the upstream does not accept the beta: the field never goes there. */
  isIn?(body: JsonObject): boolean;
}

/**
 * Which field needs which beta. Without its beta a field is refused ("Extra inputs are not permitted"), so both go
 * upstream or neither does.
 * Sources: the list of betas in Anthropic's API reference (2026-09) for the names; Claude Code 2.1.257 (2026-08) to 2.1.294
 * (2026-10) for the fields it sends; VS Code's client (2026-09) for the betas that Copilot accepts, and a run of 60 requests on Copilot (2026-07) for compaction. Amazon's hosts, one of
 * those behind Copilot, refused `safeguards` without its beta on 2026-09-21.
 */
const betaFields: readonly BetaField[] = [
  { field: "context_management", beta: beta.contextManagement, isIn: (body) => body.context_management != null },
  { field: "tools[].defer_loading", beta: beta.advancedToolUse, isIn: usesToolSearch },
  { field: "tools[].type", value: "computer_20251124", beta: beta.computerUse, isIn: usesComputer },
  { field: "messages[].output_config", beta: beta.turnControl, isIn: hasTurnEffort },
  { field: "cache_control.ttl", beta: beta.extendedCacheTtl, isIn: asksForHour },
  { field: "cache_control.scope", beta: "prompt-caching-scope-2026-01-05" },
  { field: "container", beta: "skills-2025-10-02" },
  { field: "context_management.edits[].type", value: "compact_20260112", beta: beta.compact, isIn: compacts },
  // It asks Anthropic why a prompt was not found in its cache.
  { field: "diagnostics", beta: "cache-diagnosis-2026-04-07" },
  { field: "fallbacks", beta: "server-side-fallback-2026-07-01" },
  { field: "mcp_servers", beta: "mcp-client-2025-11-20" },
  { field: "output_config.task_budget", beta: "task-budgets-2026-03-13" },
  // It names folders and rules of the person's machine.
  { field: "safeguards", beta: "dangerous-tool-use-2026-09-03" },
  { field: "speed", beta: "fast-mode-2026-02-01" },
  { field: "thinking.block_binding", beta: "thinking-binding-controls-2026-08-01" },
  { field: "thinking.display", value: "updates", beta: "thinking-display-updates-2026-08-18" },
  // `checkRequest` refuses a thread that is continued: without the field, the earlier turns would be missing.
  { field: "thread", beta: "message-threads-2026-08-12" },
];

/**
 * The fields that are not sent, whatever their value is, because their beta is not.
 * @param holder The object that they stand in; the request itself if it is not given.
 */
export const withheldFields = (holder?: "thinking" | "output_config"): string[] =>
  betaFields
    .filter(({ isIn, value }) => !isIn && value === undefined)
    .flatMap(({ field }) => {
      const [name, member] = field.split(".");
      if (holder === undefined) return member === undefined ? [field] : [];
      return name === holder && member !== undefined ? [member] : [];
    });

/** Whether a field's beta is among those that the model refused. */
export const isRefused = (field: string, { refusedBetas = [] }: TranslationOptions): boolean =>
  betaFields.some((row) => row.field === field && refusedBetas.includes(row.beta));

/**
 * The header for the body that is sent upstream: the betas in the client's order, and those that the body needs. None if no
 * beta is left.
 */
export function requestHeaders(
  client: Headers | null,
  body: JsonObject,
  model: ModelFacts,
  { refusedBetas = [], notes = unnoted }: Pick<TranslationOptions, "refusedBetas" | "notes"> = {},
): Record<string, string> {
  const wanted = namesIn(client?.get("anthropic-beta") ?? client?.get("vendorx-beta") ?? "");
  const { type, budget_tokens: budget }: JsonObject = isObject(body.thinking) ? body.thinking : {};
  const betas: string[] = [];
  for (const value of wanted) {
    // Adaptive thinking is always interleaved.
    const isIdle = type === "adaptive" && value === beta.interleavedThinking;
    if (supported.has(value) && !refusedBetas.includes(value) && !isIdle) betas.push(value);
  }
  const mayInterleave = !model.supports.adaptiveThinking && !refusedBetas.includes(beta.interleavedThinking);
  const needed: string[] = wanted.length === 0 && budget != null && mayInterleave ? [beta.interleavedThinking] : [];
  for (const field of betaFields) if (field.isIn?.(body)) needed.push(field.beta);
  for (const value of needed) {
    if (betas.includes(value)) continue;
    betas.push(value);
    if (!wanted.includes(value)) notes.addFixup(`beta:${value}`);
  }
  return betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") };
}

const none: readonly string[] = [];

/** Most requests name none. */
const namesIn = (header: string): readonly string[] =>
  header === "" ? none : [...new Set(header.split(",").map((value) => value.trim()))].filter((value) => value !== "");

/** Whether a cache mark has a lifetime of its own. */
function asksForHour({ tools, system, messages }: JsonObject): boolean {
  return hasLifetime(tools) || hasLifetime(system) || objectsIn(messages).some(holdsLifetime);
}

const hasLifetime = (list: unknown): boolean => objectsIn(list).some(isOfLifetime);
const holdsLifetime = ({ content }: JsonObject): boolean => hasLifetime(content);
const isOfLifetime = ({ cache_control: mark }: JsonObject): boolean => isObject(mark) && mark.ttl !== undefined;

function hasTurnEffort({ messages }: JsonObject): boolean {
  return objectsIn(messages).some(isOfEffort);
}
const isOfEffort = ({ output_config: effort }: JsonObject): boolean => effort !== undefined;

/** Whether the upstream is asked to put a summary in place of the conversation's beginning. */
export function compacts({ context_management: context }: JsonObject): boolean {
  return isObject(context) && objectsIn(context.edits).some(({ type }) => type === "compact_20260112");
}

function usesComputer({ tools }: JsonObject): boolean {
  return objectsIn(tools).some(({ type }) => type === "computer_20251124");
}

/** Whether a tool is to be searched for, or searches. */
export function usesToolSearch(body: JsonObject): boolean {
  const isSearched = (tool: unknown) =>
    isObject(tool) && (tool.defer_loading === true || textIn(tool.type).startsWith(toolSearchNames));
  return Array.isArray(body.tools) && body.tools.some(isSearched);
}
