/** POST /responses: reads and validates the request. response-events.ts writes the answer. */

import { type Dialect, firstObjection, modelRules, type Rule, schemaObjection, type View } from "./model-call";
import { type ModelRequest, presentTools, type Tool } from "./parse-prompt";
import { promptBlock } from "./prompt-cache";
import { responseFrames, responseInterjections, wholeResponse } from "./response-events";
import { newestWords, ownWords } from "./scripted-replies";
import { decrypt, unseal } from "./signatures";
import { entry, invalid, type Json, number, type Refusal, record, records, refusal, string, weigh } from "./wire";

export const responses: Dialect = {
  path: "/responses",
  read,
  get rules() {
    return rules;
  },
  whole: wholeResponse,
  frames: responseFrames,
  interjections: responseInterjections,
};

function read(body: Json): ModelRequest {
  const items = inputItems(body);
  const messages = items.filter(isMessage);
  const lastOther = items.findLastIndex(({ type }) => !isOutput(type));
  const results = items.slice(lastOther + 1).map((item) => textOf(item.output));
  const wordsIn = (some: Json[]) =>
    some.filter((item) => isMessage(item) && item.role === "user").map((message) => ownWords(textOf(message.content)));
  const sinceTheModel = items.slice(items.findLastIndex(isModels) + 1);
  const reasoning = record(body.reasoning);
  const format = record(record(body.text).format);
  const offered = [...records(body.tools), ...items.filter(isToolList).flatMap((item) => records(item.tools))];
  const choice = record(body.tool_choice);
  return {
    model: string(body.model),
    stream: body.stream === true,
    prompt: newestWords(wordsIn(items), wordsIn(sinceTheModel), results),
    results,
    background: [
      string(body.instructions),
      ...messages.filter(({ role }) => role !== "assistant").map(({ content }) => textOf(content)),
    ],
    tools: offered.flatMap((tool) => readTools(tool)),
    choice: string(choice.name) ? { name: string(choice.name) } : (entry(choices, string(body.tool_choice)) ?? "auto"),
    thinks: body.reasoning == null ? undefined : reasoning.effort !== "none",
    effort: string(reasoning.effort) || undefined,
    parallel: body.parallel_tool_calls !== false,
    schema: schemaOf(format),
    maxTokens: number(body.max_output_tokens),
    stops: [],
    turns: items.filter(isModels).length,
    images: items.flatMap((item) => records(item.content)).filter((part) => part.type === "input_image").length,
    blocks: [...records(body.tools), { text: string(body.instructions) }, ...items].map((block) => promptBlock(block)),
    cacheKey: string(body.prompt_cache_key) || undefined,
    weight: weigh(body.instructions) + weigh(body.input),
    toolWeight: weigh(body.tools),
  };
}

const inputItems = (body: Json): Json[] =>
  typeof body.input === "string" ? [{ type: "message", role: "user", content: body.input }] : records(body.input);
const isMessage = (item: Json) => item.type === "message" || (item.type === undefined && item.role !== undefined);
const isModels = ({ role, type }: Json) => role === "assistant" || isCall(type);
const isCall = (type: unknown) => type === "function_call" || type === "custom_tool_call";
const isOutput = (type: unknown) => type === "function_call_output" || type === "custom_tool_call_output";
const choices: Record<string, ModelRequest["choice"]> = { required: "any", none: "none" };
const schemaOf = (format: Json): unknown =>
  format.type === "json_schema" ? format.schema : format.type === "json_object" ? { type: "object" } : undefined;
/** Tools, including those in an item of the input. */
const isToolList = (item: Json) => item.type === "additional_tools";

const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : records(content)
        .map((part) => string(part.text))
        .join("\n");

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

const rules: Rule[] = [
  ({ body }) =>
    body.input === undefined && invalid("missing_required_parameter", "Missing required parameter: 'input'.", "input"),
  ({ body }) =>
    body.previous_response_id != null &&
    invalid(
      "previous_response_not_found",
      `Previous response with id '${string(body.previous_response_id)}' not found.`,
      "previous_response_id",
    ),
  ({ body }) => {
    const refused = ["service_tier", "background", "messages", "max_tokens", "max_completion_tokens"].find(
      (name) => name in body,
    );
    return refused !== undefined && unknownParameter(refused);
  },
  ({ body }) => {
    const tool = records(body.tools).find(
      ({ type, name }) => type === "image_generation" || (type === "namespace" && name === "image_gen"),
    );
    return tool && refusal(400, "unsupported_value", "The requested tool image_generation is not supported.");
  },
  modelRules.imagesSeen,
  ({ ask }) =>
    presentTools(ask.tools).length > 128 &&
    invalid(
      "array_above_max_length",
      `Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length ${presentTools(ask.tools).length} instead.`,
      "tools",
    ),
  modelRules.choiceOffered,
  ({ body }) => {
    const { type, schema, name } = record(record(body.text).format);
    return type === "json_schema" && schemaObjection(schema, name, "text.format.schema");
  },
  modelRules.effortKnown,
  ({ body, model }) =>
    body.temperature != null &&
    body.temperature !== 1 &&
    /codex/.test(model.id) &&
    invalid(
      "unsupported_parameter",
      "Unsupported parameter: 'temperature' is not supported with this model.",
      "temperature",
    ),
  ({ ask: { maxTokens } }) =>
    maxTokens !== undefined &&
    maxTokens < 16 &&
    invalid(
      "integer_below_min_value",
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${maxTokens} instead.`,
      "max_output_tokens",
    ),
  ({ body, account, isNewest }) =>
    firstObjection(inputItems(body), (item, index) => itemObjection(item, index, account.login, isNewest)),
  ({ body, isNewest }) => isNewest && (emptyDescription(body) ?? repeatedItem(body) ?? missingNamespace(body)),
  callPairs,
  modelRules.promptFits,
];

/** Every list of tools in a request, with its path. */
const toolLists = (body: Json): { path: string; tools: Json[] }[] => [
  { path: "tools", tools: records(body.tools) },
  ...inputItems(body).map((item, index) => ({ path: `input[${index}].tools`, tools: records(item.tools) })),
];

function emptyDescription(body: Json): Refusal | undefined {
  for (const { path, tools } of toolLists(body)) {
    const at = tools.findIndex(({ type, description }) => type === "namespace" && string(description) === "");
    const param = `${path}[${at}].description`;
    if (at !== -1)
      return invalid(
        "empty_string",
        `Invalid '${param}': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
        param,
      );
  }
  return undefined;
}

