/** Reads Google's JSON, in which a field may be written in snake_case too (protobuf's JSON mapping). */
import { isObject } from "../../json";
import type { JsonObject, WithExtras } from "../hub/conversation";
import { objectAt, omit, setField } from "../hub/json";

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
