/**
 * Reads Google's JSON (protobuf's JSON mapping): a field may be written in snake_case too, and a number as text. Google's
 * service takes one object for a list of one as well; its own examples for the command line are written so
 * (google-gemini/api-examples, rest/system_instruction.sh, 2026-11).
 */
import { isObject } from "../../json";
import type { JsonObject, WithExtras } from "../hub/conversation";
import { arrayAt, objectAt, omit, setField } from "../hub/json";

/**
 * The object with its own field names in camelCase; the same object if they are.
 * @throws ProxyError `invalid_request` if it is not an object.
 */
export const fieldsAt = (value: unknown, path: string): JsonObject => inCamelCase(objectAt(value, path));

/** The same for a value that may be missing: null and undefined are an empty object. */
export const optionalFieldsAt = (value: unknown, path: string): JsonObject =>
  value == null ? {} : fieldsAt(value, path);

/** The same for a value of any kind; anything but an object is an empty one. */
export const fieldsIn = (value: unknown): JsonObject => (isObject(value) ? inCamelCase(value) : {});

/** A list of objects. Null and undefined mean an empty one. @throws ProxyError `invalid_request` */
export const objectsAt = (value: unknown, path: string): unknown[] =>
  value == null ? [] : isObject(value) ? [value] : arrayAt(value, path);

/** A list of texts. Null and undefined mean an empty one. @throws ProxyError `invalid_request` */
export const textsAt = (value: unknown, path: string): unknown[] =>
  value == null ? [] : typeof value === "string" ? [value] : arrayAt(value, path);

/** The objects of a list; anything else is left out. */
export const objectsAmong = (value: unknown): JsonObject[] =>
  isObject(value) ? [value] : Array.isArray(value) ? value.filter(isObject) : [];

/** The number that a text stands for; any other value is returned as it is. */
export const asNumber = (value: unknown): unknown =>
  typeof value === "string" && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(value) ? Number(value) : value;

function inCamelCase(object: JsonObject): JsonObject {
  const keys = Object.keys(object);
  if (!keys.some((key) => key.includes("_"))) return object;
  const renamed: JsonObject = {};
  for (const key of keys) {
    const name = key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    // If a field is there in both spellings, the camelCase one counts.
    if (name === key || !Object.hasOwn(object, name)) setField(renamed, name, object[key]);
  }
  return renamed;
}

/** What the hub does not have, as extras; an empty object if there is nothing. */
export function extrasBeside(known: ReadonlySet<string>, ...objects: JsonObject[]): WithExtras {
  const left: JsonObject = {};
  for (const object of objects)
    for (const [key, value] of Object.entries(omit(object, known) ?? {})) if (value != null) setField(left, key, value);
  return Object.keys(left).length > 0 ? { extras: { google: left } } : {};
}
