/** Reads and writes the fields of `plainFields`. */
import {
  type ClientDialect,
  type Dialect,
  type JsonObject,
  type PlainField,
  type PlainFields,
  plainFields,
} from "./conversation";
import type { Fields } from "./fields";
import { omitUndefined } from "./json";

const rows = Object.entries(plainFields) as [keyof PlainFields, PlainField][];

/** Reads the fields that a dialect's clients send. @throws ProxyError `invalid_request` naming the field. */
export const decodePlainFields = (request: Fields, dialect: ClientDialect): PlainFields =>
  omitUndefined(
    Object.fromEntries(
      rows
        .filter(([, { clients }]) => clients.includes(dialect))
        .map(([key, { name, read }]) => [key, request[read](dialect === "gemini" ? key : name)]),
    ),
  );

/** The fields for an upstream of this dialect; the names of those that it does not have are added to `dropped`. */
export function encodePlainFields(conversation: PlainFields, dialect: Dialect, dropped: Set<string>): JsonObject {
  const fields: JsonObject = {};
  for (const [key, { name, upstreams }] of rows)
    if (conversation[key] === undefined) continue;
    else if (upstreams.includes(dialect)) fields[name] = conversation[key];
    else dropped.add(name);
  return fields;
}
