/** Requests of the gemini dialect: contents of parts. */
import { quoted, words } from "../../lib/errors";
import { isObject, numberIn } from "../../lib/json";
import type { Conversation, JsonObject, Reasoning, ResponseFormat, Turn } from "../hub/conversation";
import { arrayAt, filledAt, objectAt, omitUndefined, refuse } from "../hub/json";
import { decodePlainFields } from "../hub/plain-fields";
import { isStrict } from "../hub/strict-schema";
import { CallIds } from "./call-ids";
import { asNumber, fieldsAt, fieldsIn, GoogleFields, unreadExtras } from "./fields";
import { addModelParts, decodeSystemParts, decodeUserParts } from "./parts";
import { jsonSchemaOf } from "./schema";
import { decodeToolConfig, decodeTools } from "./tools";

// ── Wire facts ──

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
  const request = new GoogleFields(fieldsAt(body, "body"));
  const config = request.optionalFields("generationConfig");
  const thinking = config.optionalFields("thinkingConfig");
  refuseEssential(request, config);
  const choice = decodeToolConfig(request);
  const system = decodeSystemParts(request.any("systemInstruction"), "systemInstruction");
  if (request.object.contents == null) arrayAt(undefined, "contents");
  const stop = config.texts("stopSequences");
  return omitUndefined({
    model: request.text("model"),
    turns: [
      ...(system.length > 0 ? [{ role: "system" as const, parts: system }] : []),
      ...decodeContents(request.objects("contents")),
    ],
    tools: decodeTools(request),
    toolChoice: choice.toolChoice,
    allowedTools: choice.allowedTools,
    maxTokens: config.optionalCount("maxOutputTokens"),
    stop: stop.length === 0 ? undefined : stop,
    ...decodePlainFields(config, "gemini"),
    reasoning: decodeReasoning(thinking),
    format: decodeFormat(config),
    stream: request.optionalBoolean("stream") ?? false,
    ...unreadExtras(request, config, thinking, ...choice.read),
  });
}

/** What would change the answer if it were left out. @throws ProxyError `invalid_request` naming the field. */
function refuseEssential(request: GoogleFields, config: GoogleFields): void {
  const unsupported = (param: string, sentence: string) => refuse(param, sentence, "unsupported_value");
  if (request.any("cachedContent") != null)
    unsupported(
      "cachedContent",
      "`cachedContent` names what only Google's service stores; send the contents themselves.",
    );
  if ((numberIn(asNumber(config.any("candidateCount"))) ?? 1) > 1)
    unsupported(
      "generationConfig.candidateCount",
      "`candidateCount` must be 1: only one answer at a time can be given.",
    );
  if (config.texts("responseModalities").some((word) => word !== "TEXT"))
    unsupported(
      "generationConfig.responseModalities",
      "`responseModalities` may only have TEXT: models here answer in text.",
    );
}

/** Consecutive contents of the model are one turn: a client may send a reply as it was streamed. */
function decodeContents(contents: GoogleFields[]): Turn[] {
  const turns: Turn[] = [];
  const calls = new CallIds();
  for (const content of contents) {
    const role = roles.get(content.any("role"));
    if (!role) {
      const param = content.pathOf("role");
      const sentence = `\`${param}\` must be \`user\` or \`model\`; instructions belong into \`systemInstruction\`.`;
      refuse(param, sentence);
    }
    const parts = content.objects("parts");
    const extras = unreadExtras(content);
    if (role === "user") {
      turns.push({ role, parts: decodeUserParts(parts, calls), ...extras });
      continue;
    }
    const last = turns.at(-1);
    const turn: Turn = last?.role === "assistant" ? last : { role, parts: [], ...extras };
    if (turn !== last) {
      calls.nextTurn();
      turns.push(turn);
    }
    addModelParts(parts, calls, turn.parts);
  }
  return turns;
}

/** A budget of -1 leaves it to the model, 0 disables thinking. Thoughts are shown only if `includeThoughts` asks for them. */
function decodeReasoning(thinking: GoogleFields): Reasoning | undefined {
  const shown = thinking.optionalBoolean("includeThoughts");
  const tokens = thinking.optionalNumber("thinkingBudget");
  const level = thinking.optionalText("thinkingLevel")?.toLowerCase();
  const effort = level === "thinking_level_unspecified" ? undefined : level;
  const summary = shown ? { summary: "auto" } : {};
  if (tokens === 0) return { disabled: true };
  if (tokens !== undefined && tokens > 0)
    return { ...(effort === undefined ? {} : { effort }), budget: tokens, ...summary };
  if (effort !== undefined) return { effort, ...summary };
  return tokens !== undefined || shown ? { adaptive: true, ...summary } : undefined;
}

/** Google always enforces the schema; OpenAI only with `strict`, for schemas that qualify. */
function decodeFormat(config: GoogleFields): ResponseFormat | undefined {
  const type = config.optionalText("responseMimeType");
  const responseSchema = config.any("responseSchema");
  const responseJsonSchema = config.any("responseJsonSchema");
  const schema = responseJsonSchema ?? (responseSchema == null ? undefined : jsonSchemaOf(responseSchema, true));
  if (schema !== undefined && (!type || type === jsonType || type === enumType))
    return {
      schema: objectAt(schema, "generationConfig.responseSchema"),
      ...(isStrict(schema) ? { strict: true } : {}),
      ...(type === enumType ? { isPlain: true } : {}),
    };
  if (type === jsonType) return {};
  if (!type || type === "text/plain") return undefined;
  const param = "generationConfig.responseMimeType";
  if (type === enumType)
    refuse(param, `\`${param}\` is \`${enumType}\`: \`responseSchema\` must list the values.`, "unsupported_value");
  const sentence = words`\`${param}\` must be \`text/plain\`, \`${jsonType}\` or \`${enumType}\`, not \`${quoted(type)}\`.`;
  refuse(param, sentence, "unsupported_value");
}

const jsonType = "application/json";
/** One of the values that the schema lists, as a text. */
const enumType = "text/x.enum";
