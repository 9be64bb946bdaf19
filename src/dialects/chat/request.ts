/** Chat completions, requests: what a client asks, as a list of messages. */
import { ProxyError } from "../../errors";
import type {
  Bag,
  Conversation,
  Format,
  JsonObject,
  Part,
  Reasoning,
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
import { unpackSignature } from "../hub/signature";
import { applyRules, isClaude, isOpenAi } from "./rules";

// ── Wire facts ──

/** The members read into the hub; all others ride in the bag of what they belong to. */
const known = {
  request: new Set([
    ...["model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens"],
    ...["stop", "temperature", "top_p", "reasoning_effort", "thinking_budget", "response_format", "stream"],
  ]),
  message: new Set(["role", "content", "cache_control", "copilot_cache_control"]),
  assistant: new Set([
    ...["role", "content", "refusal", "reasoning_text", "reasoning_opaque", "tool_calls"],
    ...["cache_control", "copilot_cache_control"],
  ]),
  result: new Set(["role", "content", "tool_call_id", "cache_control", "copilot_cache_control"]),
  part: new Set(["type", "text", "refusal", "image_url", "file", "cache_control"]),
  image: new Set(["url", "detail"]),
  file: new Set(["file_data", "filename"]),
  call: new Set(["type", "id", "function", "custom"]),
  callWords: new Set(["name", "arguments", "input"]),
  tool: new Set(["type", "function", "custom"]),
  functionWords: new Set(["name", "description", "parameters", "strict"]),
  customWords: new Set(["name", "description", "format"]),
};

/** What only the responses dialect has a word for: a responses client's bag may hold it. */
const responsesOnly = {
  request: new Set([
    ...["background", "client_metadata", "context_management", "conversation", "include", "instructions"],
    ...["max_tool_calls", "previous_response_id", "prompt", "reasoning", "text", "truncation"],
  ]),
  others: new Set([
    ...["additional_tools", "annotations", "content", "defer_loading", "encrypted_content", "id", "instructions"],
    ...["local name", "logprobs", "namespace", "phase", "role", "status", "summary", "type"],
  ]),
};

// ── Tables ──

const roles: Record<string, Turn["role"]> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
};

// ── Decode ──

/** Reads a request. */
export function decodeRequest(body: unknown): Conversation {
  const request = objectAt(body, "body");
  for (const param of ["functions", "function_call"])
    if (request[param] != null)
      throw new ProxyError("invalid_request", `\`${param}\` is not supported; send \`tools\` and \`tool_choice\`.`, {
        param,
      });
  const maxTokens = request.max_completion_tokens == null ? "max_tokens" : "max_completion_tokens";
  const choice = decodeChoice(request.tool_choice);
  const format = decodeFormat(request.response_format);
  return said({
    model: textAt(request.model, "model"),
    turns: decodeMessages(arrayAt(request.messages, "messages")),
    tools: request.tools == null ? [] : arrayAt(request.tools, "tools").map(decodeTool),
    toolChoice: choice.toolChoice,
    parallelTools: optionalBoolean(request.parallel_tool_calls, "parallel_tool_calls"),
    maxTokens: optionalCount(request[maxTokens], maxTokens),
    stop: decodeStop(request.stop),
    temperature: optionalNumber(request.temperature, "temperature"),
    topP: optionalNumber(request.top_p, "top_p"),
    reasoning: decodeReasoning(request),
    format: format.format,
    stream: optionalBoolean(request.stream, "stream") ?? false,
    ...bagOf({ ...rest(request, known.request), ...choice.extra, ...format.extra }),
  });
}

/** A run of tool messages is one turn of the user; every other message is a turn of its own. */
function decodeMessages(messages: unknown[]): Turn[] {
  const turns: Turn[] = [];
  let results: Turn | undefined;
  messages.forEach((value, index) => {
    const path = `messages[${index}]`;
    const message = objectAt(value, path);
    if (message.role !== "tool") {
      results = undefined;
      turns.push(decodeMessage(message, path));
    } else if (results) results.parts.push(decodeResult(message, path));
    else {
      results = { role: "user", parts: [decodeResult(message, path)] };
      turns.push(results);
    }
  });
  return turns;
}

