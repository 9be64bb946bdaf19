/** Tools and `toolConfig`. */

import { plainName } from "../../lib/json-shape";
import type { Conversation, ForeignTool, FunctionTool, JsonObject, Tool } from "../hub/conversation";
import { refuse } from "../hub/json";
import { searches } from "../hub/searches";
import { fieldsAt, type GoogleFields, unreadExtras } from "./fields";
import { jsonSchemaOf } from "./schema";

/**
 * A tool of Google's holds several functions, and tools that Google's service runs: each is one tool of the hub.
 * @throws ProxyError `invalid_request` naming the field.
 */
export function decodeTools(request: GoogleFields): Tool[] {
  return request.objects("tools").flatMap((tool): Tool[] => {
    const functions = tool.objects("functionDeclarations").map(decodeFunction);
    const own = Object.entries(tool.rest() ?? {}).filter(([, value]) => value != null);
    return [
      ...functions,
      ...own.map(([type, value]) => decodeForeign(type, fieldsAt(value, tool.pathOf(plainName(type))))),
    ];
  });
}

function decodeForeign(type: string, fields: JsonObject): ForeignTool {
  const tool: ForeignTool = { kind: "foreign", dialect: "gemini", value: { type, ...fields } };
  if (!isSearch(type)) return tool;
  const blocked = Array.isArray(fields.excludeDomains) ? fields.excludeDomains.filter(isText) : [];
  return { ...tool, server: { tool: "web-search", ...(blocked.length > 0 ? { blockedDomains: blocked } : {}) } };
}

/** Whether the tool is a search of Google's service, which dragoman can run. */
const isSearch = (type: string): boolean => searches["web-search"].gemini.some((name) => name === type);

const isText = (value: unknown): value is string => typeof value === "string";

function decodeFunction(declaration: GoogleFields): FunctionTool {
  const parameters = declaration.any("parameters");
  const description = declaration.optionalText("description");
  const schema = declaration.any("parametersJsonSchema") ?? (parameters == null ? undefined : jsonSchemaOf(parameters));
  return {
    kind: "function",
    name: declaration.text("name"),
    ...(description === undefined ? {} : { description }),
    ...(schema === undefined ? {} : { schema }),
    ...unreadExtras(declaration),
  };
}

const modes: Record<string, Conversation["toolChoice"]> = {
  AUTO: "auto",
  VALIDATED: "auto",
  ANY: "required",
  NONE: "none",
};

type Choice = Pick<Conversation, "toolChoice" | "allowedTools">;

/** @returns The choice, and the objects that were read for it. @throws ProxyError `invalid_request` naming the field. */
export function decodeToolConfig(request: GoogleFields): Choice & { read: GoogleFields[] } {
  const config = request.optionalFields("toolConfig");
  const calling = config.optionalFields("functionCallingConfig");
  const mode = calling.optionalText("mode")?.toUpperCase();
  return { ...choiceOf(mode, calling.texts("allowedFunctionNames"), calling.path), read: [config, calling] };
}

function choiceOf(mode: string | undefined, allowed: string[], path: string): Choice {
  if (mode === undefined || mode === "MODE_UNSPECIFIED") return {};
  const toolChoice = Object.hasOwn(modes, mode) ? modes[mode] : undefined;
  if (toolChoice === undefined) refuse(`${path}.mode`, `\`${path}.mode\` must be AUTO, ANY, VALIDATED or NONE.`);
  const [only, ...others] = allowed;
  if (only === undefined || toolChoice === "none") return { toolChoice };
  if (toolChoice === "required" && others.length === 0) return { toolChoice: { name: only } };
  return { toolChoice, allowedTools: allowed };
}
