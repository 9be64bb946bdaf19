import { entry, type Json, list, number, record, string } from "./wire";

/** A small value that satisfies a JSON schema: required properties only. */
export function sample(schema: unknown, name = "", root: unknown = schema, depth = 0): unknown {
  const node = withSaid(resolve(record(schema), root));
  if ("const" in node) return node.const;
  if ("default" in node) return node.default;
  const options = list(node.enum);
  if (options.length > 0) return options[0];
  const variants = [node.anyOf, node.oneOf].map(list).find((found) => found.length > 0);
  if (variants && depth < 12)
    return sample(variants.find((variant) => record(variant).type !== "null") ?? variants[0], name, root, depth + 1);
  const parts = list(node.allOf).map((part) => resolve(record(part), root));
  const merged = parts.reduce<Json>(merge, node);
  return makers[typeOf(merged)]?.(merged, name, root, depth + 1) ?? null;
}

/** A model also keeps to bounds that stand in a description: `{minimum: 3, maxLength: 9}`. */
function withSaid(node: Json): Json {
  const said = [...string(node.description).matchAll(/\b(min\w+|max\w+): (-?\d+)(?=[,}])/g)];
  return said.length === 0
    ? node
    : { ...Object.fromEntries(said.map(([, key, value]) => [key, Number(value)])), ...node };
}

type Maker = (node: Json, name: string, root: unknown, depth: number) => unknown;

const makers: Record<string, Maker> = {
  object: (node, _name, root, depth) => {
    const properties = record(node.properties);
    const required = depth > 12 ? [] : list(node.required).map(String);
    return Object.fromEntries(required.map((key) => [key, sample(properties[key], key, root, depth)]));
  },
  array: (node, name, root, depth) =>
    Array.from({ length: number(node.minItems) ?? (depth > 12 ? 0 : 1) }, () => sample(node.items, name, root, depth)),
  string: (node, name) => {
    const text = entry(formats, string(node.format)) ?? entry(named, name.toLowerCase()) ?? "demo";
    return text.padEnd(number(node.minLength) ?? 0, "o").slice(0, number(node.maxLength));
  },
  number: (node) => number(node.minimum) ?? 1,
  integer: (node) => Math.ceil(number(node.minimum) ?? 1),
  boolean: () => true,
  null: () => null,
};

const formats: Record<string, string> = {
  date: "2026-01-31",
  "date-time": "2026-01-31T12:00:00Z",
  uri: "https://example.com/",
  email: "demo@example.com",
  uuid: "00000000-0000-4000-8000-000000000000",
};

/** By the parameter's name. A command must be one that a shell has, and that changes nothing. */
const named: Record<string, string> = {
  ...{ city: "Paris", location: "Paris", place: "Paris", town: "Paris" },
  ...{ command: "ls", cmd: "ls" },
};

function typeOf(node: Json): string {
  const type = list(node.type).find((option) => option !== "null") ?? node.type;
  return string(type) || ("properties" in node ? "object" : "items" in node ? "array" : "string");
}

const merge = (whole: Json, part: Json): Json => ({
  ...whole,
  ...part,
  properties: { ...record(whole.properties), ...record(part.properties) },
  required: [...list(whole.required), ...list(part.required)],
});

/** `#/$defs/name` */
function resolve(node: Json, root: unknown): Json {
  const path = string(node.$ref);
  if (!path.startsWith("#/")) return node;
  const target = path
    .slice(2)
    .split("/")
    .reduce<unknown>((at, key) => record(at)[key], root);
  return { ...record(target), ...node, $ref: undefined };
}
