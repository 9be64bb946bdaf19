/** Tools and `toolConfig`. */
import { ProxyError } from "../../errors";
import type { Conversation, ForeignTool, FunctionTool, JsonObject, Tool } from "../hub/conversation";
import { optionalText, textAt } from "../hub/json";
import { extrasBeside, fieldsAt, objectsAt, optionalFieldsAt, textsAt } from "./fields";
import { jsonSchemaOf } from "./schema";

const knownFields = {
  declaration: new Set(["name", "description", "parameters", "parametersJsonSchema"]),
  toolConfig: new Set(["functionCallingConfig"]),
  calling: new Set(["mode", "allowedFunctionNames"]),
};

/**
 * A tool of Google's holds several functions, and tools that Google's service runs: each is one tool of the hub.
 * @throws ProxyError `invalid_request` naming the field.
 */
export function decodeTools(value: unknown): Tool[] {
  return objectsAt(value, "tools").flatMap((item, index): Tool[] => {
    const path = `tools[${index}]`;
    const { functionDeclarations, ...others } = fieldsAt(item, path);
    const functions = objectsAt(functionDeclarations, `${path}.functionDeclarations`).map((declaration, at) =>
      decodeFunction(declaration, `${path}.functionDeclarations[${at}]`),
    );
    const own = Object.keys(others).filter((type) => others[type] != null);
    return [...functions, ...own.map((type) => decodeForeign(type, optionalFieldsAt(others[type], `${path}.${type}`)))];
  });
}

/** Searches of Google's service, which dragoman can run. */
const searches = new Set(["googleSearch", "googleSearchRetrieval", "enterpriseWebSearch"]);

function decodeForeign(type: string, fields: JsonObject): ForeignTool {
  const tool: ForeignTool = { kind: "foreign", dialect: "gemini", value: { type, ...fields } };
  if (!searches.has(type)) return tool;
  const blocked = Array.isArray(fields.excludeDomains) ? fields.excludeDomains.filter(isText) : [];
  return { ...tool, server: { tool: "web-search", ...(blocked.length > 0 ? { blockedDomains: blocked } : {}) } };
}

const isText = (value: unknown): value is string => typeof value === "string";

function decodeFunction(value: unknown, path: string): FunctionTool {
  const declaration = fieldsAt(value, path);
  const { parameters, parametersJsonSchema } = declaration;
  const description = optionalText(declaration.description, `${path}.description`);
  const schema = parametersJsonSchema ?? (parameters == null ? undefined : jsonSchemaOf(parameters));
  return {
    kind: "function",
    name: textAt(declaration.name, `${path}.name`),
    ...(description === undefined ? {} : { description }),
    ...(schema === undefined ? {} : { schema }),
    ...extrasBeside(knownFields.declaration, declaration),
  };
}

const modes: Record<string, Conversation["toolChoice"]> = {
  AUTO: "auto",
  VALIDATED: "auto",
  ANY: "required",
  NONE: "none",
};

type Choice = Pick<Conversation, "toolChoice" | "allowedTools" | "extras">;

/** @throws ProxyError `invalid_request` naming the field. */
export function decodeToolConfig(value: unknown): Choice {
  const config = optionalFieldsAt(value, "toolConfig");
  const path = "toolConfig.functionCallingConfig";
  const calling = optionalFieldsAt(config.functionCallingConfig, path);
  const extras = {
    ...extrasBeside(knownFields.toolConfig, config).extras?.google,
    ...extrasBeside(knownFields.calling, calling).extras?.google,
  };
  const mode = optionalText(calling.mode, `${path}.mode`)?.toUpperCase();
  const allowed = textsAt(calling.allowedFunctionNames, `${path}.allowedFunctionNames`).map((name, index) =>
    textAt(name, `${path}.allowedFunctionNames[${index}]`),
  );
  return {
    ...choiceOf(mode, allowed, path),
    ...(Object.keys(extras).length > 0 ? { extras: { google: extras } } : {}),
  };
}

function choiceOf(mode: string | undefined, allowed: string[], path: string): Omit<Choice, "extras"> {
  if (mode === undefined || mode === "MODE_UNSPECIFIED") return {};
  const toolChoice = Object.hasOwn(modes, mode) ? modes[mode] : undefined;
  if (toolChoice === undefined)
    throw new ProxyError("invalid_request", `\`${path}.mode\` must be AUTO, ANY, VALIDATED or NONE.`, {
      param: `${path}.mode`,
    });
  const [only, ...others] = allowed;
  if (only === undefined || toolChoice === "none") return { toolChoice };
  if (toolChoice === "required" && others.length === 0) return { toolChoice: { name: only } };
  return { toolChoice, allowedTools: allowed };
}
