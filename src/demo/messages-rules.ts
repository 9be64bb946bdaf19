/** Validation of /v1/messages, with the upstream's own messages: clients recognise errors by these texts. */

import { modelRules, type Objection, type View } from "./model-call";
import { promptTokens } from "./scripted-replies";
import { proof } from "./signatures";
import { anthropicFormat, anthropicSchema } from "./tool-schemas";
import { anthropicInvalid, type Json, list, number, Refusal, record, records, refusal, string } from "./wire";

const betas = ["interleaved-thinking-2025-05-14", "context-management-2025-06-27", "advanced-tool-use-2025-11-20"];
const [, contextManagement = "", advancedTools = ""] = betas;
/** The newest generation knows it. */
const oneHourCache = "extended-cache-ttl-2025-04-11";

const words = (text: string) => new Set(text.split(" "));
const fields = words(
  "model messages max_tokens system stream temperature top_p top_k stop_sequences tools tool_choice metadata thinking output_config",
);
const toolFields = words("type name description input_schema cache_control strict");
const advancedToolFields = words("defer_loading input_examples allowed_callers");
const turnControl = "per-turn-control-2026-07-01";
const computerUse = "computer-use-2025-11-24";
const compact = "compact-2026-01-12";
const clientTools = words(
  "bash_20250124 text_editor_20250124 text_editor_20250429 text_editor_20250728 memory_20250818",
);

const bad = anthropicInvalid;
const extra = (path: string) => bad(`${path}: Extra inputs are not permitted`);
const required = (path: string) => bad(`${path}: Field required`);
const listed = (names: readonly string[]) => names.map((name) => `'${name}'`).join(", ");
const unknownTag = (path: string, tag: string, known: string[]) =>
  bad(`${path}: Input tag '${tag}' found using 'type' does not match any of the expected tags: ${listed(known)}`);
/** The first name that is not expected, as a refusal. */
const unexpected = (path: string, value: unknown, isKnown: (name: string) => boolean) => {
  const odd = Object.keys(record(value)).find((name) => !isKnown(name));
  return odd !== undefined && extra(path + odd);
};

export function* messagesRules(view: View): Generator<Objection> {
  const { account, body, headers, model, ask, isNewest } = view;
  const { max_tokens, temperature, top_p } = body;
  const sent = betasOf(headers);
  const turns = records(body.messages);
  const tools = records(body.tools);
  const unknown = sent.find(
    (beta) => !betas.includes(beta) && !(isNewest && [oneHourCache, computerUse, turnControl, compact].includes(beta)),
  );
  yield unknown !== undefined &&
    bad(
      `Unexpected value(s) \`${unknown}\` for the \`anthropic-beta\` header. Please consult our documentation at docs.anthropic.com or try again without the header.`,
    );
  yield !Array.isArray(body.messages) && required("messages");
  yield max_tokens === undefined && required("max_tokens");
  const mayEdit = sent.includes(contextManagement);
  yield unexpected("", body, (name) => fields.has(name) || (name === "context_management" && mayEdit));
  yield unexpected("metadata.", body.metadata, (name) => name === "user_id");
  yield* outputConfig(view);
  if (isNewest) yield* newestRules(view);
  yield* markRules(marked(body), isNewest && sent.includes(oneHourCache));
  const turnEffort = sent.includes(turnControl);
  yield !model.traits.has("system-turns") &&
    turns.some(({ role }) => role === "system") &&
    bad(
      'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.',
    );
  for (const [at, turn] of turns.entries()) {
    const isPlaced = turns[at - 1]?.role === "user" && turns[at + 1]?.role !== "user";
    yield turn.role === "system" && !isPlaced && bad(`messages.${at}: system messages must follow a user message`);
    yield* turnRules(turn, `messages.${at}`, { turnEffort, summaries: takesSummaries(view), login: account.login });
  }
  yield* pairRules(
    turns,
    tools.map(({ name }) => name),
  );
  yield turns.at(-1)?.role === "assistant" &&
    bad("This model does not support assistant message prefill. The conversation must end with a user message.");
  for (const [at, tool] of tools.entries()) yield* toolRules(tool, `tools.${at}`, sent, model.id);
  yield new Set(tools.map(({ name }) => name)).size < tools.length && bad("tools: Tool names must be unique.");
  yield modelRules.toolCount(view);
  const { choice } = ask;
  yield typeof choice === "object" &&
    !tools.some(({ name }) => name === choice.name) &&
    bad(`Tool '${choice.name}' not found in provided tools`);
  yield* thinkingRules(view);
  yield temperature != null &&
    top_p != null &&
    bad("`temperature` and `top_p` cannot both be specified for this model. Please use only one.");
  const { limits, traits, answersAs } = model;
  const asked = number(max_tokens) ?? 0;
  const whole = body.stream === true ? Number.POSITIVE_INFINITY : Number(traits.get("whole") ?? limits?.output);
  if (limits)
    yield asked > limits.output &&
      bad(
        `max_tokens: ${asked} > ${limits.output}, which is the maximum allowed number of output tokens for ${answersAs}`,
      );
  yield asked > whole &&
    bad(`max_tokens: ${asked} > ${whole}, which is the maximum for a request that is not streamed`);
  yield modelRules.imagesAnnounced(view);
  const count = promptTokens(ask, model.id);
  yield limits &&
    count > limits.prompt &&
    bad(
      isNewest
        ? "Request body is too large for model context window"
        : `prompt is too long: ${count} tokens > ${limits.prompt} maximum`,
    );
}

