/** Converts the config to form fields and back. */
import { z } from "zod";
import { configSchema, parseConfig } from "../../../config/schema";
import { masked, valueAt } from "../../../config/secrets";
import type { Stored } from "../../../config/store";
import { ProxyError } from "../../../lib/errors";
import { pairIn, pairLine } from "./pairs";

export interface FieldSchema {
  type?: string;
  /** The label of the field. */
  title?: string;
  /** The section of the form, by its id. */
  section?: string;
  description?: string;
  default?: unknown;
  secret?: boolean;
  restart?: boolean;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  properties?: Record<string, FieldSchema>;
  additionalProperties?: FieldSchema | boolean;
  items?: FieldSchema;
  anyOf?: FieldSchema[];
}

/** The input for a key. `lines`: one value per line; `pairs`: one `name = value` per line; `entries`: a group of fields per entry. */
type FieldKind = "switch" | "choice" | "number" | "text" | "lines" | "pairs" | "entries" | "json";

export interface Field {
  /** `auth.apiKeys` */
  name: string;
  path: readonly string[];
  kind: FieldKind;
  schema: FieldSchema;
}

/** `vendorxApiKey` is an alias of `anthropicApiKey`, which has a field. */
const aliases = new Set(["vendorxApiKey"]);

/** Values that are written as `name = value`, or as `name = value, value`. */
const isPaired = (schema: FieldSchema) =>
  schema.type === "string" || schema.type === "integer" || isListOfTexts(schema);
const isListOfTexts = ({ type, items }: FieldSchema) => type === "array" && items?.type === "string";

export const fields: readonly Field[] = fieldsIn(z.toJSONSchema(configSchema(), { io: "input" }) as FieldSchema, []);

function fieldsIn({ properties = {} }: FieldSchema, path: readonly string[]): Field[] {
  return Object.entries(properties).flatMap(([key, schema]) => {
    const inner = [...path, key];
    if (schema.properties) return fieldsIn(schema, inner);
    return aliases.has(key) ? [] : [{ name: inner.join("."), path: inner, kind: fieldKindOf(schema), schema }];
  });
}

/** The input for a value of this schema. */
export function fieldKindOf({ type, enum: choices, items, additionalProperties }: FieldSchema): FieldKind {
  if (choices) return "choice";
  if (type === "boolean") return "switch";
  if (type === "integer" || type === "number") return "number";
  if (type === "string") return "text";
  if (type === "array" && [items, ...(items?.anyOf ?? [])].some((item) => item?.type === "string")) return "lines";
  if (typeof additionalProperties === "object")
    return isPaired(additionalProperties) ? "pairs" : additionalProperties.properties ? "entries" : "json";
  return "json";
}

/** Whether a line may be an object. */
export const takesObjects = ({ items }: FieldSchema): boolean =>
  items?.anyOf?.some(({ type }) => type === "object") === true;
/** Whether the values of its pairs are lists. */
export const takesLists = ({ additionalProperties }: FieldSchema): boolean =>
  typeof additionalProperties === "object" && isListOfTexts(additionalProperties);

/** The config with its secrets masked. */
export const shownConfig = (stored: Stored): object => masked(parseConfig(stored));

/** The form filled with the values of a config. */
export function formOf(config: object): URLSearchParams {
  const form = new URLSearchParams();
  for (const { name, path, kind, schema } of fields) {
    const value = valueAt(config, path);
    if (kind === "entries") writeEntries(form, name, schema, value as Record<string, Record<string, unknown>>);
    else form.set(name, textOf(kind, value));
  }
  return form;
}

function textOf(kind: FieldKind, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (kind === "switch") return value === true ? "on" : "";
  if (kind === "lines") return (value as unknown[]).map(lineOf).join("\n");
  if (kind === "pairs")
    return Object.entries(value)
      .map(([name, inner]) => pairLine(name, Array.isArray(inner) ? listText(inner) : String(inner)))
      .join("\n");
  return kind === "json" ? JSON.stringify(value, null, 2) : String(value);
}

function writeEntries(
  form: URLSearchParams,
  name: string,
  schema: FieldSchema,
  value: Record<string, Record<string, unknown>>,
) {
  for (const [at, [entry, inner]] of Object.entries(value ?? {}).entries()) {
    form.set(`${name}.${at}.name`, entry);
    for (const [member, of] of Object.entries(membersOf(schema)))
      form.set(`${name}.${at}.${member}`, textOf(fieldKindOf(of), inner[member]));
  }
}

/** The fields of an entry, except its name. */
export const membersOf = ({ additionalProperties }: FieldSchema): Record<string, FieldSchema> =>
  (typeof additionalProperties === "object" ? additionalProperties.properties : undefined) ?? {};

/** The number of entries in a form, including empty ones. */
export function entriesIn(form: URLSearchParams, name: string): number {
  const numbers = [...form.keys()].flatMap((key) => (key.startsWith(`${name}.`) ? Number(key.split(".")[1]) : []));
  return Math.min(1_001, Math.max(-1, ...numbers.filter(Number.isInteger)) + 1);
}