function decodeResult(message: JsonObject, path: string): ToolResultPart {
  return {
    kind: "tool-result",
    id: textAt(message.tool_call_id, `${path}.tool_call_id`),
    parts: decodeContent(message.content, `${path}.content`),
    ...cacheOf(message),
    ...bagOf(rest(message, known.result)),
  };
}

function decodeMessage(message: JsonObject, path: string): Turn {
  const word = textAt(message.role, `${path}.role`);
  const role = Object.hasOwn(roles, word) ? roles[word] : undefined;
  if (!role)
    throw new ProxyError("invalid_request", `\`${path}.role\` is \`${word}\`, which no message can have.`, {
      param: `${path}.role`,
    });
  const parts = decodeContent(message.content, `${path}.content`);
  if (role === "assistant") {
    parts.unshift(...decodeThinking(message));
    const refusal = optionalText(message.refusal, `${path}.refusal`);
    if (refusal) parts.push({ kind: "text", text: refusal, refusal: true });
    if (message.tool_calls != null)
      arrayAt(message.tool_calls, `${path}.tool_calls`).forEach((call, index) => {
        parts.push(decodeCall(objectAt(call, `${path}.tool_calls[${index}]`), `${path}.tool_calls[${index}]`));
      });
  }
  const last = parts.at(-1);
  if (last) Object.assign(last, cacheOf(message));
  const bag = rest(message, role === "assistant" ? known.assistant : known.message);
  return { role, parts, ...bagOf(word === "developer" ? { ...bag, role: word } : bag) };
}

function decodeThinking({ reasoning_text: text, reasoning_opaque: opaque }: JsonObject): ThinkingPart[] {
  const hasText = typeof text === "string" && text !== "";
  const hasProof = typeof opaque === "string" && opaque !== "";
  if (!hasText && !hasProof) return [];
  const part: ThinkingPart = { kind: "thinking", text: hasText ? text : "" };
  return [hasProof ? { ...part, signature: unpackSignature(opaque, "chat") } : part];
}

function decodeCall(call: JsonObject, path: string): ToolCallPart {
  const kind = call.type === "custom" ? "custom" : "function";
  const words = objectAt(call[kind], `${path}.${kind}`);
  const input = kind === "custom" ? "input" : "arguments";
  return {
    kind: "tool-call",
    id: textAt(call.id, `${path}.id`),
    name: textAt(words.name, `${path}.${kind}.name`),
    input: textAt(words[input] ?? "", `${path}.${kind}.${input}`),
    ...(kind === "custom" ? ({ freeform: true } as const) : {}),
    ...bagOf({ ...rest(call, known.call), ...nested(kind, rest(words, known.callWords)) }),
  };
}

function decodeContent(content: unknown, path: string): Part[] {
  if (content == null) return [];
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  return arrayAt(content, path).map((part, index) => decodePart(objectAt(part, `${path}[${index}]`)));
}

/** A part that is not as expected stays what it is: the upstream may know it. */
function decodePart(part: JsonObject): Part {
  const bag = rest(part, known.part);
  if (part.type === "text" && typeof part.text === "string")
    return { kind: "text", text: part.text, ...cacheOf(part), ...bagOf(bag) };
  if (part.type === "refusal" && typeof part.refusal === "string")
    return { kind: "text", text: part.refusal, refusal: true, ...bagOf(bag) };
  if (part.type === "image_url") {
    const image = isObject(part.image_url) ? part.image_url : { url: part.image_url };
    const { url, detail } = image;
    if (typeof url === "string")
      return {
        kind: "image",
        source: dataOf(url) ?? { url },
        ...cacheOf(part),
        ...bagOf(said({ ...bag, detail, ...nested("image_url", rest(image, known.image)) })),
      };
  }
  if (part.type === "file" && isObject(part.file) && typeof part.file.file_data === "string") {
    const data = dataOf(part.file.file_data);
    const name = typeof part.file.filename === "string" ? { name: part.file.filename } : {};
    if (data)
      return {
        kind: "file",
        ...name,
        ...data,
        ...cacheOf(part),
        ...bagOf({ ...bag, ...nested("file", rest(part.file, known.file)) }),
      };
  }
  return { kind: "foreign", dialect: "chat", value: part };
}

