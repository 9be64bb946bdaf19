/** The OpenAPI 3.1 document of all endpoints, made from their definitions. Loaded when it is asked for. */
import { z } from "zod";
import type { EndpointDocument } from "./endpoint";

/** https://spec.openapis.org/oas/v3.1.1.html; the schemas are JSON Schema 2020-12. */
export function openApiDocument(version: string, groups: Record<string, readonly EndpointDocument[]>) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [tag, endpoints] of Object.entries(groups))
    for (const endpoint of endpoints) {
      const path = endpoint.path.replace(/:(\w+)/g, "{$1}");
      paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operationOf(endpoint, tag) };
    }
  return { openapi: "3.1.1", info: { title: "dragoman", version }, paths };
}

function operationOf({ path, about, query, body, response }: EndpointDocument, tag: string) {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  return {
    tags: [tag],
    summary: about,
    parameters: [...inPath, ...(query ? queryParameters(query) : [])],
    ...(body ? { requestBody: { required: true, content: json(toSchema(body, "input")) } } : {}),
    responses: {
      200: { description: "The answer.", content: contentOf(response) },
      default: { description: "An error: its type and a sentence.", content: json({ type: "object" }) },
    },
  };
}

function queryParameters(query: z.ZodObject) {
  const { properties = {}, required = [] } = toSchema(query, "input");
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

function contentOf(response: EndpointDocument["response"]) {
  if (response === undefined)
    return { ...json({ type: "object" }), "text/event-stream": { schema: { type: "string" } } };
  if (response instanceof z.ZodType) return json(toSchema(response, "output"));
  return Object.fromEntries(response.map((type) => [type, { schema: { type: "string" } }]));
}

const json = (schema: object) => ({ "application/json": { schema } });

/** A type that JSON Schema cannot say becomes "anything". */
function toSchema(schema: z.ZodType, io: "input" | "output") {
  const { $schema: _, "~standard": __, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}
