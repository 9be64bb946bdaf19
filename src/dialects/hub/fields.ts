/** A cursor over a JSON object: what was read of it is known by reading it, and an error names the field by where it stands. */
import type { JsonObject } from "./conversation";
import {
  arrayAt,
  listAt,
  objectAt,
  omit,
  optionalBoolean,
  optionalCount,
  optionalNumber,
  optionalText,
  textAt,
} from "./json";

/** Each reader that names a type throws a ProxyError `invalid_request` for a field of another type. */
export class Fields {
  readonly #read = new Set<string>();

  /** @param path Where the object stands: `messages[2]`; empty for the request itself. */
  constructor(
    readonly object: JsonObject,
    readonly path = "",
  ) {}

  /** @throws ProxyError `invalid_request` if the value is not an object. */
  static at(value: unknown, path: string): Fields {
    return new Fields(objectAt(value, path), path);
  }

  pathOf(name: string): string {
    return this.path === "" ? name : `${this.path}.${name}`;
  }

  /** The field as it is. */
  any(name: string): unknown {
    this.#read.add(name);
    return this.object[name];
  }

  /** Counts fields as read. */
  skip(...names: string[]): void {
    for (const name of names) this.#read.add(name);
  }

  text(name: string): string {
    return textAt(this.any(name), this.pathOf(name));
  }

  optionalText(name: string): string | undefined {
    return optionalText(this.any(name), this.pathOf(name));
  }

  optionalNumber(name: string): number | undefined {
    return optionalNumber(this.any(name), this.pathOf(name));
  }

  optionalCount(name: string): number | undefined {
    return optionalCount(this.any(name), this.pathOf(name));
  }

  optionalBoolean(name: string): boolean | undefined {
    return optionalBoolean(this.any(name), this.pathOf(name));
  }

  fields(name: string): Fields {
    return Fields.at(this.any(name), this.pathOf(name));
  }

  /** The elements of a list with their paths. */
  list(name: string): [value: unknown, path: string][] {
    return this.#withPaths(name, arrayAt);
  }

  /** The same for a list that may be missing or null. */
  optionalList(name: string): [value: unknown, path: string][] {
    return this.#withPaths(name, listAt);
  }

  /** The fields that nobody has read; undefined if there are none. */
  rest(): JsonObject | undefined {
    return omit(this.object, this.#read);
  }

  #withPaths(name: string, read: typeof arrayAt): [value: unknown, path: string][] {
    const path = this.pathOf(name);
    return read(this.any(name), path).map((value, at) => [value, `${path}[${at}]`]);
  }
}