/** `data:<media type>;base64,<data>`, without a copy of the data. */
function dataOf(url: string): { mediaType: string; base64: string } | undefined {
  const end = url.startsWith("data:") ? url.slice(0, 300).indexOf(";base64,") : -1;
  if (end === -1) return undefined;
  return { mediaType: url.slice("data:".length, end), base64: url.slice(end + ";base64,".length) };
}

function decodeTool(value: unknown, index: number): Tool {
  const tool = objectAt(value, `tools[${index}]`);
  if (tool.type !== "function" && tool.type !== "custom") return { kind: "foreign", dialect: "chat", value: tool };
  const path = `tools[${index}].${tool.type}`;
  const words = objectAt(tool[tool.type], path);
  const name = textAt(words.name, `${path}.name`);
  const description = optionalText(words.description, `${path}.description`);
  const unread = rest(words, tool.type === "custom" ? known.customWords : known.functionWords);
  const { cache_control: _, ...bag } = rest(tool, known.tool) ?? {};
  const both = { name, description, ...cacheOf(tool), ...bagOf({ ...bag, ...nested(tool.type, unread) }) };
  if (tool.type === "custom") return said({ kind: "freeform", ...both, grammar: words.format ?? undefined });
  const strict = optionalBoolean(words.strict, `${path}.strict`);
  return said({ kind: "function", ...both, schema: words.parameters ?? undefined, strict });
}

function decodeChoice(choice: unknown): { toolChoice?: Conversation["toolChoice"]; extra?: JsonObject } {
  if (choice == null) return {};
  if (choice === "auto" || choice === "none" || choice === "required") return { toolChoice: choice };
  if (!isObject(choice) || (choice.type !== "function" && choice.type !== "custom"))
    return { extra: { tool_choice: choice } };
  const words = objectAt(choice[choice.type], `tool_choice.${choice.type}`);
  return { toolChoice: { name: textAt(words.name, `tool_choice.${choice.type}.name`) } };
}

function decodeStop(stop: unknown): string[] | undefined {
  if (stop == null) return undefined;
  return typeof stop === "string" ? [stop] : arrayAt(stop, "stop").map((word, index) => textAt(word, `stop[${index}]`));
}

function decodeReasoning({ reasoning_effort, thinking_budget }: JsonObject): Reasoning | undefined {
  const effort = optionalText(reasoning_effort, "reasoning_effort");
  const budget = optionalCount(thinking_budget, "thinking_budget");
  return effort === undefined && budget === undefined ? undefined : said({ effort, budget });
}

/** `text` is what every reply is; a format nobody knows is for the upstream to judge. */
function decodeFormat(value: unknown): { format?: Format; extra?: JsonObject } {
  if (value == null) return {};
  const wire = objectAt(value, "response_format");
  if (wire.type === "text") return {};
  if (wire.type === "json_object") return { format: {} };
  if (wire.type !== "json_schema") return { extra: { response_format: wire } };
  const path = "response_format.json_schema";
  const words = objectAt(wire.json_schema, path);
  const format: Format = said({
    name: optionalText(words.name, `${path}.name`),
    description: optionalText(words.description, `${path}.description`),
    schema: words.schema ?? {},
    strict: optionalBoolean(words.strict, `${path}.strict`),
  });
  return { format };
}

// ── Encode ──

/** Writes a request for an upstream of this dialect. */
export function encodeRequest(conversation: Conversation, model: ModelFacts): { body: JsonObject; dropped: string[] } {
  const dropped = new Set<string>();
  const { maxTokens, stop, temperature, topP, stream } = conversation;
  const tools = encodeTools(conversation.tools, dropped);
  const body = said({
    ...encodeExtra(conversation, dropped),
    model: model.id,
    messages: conversation.turns.flatMap((turn) => encodeTurn(turn, model, dropped)),
    tools: tools.length > 0 ? tools : undefined,
    ...encodeChoice(conversation, tools),
    max_tokens: maxTokens,
    stop,
    temperature,
    top_p: topP,
    ...encodeReasoning(conversation, dropped),
    response_format: encodeFormat(conversation),
    stream,
  });
  const ruled = applyRules(body, model);
  for (const note of ruled.notes) dropped.add(note);
  return { body: ruled.body, dropped: [...dropped] };
}

