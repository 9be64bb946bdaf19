/** The OpenAPI 3.1 document of all endpoints, generated from their definitions. Loaded at its first request. */
import { z } from "zod";
import { type ErrorKind, errorKinds } from "../lib/errors";
import { isObject } from "../lib/json";
import { othersFirst } from "../lib/net/others-first";
import type { Described } from "./described";

/** Endpoints that one guard protects. */
export interface EndpointGroup {
  endpoints: readonly Described[];
  /** Names of `securitySchemes`: one of them is enough. */
  security: readonly string[];
  /** Errors of the guard. */
  errors: readonly ErrorKind[];
  /** The shape of an error at a path. */
  errorAt(path: string): z.ZodType;
}

/** A colon within a segment begins a method of Google's. */
const paramsIn = /(?<=\/):(\w+)/g;

/** https://spec.openapis.org/oas/v3.1.1.html; the schemas are JSON Schema 2020-12. All of them at once would hold up all requests. */
export async function openApiDocument(version: string, groups: Readonly<Record<string, EndpointGroup>>) {
  const schemas: Record<string, object> = {};
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [tag, group] of Object.entries(groups))
    for (const endpoint of group.endpoints) {
      await othersFirst();
      const path = endpoint.path.replace(paramsIn, "{$1}");
      paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operationOf(endpoint, tag, group, schemas) };
    }
  const tags = Object.keys(groups).map((name) => ({ name }));
  return {
    openapi: "3.1.1",
    info: { title: "dragoman", version },
    servers: [{ url: "/" }],
    tags,
    paths,
    components: { schemas, securitySchemes },
  };
}

const securitySchemes = {
  clientKey: { type: "apiKey", in: "header", name: "x-api-key", description: "A client key, if any is configured." },
  adminToken: {
    type: "apiKey",
    in: "header",
    name: "x-admin-token",
    description: "`ADMIN_TOKEN`, from other machines.",
  },
  bearer: { type: "http", scheme: "bearer", description: "The same key or token." },
};

type Schemas = Record<string, object>;

function operationOf(endpoint: Described, tag: string, group: EndpointGroup, schemas: Schemas) {
  const { method, path, about, params, query, body, reads, response, otherAnswers = {}, reference } = endpoint;
  const read = body ?? reads;
  const names = [...path.matchAll(paramsIn)].map(([, name]) => [name!, z.string()] as const);
  const inPath = z.object({ ...Object.fromEntries(names), ...params?.shape });
  return {
    tags: [tag],
    operationId: [method.toLowerCase(), ...path.split(/\W+/).filter((word) => word !== "")].join("_"),
    summary: about,
    ...(reference ? { externalDocs: { url: reference } } : {}),
    security: [{}, ...group.security.map((name) => ({ [name]: [] }))],
    parameters: [...parametersOf("path", inPath, schemas), ...(query ? parametersOf("query", query, schemas) : [])],
    ...(read ? { requestBody: { required: true, content: contentOf(read, "input", schemas) } } : {}),
    responses: {
      ...(response ? { 200: { description: "The answer.", content: contentOf(response, "output", schemas) } } : {}),
      ...errorsOf(endpoint, group, schemas),
      ...Object.fromEntries(
        Object.entries(otherAnswers).map(([status, answer]) => [
          status,
          { description: answer.about, content: contentOf(answer.response, "output", schemas) },
        ]),
      ),
    },
  };
}

function errorsOf(
  { path, params, query, body, reads, errors = [] }: Described,
  group: EndpointGroup,
  schemas: Schemas,
) {
  const content = contentOf(group.errorAt(path), "output", schemas);
  const read: ErrorKind[] = body || reads ? ["invalid_request", "too_large", "unsupported_media"] : [];
  const validated: ErrorKind[] = params || query ? ["invalid_request"] : [];
  const all = new Set([...group.errors, ...validated, ...read, ...errors]);
  const byStatus = Map.groupBy(all, (kind) => errorKinds[kind].status);
  const listed = [...byStatus].map(([status, names]) => [status, { description: names.join(" or "), content }]);
  return { ...Object.fromEntries(listed), default: { description: "Another error.", content } };
}

function parametersOf(place: "path" | "query", parameters: z.ZodObject, schemas: Schemas) {
  return Object.entries(parameters.shape).map(([name, type]) => ({
    name,
    in: place,
    required: !(type instanceof z.ZodType && type.safeParse(undefined).success),
    schema: toSchema(z.object({ [name]: type }).shape[name]!, "input", schemas),
  }));
}

function contentOf(types: NonNullable<Described["response"]>, io: "input" | "output", schemas: Schemas) {
  const byType = types instanceof z.ZodType ? { "application/json": types } : types;
  return Object.fromEntries(
    Object.entries(byType).map(([type, schema]) => [type, { schema: toSchema(schema, io, schemas) }]),
  );
}

/** A schema with an id is added to `schemas` and replaced by a reference. A type that JSON Schema cannot express becomes "anything". */
function toSchema(schema: z.ZodType, io: "input" | "output", schemas: Schemas): object {
  // In another object, a schema with an id is a reference at the root too.
  const { properties, $defs } = z.toJSONSchema(z.object({ it: schema }), {
    io,
    unrepresentable: "any",
    override: ({ jsonSchema }) => forReaders(jsonSchema),
  });
  const text = JSON.stringify({ it: properties?.it, $defs });
  const { it, $defs: named } = JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/'));
  Object.assign(schemas, named);
  return it;
}

/** Removes our own annotations and keeps their meaning for readers. Inner schemas come first. */
function forReaders(schema: z.core.JSONSchema.BaseSchema): void {
  const { secret, secretByName, additionalProperties: values, properties = {} } = schema;
  // A stored secret may be sent as its mask, or left out.
  if (secret) allowMask(schema);
  if (secretByName) allowMask(values);
  if (secret) schema.writeOnly = true;
  if (schema.required) schema.required = schema.required.filter((name) => !isWriteOnly(properties[name]));
  // The pattern applies to the text in a URL, not to an integer.
  if (schema.type === "integer") delete schema.pattern;
  for (const name of ["secret", "secretByName", "restart", "section", "id"]) delete schema[name];
}

/** Allows the mask for a text, for the items of a list, or for the texts among several choices. */
function allowMask(schema: unknown): void {
  if (!isObject(schema)) return;
  delete schema.pattern;
  for (const inner of [schema.items, ...(Array.isArray(schema.anyOf) ? schema.anyOf : [])]) allowMask(inner);
}

const isWriteOnly = (schema: z.core.JSONSchema.JSONSchema | boolean | undefined) =>
  typeof schema === "object" && schema.writeOnly === true;
