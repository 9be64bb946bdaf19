/** Validation of /v1/messages, with the upstream's own messages: clients recognise errors by these texts. */

import { firstObjection, modelRules, type Rule, type View } from "./model-call";
import { promptTokens } from "./scripted-replies";
import { proves } from "./signatures";
import { anthropicInvalid, type Json, list, number, Refusal, record, records, refusal, string } from "./wire";

const betas = ["interleaved-thinking-2025-05-14", "context-management-2025-06-27", "advanced-tool-use-2025-11-20"];
const [, contextManagement = "", advancedTools = ""] = betas;
/** Of the newest generation only. */
const oneHourCache = "extended-cache-ttl-2025-04-11";

const words = (text: string) => new Set(text.split(" "));
const fields = words(
  "model messages max_tokens system stream temperature top_p top_k stop_sequences tools tool_choice metadata thinking output_config",
);
const toolFields = words("type name description input_schema cache_control");
const advancedToolFields = words("defer_loading strict input_examples allowed_callers");

const extra = (path: string) => anthropicInvalid(`${path}: Extra inputs are not permitted`);
const required = (path: string) => anthropicInvalid(`${path}: Field required`);

export const messagesRules: Rule[] = [
  ({ headers, isNewest }) => {
    const unknown = betasOf(headers).find((beta) => !betas.includes(beta) && !(isNewest && beta === oneHourCache));
    return (
      unknown !== undefined &&
      anthropicInvalid(
        `Unexpected value(s) \`${unknown}\` for the \`anthropic-beta\` header. Please consult our documentation at docs.anthropic.com or try again without the header.`,
      )
    );
  },
  ({ body }) => !Array.isArray(body.messages) && required("messages"),
  ({ body }) => body.max_tokens === undefined && required("max_tokens"),
  ({ body, headers }) => {
    const odd = Object.keys(body).find(
      (name) => !fields.has(name) && !(name === "context_management" && betasOf(headers).includes(contextManagement)),
    );
    return odd !== undefined && extra(odd);
  },
  ({ body }) => {
    const odd = Object.keys(record(body.metadata)).find((name) => name !== "user_id");
    return odd !== undefined && extra(`metadata.${odd}`);
  },
  outputConfig,
  editObjection,
  billingObjection,
  markObjection,
  ({ body }) =>
    cacheMarks(body) > 4 &&
    anthropicInvalid(`A maximum of 4 blocks with cache_control may be provided. Found ${cacheMarks(body)}.`),
  ({ body }) => firstObjection(records(body.messages), messageObjection),
  ({ body }) => firstObjection(toolTurns(body), pairObjection),
  ({ body }) =>
    records(body.messages).at(-1)?.role === "assistant" &&
    anthropicInvalid(
      "This model does not support assistant message prefill. The conversation must end with a user message.",
    ),
  ({ body, headers, model }) =>
    firstObjection(records(body.tools), (tool, at) => toolObjection(tool, at, betasOf(headers), model.id)),
  ({ body }) => {
    const names = records(body.tools).map((tool) => tool.name);
    return new Set(names).size < names.length && anthropicInvalid("tools: Tool names must be unique.");
  },
  modelRules.toolCount,
  ({ body, ask: { choice } }) =>
    typeof choice === "object" &&
    !records(body.tools).some((tool) => tool.name === choice.name) &&
    anthropicInvalid(`Tool '${choice.name}' not found in provided tools`),
  thinkingObjection,
  thinkingInLoop,
  ({ body: { temperature, top_p } }) =>
    temperature != null &&
    top_p != null &&
    anthropicInvalid("`temperature` and `top_p` cannot both be specified for this model. Please use only one."),
  ({ body, model: { limits, traits, answersAs } }) => {
    const asked = number(body.max_tokens) ?? 0;
    const whole = body.stream === true ? undefined : Number(traits.get("whole") ?? limits?.output);
    if (limits && asked > limits.output)
      return anthropicInvalid(
        `max_tokens: ${asked} > ${limits.output}, which is the maximum allowed number of output tokens for ${answersAs}`,
      );
    return (
      whole !== undefined &&
      asked > whole &&
      anthropicInvalid(`max_tokens: ${asked} > ${whole}, which is the maximum for a request that is not streamed`)
    );
  },
  modelRules.imagesAnnounced,
  ({ ask, model: { id, limits }, isNewest }) => {
    const count = promptTokens(ask, id);
    if (!limits || count <= limits.prompt) return undefined;
    return anthropicInvalid(
      isNewest
        ? "Request body is too large for model context window"
        : `prompt is too long: ${count} tokens > ${limits.prompt} maximum`,
    );
  },
];

