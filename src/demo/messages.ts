/** POST /v1/messages: reads the request. messages-rules.ts validates it, message-events.ts writes the answer. */

import type { DemoAccount } from "./accounts";
import { messageFrames, messageInterjections, wholeMessage } from "./message-events";
import { blocksOf, messagesRules } from "./messages-rules";
import type { Dialect } from "./model-call";
import { modelFor } from "./models";
import type { ModelRequest, Tool } from "./parse-prompt";
import { promptBlock } from "./prompt-cache";
import { newestWords, ownWords, promptTokens } from "./scripted-replies";
import type { Arrival } from "./state";
import { anthropicInvalid, type Json, list, number, plain, record, records, string, weigh } from "./wire";

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
  if (demo.generation !== "C") throw plain(404, "404 page not found");
  const body = record(seen.body);
  const { id } = modelFor(demo, account, string(body.model), messages.path);
  const odd = Object.keys(body).find((name) => !counted.has(name));
  if (odd) throw anthropicInvalid(`${odd}: Extra inputs are not permitted`);
  return Response.json({ input_tokens: promptTokens(read(body), id) });
}

function read(body: Json): ModelRequest {
  const turns = records(body.messages);
  const last = turns.findLast((turn) => turn.role !== "system");
  const answers = last?.role === "user" ? blocksOf(last.content).filter((block) => block.type === "tool_result") : [];
  const results = answers.map((block) => textOf(block.content));
  const wordsIn = (some: Json[]) => some.filter((turn) => turn.role === "user").map(newestText);
  const sinceTheModel = turns.slice(turns.findLastIndex((turn) => turn.role === "assistant") + 1);
  const thinking = string(record(body.thinking).type);
  const format = record(record(body.output_config).format);
  return {
    model: string(body.model),
    stream: body.stream === true,
    prompt: newestWords(wordsIn(turns), wordsIn(sinceTheModel), results),
    results,
    background: [
      textOf(body.system),
      ...turns.filter(({ role }) => role !== "assistant").map(({ content }) => textOf(content)),
    ],
    tools: records(body.tools).filter(isOrdinary).map(readTool),
    choice: readChoice(record(body.tool_choice)),
    thinks: thinking === "enabled" || thinking === "adaptive",
    effort: undefined,
    parallel: record(body.tool_choice).disable_parallel_tool_use !== true,
    schema: format.type === "json_schema" ? format.schema : undefined,
    maxTokens: number(body.max_tokens),
    stops: list(body.stop_sequences).map(string),
    turns: turns.filter((turn) => turn.role === "assistant").length,
    images: turns.reduce((sum, turn) => sum + imagesIn(turn.content), 0),
    blocks: [
      ...records(body.tools).map((tool) => promptBlock(tool)),
      ...blocksOf(body.system).map((block) => promptBlock(block)),
      ...turns.flatMap(({ role, content }) => blocksOf(content).map((block) => promptBlock(block, string(role)))),
    ],
    cacheKey: undefined,
    weight: weigh(body.system) + weigh(body.messages),
    toolWeight: weigh(body.tools),
  };
}

/** The last text of a message that has a person's own words. */
const newestText = (turn: Json): string =>
  blocksOf(turn.content)
    .filter((block) => block.type === "text")
    .map((block) => ownWords(string(block.text)))
    .findLast(Boolean) ?? "";

const textOf = (content: unknown): string =>
  blocksOf(content)
    .map((block) => string(block.text))
    .filter(Boolean)
    .join("\n");

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

/** Images, including those in tool results. */
const imagesIn = (content: unknown): number =>
  blocksOf(content).reduce((sum, block) => sum + (block.type === "image" ? 1 : imagesIn(block.content)), 0);
