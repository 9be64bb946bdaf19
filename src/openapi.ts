/** The OpenAPI 3.1 document of all endpoints, made from their definitions. Loaded when it is asked for. */
import { z } from "zod";
import type { EndpointDocument } from "./endpoint";
import { type ErrorKind, kinds } from "./errors";
import { isObject } from "./json";

/** Endpoints that one guard protects. */
export interface EndpointGroup {
  endpoints: readonly EndpointDocument[];
  /** Names of `securitySchemes`; one is enough, and none is needed from this machine where that is allowed. */
  security: readonly string[];
  /** What the guard answers with. */
  errors: readonly ErrorKind[];
  /** The shape of an error at a path. */
  errorAt(path: string): z.ZodType;
}

/** https://spec.openapis.org/oas/v3.1.1.html; the schemas are JSON Schema 2020-12. */
export function openApiDocument(version: string, groups: Readonly<Record<string, EndpointGroup>>) {
  const schemas: Record<string, object> = {};
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [tag, group] of Object.entries(groups))
    for (const endpoint of group.endpoints) {
      const path = endpoint.path.replace(/:(\w+)/g, "{$1}");
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
  clientKey: { type: "apiKey", in: "header", name: "x-api-key", description: "A client key, where one is configured." },
  adminToken: {
    type: "apiKey",
    in: "header",
    name: "x-admin-token",
    description: "`ADMIN_TOKEN`, from other machines.",
  },
  bearer: { type: "http", scheme: "bearer", description: "The same key or token." },
};

type Schemas = Record<string, object>;

function operationOf(endpoint: EndpointDocument, tag: string, group: EndpointGroup, schemas: Schemas) {
  const { method, path, about, params, query, body, reads, response, reference } = endpoint;
  const read = body ?? reads;
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => [name!, z.string()] as const);
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
    },
  };
}

function errorsOf(
  { path, params, query, body, reads, errors = [] }: EndpointDocument,
  group: EndpointGroup,
  schemas: Schemas,
) {
  const content = contentOf(group.errorAt(path), "output", schemas);
  const read: ErrorKind[] = body || reads ? ["invalid_request", "too_large", "unsupported_media"] : [];
  const validated: ErrorKind[] = params || query ? ["invalid_request"] : [];
  const all = new Set([...group.errors, ...validated, ...read, ...errors]);
  const byStatus = Map.groupBy(all, (kind) => kinds[kind].status);
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

function contentOf(types: NonNullable<EndpointDocument["response"]>, io: "input" | "output", schemas: Schemas) {
  const byType = types instanceof z.ZodType ? { "application/json": types } : types;
  return Object.fromEntries(
    Object.entries(byType).map(([type, schema]) => [type, { schema: toSchema(schema, io, schemas) }]),
  );
}

/** A schema with an id goes to `schemas`, and a reference stands for it. A type that JSON Schema cannot say becomes "anything". */
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

/** Our own annotations go; what they mean for a reader stays. Inner schemas come first. */
function forReaders(schema: z.core.JSONSchema.BaseSchema): void {
  const { secret, secretByName, additionalProperties: values, properties = {} } = schema;
  // A secret may be sent as the mask that stands for it, and one that is stored may be left out.
  if (secret) allowMask(schema);
  if (secretByName) allowMask(values);
  if (secret) schema.writeOnly = true;
  if (schema.required) schema.required = schema.required.filter((name) => !isWriteOnly(properties[name]));
  // In an address every number is a text: its pattern says nothing of an integer.
  if (schema.type === "integer") delete schema.pattern;
  for (const name of ["secret", "secretByName", "restart", "id"]) delete schema[name];
}

/** Of a text, of the texts of a list, or of those that are one choice of several. */
function allowMask(schema: unknown): void {
  if (!isObject(schema)) return;
  delete schema.pattern;
  for (const inner of [schema.items, ...(Array.isArray(schema.anyOf) ? schema.anyOf : [])]) allowMask(inner);
}

const isWriteOnly = (schema: z.core.JSONSchema.JSONSchema | boolean | undefined) =>
  typeof schema === "object" && schema.writeOnly === true;
