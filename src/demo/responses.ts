/** POST /responses: reads and validates the request. response-events.ts writes the answer. */

import { readChoice, readSchema } from "./chat";
import { type Dialect, modelRules, type Objection, schemaObjection, type View } from "./model-call";
import { presentTools, type Reading, type Tool, type Turn } from "./parse-prompt";
import { promptBlock } from "./prompt-cache";
import { responseFrames, responseInterjections, wholeResponse } from "./response-events";
import { decrypt, unseal } from "./signatures";
import { lookArounds, openSchemas } from "./tool-schemas";
import { invalid, type Json, number, record, records, refusal, string } from "./wire";

export const responses: Dialect = {
  path: "/responses",
  read,
  rules,
  whole: wholeResponse,
  frames: responseFrames,
  interjections: responseInterjections,
};

function read(body: Json): Reading {
  const items = inputItems(body);
  const reasoning = record(body.reasoning);
  const offered = [...records(body.tools), ...items.filter(isToolList).flatMap((item) => records(item.tools))];
  return {
    turns: [{ role: "system", content: body.instructions, results: [] }, ...items.map(readTurn)],
    tools: offered.flatMap((tool) => readTools(tool)),
    choice: readChoice(body.tool_choice),
    thinks: body.reasoning == null ? undefined : reasoning.effort !== "none",
    effort: string(reasoning.effort) || undefined,
    parallel: body.parallel_tool_calls !== false,
    schema: readSchema(record(record(body.text).format)),
    maxTokens: number(body.max_output_tokens),
    stops: [],
    blocks: [...records(body.tools), { text: string(body.instructions) }, ...items].map((block) => promptBlock(block)),
  };
}

function readTurn(item: Json): Turn {
  const { type, role, content, output } = item;
  if (isOutput(type)) return { role: "tool", content: undefined, results: [output] };
  return { role: isCall(type) ? "assistant" : isMessage(item) ? role : undefined, content, results: [] };
}

const inputItems = (body: Json): Json[] =>
  typeof body.input === "string" ? [{ type: "message", role: "user", content: body.input }] : records(body.input);
const isMessage = (item: Json) => item.type === "message" || (item.type === undefined && item.role !== undefined);
const isCall = (type: unknown) => type === "function_call" || type === "custom_tool_call";
const isOutput = (type: unknown) => type === "function_call_output" || type === "custom_tool_call_output";
/** Tools, including those in an item of the input. */
const isToolList = (item: Json) => item.type === "additional_tools";

/** The tools in a namespace; a tool that the host runs has its type as its name. */
function readTools(tool: Json, namespace?: string): Tool[] {
  const { type, name, description, parameters } = tool;
  const isDeferred = tool.defer_loading === true;
  const common = { description: string(description), isDeferred, ...(namespace && { namespace }) };
  if (type === "namespace") return records(tool.tools).flatMap((inner) => readTools(inner, string(name)));
  if (type === "function") return [{ ...common, name: string(name), kind: "function", schema: parameters }];
  if (type === "custom") return [{ ...common, name: string(name), kind: "custom", schema: undefined }];
  return type === "web_search" || type === "web_search_preview"
    ? [{ ...common, name: "web_search", kind: "custom", schema: undefined }]
    : [];
}

/** Asks for the conversation in short. */
const trigger = "compaction_trigger";

const itemTypes = [
  "message",
  "reasoning",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
  "additional_tools",
  "compaction",
  "item_reference",
  "web_search_call",
  "tool_search_call",
  "tool_search_output",
  "local_shell_call",
  "local_shell_call_output",
];

const unknownParameter = (name: string) => invalid("unknown_parameter", `Unknown parameter: '${name}'.`, name);

const refused = (message: string, param?: string) => invalid("invalid_request_body", message, param);

