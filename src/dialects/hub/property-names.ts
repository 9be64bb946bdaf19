/**
 * Names of properties that an upstream refuses in the schema of a tool. They are sent under other names, and calls have the
 * client's names again.
 */
import { isObject, parseJson } from "../../lib/json";
import type { JsonObject } from "./conversation";
import { setField } from "./json";
import { mergeRootUnion } from "./root-union";
import { said } from "./schema-fixups";
import type { TextChange } from "./text-changes";

/** The names of a tool's properties that are sent under other names. */
export type RenamedProperties = ReadonlyMap<string, string>;

/** Whether a schema has a property whose name is refused: at its root, or where a union at the root has to be merged into it. */
export function hasRefusedName(schema: unknown, taken: RegExp): boolean {
  const { properties } = isObject(schema) ? mergeRootUnion(schema) : {};
  if (!isObject(properties)) return false;
  for (const name in properties) if (!taken.test(name)) return true;
  return false;
}

/**
 * The schema with names that are taken, and which ones were renamed: the same ones in every request with this schema.
 * @param taken Matches a name of letters, digits and `_`.
 * @returns Undefined if all its names are taken.
 */
export function renameProperties(
  schema: JsonObject,
  taken: RegExp,
): { schema: JsonObject; renamed: RenamedProperties } | undefined {
  const { properties } = schema;
  if (!isObject(properties) || !hasRefusedName(schema, taken)) return undefined;
  const nameFor = plainNames(Object.keys(properties));
  const renamed = new Map<string, string>();
  const after: JsonObject = {};
  for (const name of Object.keys(properties)) {
    if (taken.test(name)) {
      setField(after, name, properties[name]);
      continue;
    }
    const sent = nameFor(name);
    renamed.set(name, sent);
    const inner = properties[name];
    setField(after, sent, isObject(inner) ? said(inner, `Its full name is \`${name}\`.`) : inner);
  }
  const nameOf = (name: unknown) => (typeof name === "string" ? (renamed.get(name) ?? name) : name);
  const namesIn = (list: unknown) => (Array.isArray(list) ? list.map(nameOf) : list);
  const { required, dependentRequired } = schema;
  return {
    schema: {
      ...schema,
      properties: after,
      ...(required === undefined ? {} : { required: namesIn(required) }),
      ...(isObject(dependentRequired) ? { dependentRequired: withNames(dependentRequired, renamed, namesIn) } : {}),
    },
    renamed,
  };
}

function withNames(object: JsonObject, names: RenamedProperties, change: (value: unknown) => unknown): JsonObject {
  const after: JsonObject = {};
  for (const name of Object.keys(object)) setField(after, names.get(name) ?? name, change(object[name]));
  return after;
}

/** Characters of a name that every vendor takes. */
const longestName = 64;

/** Makes names of letters, digits, `_` and `-`; one that is taken gets a number. @param names Those that stay as they are. */
function plainNames(names: readonly string[]): (name: string) => string {
  const taken = new Set(names);
  const counts = new Map<string, number>();
  return (name) => {
    const plain = name.replaceAll(/[^a-zA-Z0-9_-]+/g, "_").replaceAll(/^_|_$/g, "") || "property";
    let count = counts.get(plain) ?? 0;
    let free: string;
    do {
      count++;
      free = count === 1 ? plain.slice(0, longestName) : `${plain.slice(0, longestName - 8)}_${count}`;
    } while (taken.has(free));
    counts.set(plain, count);
    taken.add(free);
    return free;
  };
}

/**
 * Renames the members of an object that is written piece by piece, such as the input of a call. Members of its members and
 * every other character stay.
 */
export class MemberRenamer implements TextChange {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** The next string at this place is the name of a member. */
  #awaitsName = false;
  /** What was read of a name. */
  #name: string | undefined;

  /** @param names The new name of each member that is renamed. */
  constructor(private readonly names: RenamedProperties) {}

  /** @returns What can be written by now: all but the beginning of a name. */
  push(piece: string): string {
    let out = "";
    let from = 0;
    for (let at = 0; at < piece.length; at++) {
      const sign = piece[at]!;
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (sign === "\\") this.#isEscaped = true;
        else if (sign === '"') {
          this.#isInString = false;
          if (this.#name === undefined) continue;
          out += this.#renamed(this.#name + piece.slice(from, at + 1));
          this.#name = undefined;
          from = at + 1;
        }
      } else if (sign === '"') {
        this.#isInString = true;
        if (!this.#awaitsName) continue;
        this.#awaitsName = false;
        this.#name = "";
        out += piece.slice(from, at);
        from = at;
      } else this.#read(sign);
    }
    if (this.#name === undefined) return out + piece.slice(from);
    this.#name += piece.slice(from);
    return out;
  }

  /** @returns What is left of a text that ends within a name. */
  end(): string {
    return this.#name ?? "";
  }

  /** Notes a sign outside of strings. */
  #read(sign: string): void {
    if (sign === "{" || sign === "[") {
      this.#depth++;
      this.#awaitsName = sign === "{" && this.#depth === 1;
    } else if (sign === "}" || sign === "]") this.#depth--;
    else if (sign === "," && this.#depth === 1) this.#awaitsName = true;
  }

  #renamed(quoted: string): string {
    const name = parseJson(quoted);
    const after = typeof name === "string" ? this.names.get(name) : undefined;
    return after === undefined ? quoted : JSON.stringify(after);
  }
}

/** The object with its members renamed; what is no JSON of an object stays as it is. */
export function renameMembers(json: string, names: RenamedProperties): string {
  const renamer = new MemberRenamer(names);
  return renamer.push(json) + renamer.end();
}
