/** An endpoint said once: its path, what it takes, what it answers. Validation, types and documents follow from it. */
import type { z } from "zod";
import { explain } from "./config/schema";
import { ProxyError } from "./errors";
import { readJson } from "./relay/incoming";

export interface EndpointDocument {
  method: "GET" | "POST";
  /** Parameters as `:name`. */
  path: string;
  /** One sentence, also for the generated documents. */
  about: string;
  /** Query parameters; others are ignored. */
  query?: z.ZodObject;
  /** A JSON object. */
  body?: z.ZodObject;
  /** JSON of this shape, or the content types of another answer; missing for the model dialects. */
  response?: z.ZodType | readonly string[];
}

/** @template Context What the room hands to its handlers. */
export interface Endpoint<Context> extends EndpointDocument {
  /** Validates and answers. @throws ProxyError `invalid_request` that names the parameter. */
  run(context: Context): Promise<Response>;
}

interface Definition<Context, Query extends z.ZodObject, Body extends z.ZodObject, Result extends z.ZodType>
  extends EndpointDocument {
  query?: Query;
  body?: Body;
  response?: Result | readonly string[];
  handle(
    context: Context & { query: z.output<Query>; body: z.output<Body> },
  ): Response | z.input<Result> | Promise<Response | z.input<Result>>;
}

/** Of an endpoint that takes no query, or no body. */
type Nothing = z.ZodObject<Record<never, never>>;

type Reader = <Schema extends z.ZodObject>(url: string, schema: Schema) => z.output<Schema>;

/** Bytes of a validated body. */
const maxBodyBytes = 64 * 1024;

/**
 * The definer of a room's endpoints.
 * @param headers Of every JSON answer that the handler returns as data.
 * @param read How the room reads a query.
 */
export const endpointsOf =
  <Context extends { request: Request }>(headers: Record<string, string>, read: Reader) =>
  <Query extends z.ZodObject = Nothing, Body extends z.ZodObject = Nothing, Result extends z.ZodType = z.ZodNever>(
    definition: Definition<Context, Query, Body, Result>,
  ): Endpoint<Context> => {
    const { handle, ...document } = definition;
    return {
      ...document,
      async run(context) {
        const { request } = context;
        const query = definition.query ? read(request.url, definition.query) : ({} as z.output<Query>);
        const body = definition.body ? await readBody(request, definition.body) : ({} as z.output<Body>);
        const result = await handle({ ...context, query, body });
        return result instanceof Response ? result : Response.json(result, { headers });
      },
    };
  };

async function readBody<Schema extends z.ZodObject>(request: Request, schema: Schema): Promise<z.output<Schema>> {
  requireJson(request);
  const result = schema.safeParse((await readJson(request, maxBodyBytes)).body);
  if (result.success) return result.data;
  throw new ProxyError("invalid_request", explain(result.error));
}

/** A page of another origin can send a form, but not this content type without a preflight. @throws ProxyError 415. */
export function requireJson(request: Request): void {
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers.get("content-type") ?? ""))
    throw new ProxyError("unsupported_media", "This must be sent as `Content-Type: application/json`.");
}

/**
 * The query of an address. An empty parameter counts as absent: a form sends its empty fields too.
 * @throws ProxyError `invalid_request` that names the parameter, also when it is given twice.
 */
export function readQuery<Schema extends z.ZodObject>(url: string, schema: Schema): z.output<Schema> {
  const sent: Record<string, string> = {};
  for (const [name, value] of new URL(url).searchParams) {
    if (value === "" || !Object.hasOwn(schema.shape, name)) continue;
    if (Object.hasOwn(sent, name)) throw invalid(name, `${name}: is given twice.`);
    sent[name] = value;
  }
  return parseQuery(sent, schema);
}

/** As clients send it: of a parameter that is given twice the first counts, and an empty one is empty. */
export function readClientQuery<Schema extends z.ZodObject>(url: string, schema: Schema): z.output<Schema> {
  const sent = new URL(url).searchParams;
  const names = Object.keys(schema.shape).filter((name) => sent.has(name));
  return parseQuery(Object.fromEntries(names.map((name) => [name, sent.get(name)])), schema);
}

function parseQuery<Schema extends z.ZodObject>(sent: object, schema: Schema): z.output<Schema> {
  const result = schema.safeParse(sent);
  if (result.success) return result.data;
  throw invalid(String(result.error.issues[0]?.path[0]), explain(result.error));
}

const invalid = (param: string, message: string) => new ProxyError("invalid_request", message, { param });

/** The methods each path is served with; HEAD comes with GET. */
export function methodsByPathOf(endpoints: readonly EndpointDocument[]): Map<string, string[]> {
  const byPath = new Map<string, string[]>();
  for (const { method, path } of endpoints)
    byPath.set(path, [...(byPath.get(path) ?? []), ...(method === "GET" ? ["GET", "HEAD"] : [method])]);
  return byPath;
}

export const methodNotAllowed = (method: string, methods: readonly string[]): ProxyError =>
  new ProxyError("method_not_allowed", `${method} is not served at this path; use ${methods.join(" or ")}.`, {
    headers: { allow: methods.join(", ") },
  });
