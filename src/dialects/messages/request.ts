/**
 * Messages: what a client asks.
 *
 * Written one way, because it means the same: content of one plain text block is a string, neighbouring messages of one
 * role are one, an empty system, content or list of tools is none, `is_error`, `stream`, `strict` and
 * `disable_parallel_tool_use` are said only when true, a tool's type `custom` is not said, `output_format` is
 * `output_config.format`, and a null is not said.
 */
import { ProxyError } from "../../errors";
import type {
  Bag,
  Conversation,
  FilePart,
  Format,
  FreeformTool,
  FunctionTool,
  ImagePart,
  JsonObject,
  Part,
  Reasoning,
  TextPart,
  ThinkingPart,
  Tool,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from "../hub/conversation";
import { immaterial } from "../hub/immaterial";
import {
  arrayAt,
  isObject,
  objectAt,
  optionalBoolean,
  optionalCount,
  optionalNumber,
  optionalText,
  rest,
  said,
  textAt,
} from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { budgetOf } from "../hub/reasoning";
import { unpackSignature } from "../hub/signature";
import { bagged, marked, unbagged, unmarked, within } from "./bag";
import { inputObject } from "./reply";
import { applyRules } from "./rules";

const words = (list: string): ReadonlySet<string> => new Set(list.split(" "));

/** What is read of each object; the rest goes into its bag. */
const known = {
  request: words(
    "model max_tokens system messages tools tool_choice thinking output_config output_format stop_sequences temperature top_p stream",
  ),
  outputConfig: words("effort format"),
  format: words("type schema"),
  toolChoice: words("type name disable_parallel_tool_use"),
  thinking: { enabled: words("type budget_tokens"), adaptive: words("type"), disabled: words("type") },
  turn: words("role content"),
  tool: words("type name description input_schema strict cache_control"),
  text: words("type text cache_control"),
  source: words("type media_type data url"),
  image: words("type source cache_control"),
  file: words("type source title cache_control"),
  textDocument: words("source cache_control"),
  thinkingBlock: words("type thinking signature cache_control"),
  redactedBlock: words("data cache_control"),
  toolUse: words("type id name input cache_control"),
  toolResult: words("type tool_use_id content is_error cache_control"),
};

/** Claude Code's first system block changes with every prompt: in another dialect it would only spoil the cache. */
const billingHeader = { start: "x-anthropic-billing-header", key: "billing header" };

const toolChoiceOf = new Map([
  ["auto", "auto"],
  ["any", "required"],
  ["none", "none"],
] as const);
const toolChoiceWords = { auto: "auto", required: "any", none: "none" } as const;

/** Members of OpenAI's bag without which the answer would be to another question: they are refused. */
const essential: Record<string, (value: unknown) => boolean> = {
  n: (value) => value !== 1,
  background: (value) => value === true,
  previous_response_id: () => true,
  conversation: () => true,
  prompt: () => true,
};

export function decodeRequest(body: unknown): Conversation {
  const request = objectAt(body, "body");
  const { header, system } = decodeSystem(request.system);
  const { reasoning, bag: thinkingBag } = decodeReasoning(request);
  const { format, bag: formatBag } = decodeFormat(request);
  const { toolChoice, parallelTools, bag: choiceBag } = decodeToolChoice(request.tool_choice);
  return {
    model: textAt(request.model, "model"),
    turns: [...system, ...arrayAt(request.messages, "messages").map(decodeTurn)],
    tools: listAt(request.tools, "tools").map(decodeTool),
    toolChoice,
    parallelTools,
    maxTokens: optionalCount(request.max_tokens, "max_tokens"),
    stop: decodeStop(request.stop_sequences),
    temperature: optionalNumber(request.temperature, "temperature"),
    topP: optionalNumber(request.top_p, "top_p"),
    reasoning,
    format,
    stream: optionalBoolean(request.stream, "stream") ?? false,
    ...bagged(rest(request, known.request), thinkingBag, formatBag, choiceBag, header),
  };
}

function decodeSystem(system: unknown): { header?: JsonObject; system: Turn[] } {
  const blocks = typeof system === "string" || system == null ? undefined : arrayAt(system, "system");
  const first = blocks?.[0];
  const billed = isObject(first) && typeof first.text === "string" && first.text.startsWith(billingHeader.start);
  const parts = decodeContent(billed ? blocks?.slice(1) : system, "system");
  return {
    system: parts.length === 0 ? [] : [{ role: "system", parts }],
    ...(billed ? { header: { [billingHeader.key]: first } } : {}),
  };
}

function decodeTurn(value: unknown, index: number): Turn {
  const path = `messages[${index}]`;
  const message = objectAt(value, path);
  const { role } = message;
  if (role !== "user" && role !== "assistant" && role !== "system") {
    const sentence = `\`${path}.role\` must be \`user\`, \`assistant\` or \`system\`.`;
    throw new ProxyError("invalid_request", sentence, { param: `${path}.role` });
  }
  return { role, parts: decodeContent(message.content, `${path}.content`), ...bagged(rest(message, known.turn)) };
}

function decodeContent(content: unknown, path: string): Part[] {
  if (typeof content !== "string")
    return listAt(content, path).map((block, index) => decodePart(block, `${path}[${index}]`));
  return content === "" ? [] : [{ kind: "text", text: content }];
}

function decodePart(value: unknown, path: string): Part {
  const block = objectAt(value, path);
  const decoder = partDecoders.get(textAt(block.type, `${path}.type`));
  return decoder?.(block, path) ?? { kind: "foreign", dialect: "messages", value: block };
}

/** Each gives undefined for a block that only this dialect can hold. */
const partDecoders = new Map<string, (block: JsonObject, path: string) => Part | undefined>([
  ["text", decodeText],
  ["image", decodeImage],
  ["document", decodeDocument],
  ["thinking", decodeThinking],
  ["redacted_thinking", decodeRedacted],
  ["tool_use", decodeToolUse],
  ["tool_result", decodeToolResult],
]);

function decodeText(block: JsonObject, path: string): TextPart {
  return { kind: "text", text: textAt(block.text, `${path}.text`), ...marked(block, known.text) };
}

function decodeImage(block: JsonObject, path: string): ImagePart | undefined {
  const source = objectAt(block.source, `${path}.source`);
  const meta = marked(block, known.image, within("source", source, known.source));
  if (source.type === "url")
    return { kind: "image", source: { url: textAt(source.url, `${path}.source.url`) }, ...meta };
  if (source.type !== "base64") return undefined;
  return { kind: "image", source: base64Of(source, path), ...meta };
}

/** A PDF is a file; a document of plain text is a text with its title in the bag. */
function decodeDocument(block: JsonObject, path: string): FilePart | TextPart | undefined {
  const source = objectAt(block.source, `${path}.source`);
  const inner = within("source", source, known.source);
  if (source.type === "text") {
    const text = textAt(source.data, `${path}.source.data`);
    return { kind: "text", text, ...marked(block, known.textDocument, inner) };
  }
  if (source.type !== "base64") return undefined;
  const name = optionalText(block.title, `${path}.title`);
  return { kind: "file", name, ...base64Of(source, path), ...marked(block, known.file, inner) };
}

function base64Of(source: JsonObject, path: string): { mediaType: string; base64: string } {
  return {
    mediaType: textAt(source.media_type, `${path}.source.media_type`),
    base64: textAt(source.data, `${path}.source.data`),
  };
}

function decodeThinking(block: JsonObject, path: string): ThinkingPart {
  const proof = optionalText(block.signature, `${path}.signature`);
  return {
    kind: "thinking",
    text: optionalText(block.thinking, `${path}.thinking`) ?? "",
    ...(proof ? { signature: unpackSignature(proof, "messages") } : {}),
    ...marked(block, known.thinkingBlock),
  };
}

/** A proof without words. The bag keeps the block's type, unless it is another dialect's proof packed by us. */
function decodeRedacted(block: JsonObject, path: string): ThinkingPart {
  const signature = unpackSignature(textAt(block.data, `${path}.data`), "messages");
  const own = signature.dialect === "messages";
  return { kind: "thinking", text: "", signature, ...(own ? marked(block, known.redactedBlock) : {}) };
}

function decodeToolUse(block: JsonObject, path: string): ToolCallPart {
  return {
    kind: "tool-call",
    id: textAt(block.id, `${path}.id`),
    name: textAt(block.name, `${path}.name`),
    input: JSON.stringify(block.input ?? {}),
    ...marked(block, known.toolUse),
  };
}

function decodeToolResult(block: JsonObject, path: string): ToolResultPart {
  const failed = optionalBoolean(block.is_error, `${path}.is_error`);
  return {
    kind: "tool-result",
    id: textAt(block.tool_use_id, `${path}.tool_use_id`),
    parts: decodeContent(block.content, `${path}.content`),
    ...(failed ? { failed } : {}),
    ...marked(block, known.toolResult),
  };
}

function decodeTool(value: unknown, index: number): Tool {
  const path = `tools[${index}]`;
  const tool = objectAt(value, path);
  if (tool.type != null && tool.type !== "custom") return { kind: "foreign", dialect: "messages", value: tool };
  const strict = optionalBoolean(tool.strict, `${path}.strict`);
  return {
    kind: "function",
    name: textAt(tool.name, `${path}.name`),
    description: optionalText(tool.description, `${path}.description`),
    schema: tool.input_schema ?? undefined,
    ...(strict ? { strict } : {}),
    ...marked(tool, known.tool),
  };
}

function decodeToolChoice(value: unknown): Pick<Conversation, "toolChoice" | "parallelTools"> & { bag?: JsonObject } {
  if (value == null) return {};
  const choice = objectAt(value, "tool_choice");
  const single = optionalBoolean(choice.disable_parallel_tool_use, "tool_choice.disable_parallel_tool_use");
  const meta = { ...(single ? { parallelTools: false } : {}), bag: within("tool_choice", choice, known.toolChoice) };
  if (choice.type === "tool") return { toolChoice: { name: textAt(choice.name, "tool_choice.name") }, ...meta };
  for (const [word, toolChoice] of toolChoiceOf) if (word === choice.type) return { toolChoice, ...meta };
  return { bag: { tool_choice: choice } };
}

function decodeStop(value: unknown): string[] | undefined {
  return value == null
    ? undefined
    : arrayAt(value, "stop_sequences").map((text, index) => textAt(text, `stop_sequences[${index}]`));
}

/** With an effort, `adaptive` goes without saying; an effort for the words alone, without any thinking, denies it. */
function decodeReasoning(request: JsonObject): { reasoning?: Reasoning; bag?: JsonObject } {
  const config = request.output_config == null ? {} : objectAt(request.output_config, "output_config");
  const effort = optionalText(config.effort, "output_config.effort");
  const asked = effort === undefined ? {} : { effort };
  if (request.thinking == null) return effort === undefined ? {} : { reasoning: { effort, adaptive: false } };

  const thinking = objectAt(request.thinking, "thinking");
  // Thinking with a budget was always shown; adaptive thinking is shown to who asks.
  const shown = thinking.display === "summarized" || (thinking.display === undefined && thinking.type === "enabled");
  const summary = shown ? { summary: "auto" } : {};
  switch (thinking.type) {
    case "enabled": {
      const budget = readBudget(thinking.budget_tokens);
      const bag = within("thinking", thinking, known.thinking.enabled);
      return { reasoning: { ...asked, ...(budget === undefined ? {} : { budget }), ...summary }, bag };
    }
    case "adaptive": {
      const bag = within("thinking", thinking, known.thinking.adaptive);
      return { reasoning: { ...(effort === undefined ? { adaptive: true } : asked), ...summary }, bag };
    }
    case "disabled":
      return { reasoning: { ...asked, disabled: true }, bag: within("thinking", thinking, known.thinking.disabled) };
    default:
      return { ...(effort === undefined ? {} : { reasoning: asked }), bag: { thinking } };
  }
}

/** The least the dialect takes; what some clients mean by a number they reckoned to less than nothing. */
const leastBudget = 1024;

function readBudget(tokens: unknown): number | undefined {
  const missed = Number.isSafeInteger(tokens) && (tokens as number) < 1;
  return missed ? leastBudget : optionalCount(tokens, "thinking.budget_tokens");
}

function decodeFormat(request: JsonObject): { format?: Format; bag?: JsonObject } {
  const config = isObject(request.output_config) ? request.output_config : {};
  const outer = within("output_config", config, known.outputConfig);
  const value = config.format ?? request.output_format;
  if (value == null) return { bag: outer };
  const format = objectAt(value, "output_config.format");
  if (format.type !== "json_schema") return { bag: { ...outer, "output_config.format": format } };
  return {
    format: { schema: format.schema },
    bag: { ...outer, ...within("output_config.format", format, known.format) },
  };
}

const listAt = (value: unknown, path: string): unknown[] => (value == null ? [] : arrayAt(value, path));

export function encodeRequest(conversation: Conversation, model: ModelFacts): { body: JsonObject; dropped: string[] } {
  const dropped = new Set<string>();
  refuseEssential(conversation);
  dropBag(conversation, dropped);
  const { [billingHeader.key]: header, ...bag } = conversation.extra?.anthropic ?? {};
  const maxTokens = conversation.maxTokens ?? model.limits.output;
  const body = said({
    model: model.id,
    max_tokens: maxTokens,
    ...encodeTurns(conversation.turns, header, dropped),
    tools: encodeTools(conversation, dropped),
    tool_choice: encodeToolChoice(conversation),
    ...encodeReasoning(conversation.reasoning, model, maxTokens),
    stop_sequences: conversation.stop,
    temperature: conversation.temperature,
    top_p: conversation.topP,
    stream: conversation.stream || undefined,
  });
  encodeFormat(body, conversation.format, dropped);
  const ruled = applyRules(unbagged(body, bag), model);
  for (const rule of ruled.mends) dropped.add(noteOf(rule, ruled.body));
  return { body: ruled.body, dropped: [...dropped] };
}

/** What a rule did, in words where its name does not tell. */
function noteOf(rule: string, after: JsonObject): string {
  if (rule === "max-tokens-limit") return `max_tokens lowered to ${after.max_tokens}`;
  const word = isObject(after.output_config) ? after.output_config.effort : undefined;
  return rule === "effort" && word !== undefined ? `effort lowered to ${word}` : rule;
}

function refuseEssential(conversation: Conversation): void {
  const bag = conversation.extra?.openai ?? {};
  for (const [key, changes] of Object.entries(essential))
    if (bag[key] != null && changes(bag[key])) {
      const sentence = `\`${key}\` cannot be kept for this model: its upstream speaks the Messages API, which has nothing like it. Leave it out.`;
      throw new ProxyError("invalid_request", sentence, { param: key, code: "unsupported_parameter" });
    }
}

function dropBag(owner: Bag, dropped: Set<string>): void {
  const bag = owner.extra?.openai ?? {};
  for (const key of Object.keys(bag))
    if (bag[key] != null && !immaterial.openai.has(key) && !Object.hasOwn(essential, key)) dropped.add(key);
}

/** System turns before all others are the system; later ones keep their place as messages, until the rules fold them. */
function encodeTurns(
  turns: Turn[],
  header: unknown,
  dropped: Set<string>,
): { system: unknown; messages: JsonObject[] } {
  const system: JsonObject[] = isObject(header) ? [header] : [];
  const messages: JsonObject[] = [];
  let previous: { turn: Turn; content: JsonObject[] } | undefined;
  for (const turn of turns) {
    dropBag(turn, dropped);
    const blocks = turn.parts.flatMap<JsonObject>((part) => encodePart(part, dropped) ?? []);
    if (blocks.length === 0) continue;
    const started =
      turn.role === "system" && messages.length === 0 && !turn.extra?.anthropic
        ? system
        : previous && joins(previous.turn, turn)
          ? previous.content
          : undefined;
    if (started) for (const block of blocks) started.push(block);
    else {
      previous = { turn, content: blocks };
      messages.push(unbagged({ role: turn.role, content: blocks }, turn.extra?.anthropic));
    }
  }
  for (const message of messages) message.content = plainest(message.content);
  return { system: system.length === 0 ? undefined : plainest(system), messages };
}

/** The results of parallel calls belong into one message, whatever the turns they came in. */
const joins = (one: Turn, other: Turn): boolean =>
  one.role === other.role && !one.extra?.anthropic && !other.extra?.anthropic;

/** One plain text block is spelt as a string. */
function plainest(content: unknown): unknown {
  if (!Array.isArray(content) || content.length !== 1) return content;
  const block: unknown = content[0];
  return isObject(block) && block.type === "text" && Object.keys(block).length === 2 ? block.text : content;
}

function encodePart(part: Part, dropped: Set<string>): JsonObject | undefined {
  dropBag(part, dropped);
  switch (part.kind) {
    case "text":
      return encodeText(part);
    case "image":
      return unmarked({ type: "image", source: imageSource(part.source) }, part);
    case "file":
      return encodeFile(part, dropped);
    case "thinking":
      return encodeThinking(part, dropped);
    case "tool-call":
      return unmarked({ type: "tool_use", id: part.id, name: part.name, input: inputObject(part) }, part);
    case "tool-result":
      return encodeToolResult(part, dropped);
    case "foreign": {
      if (part.dialect === "messages" && isObject(part.value)) return part.value;
      dropped.add(typeOf(part.value));
    }
  }
}

function encodeText(part: TextPart): JsonObject {
  if (part.extra?.anthropic?.type !== "document") return unmarked({ type: "text", text: part.text }, part);
  const source = { type: "text", media_type: "text/plain", data: part.text };
  return unmarked({ type: "document", source }, part);
}

function imageSource(source: ImagePart["source"]): JsonObject {
  if ("base64" in source) return { type: "base64", media_type: source.mediaType, data: source.base64 };
  const inline = /^data:([^;,]+);base64,/.exec(source.url.slice(0, 200));
  return inline
    ? { type: "base64", media_type: inline[1], data: source.url.slice(inline[0].length) }
    : { type: "url", url: source.url };
}

/** PDFs and texts can be read; for anything else the model is told what it does not see. */
function encodeFile(part: FilePart, dropped: Set<string>): JsonObject {
  const { mediaType, base64, name: title } = part;
  if (mediaType === "application/pdf") {
    const source = { type: "base64", media_type: mediaType, data: base64 };
    return unmarked(said({ type: "document", source, title }), part);
  }
  if (/^text\/|^application\/json$/.test(mediaType)) {
    const source = { type: "text", media_type: "text/plain", data: Buffer.from(base64, "base64").toString() };
    return unmarked(said({ type: "document", source, title }), part);
  }
  dropped.add(`file of type ${mediaType}`);
  const notice = `[The file ${title ?? ""} (${mediaType}) was left out: only PDF and text files can be read here.]`;
  return { type: "text", text: notice };
}

function encodeThinking(part: ThinkingPart, dropped: Set<string>): JsonObject | undefined {
  const { signature, text, extra } = part;
  if (signature?.dialect === "messages") {
    return extra?.anthropic?.type === "redacted_thinking"
      ? unmarked({ type: "redacted_thinking", data: signature.value }, part)
      : unmarked({ type: "thinking", thinking: text, signature: signature.value }, part);
  }
  dropped.add("thinking");
}

function encodeToolResult(part: ToolResultPart, dropped: Set<string>): JsonObject {
  const blocks = part.parts.flatMap<JsonObject>((inner) => encodePart(inner, dropped) ?? []);
  const content = blocks.length === 0 ? undefined : plainest(blocks);
  return unmarked(said({ type: "tool_result", tool_use_id: part.id, content, is_error: part.failed }), part);
}

function encodeTools(conversation: Conversation, dropped: Set<string>): JsonObject[] | undefined {
  const tools = conversation.tools.flatMap<JsonObject>((tool) => {
    dropBag(tool, dropped);
    if (tool.kind === "function") return encodeFunction(tool);
    if (tool.kind === "freeform") return freeformTool(tool, dropped);
    if (tool.dialect === "messages" && isObject(tool.value)) return tool.value;
    refuseForced(conversation, tool.value);
    dropped.add(typeOf(tool.value));
    return [];
  });
  return tools.length === 0 ? undefined : tools;
}

function encodeFunction(tool: FunctionTool): JsonObject {
  const { name, description, strict } = tool;
  return unmarked(
    said({ name, description, input_schema: tool.schema ?? emptySchema, strict: strict || undefined }),
    tool,
  );
}

const emptySchema = { type: "object", properties: {} };

/** Brought to function form before it comes here; should one slip through, its input is one text. */
function freeformTool({ name, description, grammar }: FreeformTool, dropped: Set<string>): JsonObject {
  if (grammar !== undefined) dropped.add("grammar");
  const schema = { type: "object", properties: { input: { type: "string" } }, required: ["input"] };
  return said({ name, description, input_schema: schema });
}

/** A tool another service runs may be left out, but not when the answer has to be a call of it. */
function refuseForced({ toolChoice, tools, extra }: Conversation, tool: unknown): void {
  const asked = extra?.openai?.tool_choice;
  const named =
    isObject(toolChoice) && isObject(tool) && (toolChoice.name === tool.name || toolChoice.name === tool.type);
  const alone = toolChoice === "required" && tools.length === 1;
  if (!named && !alone && !(isObject(asked) && asked.type === typeOf(tool))) return;
  const sentence = `The tool \`${typeOf(tool)}\` does not exist for this model, so \`tool_choice\` cannot force it.`;
  throw new ProxyError("invalid_request", sentence, { param: "tool_choice", code: "unsupported_value" });
}

function encodeToolChoice({ toolChoice, parallelTools, tools }: Conversation): JsonObject | undefined {
  const single = parallelTools === false && tools.length > 0 ? { disable_parallel_tool_use: true } : undefined;
  if (toolChoice === undefined) return single && { type: "auto", ...single };
  if (toolChoice === "none") return { type: "none" };
  if (typeof toolChoice === "object") return { type: "tool", name: toolChoice.name, ...single };
  return { type: toolChoiceWords[toolChoice], ...single };
}

function encodeReasoning(
  reasoning: Reasoning | undefined,
  model: ModelFacts,
  maxTokens: number | undefined,
): { thinking?: JsonObject; output_config?: JsonObject } {
  if (!reasoning) return {};
  const { effort, budget, adaptive, summary } = reasoning;
  if (reasoning.disabled || effort === "none")
    return { thinking: { type: "disabled" }, ...(effort && effort !== "none" ? { output_config: { effort } } : {}) };

  const output = effort === undefined ? {} : { output_config: { effort } };
  if (budget !== undefined) return { thinking: { type: "enabled", budget_tokens: budget }, ...output };
  if (adaptive === false || (!adaptive && effort === undefined)) return output;
  if (model.supports.adaptiveThinking)
    return { thinking: { type: "adaptive", ...(summary === undefined ? {} : { display: "summarized" }) }, ...output };
  // This model counts its thinking instead: the number says what the word said.
  const tokens = budgetOf(reasoning, model, maxTokens);
  const words = model.supports.efforts.length === 0 ? {} : output;
  return tokens === undefined ? words : { thinking: { type: "enabled", budget_tokens: tokens }, ...words };
}

/** JSON of any shape has no word here: the rules put the wish into the system text. */
function encodeFormat(body: JsonObject, format: Format | undefined, dropped: Set<string>): void {
  if (!format) return;
  if (format.description !== undefined) dropped.add("format description");
  const spelt = format.schema === undefined ? { type: "json_object" } : { type: "json_schema", schema: format.schema };
  body.output_config = { ...(isObject(body.output_config) ? body.output_config : {}), format: spelt };
}

const typeOf = (value: unknown): string =>
  isObject(value) && typeof value.type === "string" ? value.type : "foreign part";
