/** Which schema a refusal is about. */
import type { SchemaRefusal } from "../../../dialects/hub/refused-schemas";
import { withoutEnd } from "../../../lib/without-end";
import type { UpstreamError } from "../upstream-error";

/** Members of a tool that are no schema: a refusal of one is not about its schema. */
const schemaMembers = new Set([
  "input_schema",
  "parameters",
  "schema",
  "parametersJsonSchema",
  "parameters_json_schema",
]);
const wrappers = new Set(["custom", "function"]);

const toolPlace =
  /((?:\binput(?:\.|\[)\d{1,6}\]?\.)?\btools(?:\.|\[)\d{1,6}\]?(?:\.tools(?:\.|\[)\d{1,6}\]?)?)([\w.[\]-]*)/;
const googlePlace = /function_declarations\[(\d{1,6})\]/;
const functionName = /\bfunction ['"`]([\w.-]{1,128})['"`]/i;
const formatPlace =
  /\b(?:response_format|text\.format|output_config\.format|output_format|response_(?:json_)?schema)\b/;
const schemaPath = /\$\.([\w$.[\]-]+)/;
const schemaWords = /schema|propert|\bitems\b|\benum\b|\bregex\b|pattern/i;

/** Which schema an error is about; undefined for an error that is about none. */
export function schemaRefusal({ message, code, param = "" }: UpstreamError): SchemaRefusal | undefined {
  if (/^bad request$/i.test(message.trim())) return { isBare: true };
  const isOfSchema = schemaWords.test(`${code} ${message}`);
  if (!isOfSchema) return undefined;
  const declared = googlePlace.exec(message)?.[1];
  if (declared !== undefined) return { place: `tools[${declared}]` };
  for (const text of [param, message]) {
    const [, place, rest = ""] = toolPlace.exec(text) ?? [];
    if (place === undefined) continue;
    const member = rest.split(/[.[\]]+/).find((name) => name !== "" && !wrappers.has(name));
    return member === undefined || schemaMembers.has(member) ? { place: bracketed(place) } : undefined;
  }
  const name = functionName.exec(message)?.[1];
  if (name !== undefined) return { name };
  if (formatPlace.test(param) || formatPlace.test(message)) return { isFormat: true };
  const path = schemaPath.exec(message)?.[1];
  if (path !== undefined) return { path: withoutEnd(path, "].").split(/[.[\]]+/) };
  return /^invalid_(?:json_schema|function_parameters)/.test(code) ? {} : undefined;
}

/** `tools.2` as `tools[2]`. */
const bracketed = (place: string): string => place.replace(/\.(\d+)/g, "[$1]");
