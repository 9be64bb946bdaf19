/** A tool's schema whose root is a union becomes one object that accepts what each of the branches accepts. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "./conversation";
import { omit, setField } from "./json";

const unions = ["allOf", "anyOf", "oneOf"] as const;
const notAtRoot = new Set<string>([...unions, "enum", "not"]);

/** How many levels of nested unions and references are followed. */
const mostLevels = 8;
/** How many branches are followed in all. The properties of further ones are not declared. */
const mostBranches = 500;
/** How many names are compared to find out what every branch requires. What is not compared is not required. */
const mostNames = 20_000;

/**
 * The schema without a union at its root; the same object if there is none. It has the properties of all branches, and
 * requires what every branch requires (for `allOf`: any branch). The work grows with the size of the schema, also where
 * references lead back to it.
 */
export function mergeRootUnion(schema: JsonObject): JsonObject {
  if (!Object.keys(schema).some((key) => notAtRoot.has(key))) return schema;
  const branches = branchesOf(schema);
  const alternatives = new Map<string, Alternatives>();
  for (const { properties } of branches.keys())
    if (isObject(properties))
      for (const [name, item] of Object.entries(properties)) {
        const known = alternatives.get(name);
        if (known) known.add(item);
        else alternatives.set(name, new Alternatives(item));
      }
  const properties: JsonObject = {};
  for (const [name, found] of alternatives) setField(properties, name, found.schema());
  const required = new Demands(branches).of(schema);
  const { required: _, ...plain } = omit(schema, notAtRoot) ?? {};
  return { ...plain, type: "object", properties, ...(required.size > 0 ? { required: [...required] } : {}) };
}

/** The branches of a schema's unions, by keyword; those of a list that is missing are missing too. */
type Branches = Partial<Record<(typeof unions)[number], JsonObject[]>>;

/** The root and all that its unions lead to, the nearest first, each once. */
function branchesOf(root: JsonObject): Map<JsonObject, Branches> {
  const found = new Map<JsonObject, Branches>([[root, {}]]);
  let level = [root];
  for (let depth = 0; depth < mostLevels && level.length > 0; depth++) {
    const next: JsonObject[] = [];
    for (const schema of level) {
      const branches = found.get(schema)!;
      for (const key of unions) {
        const list = schema[key];
        if (!Array.isArray(list)) continue;
        const targets = new Set<JsonObject>();
        for (const item of list) {
          const target = followed(item, root);
          if (!isInput(target)) continue;
          if (!found.has(target)) {
            if (found.size >= mostBranches) continue;
            found.set(target, {});
            next.push(target);
          }
          targets.add(target);
        }
        branches[key] = [...targets];
      }
    }
    level = next;
  }
  return found;
}

/** The schema that stands in a place, or that a reference there leads to. */
function followed(place: unknown, root: JsonObject): unknown {
  let schema = place;
  for (let hops = 0; isObject(schema) && typeof schema.$ref === "string" && hops < mostLevels; hops++)
    schema = pointed(root, schema.$ref);
  return schema;
}

/** The schema that a reference like `#/$defs/Name` points to. */
function pointed(root: JsonObject, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const step of reference.slice(2).split("/")) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

/** Whether a branch can be a tool's input; `{"type": "null"}` cannot. */
const isInput = (branch: unknown): branch is JsonObject =>
  isObject(branch) && (branch.type == null || branch.type === "object" || isObject(branch.properties));

/** What a schema and its branches require. */
class Demands {
  readonly #known = new Map<JsonObject, ReadonlySet<string>>();
  #left = mostNames;

  constructor(private readonly branches: ReadonlyMap<JsonObject, Branches>) {}

  of(schema: JsonObject): ReadonlySet<string> {
    const known = this.#known.get(schema);
    if (known) return known;
    const own = new Set(namesIn(schema.required));
    // Where a reference leads back, the names that stand there are all that is known.
    this.#known.set(schema, own);
    const all = new Set(own);
    const branches = this.branches.get(schema) ?? {};
    for (const key of unions) {
      const demands = (branches[key] ?? []).map((branch) => this.of(branch));
      for (const name of key === "allOf" ? demands.flatMap((each) => [...this.#read(each)]) : this.#inEach(demands))
        all.add(name);
    }
    this.#known.set(schema, all);
    return all;
  }

  #inEach(demands: readonly ReadonlySet<string>[]): string[] {
    const fewest = demands.reduce((least, each) => (each.size < least.size ? each : least), demands[0] ?? new Set());
    return [...fewest].filter((name) => {
      this.#left -= demands.length;
      return this.#left >= 0 && demands.every((each) => each.has(name));
    });
  }

  #read(names: ReadonlySet<string>): ReadonlySet<string> {
    this.#left -= names.size;
    return this.#left >= 0 ? names : new Set();
  }
}

const namesIn = (required: unknown): string[] =>
  Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];

/** The schemas of a property that occurs in several branches. */
class Alternatives {
  readonly #list: unknown[] = [];
  /** Their JSON, once there is a second one. */
  #texts: Set<string> | undefined;

  constructor(private readonly first: unknown) {}

  add(schema: unknown): void {
    if (schema === this.first) return;
    if (!this.#texts) {
      this.#texts = new Set();
      this.#addEach(this.first);
    }
    this.#addEach(schema);
  }

  /** An `anyOf` and nothing else is taken for its own alternatives. */
  #addEach(schema: unknown): void {
    const isOpen = isObject(schema) && Array.isArray(schema.anyOf) && Object.keys(schema).length === 1;
    for (const each of isOpen && Array.isArray(schema.anyOf) ? schema.anyOf : [schema]) {
      const text = JSON.stringify(each);
      if (this.#texts!.has(text)) continue;
      this.#texts!.add(text);
      this.#list.push(each);
    }
  }

  schema(): unknown {
    if (this.#list.length === 0) return this.first;
    return this.#list.length === 1 ? this.#list[0] : { anyOf: this.#list };
  }
}