/** The conversation's bag, as far as this dialect has the words. */
function encodeExtra({ extra, stream }: Conversation, dropped: Set<string>): JsonObject {
  for (const key of Object.keys(extra?.anthropic ?? {})) if (!immaterial.anthropic.has(key)) dropped.add(key);
  const { stream_options, tool_choice: _, n, ...wire } = extra?.openai ?? {};
  if (typeof n === "number" && n > 1)
    throw new ProxyError("invalid_request", "`n` must be 1: only one answer at a time can be translated.", {
      param: "n",
    });
  for (const key of Object.keys(wire))
    if (responsesOnly.request.has(key)) {
      if (!immaterial.openai.has(key)) dropped.add(key);
      delete wire[key];
    }
  return stream && stream_options !== undefined ? { ...wire, stream_options } : wire;
}

function encodeFormat({ format, extra }: Conversation): unknown {
  if (!format) return extra?.openai?.response_format;
  const { name, description, schema, strict } = format;
  if (schema === undefined) return { type: "json_object" };
  return { type: "json_schema", json_schema: said({ name: name ?? "reply", description, schema, strict }) };
}

function encodeTools(tools: Tool[], dropped: Set<string>): JsonObject[] {
  const wire = tools.map((tool, index) => {
    const encoded = encodeTool(tool, dropped);
    if (!encoded) dropped.add(`tools[${index}]`);
    return encoded;
  });
  return wire.filter((tool) => tool !== undefined);
}

function encodeTool(tool: Tool, dropped: Set<string>): JsonObject | undefined {
  if (tool.kind === "foreign") return tool.dialect === "chat" && isObject(tool.value) ? tool.value : undefined;
  const { function: ofFunction, custom: ofCustom, name: _, ...bag } = encodeBag(tool, dropped);
  const words = { name: tool.name, description: tool.description };
  if (tool.kind === "freeform") {
    const format = nestedGrammar(tool.grammar);
    return { ...bag, type: "custom", custom: said({ ...(isObject(ofCustom) ? ofCustom : {}), ...words, format }) };
  }
  if (tool.cache) dropped.add("cache_control");
  const members = {
    ...(isObject(ofFunction) ? ofFunction : {}),
    ...words,
    parameters: tool.schema,
    strict: tool.strict,
  };
  return { ...bag, type: "function", function: said(members) };
}

/** The responses dialect has a grammar's members one level higher. */
function nestedGrammar(grammar: unknown): unknown {
  if (!isObject(grammar) || grammar.type !== "grammar" || "grammar" in grammar) return grammar;
  const { type, ...members } = grammar;
  return { type, grammar: members };
}

function encodeChoice(conversation: Conversation, wireTools: JsonObject[]): JsonObject {
  const choice = choiceOf(conversation);
  if (wireTools.length > 0 || conversation.tools.length === 0)
    return { tool_choice: choice, parallel_tool_calls: conversation.parallelTools };
  // Every tool was left out: what says how to use them goes too, unless one of them is demanded.
  if (choice === "required") refuseChoice("a tool");
  return {};
}

function choiceOf({ toolChoice, tools, extra }: Conversation): unknown {
  if (toolChoice === undefined) return nestedChoice(extra?.openai?.tool_choice);
  if (typeof toolChoice === "string") return toolChoice;
  const { name } = toolChoice;
  const tool = tools.find((each) => (each.kind === "foreign" ? nameIn(each.value) : each.name) === name);
  if (tool?.kind === "foreign") refuseChoice(`\`${name}\``);
  const type = tool?.kind === "freeform" ? "custom" : "function";
  return { type, [type]: { name: name } };
}

