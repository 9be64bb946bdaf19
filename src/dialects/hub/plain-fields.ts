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
import type { Notes } from "./notes";

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

/** The fields for an upstream of this dialect; those that it does not have are noted as dropped. */
export function encodePlainFields(conversation: PlainFields, dialect: Dialect, notes: Notes): JsonObject {
  const fields: JsonObject = {};
  for (const [key, { name, upstreams }] of rows)
    if (conversation[key] === undefined) continue;
    else if (upstreams.includes(dialect)) fields[name] = conversation[key];
    else notes.addDropped(name);
  return fields;
}
