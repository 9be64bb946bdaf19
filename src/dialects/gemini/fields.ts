/**
 * Reads Google's JSON (protobuf's JSON mapping): a field may be written in snake_case too, and a number as text. Google's
 * service takes one object for a list of one as well; its own examples for the command line are written so
 * (google-gemini/api-examples, rest/system_instruction.sh, 2026-11).
 */
import { isObject } from "../../lib/json";
import type { JsonObject, WithExtras } from "../hub/conversation";
import { Fields } from "../hub/fields";
import { arrayAt, objectAt, optionalCount, optionalNumber, setField, textAt } from "../hub/json";

/** A cursor over an object of Google's JSON; its own field names are in camelCase. */
export class GoogleFields extends Fields {
  static override at(value: unknown, path: string): GoogleFields {
    return new GoogleFields(fieldsAt(value, path), path);
  }

  override optionalNumber(name: string): number | undefined {
    return optionalNumber(asNumber(this.any(name)), this.pathOf(name));
  }

  override optionalCount(name: string): number | undefined {
    return optionalCount(asNumber(this.any(name)), this.pathOf(name));
  }

  override fields(name: string): GoogleFields {
    return GoogleFields.at(this.any(name), this.pathOf(name));
  }

  /** The object; an empty one if it is missing or null. */
  optionalFields(name: string): GoogleFields {
    return GoogleFields.at(this.any(name) ?? {}, this.pathOf(name));
  }

  /** The objects of a list that may be missing. */
  objects(name: string): GoogleFields[] {
    const path = this.pathOf(name);
    return objectsAt(this.any(name), path).map((value, at) => GoogleFields.at(value, `${path}[${at}]`));
  }

  /** The texts of a list that may be missing. */
  texts(name: string): string[] {
    const path = this.pathOf(name);
    return textsAt(this.any(name), path).map((text, at) => textAt(text, `${path}[${at}]`));
  }
}

/**
 * The object with its own field names in camelCase; the same object if they are.
 * @throws ProxyError `invalid_request` if it is not an object.
 */
export const fieldsAt = (value: unknown, path: string): JsonObject => inCamelCase(objectAt(value, path));

/** The same for a value of any kind; anything but an object is an empty one. */
export const fieldsIn = (value: unknown): JsonObject => (isObject(value) ? inCamelCase(value) : {});

/** A list of objects. Null and undefined mean an empty one. @throws ProxyError `invalid_request` */
export const objectsAt = (value: unknown, path: string): unknown[] =>
  value == null ? [] : isObject(value) ? [value] : arrayAt(value, path);

/** A text, or a list of texts. Null and undefined mean an empty one. @throws ProxyError `invalid_request` */
const textsAt = (value: unknown, path: string): unknown[] =>
  value == null ? [] : typeof value === "string" ? [value] : arrayAt(value, path);

/** The objects of a list, or the one that stands in its place; anything else is left out. */
export const oneOrMore = (value: unknown): JsonObject[] =>
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

/** What nobody has read, as extras; an empty object if there is nothing. */
export function unreadExtras(...objects: Fields[]): WithExtras {
  const left: JsonObject = {};
  for (const fields of objects)
    for (const [key, value] of Object.entries(fields.rest() ?? {})) if (value != null) setField(left, key, value);
  return Object.keys(left).length > 0 ? { extras: { google: left } } : {};
}