/**
 * The patch that a form makes: keys whose value differs from the one that was shown, with null for those set back to their
 * default.
 * @param shown The config that the form was filled with.
 * @param config The present one: somebody else may have changed other keys meanwhile.
 * @throws ProxyError `invalid_request` for text that cannot be read as a value.
 */
export function patchFrom(form: URLSearchParams, shown: object, config = shown): Stored {
  const patch: Record<string, unknown> = {};
  for (const field of fields) {
    const { path, name } = field;
    const value = valueIn(form, field);
    if (Bun.deepEquals(value, valueAt(shown, path))) continue;
    const isDefault = value === undefined || Bun.deepEquals(value, field.schema.default);
    const [member, inner] = path;
    if (inner === undefined) patch[name] = isDefault ? null : value;
    // A nested key: the patch replaces the whole group, with what else of it has changed.
    else {
      const group = (patch[member!] ?? valueAt(config, [member!])) as object;
      patch[member!] = { ...group, [inner]: isDefault ? field.schema.default : value };
    }
  }
  return patch;
}

function valueIn(form: URLSearchParams, { name, kind, schema }: Field): unknown {
  if (kind === "entries") return entriesOf(form, name, schema);
  return readValue((form.get(name) ?? "").replaceAll("\r\n", "\n"), { name, kind, schema });
}

/** The value that a text stands for; undefined if it is empty, where the kind has no empty value. */
function readValue(text: string, { name, kind, schema }: Omit<Field, "path">): unknown {
  switch (kind) {
    case "switch":
      return text !== "";
    case "number":
      return text.trim() === "" ? undefined : numberOrText(text);
    case "lines":
      return linesOf(text).map((line) => (isObjectLine(line) ? jsonOf(line, name) : line));
    case "pairs":
      return pairsOf(text, name, schema);
    case "json":
      return jsonOf(text, name);
    default:
      return text.trim() === "" ? undefined : text.trim();
  }
}

/** An object is written as JSON; no other value begins with a brace, unless it is a JSON string. */
const lineOf = (value: unknown): string =>
  typeof value === "string" && !isObjectLine(value) ? value : JSON.stringify(value);
const isObjectLine = (line: string): boolean => /^(?:\{|"\{)/.test(line);

/** Text that is not a number stays as it is: the schema reports it. */
const numberOrText = (text: string): number | string =>
  text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text);

const linesOf = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** `a, b`; as JSON if that would be read as something else. */
function listText(list: string[]): string {
  const text = list.join(", ");
  const reads = !text.startsWith("[") && Bun.deepEquals(listIn(text, ""), list);
  return reads ? text : JSON.stringify(list);
}

const listIn = (text: string, param: string): unknown =>
  text.startsWith("[")
    ? jsonOf(text, param)
    : text
        .split(",")
        .map((item) => item.trim())
        .filter(Boolean);

function pairsOf(text: string, param: string, schema: FieldSchema): Record<string, unknown> {
  const { additionalProperties: of } = schema;
  const ofNumbers = typeof of === "object" && of.type === "integer";
  const ofLists = takesLists(schema);
  const pairs = linesOf(text).map((line) => {
    const read = pairIn(line);
    if (!read) throw unreadable(param, `each line must read \`name = value\`, unlike \`${line.slice(0, 60)}\``);
    const value = ofLists ? listIn(read.value, param) : ofNumbers ? numberOrText(read.value) : read.value;
    return [read.name, value] as const;
  });
  const twice = pairs.find(([name], at) => pairs.findIndex(([other]) => other === name) !== at);
  if (twice) throw unreadable(param, `\`${twice[0].slice(0, 60)}\` appears twice`);
  return Object.fromEntries(pairs);
}

function entriesOf(form: URLSearchParams, name: string, schema: FieldSchema): Record<string, Record<string, unknown>> {
  const entries: Record<string, Record<string, unknown>> = Object.create(null);
  const members = membersOf(schema);
  for (let at = 0; at < entriesIn(form, name); at += 1) {
    const field = (member: string) => (form.get(`${name}.${at}.${member}`) ?? "").replaceAll("\r\n", "\n").trim();
    const filled = Object.keys(members).filter((member) => field(member) !== "");
    const isBlank = field("name") === "" && filled.every((member) => isPreset(members[member]!, field(member)));
    if (isBlank || form.has(`${name}.${at}.remove`)) continue;
    if (field("name") === "") throw unreadable(name, "an entry has no name");
    if (Object.hasOwn(entries, field("name")))
      throw unreadable(name, `\`${field("name").slice(0, 60)}\` appears twice`);
    entries[field("name")] = Object.fromEntries(
      filled.map((member) => {
        const of = members[member]!;
        return [
          member,
          readValue(field(member), { name: `${name}.${field("name")}.${member}`, kind: fieldKindOf(of), schema: of }),
        ];
      }),
    );
  }
  return { ...entries };
}

/** A select with a default has a value even in an entry that was left empty. */
const isPreset = ({ enum: choices, default: preset }: FieldSchema, value: string): boolean =>
  choices !== undefined && value === (preset ?? choices[0]);

function jsonOf(text: string, param: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw unreadable(param, "is not valid JSON");
  }
}

const unreadable = (param: string, why: string) => new ProxyError("invalid_request", `${param}: ${why}.`, { param });