function* rules(view: View): Generator<Objection> {
  const { body, ask, model, account, isNewest } = view;
  yield body.input === undefined &&
    invalid("missing_required_parameter", "Missing required parameter: 'input'.", "input");
  const previous = body.previous_response_id;
  yield previous != null &&
    invalid(
      "previous_response_not_found",
      `Previous response with id '${string(previous)}' not found.`,
      "previous_response_id",
    );
  for (const name of ["service_tier", "background", "messages", "max_tokens", "max_completion_tokens"])
    yield name in body && unknownParameter(name);
  yield records(body.tools).some(
    ({ type, name }) => type === "image_generation" || (type === "namespace" && name === "image_gen"),
  ) && refusal(400, "unsupported_value", "The requested tool image_generation is not supported.");
  yield modelRules.imagesSeen(view);
  const { length } = presentTools(ask.tools);
  yield length > 128 &&
    invalid(
      "array_above_max_length",
      `Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length ${length} instead.`,
      "tools",
    );
  yield modelRules.choiceOffered(view);
  const { type, schema, name } = record(record(body.text).format);
  yield* openSchemas(view);
  yield type === "json_schema" && schemaObjection(schema, name, "text.format.schema");
  if (type === "json_schema") yield* lookArounds(schema, "text.format.schema");
  yield modelRules.effortKnown(view);
  yield body.temperature != null &&
    body.temperature !== 1 &&
    model.id.includes("codex") &&
    invalid(
      "unsupported_parameter",
      "Unsupported parameter: 'temperature' is not supported with this model.",
      "temperature",
    );
  yield ask.maxTokens !== undefined &&
    ask.maxTokens < 16 &&
    invalid(
      "integer_below_min_value",
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${ask.maxTokens} instead.`,
      "max_output_tokens",
    );
  for (const [at, item] of inputItems(body).entries()) yield* itemRules(item, `input[${at}]`, account.login, isNewest);
  if (isNewest) yield* newestRules(body);
  yield* callPairs(inputItems(body));
  yield modelRules.promptFits(view);
}

/** Every list of tools in a request, with its path. */
const toolLists = (body: Json): { path: string; tools: Json[] }[] => [
  { path: "tools", tools: records(body.tools) },
  ...inputItems(body).map((item, index) => ({ path: `input[${index}].tools`, tools: records(item.tools) })),
];

function* newestRules(body: Json): Generator<Objection> {
  for (const { path, tools } of toolLists(body))
    for (const [at, { type, description }] of tools.entries())
      yield type === "namespace" &&
        string(description) === "" &&
        invalid(
          "empty_string",
          `Invalid '${path}[${at}].description': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
          `${path}[${at}].description`,
        );
  // A call without an id has one that is made of its `call_id`.
  const ids = inputItems(body).map(
    ({ id, type, call_id }) => string(id) || (type === "function_call" ? `fc_${string(call_id)}` : ""),
  );
  const repeated = ids.find((id, at) => id !== "" && ids.indexOf(id) < at);
  yield repeated !== undefined &&
    refused(`Duplicate item found with id ${repeated}. Remove duplicate items from your input and try again.`);
  const all = toolLists(body).flatMap(({ tools }) => tools);
  const isIn = (tools: Json[], name: unknown) => tools.some((tool) => tool.name === name);
  const isHidden = (name: unknown) =>
    !isIn(all, name) && all.some((tool) => tool.type === "namespace" && isIn(records(tool.tools), name));
  for (const { type, name, namespace } of inputItems(body))
    yield type === "function_call" &&
      namespace == null &&
      isHidden(name) &&
      refused(
        `Missing namespace for function_call '${string(name)}'. It does not exist in the default namespace. Round-trip the model's function_call item with its namespace field included.`,
      );
}

function* itemRules(item: Json, at: string, login: string, isNewest: boolean): Generator<Objection> {
  const type = string(item.type) || "message";
  yield !itemTypes.includes(type) &&
    !(isNewest && type === trigger) &&
    invalid(
      "invalid_value",
      `Invalid value: '${type}'. Supported values are: ${itemTypes.map((name) => `'${name}'`).join(", ")}.`,
      at,
    );
  const metadata = "internal_chat_message_metadata_passthrough";
  yield metadata in item && unknownParameter(`${at}.${metadata}`);
  yield type === "item_reference" &&
    refusal(
      404,
      "item_not_found",
      `Item with id '${string(item.id)}' not found. Items are not persisted when \`store\` is set to false.`,
      { param: "input", type: "invalid_request_error" },
    );
  // Ids that this upstream issued are valid for their account only; short ids are always valid.
  const id = string(item.id);
  const sealed = unseal(id);
  yield sealed && sealed.login !== login && refusal(401, "", "input item ID does not belong to this connection");
  yield !sealed &&
    id.length > 64 &&
    invalid(
      "string_above_max_length",
      `Invalid '${at}.id': string too long. Expected a string with maximum length 64, but got a string with length ${id.length} instead.`,
      `${at}.id`,
    );
  const { length } = string(item.call_id);
  yield length > 64 &&
    invalid(
      "string_above_max_length",
      `Invalid '${at}.call_id': string too long. Expected a string with maximum length 64, but got a string with length ${length} instead.`,
      `${at}.call_id`,
    );
  // Encrypted reasoning is valid for its account and its item only.
  const secret = item.encrypted_content;
  if (secret == null || (type !== "reasoning" && type !== "compaction")) return;
  const truth = decrypt(string(secret));
  const unverified = (what: string, why: string) =>
    invalid("invalid_encrypted_content", `The encrypted content ${what} could not be verified. Reason: ${why}`);
  yield truth?.login !== login &&
    unverified(`${string(secret).slice(0, 8)}...`, "Encrypted content could not be decrypted or parsed.");
  yield item.id != null &&
    sealed?.id !== truth?.id &&
    unverified(`for item ${truth?.id}`, "Encrypted content item_id did not match the target item id.");
}

function* callPairs(items: Json[]): Generator<Objection> {
  const ids = (isIt: (type: unknown) => boolean) =>
    new Set(items.filter(({ type }) => isIt(type)).map((item) => string(item.call_id)));
  const [called, answered] = [ids(isCall), ids(isOutput)];
  for (const id of answered)
    yield !called.has(id) && refused(`No tool call found for function call output with call_id ${id}.`, "input");
  for (const id of called) yield !answered.has(id) && refused(`No tool output found for function call ${id}.`, "input");
}
