/** What a responses request says, read without decoding. */
import { isObject, numberIn } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { objectsAmong } from "../hub/lists";
import { sessionOf } from "../openai";
import { type Outline, type OutlineMessage, speakerOf } from "../overview";
import { references } from "./references";
import { isWarmUp } from "./request";
import { offersServerTools } from "./tool-search";

export function outline(body: JsonObject): Outline {
  const { tools, instructions, input, client_metadata: of, max_output_tokens } = body;
  return {
    tools,
    system: () => instructions,
    messages: typeof input === "string" ? [{ by: "user", content: input }] : objectsAmong(input).flatMap(spokenIn),
    session: sessionOf(body),
    // Codex 0.169: a turn of a subagent has the root turn's id too (seen from the client itself, 2026-11).
    promptId: isObject(of) ? (of.root_turn_id ?? of.turn_id) : undefined,
    references: () => references(body),
    isWarmUp: isWarmUp(body),
    maxTokens: numberIn(max_output_tokens),
    offersServerTools: (model) => offersServerTools(body, model),
  };
}

/** A compaction item ends what was said before it; if nothing follows, the model goes on as after a tool's result. */
const spokenIn = (item: JsonObject): OutlineMessage[] =>
  item.type === "compaction"
    ? [
        { ...read(item), item },
        { by: "tool", content: undefined },
      ]
    : [{ ...read(item), item }];

/**
 * Messages have a role. Of the other items of the OpenAI SDK's ResponseInputItem, those whose type ends in `_output`,
 * and the response to an MCP approval request, follow a call; the rest is the model's.
 */
function read({ type, role, content, output, tools }: JsonObject): OutlineMessage {
  if (role !== undefined) return { by: speakerOf(role), content };
  if (typeof type !== "string" || type === "message") return { by: "user", content };
  if (/_(?:output|response)$/.test(type)) return { by: "tool", content: output };
  return settings.has(type) ? { by: "system", content: tools } : { by: "model", content };
}

/** Items without a speaker: a list of tools, and the request for a summary. */
const settings = new Set(["additional_tools", "compaction_trigger"]);