/** Content as blocks: a string is one text block. */
export const blocksOf = (content: unknown): Json[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : records(content);

const betasOf = (headers: Record<string, string>): string[] =>
  (headers["anthropic-beta"] ?? "")
    .split(",")
    .map((beta) => beta.trim())
    .filter(Boolean);

/** Everything that has a cache mark, with its path. */
function marked(body: Json): { path: string; block: Json }[] {
  const at = (blocks: unknown, path: string) =>
    records(blocks).map((block, index) => ({ path: `${path}.${index}`, block }));
  return [
    ...at(body.tools, "tools"),
    ...at(body.system, "system"),
    ...records(body.messages).flatMap((message, index) => at(message.content, `messages.${index}.content`)),
  ].filter(({ block }) => block.cache_control != null);
}

/** The older models of a family make no summaries, and take none. */
const takesSummaries = ({ model, headers }: View) =>
  !model.id.includes("haiku-4") && betasOf(headers).includes(compact);

function* newestRules(view: View): Generator<Objection> {
  const { body, model } = view;
  const summaries = takesSummaries(view) ? ["compact_20260112"] : [];
  const known = ["clear_tool_uses_20250919", "clear_thinking_20251015", ...summaries];
  for (const [at, { type }] of records(record(body.context_management).edits).entries())
    yield !known.includes(string(type)) && unknownTag(`context_management.edits.${at}`, string(type), known);
  // Only some of the hosts behind this endpoint check it; here it is the one that serves all but Opus.
  yield !model.id.includes("opus") &&
    blocksOf(body.system).some(({ text }) => string(text).startsWith("x-anthropic-billing-header")) &&
    bad("x-anthropic-billing-header is a reserved keyword and may not be used in the system prompt.");
}

function* markRules(marks: ReturnType<typeof marked>, isHourAllowed: boolean): Generator<Objection> {
  for (const { path, block } of marks) {
    const { scope, ttl } = record(block.cache_control);
    yield scope !== undefined && extra(`${path}.cache_control.ephemeral.scope`);
    yield ttl !== undefined &&
      ttl !== "5m" &&
      !(isHourAllowed && ttl === "1h") &&
      extra(`${path}.cache_control.ephemeral.ttl`);
    yield (block.type === "thinking" || block.type === "redacted_thinking") &&
      extra(`${path}.${block.type}.cache_control`);
    yield block.defer_loading === true && bad(`${path}: tools with defer_loading may not have cache_control`);
  }
  yield marks.length > 4 && bad(`A maximum of 4 blocks with cache_control may be provided. Found ${marks.length}.`);
}

function* outputConfig({ body, model: { traits, efforts } }: View): Generator<Objection> {
  const { effort, format } = record(body.output_config);
  yield unexpected("output_config.", body.output_config, (name) => name === "effort" || name === "format");
  yield format != null && !traits.has("structured") && extra("output_config.format");
  if (format != null) yield* anthropicFormat(record(format).schema);
  if (effort == null) return;
  yield efforts.length === 0 && bad("This model does not support the effort parameter.");
  yield !efforts.includes(string(effort)) && bad(`output_config.effort: Input should be ${listed(efforts)}`);
}

function* turnRules(
  { role, content, ...others }: Json,
  path: string,
  { turnEffort, summaries, login }: { turnEffort: boolean; summaries: boolean; login: string },
): Generator<Objection> {
  const isSystem = role === "system";
  yield !isSystem &&
    role !== "user" &&
    role !== "assistant" &&
    bad(`${path}.role: Input should be 'user' or 'assistant'`);
  yield unexpected(`${path}.`, others, (name) => isSystem && turnEffort && name === "output_config");
  yield list(content).length + string(content).length === 0 &&
    others.output_config === undefined &&
    bad(`${path}: ${role} messages must have non-empty content`);
  for (const [at, block] of blocksOf(content).entries())
    if (!summaries || block.type !== "compaction") yield* blockRules(block, `${path}.content.${at}`, login);
}

/** The words of Anthropic's documentation of 2026-09, for an account as for a conversation. */
const bound =
  'The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.mismatch_behavior` to "drop_block".';

const blockTypes = [
  "text",
  "image",
  "document",
  "search_result",
  "thinking",
  "redacted_thinking",
  "tool_use",
  "tool_result",
  "server_tool_use",
  "tool_search_tool_result",
];

function* blockRules(block: Json, path: string, login: string): Generator<Objection> {
  const { type, text, cache_control, signature, thinking, data, citations, content } = block;
  yield !blockTypes.includes(string(type)) && unknownTag(path, string(type), blockTypes);
  // A single space is accepted if it only carries a cache mark.
  yield type === "text" &&
    string(text).trim() === "" &&
    !(text === " " && cache_control != null) &&
    bad("messages: text content blocks must be non-empty");
  if (type === "thinking") {
    const proved = proof(string(signature), string(thinking), login);
    yield proved === "bound" && bad(`${path}: Invalid \`signature\` in \`thinking\` block. ${bound}`);
    yield proved === "invalid" && bad(`${path}: Invalid \`signature\` in \`thinking\` block`);
    yield proved === "changed" && string(thinking) === "" && bad("each thinking block must contain thinking");
    yield proved === "changed" &&
      bad(
        `${path}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`,
      );
  }
  yield type === "redacted_thinking" &&
    proof(string(data), "", login, "redacted_thinking") !== "valid" &&
    bad(`${path}: Invalid \`data\` in \`redacted_thinking\` block`);
  yield type === "tool_result" &&
    block.is_error === true &&
    !blocksOf(content).some((inner) => inner.type !== "text" || string(inner.text).trim() !== "") &&
    bad(`${path}.tool_result: content cannot be empty if \`is_error\` is true`);
  const source = record(block.source);
  yield type === "image" && source.type === "url" && refusal(400, "", "external image URLs are not supported");
  const kind = imageKind(string(source.data));
  yield type === "image" &&
    source.type === "base64" &&
    kind !== undefined &&
    kind !== source.media_type &&
    bad(
      `${path}.image.source.base64: The image was specified using the ${string(source.media_type)} media type, but the image appears to be a ${kind} image`,
    );
  // No search has run here, so that no index of a found page is one of its own.
  yield records(citations).some((citation) => citation.type === "web_search_result_location") &&
    bad(`${path}: Invalid \`encrypted_index\` in \`text\` block`);
  yield type === "tool_result" &&
    records(content).some((inner) => inner.cache_control != null) &&
    bad(`${path}: cache_control may not be specified within \`tool_result.content\``);
}

const imageKind = (base64: string): string | undefined =>
  base64.startsWith("iVBORw0KGgo") ? "image/png" : base64.startsWith("/9j/") ? "image/jpeg" : undefined;

const invalidBody = (message: string) => refusal(400, "invalid_request_body", message);

/** Each call has its result in the next message, and each result its call in the one before. */
function* pairRules(turns: Json[], toolNames: unknown[]): Generator<Objection> {
  for (const [at, turn] of [...turns, {} as Json].entries()) {
    const results = blocksOf(turn.content).filter(({ type }) => type === "tool_result");
    const answered = results.map((block) => string(block.tool_use_id));
    const wrong = blocksOf(turn.content).findIndex(({ type, input }) => type === "tool_use" && record(input) !== input);
    yield wrong !== -1 &&
      invalidBody(`messages.${at}.content.${wrong}.tool_use.input: Input should be a valid dictionary`);
    const called = blocksOf(turns[at - 1]?.content)
      .filter(({ type }) => type === "tool_use")
      .map(({ id }) => string(id));
    const open = called.filter((id) => !answered.includes(id));
    yield open.length > 0 &&
      invalidBody(
        `messages.${at - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      );
    const orphan = answered.find((id) => !called.includes(id));
    yield orphan !== undefined &&
      invalidBody(
        `messages.${at}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${orphan}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    for (const { type, tool_name } of results.flatMap((block) => records(block.content)))
      yield type === "tool_reference" &&
        !toolNames.includes(tool_name) &&
        bad(`Tool reference '${string(tool_name)}' not found in available tools`);
  }
}

function* toolRules(tool: Json, path: string, sent: string[], model: string): Generator<Objection> {
  const type = string(tool.type) || "custom";
  const advanced = sent.includes(advancedTools);
  // This error is JSON labelled text/plain, in the host's own form.
  yield type.startsWith("web_search_") &&
    new Refusal(
      400,
      '{"error":{"message":"The use of the web search tool is not supported.","code":"unsupported_value"}}\n',
      { "content-type": "text/plain; charset=utf-8" },
    );
  if (type.startsWith("tool_search_tool_") && advanced) return;
  if (clientTools.has(type) || (type === "computer_20251124" && sent.includes(computerUse))) return;
  yield type !== "custom" && unknownTag(path, type, ["custom", ...clientTools]);
  yield tool.strict === true &&
    record(tool.input_schema).additionalProperties !== false &&
    bad(`${path}.custom: For 'object' type, 'additionalProperties' must be explicitly set to false`);
  yield unexpected(
    `${path}.custom.`,
    tool,
    (name) =>
      toolFields.has(name) ||
      (advanced && advancedToolFields.has(name)) ||
      (name === "eager_input_streaming" && !model.includes("haiku-4")),
  );
  yield !/^[a-zA-Z0-9_-]{1,128}$/.test(string(tool.name)) &&
    bad(`${path}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
  yield tool.input_schema === undefined && required(`${path}.custom.input_schema`);
  yield* anthropicSchema(tool.input_schema, `${path}.custom.input_schema`);
  // Only some of the hosts behind this endpoint check this; here it is the one that serves Opus.
  yield model.includes("opus") &&
    "$schema" in record(tool.input_schema) &&
    extra(`${path}.custom.input_schema.$schema`);
}

const adaptiveOnly = (type: string) =>
  bad(
    `"thinking.type.${type}" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`,
  );

function* thinkingRules({ body, model: { traits, budget: bounds }, isNewest }: View): Generator<Objection> {
  const forced = ["any", "tool"].includes(string(record(body.tool_choice).type));
  yield forced &&
    traits.has("free-choice") &&
    bad('tool_choice: type "tool" and "any" are not supported for this model.');
  yield body.thinking == null && traits.has("always-thinks") && adaptiveOnly("disabled");
  if (body.thinking == null) return;
  const { type, budget_tokens, display } = record(body.thinking);
  if (isNewest) {
    const kinds = ["adaptive", "disabled", "enabled"];
    const known = ["type", "display", "budget_tokens"];
    yield type === "disabled" && traits.has("always-thinks") && adaptiveOnly("disabled");
    yield !kinds.includes(string(type)) && unknownTag("thinking", string(type), kinds);
    yield display !== undefined &&
      display !== "summarized" &&
      display !== "omitted" &&
      bad(`thinking.${type}.display: Input should be 'summarized' or 'omitted'`);
    yield unexpected(`thinking.${type}.`, body.thinking, (name) => known.includes(name));
  }
  if (type === "disabled") return;
  const budget = number(budget_tokens) ?? 0;
  yield type === "adaptive" &&
    !traits.has("adaptive") &&
    !traits.has("adaptive-only") &&
    bad("adaptive thinking is not supported on this model");
  if (type === "enabled") {
    yield traits.has("adaptive-only") && adaptiveOnly("enabled");
    yield display !== undefined && extra("thinking.enabled.display");
    const least = "thinking.enabled.budget_tokens: Input should be greater than or equal to";
    yield bounds && budget < bounds.min && bad(`${least} ${bounds.min}`);
    yield bounds && budget > bounds.max && bad(`${least.replace("greater", "less")} ${bounds.max}`);
    yield budget >= (number(body.max_tokens) ?? 0) &&
      bad(
        "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size",
      );
  }
  yield forced && !traits.has("adaptive-only") && bad("Thinking may not be enabled when tool_choice forces tool use.");
  yield body.temperature != null &&
    body.temperature !== 1 &&
    bad("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.");
  if (type === "enabled") yield* loopRules(records(body.messages));
}

/** With a budget, the turn whose calls are answered now must begin with its thinking. */
function* loopRules(turns: Json[]): Generator<Objection> {
  if (!blocksOf(turns.at(-1)?.content).some(({ type }) => type === "tool_result")) return;
  // Results alone continue the turn; the person's words begin another one.
  const isResults = ({ role, content }: Json) =>
    role === "user" && blocksOf(content).every(({ type }) => type === "tool_result");
  let start = turns.length - 1;
  while (start > 0 && (turns[start - 1]?.role === "assistant" || isResults(turns[start - 1] ?? {}))) start -= 1;
  const type = string(blocksOf(turns[start]?.content)[0]?.type);
  yield type !== "thinking" &&
    type !== "redacted_thinking" &&
    bad(
      `messages.${start}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
    );
}