/** Content as blocks: a string is one text block. */
export const blocksOf = (content: unknown): Json[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : records(content);

/** Blocks with a cache mark. */
export const cacheMarks = (body: Json): number => marked(body).length;

const betasOf = (headers: Record<string, string>): string[] =>
  (headers["anthropic-beta"] ?? "")
    .split(",")
    .map((beta) => beta.trim())
    .filter(Boolean);

/** Everything that may have `cache_control`, with its path. */
function marked(body: Json): { path: string; block: Json }[] {
  const at = (blocks: unknown, path: string) =>
    records(blocks).map((block, index) => ({ path: `${path}.${index}`, block }));
  return [
    ...at(body.tools, "tools"),
    ...at(body.system, "system"),
    ...records(body.messages).flatMap((message, index) => at(message.content, `messages.${index}.content`)),
  ].filter(({ block }) => block.cache_control != null);
}

/** Only some of the hosts behind this endpoint check it; here it is the one that serves all but Opus. */
function billingObjection({ body, model, isNewest }: View): Refusal | false {
  const isBilled = blocksOf(body.system).some(({ text }) => string(text).startsWith("x-anthropic-billing-header"));
  if (!isNewest || !isBilled || model.id.includes("opus")) return false;
  return anthropicInvalid("x-anthropic-billing-header is a reserved keyword and may not be used in the system prompt.");
}

function editObjection({ body, isNewest }: View): Refusal | undefined {
  const known = ["clear_tool_uses_20250919", "clear_thinking_20251015"];
  const edits = records(record(body.context_management).edits);
  const at = edits.findIndex(({ type }) => !known.includes(string(type)));
  if (!isNewest || at === -1) return undefined;
  return unknownTag(`context_management.edits.${at}`, string(edits[at]?.type), known);
}

const unknownTag = (path: string, tag: string, known: string[]): Refusal =>
  anthropicInvalid(
    `${path}: Input tag '${tag}' found using 'type' does not match any of the expected tags: ${known.map((name) => `'${name}'`).join(", ")}`,
  );

function markObjection({ body, headers, isNewest }: View): Refusal | undefined {
  const isHourAllowed = isNewest && betasOf(headers).includes(oneHourCache);
  for (const { path, block } of marked(body)) {
    const mark = record(block.cache_control);
    if ("scope" in mark) return extra(`${path}.cache_control.ephemeral.scope`);
    if (mark.ttl !== undefined && mark.ttl !== "5m" && !(isHourAllowed && mark.ttl === "1h"))
      return extra(`${path}.cache_control.ephemeral.ttl`);
    if (block.type === "thinking" || block.type === "redacted_thinking")
      return extra(`${path}.${block.type}.cache_control`);
    if (block.defer_loading === true)
      return anthropicInvalid(`${path}: tools with defer_loading may not have cache_control`);
  }
  return undefined;
}

function outputConfig({ body, model }: View): Refusal | undefined {
  const { effort, format, ...others } = record(body.output_config);
  const odd = Object.keys(others)[0];
  if (odd) return extra(`output_config.${odd}`);
  if (format != null && !model.traits.has("structured")) return extra("output_config.format");
  if (effort == null) return undefined;
  if (model.efforts.length === 0) return anthropicInvalid("This model does not support the effort parameter.");
  if (!model.efforts.includes(string(effort)))
    return anthropicInvalid(
      `output_config.effort: Input should be ${model.efforts.map((value) => `'${value}'`).join(", ")}`,
    );
  return undefined;
}

function messageObjection(message: Json, at: number): Refusal | undefined {
  if (message.role !== "user" && message.role !== "assistant")
    return anthropicInvalid(`messages.${at}.role: Input should be 'user' or 'assistant'`);
  const odd = Object.keys(message).find((name) => name !== "role" && name !== "content");
  if (odd) return extra(`messages.${at}.${odd}`);
  if (message.content === "" || list(message.content).length + string(message.content).length === 0)
    return anthropicInvalid(`messages.${at}: ${message.role} messages must have non-empty content`);
  return firstObjection(blocksOf(message.content), (block, index) =>
    blockObjection(block, `messages.${at}.content.${index}`),
  );
}

function blockObjection(block: Json, path: string): Refusal | undefined {
  const { type, text, cache_control } = block;
  // A single space is accepted if it only carries a cache mark.
  if (type === "text" && string(text).trim() === "" && !(text === " " && cache_control != null))
    return anthropicInvalid("messages: text content blocks must be non-empty");
  if (type === "thinking" && !proves(string(block.signature), string(block.thinking)))
    return anthropicInvalid(`${path}: Invalid \`signature\` in \`thinking\` block`);
  if (type === "redacted_thinking" && !proves(string(block.data), ""))
    return anthropicInvalid(`${path}: Invalid \`data\` in \`redacted_thinking\` block`);
  // No search has run here, so that no index of a found page is one of its own.
  if (records(block.citations).some((citation) => citation.type === "web_search_result_location"))
    return anthropicInvalid(`${path}: Invalid \`encrypted_index\` in \`text\` block`);
  if (type === "tool_result" && records(block.content).some((inner) => inner.cache_control != null))
    return anthropicInvalid(`${path}: cache_control may not be specified within \`tool_result.content\``);
  return undefined;
}

/** Each message with its predecessor. */
const toolTurns = (body: Json) => {
  const turns = records(body.messages);
  return [...turns, {} as Json].map((turn, at) => ({
    turn,
    before: turns[at - 1] ?? {},
    names: records(body.tools).map(({ name }) => name),
  }));
};

function pairObjection({ turn, before, names }: ReturnType<typeof toolTurns>[number], at: number): Refusal | undefined {
  const called = blocksOf(before.content)
    .filter(({ type }) => type === "tool_use")
    .map(({ id }) => string(id));
  const results = blocksOf(turn.content).filter(({ type }) => type === "tool_result");
  const answered = results.map((block) => string(block.tool_use_id));
  const open = called.filter((id) => !answered.includes(id));
  if (open.length > 0)
    return refusal(
      400,
      "invalid_request_body",
      `messages.${at - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    );
  const orphan = answered.find((id) => !called.includes(id));
  if (orphan !== undefined)
    return refusal(
      400,
      "invalid_request_body",
      `messages.${at}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${orphan}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
    );
  const reference = results
    .flatMap((block) => records(block.content))
    .find(({ type, tool_name }) => type === "tool_reference" && !names.includes(tool_name));
  return reference && anthropicInvalid(`Tool reference '${string(reference.tool_name)}' not found in available tools`);
}

function toolObjection(tool: Json, at: number, sent: string[], model: string): Refusal | undefined {
  const type = string(tool.type) || "custom";
  const advanced = sent.includes(advancedTools);
  // This error is JSON labelled text/plain, in the host's own form.
  if (type.startsWith("web_search_"))
    return new Refusal(
      400,
      '{"error":{"message":"The use of the web search tool is not supported.","code":"unsupported_value"}}\n',
      { "content-type": "text/plain; charset=utf-8" },
    );
  if (type.startsWith("tool_search_tool_") && advanced) return undefined;
  if (type !== "custom")
    return anthropicInvalid(
      `tools.${at}: Input tag '${type}' found using 'type' does not match any of the expected tags: 'custom'`,
    );
  const odd = Object.keys(tool).find((name) => !toolFields.has(name) && !(advanced && advancedToolFields.has(name)));
  if (odd) return extra(`tools.${at}.custom.${odd}`);
  if (!/^[a-zA-Z0-9_-]{1,128}$/.test(string(tool.name)))
    return anthropicInvalid(`tools.${at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
  if (tool.input_schema === undefined) return required(`tools.${at}.custom.input_schema`);
  // Only some of the hosts behind this endpoint check this; here it is the one that serves Opus.
  if (model.includes("opus") && "$schema" in record(tool.input_schema))
    return extra(`tools.${at}.custom.input_schema.$schema`);
  return undefined;
}

/** With a budget, the turn whose calls are answered now must begin with its thinking. */
function thinkingInLoop({ body }: View): Refusal | undefined {
  if (record(body.thinking).type !== "enabled") return undefined;
  const turns = records(body.messages);
  const last = turns.at(-1) ?? {};
  if (!blocksOf(last.content).some(({ type }) => type === "tool_result")) return undefined;
  // Results alone continue the turn; the person's words begin another one.
  const isResults = ({ role, content }: Json) =>
    role === "user" && blocksOf(content).every(({ type }) => type === "tool_result");
  let start = turns.length - 1;
  while (start > 0 && (turns[start - 1]?.role === "assistant" || isResults(turns[start - 1] ?? {}))) start -= 1;
  const first = blocksOf(turns[start]?.content)[0];
  if (first?.type === "thinking" || first?.type === "redacted_thinking") return undefined;
  const words = "Expected `thinking` or `redacted_thinking`, but found";
  return anthropicInvalid(
    `messages.${start}.content.0.type: ${words} \`${string(first?.type)}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
  );
}

/** What the newest generation refuses of the kind of thinking and of the way to show it. */
function thinkingForm({ body, model }: View): Refusal | undefined {
  const { type, display, budget_tokens, ...others } = record(body.thinking);
  if (type === "disabled" && model.traits.has("always-thinks"))
    return anthropicInvalid(
      '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    );
  const kinds = ["adaptive", "disabled", "enabled"];
  if (!kinds.includes(string(type))) return unknownTag("thinking", string(type), kinds);
  if (display !== undefined && display !== "summarized" && display !== "omitted")
    return anthropicInvalid(`thinking.${type}.display: Input should be 'summarized' or 'omitted'`);
  const odd = Object.keys(others)[0];
  return odd === undefined ? undefined : extra(`thinking.${type}.${odd}`);
}

function thinkingObjection(view: View): Refusal | undefined {
  const { body, model } = view;
  if (body.thinking == null) return undefined;
  const { type, budget_tokens, display } = record(body.thinking);
  const form = view.isNewest ? thinkingForm(view) : undefined;
  if (form) return form;
  const budget = number(budget_tokens) ?? 0;
  const adaptiveOnly = model.traits.has("adaptive-only");
  if (type === "disabled") return undefined;
  if (type === "adaptive" && !adaptiveOnly && !model.traits.has("adaptive"))
    return anthropicInvalid("adaptive thinking is not supported on this model");
  if (type === "enabled" && adaptiveOnly)
    return anthropicInvalid(
      '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    );
  if (display !== undefined && type === "enabled") return extra("thinking.enabled.display");
  if (type === "enabled" && model.budget && (budget < model.budget.min || budget > model.budget.max))
    return anthropicInvalid(
      budget < model.budget.min
        ? `thinking.enabled.budget_tokens: Input should be greater than or equal to ${model.budget.min}`
        : `thinking.enabled.budget_tokens: Input should be less than or equal to ${model.budget.max}`,
    );
  if (type === "enabled" && budget >= (number(body.max_tokens) ?? 0))
    return anthropicInvalid(
      "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size",
    );
  const forced = record(body.tool_choice).type;
  if (forced === "any" || forced === "tool")
    return anthropicInvalid("Thinking may not be enabled when tool_choice forces tool use.");
  if (body.temperature != null && body.temperature !== 1)
    return anthropicInvalid("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.");
  return undefined;
}
