/** Refusals of schemas: what they say, and what helped. */
import { BoundedMap } from "../../bounded-map";
import type { JsonObject } from "../../dialects/hub/conversation";
import type { SchemaMend, SchemaRefusal } from "../../dialects/hub/refused-schemas";
import { hourMs } from "../../format";
import type { UpstreamError } from "../upstream-error";

/** Milliseconds from the last request with the schema. */
const rememberFor = hourMs;
const maxSchemas = 2000;

/**
 * What helped a schema that a model had refused, so that a conversation pays for a refusal once. Of a schema only its hash is
 * kept; what helped it is remembered for an hour after it was last used.
 */
export class RefusedSchemas {
  readonly #mends = new BoundedMap<bigint, { mend: SchemaMend; until: number }>(maxSchemas);
  /** Until when something is known of a model: each request asks, and most models have refused nothing. */
  readonly #models = new BoundedMap<string, number>(maxSchemas);

  constructor(private readonly now: () => number) {}

  /** Whether anything is known of the model. */
  knows(model: string): boolean {
    return (this.#models.get(model) ?? 0) > this.now();
  }

  mendOf(model: string, schema: JsonObject): SchemaMend | undefined {
    const key = keyOf(model, schema);
    const known = this.#mends.get(key);
    if (!known || known.until <= this.now()) return undefined;
    this.#keep(model, key, known.mend);
    return known.mend;
  }

  /** Remembers a schema that the model took once it was mended, and had refused before. */
  learn(model: string, schema: JsonObject, mend: SchemaMend): void {
    this.#keep(model, keyOf(model, schema), mend);
  }

  #keep(model: string, key: bigint, mend: SchemaMend): void {
    const until = this.now() + rememberFor;
    this.#mends.set(key, { mend, until });
    this.#models.set(model, until);
  }
}

const keyOf = (model: string, schema: JsonObject): bigint =>
  BigInt.asIntN(64, Bun.hash.wyhash(JSON.stringify([model, schema])));

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
  if (path !== undefined) return { path: path.replace(/\.$/, "").split(/[.[\]]+/) };
  return /^invalid_(?:json_schema|function_parameters)/.test(code) ? {} : undefined;
}

/** `tools.2` as `tools[2]`. */
const bracketed = (place: string): string => place.replace(/\.(\d+)/g, "[$1]");
