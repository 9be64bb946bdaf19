/** Requests of the gemini dialect: contents of parts. */
import { ProxyError } from "../../errors";
import { isObject, numberIn } from "../../json";
import type { Conversation, JsonObject, Reasoning, ResponseFormat, Sampling, Turn } from "../hub/conversation";
import {
  arrayAt,
  filledAt,
  objectAt,
  omitUndefined,
  optionalBoolean,
  optionalCount,
  optionalNumber,
  optionalText,
  textAt,
} from "../hub/json";
import { isStrict } from "../hub/strict-schema";
import { callIds } from "./call-ids";
import { asNumber, extrasBeside, fieldsAt, fieldsIn, objectsAt, optionalFieldsAt, textsAt } from "./fields";
import { addModelParts, decodeSystemParts, decodeUserParts } from "./parts";
import { jsonSchemaOf } from "./schema";
import { decodeToolConfig, decodeTools } from "./tools";

// ── Wire facts ──

/** The fields that are read; all others become extras. */
const knownFields = {
  request: new Set([
    ...["model", "stream", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"],
    "cachedContent",
  ]),
  config: new Set([
    ...["maxOutputTokens", "stopSequences", "temperature", "topP", "topK", "seed", "presencePenalty"],
    ...["frequencyPenalty", "candidateCount", "thinkingConfig", "responseMimeType", "responseSchema"],
    ...["responseJsonSchema", "responseModalities"],
  ]),
  thinking: new Set(["includeThoughts", "thinkingBudget", "thinkingLevel"]),
};

/** `function` is the former role of results; a content without a role is the user's. */
const roles = new Map<unknown, Turn["role"]>([
  [undefined, "user"],
  [null, "user"],
  ["", "user"],
  ["user", "user"],
  ["function", "user"],
  ["model", "assistant"],
]);

// ── Decode ──

/** @throws ProxyError `invalid_request` if there is no content. */
export function checkRequest(body: JsonObject): void {
  filledContents(fieldsIn(body).contents);
}

/** @throws ProxyError `invalid_request` if there is none. */
export function filledContents(value: unknown): unknown[] {
  return filledAt(isObject(value) ? [value] : value, "contents");
}

/** Reads a request. `model`, `stream` and `alt` are members of the path; the server adds them to the body. */
export function decodeRequest(body: unknown): Conversation {
  const request = fieldsAt(body, "body");
  const config = optionalFieldsAt(request.generationConfig, "generationConfig");
  const thinking = optionalFieldsAt(config.thinkingConfig, "generationConfig.thinkingConfig");
  refuseEssential(request, config);
  const { toolChoice, allowedTools, extras } = decodeToolConfig(request.toolConfig);
  const google = {
    ...extrasBeside(knownFields.request, request).extras?.google,
    ...extrasBeside(knownFields.config, config).extras?.google,
    ...extrasBeside(knownFields.thinking, thinking).extras?.google,
    ...extras?.google,
  };
  const system = decodeSystemParts(request.systemInstruction, "systemInstruction");
  return omitUndefined({
    model: textAt(request.model, "model"),
    turns: [
      ...(system.length > 0 ? [{ role: "system" as const, parts: system }] : []),
      ...decodeContents(
        request.contents == null ? arrayAt(undefined, "contents") : objectsAt(request.contents, "contents"),
      ),
    ],
    tools: decodeTools(request.tools),
    toolChoice,
    allowedTools,
    maxTokens: optionalCount(asNumber(config.maxOutputTokens), "generationConfig.maxOutputTokens"),
    stop: decodeStop(config.stopSequences),
    temperature: optionalNumber(asNumber(config.temperature), "generationConfig.temperature"),
    topP: optionalNumber(asNumber(config.topP), "generationConfig.topP"),
    sampling: decodeSampling(config),
    reasoning: decodeReasoning(thinking),
    format: decodeFormat(config),
    stream: optionalBoolean(request.stream, "stream") ?? false,
    ...(Object.keys(google).length > 0 ? { extras: { google } } : {}),
  });
}

/** What would change the answer if it were left out. @throws ProxyError `invalid_request` naming the field. */
function refuseEssential({ cachedContent }: JsonObject, { candidateCount, responseModalities }: JsonObject): void {
  const refuse = (param: string, sentence: string) => {
    throw new ProxyError("invalid_request", sentence, { param, code: "unsupported_value" });
  };
  if (cachedContent != null)
    refuse("cachedContent", "`cachedContent` names what only Google's service stores; send the contents themselves.");
  if ((numberIn(asNumber(candidateCount)) ?? 1) > 1)
    refuse("generationConfig.candidateCount", "`candidateCount` must be 1: only one answer at a time can be given.");
  const others = textsAt(responseModalities, "generationConfig.responseModalities").filter((word) => word !== "TEXT");
  if (others.length > 0)
    refuse(
      "generationConfig.responseModalities",
      "`responseModalities` may only have TEXT: models here answer in text.",
    );
}

/** Consecutive contents of the model are one turn: a client may send a reply as it was streamed. */
function decodeContents(contents: unknown[]): Turn[] {
  const turns: Turn[] = [];
  const calls = callIds();
  contents.forEach((value, index) => {
    const path = `contents[${index}]`;
    const content = fieldsAt(value, path);
    const role = roles.get(content.role);
    if (!role) {
      const sentence = `\`${path}.role\` must be \`user\` or \`model\`; instructions belong into \`systemInstruction\`.`;
      throw new ProxyError("invalid_request", sentence, { param: `${path}.role` });
    }
    const parts = objectsAt(content.parts, `${path}.parts`);
    const extras = extrasBeside(contentFields, content);
    if (role === "user") {
      turns.push({ role, parts: decodeUserParts(parts, `${path}.parts`, calls), ...extras });
      return;
    }
    const last = turns.at(-1);
    const turn: Turn = last?.role === "assistant" ? last : { role, parts: [], ...extras };
    if (turn !== last) {
      calls.nextTurn();
      turns.push(turn);
    }
    addModelParts(parts, `${path}.parts`, calls, turn.parts);
  });
  return turns;
}

const contentFields = new Set(["role", "parts"]);

function decodeStop(value: unknown): string[] | undefined {
  const stop = textsAt(value, "generationConfig.stopSequences").map((text, index) =>
    textAt(text, `generationConfig.stopSequences[${index}]`),
  );
  return stop.length === 0 ? undefined : stop;
}

function decodeSampling(config: JsonObject): Sampling | undefined {
  const sampling: Sampling = {};
  for (const key of ["topK", "seed", "presencePenalty", "frequencyPenalty"] as const) {
    const value = optionalNumber(asNumber(config[key]), `generationConfig.${key}`);
    if (value !== undefined) sampling[key] = value;
  }
  return Object.keys(sampling).length > 0 ? sampling : undefined;
}

/** A budget of -1 leaves it to the model, 0 disables thinking. Thoughts are shown only if `includeThoughts` asks for them. */
function decodeReasoning(thinking: JsonObject): Reasoning | undefined {
  const path = "generationConfig.thinkingConfig";
  const shown = optionalBoolean(thinking.includeThoughts, `${path}.includeThoughts`);
  const tokens = optionalNumber(asNumber(thinking.thinkingBudget), `${path}.thinkingBudget`);
  const level = optionalText(thinking.thinkingLevel, `${path}.thinkingLevel`)?.toLowerCase();
  const effort = level === "thinking_level_unspecified" ? undefined : level;
  const summary = shown ? { summary: "auto" } : {};
  if (tokens === 0) return { disabled: true };
  if (tokens !== undefined && tokens > 0)
    return { ...(effort === undefined ? {} : { effort }), budget: tokens, ...summary };
  if (effort !== undefined) return { effort, ...summary };
  return tokens !== undefined || shown ? { adaptive: true, ...summary } : undefined;
}

/** Google always enforces the schema; OpenAI only with `strict`, for schemas that qualify. */
function decodeFormat(config: JsonObject): ResponseFormat | undefined {
  const type = optionalText(config.responseMimeType, "generationConfig.responseMimeType");
  const { responseSchema, responseJsonSchema } = config;
  const schema = responseJsonSchema ?? (responseSchema == null ? undefined : jsonSchemaOf(responseSchema, true));
  if (schema !== undefined && (!type || type === jsonType || type === enumType))
    return {
      schema: objectAt(schema, "generationConfig.responseSchema"),
      ...(isStrict(schema) ? { strict: true } : {}),
      ...(type === enumType ? { isPlain: true } : {}),
    };
  if (type === jsonType) return {};
  if (!type || type === "text/plain") return undefined;
  const sentence =
    type === enumType
      ? `\`generationConfig.responseMimeType\` is \`${enumType}\`: \`responseSchema\` must list the values.`
      : `\`generationConfig.responseMimeType\` must be \`text/plain\`, \`${jsonType}\` or \`${enumType}\`, not \`${type.slice(0, 100)}\`.`;
  throw new ProxyError("invalid_request", sentence, {
    param: "generationConfig.responseMimeType",
    code: "unsupported_value",
  });
}

const jsonType = "application/json";
/** One of the values that the schema lists, as a text. */
const enumType = "text/x.enum";
