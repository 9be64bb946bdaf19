/** Readers for unknown JSON. Each returns the value or throws a ProxyError with its path, for example `messages[2].content`. */
import { ProxyError, type Words } from "../../lib/errors";
import { isEmpty, isObject, numberIn } from "../../lib/json";
import type { JsonObject } from "./conversation";

export function objectAt(value: unknown, path: string): JsonObject {
  return isObject(value) ? value : refuseType(path, "an object", value);
}

export function arrayAt(value: unknown, path: string, wanted = "an array"): unknown[] {
  return Array.isArray(value) ? value : refuseType(path, wanted, value);
}

export function textAt(value: unknown, path: string): string {
  return typeof value === "string" ? value : refuseType(path, "a string", value);
}

/** Refuses the request for the field `param`. @throws ProxyError `invalid_request` */
export function refuse(param: string, sentence: string | Words, code?: string): never {
  throw new ProxyError("invalid_request", sentence, { param, code });
}

/** A non-empty array. */
export function filledAt(value: unknown, path: string, wanted?: string): unknown[] {
  const list = arrayAt(value, path, wanted);
  if (list.length > 0) return list;
  refuse(path, `\`${path}\` is empty: there is nothing to answer.`);
}

/** An optional array: null and undefined mean an empty one. */
export function listAt(value: unknown, path: string): unknown[] {
  return value == null ? [] : arrayAt(value, path);
}

/** Null and undefined mean that the field is not set. */
export function optionalText(value: unknown, path: string): string | undefined {
  return value == null ? undefined : textAt(value, path);
}

export function optionalNumber(value: unknown, path: string): number | undefined {
  if (value == null) return undefined;
  const number = numberIn(value);
  return number !== undefined && Number.isFinite(number) ? number : refuseType(path, "a number", value);
}

/** A count of tokens: a whole number above 0. */
export function optionalCount(value: unknown, path: string): number | undefined {
  if (value == null) return undefined;
  const count = numberIn(value);
  if (count === undefined) return refuseType(path, "a whole number above 0", value);
  return Number.isSafeInteger(count) && count > 0 ? count : refuse(path, `\`${path}\` must be a whole number above 0.`);
}

export function optionalBoolean(value: unknown, path: string): boolean | undefined {
  if (value == null) return undefined;
  return typeof value === "boolean" ? value : refuseType(path, "true or false", value);
}

/** A list of texts; undefined if it is not set, and if it is empty: nobody limits a tool to nothing. */
export function textListAt(value: unknown, path: string): string[] | undefined {
  const texts = listAt(value, path).map((text, at) => textAt(text, `${path}[${at}]`));
  return texts.length === 0 ? undefined : texts;
}

/** A string from an upstream's reply; anything else is read as an empty string. */
export function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The texts among the fields of an object, but for `except`; undefined if there are none, or if it is no object. */
export function textMembers(value: unknown, except?: string): Record<string, string> | undefined {
  const texts = Object.entries(isObject(value) ? value : {}).filter(
    (entry): entry is [string, string] => entry[0] !== except && typeof entry[1] === "string",
  );
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

/** A count from an upstream's reply; undefined if it is not a number of at least 0. */
export function countIn(value: unknown): number | undefined {
  const count = numberIn(value);
  return count !== undefined && Number.isFinite(count) && count >= 0 ? count : undefined;
}

/** The object without these fields; undefined if nothing is left. */
export function omit(object: JsonObject, fields: ReadonlySet<string>): JsonObject | undefined {
  let left: JsonObject | undefined;
  for (const key in object) {
    if (fields.has(key)) continue;
    left ??= {};
    setField(left, key, object[key]);
  }
  return left;
}

/** The same object if it has none of these fields. */
export function without(object: JsonObject, keys: readonly string[]): JsonObject {
  return keys.some((key) => Object.hasOwn(object, key)) ? (omit(object, new Set(keys)) ?? {}) : object;
}

/** The object with this member; the same object if it has it. */
export const withMember = (object: JsonObject, key: string, value: unknown): JsonObject =>
  object[key] === value ? object : { ...object, [key]: value };

/** Undefined for an object without fields. */
export const filled = (object: JsonObject): JsonObject | undefined => (isEmpty(object) ? undefined : object);

/** A copy of the object without its undefined fields. */
export function omitUndefined<T extends object>(object: T): T {
  const defined: JsonObject = {};
  // A copy, because an object from which fields were deleted stays slow.
  for (const key in object) if (object[key] !== undefined) setField(defined, key, object[key]);
  return defined as T;
}

/** Sets a field of an object, whatever its name is. */
export function setField(object: JsonObject, key: string, value: unknown): void {
  // A plain assignment of `__proto__` would set the prototype instead of a field.
  if (key === "__proto__")
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  else object[key] = value;
}

function refuseType(path: string, wanted: string, value: unknown): never {
  const got =
    value === null
      ? "null"
      : Array.isArray(value)
        ? "an array"
        : numberIn(value) !== undefined
          ? "a number"
          : `${/^[aeiou]/.test(typeof value) ? "an" : "a"} ${typeof value}`;
  const found = value === undefined ? "it is missing" : `it is ${got}`;
  refuse(path, `\`${path}\` must be ${wanted}; ${found}.`);
}
