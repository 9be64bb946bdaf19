/** POST /v1/messages: reads the request. messages-rules.ts validates it, message-events.ts writes the answer. */

import type { DemoAccount } from "./accounts";
import { messageFrames, messageInterjections, wholeMessage } from "./message-events";
import { blocksOf, messagesRules } from "./messages-rules";
import type { Dialect } from "./model-call";
import { modelFor } from "./models";
import { type ModelRequest, type Reading, readRequest, type Tool, type Turn } from "./parse-prompt";
import { promptBlock } from "./prompt-cache";
import { promptTokens } from "./scripted-replies";
import type { Arrival } from "./state";
import { anthropicInvalid, type Json, list, number, plain, record, records, string } from "./wire";

export const messages: Dialect = {
  path: "/v1/messages",
  read,
  rules: messagesRules,
  whole: wholeMessage,
  frames: messageFrames,
  interjections: messageInterjections,
};

const counted = new Set(
  "model messages system tools tool_choice thinking mcp_servers context_management output_config".split(" "),
);

/** POST /v1/messages/count_tokens, which the newest generation has. */
export function countTokens({ demo, seen }: Arrival, account: DemoAccount): Response {
  if (demo.generation === "A") throw plain(404, "404 page not found");
  const body = record(seen.body);
  const { id } = modelFor(demo, account, string(body.model), messages.path);
  const odd = Object.keys(body).find((name) => !counted.has(name));
  if (odd) throw anthropicInvalid(`${odd}: Extra inputs are not permitted`);
  return Response.json({ input_tokens: promptTokens(readRequest(body, read(body)), id) });
}

function read(body: Json): Reading {
  const turns = records(body.messages);
  const thinking = string(record(body.thinking).type);
  const format = record(record(body.output_config).format);
  return {
    turns: [{ role: "system", content: body.system, results: [] }, ...turns.map(readTurn)],
    tools: records(body.tools).filter(isOrdinary).map(readTool),
    choice: readChoice(record(body.tool_choice)),
    thinks: thinking === "enabled" || thinking === "adaptive",
    effort: undefined,
    parallel: record(body.tool_choice).disable_parallel_tool_use !== true,
    schema: format.type === "json_schema" ? format.schema : undefined,
    maxTokens: number(body.max_tokens),
    stops: list(body.stop_sequences).map(string),
    blocks: [
      ...records(body.tools).map((tool) => promptBlock(tool)),
      ...blocksOf(body.system).map((block) => promptBlock(block)),
      ...turns.flatMap(({ role, content }) => blocksOf(content).map((block) => promptBlock(block, string(role)))),
    ],
  };
}

const readTurn = ({ role, content }: Json): Turn => ({
  role,
  content,
  results: blocksOf(content)
    .filter((block) => block.type === "tool_result")
    .map((block) => block.content),
});

const isOrdinary = (tool: Json) => tool.type === undefined || tool.type === "custom";

const readTool = (tool: Json): Tool => ({
  name: string(tool.name),
  kind: "function",
  description: string(tool.description),
  schema: tool.input_schema,
  isDeferred: tool.defer_loading === true,
});

function readChoice({ type, name }: Json): ModelRequest["choice"] {
  if (type === "tool") return { name: string(name) };
  return type === "any" || type === "none" ? type : "auto";
}