/** The responses dialect has a choice's list of tools, and their names, one level higher. */
function nestedChoice(choice: unknown): unknown {
  if (choice == null) return undefined;
  if (!isObject(choice) || choice.type !== "allowed_tools") return refuseChoice("a tool");
  if (isObject(choice.allowed_tools)) return choice;
  const { type, tools, ...members } = choice;
  const nest = (tool: unknown) =>
    isObject(tool) && tool.type === "function" ? { type: "function", function: { name: tool.name } } : tool;
  return { type, allowed_tools: { ...members, tools: Array.isArray(tools) ? tools.map(nest) : [] } };
}

function refuseChoice(what: string): never {
  throw new ProxyError("invalid_request", `\`tool_choice\` asks for ${what} that this model does not have.`, {
    param: "tool_choice",
  });
}

const nameIn = (value: unknown) => (isObject(value) ? value.name : undefined);

/** As it was said: what the model makes of it is a rule's business. */
function encodeReasoning({ reasoning }: Conversation, dropped: Set<string>): JsonObject {
  if (reasoning?.summary !== undefined) dropped.add("summary");
  const { effort, budget, disabled } = reasoning ?? {};
  return { reasoning_effort: disabled ? "none" : effort, thinking_budget: disabled ? undefined : budget };
}

function encodeTurn(turn: Turn, model: ModelFacts, dropped: Set<string>): JsonObject[] {
  return turn.role === "assistant" ? encodeAssistant(turn, model, dropped) : encodeOther(turn, model, dropped);
}

function encodeAssistant(turn: Turn, model: ModelFacts, dropped: Set<string>): JsonObject[] {
  const refusals: string[] = [];
  const thoughts: string[] = [];
  const calls: JsonObject[] = [];
  const spoken: Part[] = [];
  let opaque: string | undefined;
  for (const part of turn.parts) {
    if (part.kind === "text" && part.refusal) refusals.push(part.text);
    else if (part.kind === "tool-call") calls.push(encodeCall(part, dropped));
    else if (part.kind !== "thinking") spoken.push(part);
    else if (part.signature && part.signature.dialect !== "chat") dropped.add("thinking");
    else {
      thoughts.push(part.text);
      opaque = part.signature?.value ?? opaque;
    }
  }
  const content = encodeContent(spoken, model, dropped);
  const message = said({
    ...encodeBag(turn, dropped),
    role: "assistant",
    content: content.length === 0 ? null : spelt(content, model),
    refusal: refusals.length > 0 ? refusals.join("") : undefined,
    reasoning_text: thoughts.join("") || undefined,
    reasoning_opaque: opaque,
    tool_calls: calls.length > 0 ? calls : undefined,
    ...encodeCache(turn.parts, model, dropped),
  });
  // Of a turn of another maker's thinking alone nothing is left to say.
  const isEmpty = content.length + refusals.length + thoughts.length + calls.length === 0;
  return isEmpty && turn.parts.length > 0 ? [] : [message];
}

function encodeCall({ id, name, input, freeform, ...part }: ToolCallPart, dropped: Set<string>): JsonObject {
  const { function: ofFunction, custom: ofCustom, name: _, ...bag } = encodeBag(part, dropped);
  if (freeform)
    return { ...bag, id: wireId(id), type: "custom", custom: { ...(isObject(ofCustom) ? ofCustom : {}), name, input } };
  const words = { ...(isObject(ofFunction) ? ofFunction : {}), name, arguments: input };
  return { ...bag, id: wireId(id), type: "function", function: words };
}

/** A turn of the system or user. Tool results go first: they must directly follow their calls. */
function encodeOther(turn: Turn, model: ModelFacts, dropped: Set<string>): JsonObject[] {
  const messages = turn.parts
    .filter((part) => part.kind === "tool-result")
    .map((part) => encodeResult(part, model, dropped));
  const spoken = turn.parts.filter((part) => part.kind !== "tool-result");
  const content = encodeContent(spoken, model, dropped);
  // A turn whose parts were all left out is left out; one that never had any is the client's own.
  if (content.length === 0 && turn.parts.length > 0) return messages;
  const isDeveloper = turn.role === "system" && turn.extra?.openai?.role === "developer";
  const message = {
    ...encodeBag(turn, dropped),
    role: isDeveloper ? "developer" : turn.role,
    content: spelt(content, model),
    ...encodeCache(spoken, model, dropped),
  };
  return [...messages, message];
}