/** A call without an id has one that is made of its `call_id`. */
function repeatedItem(body: Json): Refusal | undefined {
  const ids = inputItems(body).flatMap((item) => {
    const id = string(item.id) || (item.type === "function_call" ? `fc_${string(item.call_id)}` : "");
    return id === "" ? [] : [id];
  });
  const repeated = ids.find((id, at) => ids.indexOf(id) < at);
  return repeated === undefined
    ? undefined
    : invalid(
        "invalid_request_body",
        `Duplicate item found with id ${repeated}. Remove duplicate items from your input and try again.`,
      );
}

function missingNamespace(body: Json): Refusal | undefined {
  const all = toolLists(body).flatMap(({ tools }) => tools);
  const isIn = (tools: Json[], name: unknown) => tools.some((tool) => tool.name === name);
  const lost = inputItems(body).find(
    ({ type, name, namespace }) =>
      type === "function_call" &&
      namespace == null &&
      !isIn(all, name) &&
      all.some((tool) => tool.type === "namespace" && isIn(records(tool.tools), name)),
  );
  return (
    lost &&
    invalid(
      "invalid_request_body",
      `Missing namespace for function_call '${string(lost.name)}'. It does not exist in the default namespace. Round-trip the model's function_call item with its namespace field included.`,
    )
  );
}

function itemObjection(item: Json, index: number, login: string, isNewest: boolean): Refusal | undefined {
  const at = `input[${index}]`;
  const type = string(item.type) || "message";
  if (!itemTypes.includes(type) && !(isNewest && type === trigger))
    return invalid(
      "invalid_value",
      `Invalid value: '${type}'. Supported values are: ${itemTypes.map((name) => `'${name}'`).join(", ")}.`,
      at,
    );
  if ("internal_chat_message_metadata_passthrough" in item)
    return unknownParameter(`${at}.internal_chat_message_metadata_passthrough`);
  if (type === "item_reference")
    return refusal(
      404,
      "item_not_found",
      `Item with id '${string(item.id)}' not found. Items are not persisted when \`store\` is set to false.`,
      {
        param: "input",
        type: "invalid_request_error",
      },
    );
  return idObjection(item, at, login) ?? secretObjection(item, login);
}

/** Ids that this upstream issued are valid for their account only; short ids are always valid. */
function idObjection({ id }: Json, at: string, login: string): Refusal | undefined {
  if (typeof id !== "string") return undefined;
  const sealed = unseal(id);
  if (sealed)
    return sealed.login === login ? undefined : refusal(401, "", "input item ID does not belong to this connection");
  if (id.length <= 64) return undefined;
  return invalid(
    "string_above_max_length",
    `Invalid '${at}.id': string too long. Expected a string with maximum length 64, but got a string with length ${id.length} instead.`,
    `${at}.id`,
  );
}

/** Encrypted reasoning is valid for its account and its item only. */
function secretObjection(item: Json, login: string): Refusal | undefined {
  if (item.type !== "reasoning" && item.type !== "compaction") return undefined;
  const secret = item.encrypted_content;
  if (secret == null) return undefined;
  const truth = decrypt(string(secret));
  if (truth?.login !== login)
    return invalid(
      "invalid_encrypted_content",
      `The encrypted content ${string(secret).slice(0, 8)}... could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
    );
  if (item.id == null || unseal(string(item.id))?.id === truth.id) return undefined;
  return invalid(
    "invalid_encrypted_content",
    `The encrypted content for item ${truth.id} could not be verified. Reason: Encrypted content item_id did not match the target item id.`,
  );
}

function callPairs({ body }: View): Refusal | undefined {
  const items = inputItems(body);
  const ids = (types: string[]) =>
    new Set(items.filter(({ type }) => types.includes(string(type))).map((item) => string(item.call_id)));
  const called = ids(["function_call", "custom_tool_call"]);
  const answered = ids(["function_call_output", "custom_tool_call_output"]);
  const orphan = [...answered].find((id) => !called.has(id));
  if (orphan !== undefined)
    return invalid(
      "invalid_request_body",
      `No tool call found for function call output with call_id ${orphan}.`,
      "input",
    );
  const open = [...called].find((id) => !answered.has(id));
  return open === undefined
    ? undefined
    : invalid("invalid_request_body", `No tool output found for function call ${open}.`, "input");
}