function encodeResult(part: ToolResultPart, model: ModelFacts, dropped: Set<string>): JsonObject {
  if (part.failed) dropped.add("is_error");
  return {
    ...encodeBag(part, dropped),
    role: "tool",
    tool_call_id: wireId(part.id),
    content: spelt(encodeContent(part.parts, model, dropped), model),
    ...encodeCache([part, ...part.parts], model, dropped),
  };
}

function encodeContent(parts: Part[], model: ModelFacts, dropped: Set<string>): JsonObject[] {
  return parts.map((part) => encodePart(part, model, dropped)).filter((part) => part !== undefined);
}

function encodePart(part: Part, model: ModelFacts, dropped: Set<string>): JsonObject | undefined {
  const bag = encodeBag(part, dropped);
  if (part.kind === "text") return part.text === "" ? undefined : { ...bag, type: "text", text: part.text };
  if (part.kind === "image") {
    const { detail, image_url: unread, ...others } = bag;
    if (!model.supports.vision) {
      dropped.add("image");
      return { type: "text", text: "[An image, which this model cannot see.]" };
    }
    const { source } = part;
    const url = "url" in source ? source.url : `data:${source.mediaType};base64,${source.base64}`;
    return { ...others, type: "image_url", image_url: said({ ...(isObject(unread) ? unread : {}), url, detail }) };
  }
  if (part.kind === "file") {
    const { file: unread, ...others } = bag;
    if (!isOpenAi(model))
      throw new ProxyError(
        "invalid_request",
        `${model.id} reads no files; send the text of ${part.name ?? "the file"} instead.`,
        {
          param: "messages",
        },
      );
    const file_data = `data:${part.mediaType};base64,${part.base64}`;
    return {
      ...others,
      type: "file",
      file: said({ ...(isObject(unread) ? unread : {}), filename: part.name, file_data }),
    };
  }
  if (part.kind === "foreign" && part.dialect === "chat" && isObject(part.value)) return part.value;
  dropped.add(part.kind === "foreign" ? String(isObject(part.value) ? part.value.type : "an unknown part") : part.kind);
  return undefined;
}

/** One plain text, or none, as a string; several as one where the model may not take a list. */
function spelt(content: JsonObject[], model: ModelFacts): unknown {
  const isPlain = content.every((part) => part.type === "text" && Object.keys(part).length === 2);
  if (!isPlain || (content.length > 1 && (isOpenAi(model) || isClaude(model)))) return content;
  return content.map((part) => part.text).join("\n\n");
}

/** Marks as clients write them; what the upstream makes of them is a rule of its own. */
function encodeCache(parts: Part[], model: ModelFacts, dropped: Set<string>): JsonObject {
  if (!parts.some((part) => part.cache)) return {};
  if (isClaude(model)) return { cache_control: { type: "ephemeral" } };
  dropped.add("cache_control");
  return {};
}

/** OpenAI takes ids of up to 40 characters here, fewer than in its other dialect. */
function wireId(id: string): string {
  return id.length <= 40 ? id : `${id.slice(0, 26)}_${Bun.hash(id).toString(36).padStart(13, "0")}`;
}

// ── Bags ──

/** The members of a bag this dialect may write; those of another's words are named. */
function encodeBag({ extra }: Bag, dropped: Set<string>): JsonObject {
  for (const key of Object.keys(extra?.anthropic ?? {})) if (!immaterial.anthropic.has(key)) dropped.add(key);
  return rest(extra?.openai ?? {}, responsesOnly.others) ?? {};
}

function cacheOf(holder: JsonObject): { cache?: true } {
  return holder.cache_control != null || holder.copilot_cache_control != null ? { cache: true } : {};
}

/** Members nobody reads of an object within an object, under that object's name. */
function nested(name: string, members: JsonObject | undefined): JsonObject {
  return members ? { [name]: members } : {};
}

function bagOf(members: JsonObject | undefined): Bag {
  return members && Object.keys(members).length > 0 ? { extra: { openai: members } } : {};
}
