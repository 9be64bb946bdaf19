/** Defines an endpoint once: its path, input and output. Validation, types and documents follow from the definition. */
import { z } from "zod";
import { type Awaitable, whenKnown } from "./awaitable";
import { explain, formatPath } from "./config/schema-errors";
import { type ErrorKind, ProxyError } from "./errors";
import { lazy } from "./lazy";
import { readJson } from "./net/in/request-body";

export interface EndpointDocument {
  method: "GET" | "POST";
  /** Parameters as `/:name`. */
  path: string;
  /** One sentence, also for the generated documents. */
  about: string;
  /** Schemas of path parameters that are not plain texts. */
  params?: z.ZodObject;
  /** Query parameters; others are ignored. */
  query?: z.ZodObject;
  /** A JSON object, validated before `handle`. */
  body?: z.ZodObject;
  /** A JSON object that `handle` reads and validates itself, or a shape for each content type. */
  reads?: z.ZodType | Readonly<Record<string, z.ZodType>>;
  /** JSON of this shape, or a shape for each content type; missing if the endpoint only declines. */
  response?: z.ZodType | Readonly<Record<string, z.ZodType>>;
  /** JSON of the answers with another status that are no errors. */
  otherAnswers?: Readonly<Record<number, { about: string; response: z.ZodType }>>;
  /** Errors of the handler itself. Those of the guard and of the validation are added. */
  errors?: readonly ErrorKind[];
  /** The vendor's reference of a dialect. */
  reference?: string;
}

/** @template Context The argument of the handlers. @template Columns What a row says besides: who may ask, say. */
export type Endpoint<Context, Columns = unknown> = EndpointDocument &
  Columns & {
    /** Validates and answers. @throws ProxyError `invalid_request` that names the parameter. */
    run(context: Context & { params: Record<string, string> }): Awaitable<Response>;
  };

type NamesIn<Path extends string> = Path extends `${string}/:${infer Name}/${infer Rest}`
  ? Name | NamesIn<`/${Rest}`>
  : Path extends `${string}/:${infer Name}:${string}`
    ? Name
    : Path extends `${string}/:${infer Name}`
      ? Name
      : never;

/** The parameters of a path: texts, unless a schema says otherwise. */
type PathParams<Path extends string, Shape extends z.ZodRawShape> = {
  [Name in NamesIn<Path>]: Name extends keyof Shape ? z.output<Shape[Name]> : string;
};

/** A schema, or what makes it when it is needed: all of them together would take milliseconds of a start. */
type Deferred<Schema> = Schema | (() => Schema);

type SchemaName = "params" | "query" | "body" | "reads" | "response" | "otherAnswers";

const madeOf = <Schema extends object>(given: Deferred<Schema> | undefined): Schema | undefined =>
  typeof given === "function" ? given() : given;

interface Definition<
  Context,
  Path extends string,
  Params extends z.ZodObject,
  Query extends z.ZodObject,
  Body extends z.ZodObject,
  Result extends z.ZodType,
> extends Omit<EndpointDocument, SchemaName> {
  path: Path;
  params?: Deferred<Params>;
  query?: Deferred<Query>;
  body?: Deferred<Body>;
  reads?: Deferred<NonNullable<EndpointDocument["reads"]>>;
  response?: Deferred<Result> | Deferred<NonNullable<EndpointDocument["response"]>>;
  otherAnswers?: Deferred<NonNullable<EndpointDocument["otherAnswers"]>>;
  handle(
    context: Context & {
      params: PathParams<Path, Params["shape"]>;
      query: z.output<Query>;
      body: z.output<Body>;
    },
  ): Awaitable<Response | z.input<Result>>;
}

/** The schema of a missing query or body. */
type Nothing = z.ZodObject<Record<never, never>>;

type Reader = <Schema extends z.ZodObject>(url: string, schema: Schema) => z.output<Schema>;

/** Bytes of a validated body. */
const maxBodyBytes = 64 * 1024;

/**
 * Makes the function that defines endpoints. A body may be sent so slowly that its sender's key is revoked before its end: the
 * context's `requireStillAllowed` is called after it was read, and throws then.
 * @param headers Added to every JSON answer that a handler returns as data.
 * @param read Reads the query.
 */
export const endpointsOf =
  <Context extends { request: Request; requireStillAllowed?(): void }, Columns extends object>(
    headers: Record<string, string>,
    read: Reader,
  ) =>
  <
    const Path extends string,
    Params extends z.ZodObject = Nothing,
    Query extends z.ZodObject = Nothing,
    Body extends z.ZodObject = Nothing,
    Result extends z.ZodType = z.ZodNever,
  >(
    definition: Columns & Definition<Context, Path, Params, Query, Body, Result>,
  ): Endpoint<Context, Columns> => {
    const { handle } = definition;
    const isPlain = !definition.params && !definition.query && !definition.body;
    return {
      ...definition,
      get params() {
        return madeOf(definition.params);
      },
      get query() {
        return madeOf(definition.query);
      },
      get body() {
        return madeOf(definition.body);
      },
      get reads() {
        return madeOf(definition.reads);
      },
      get response() {
        return madeOf(definition.response);
      },
      get otherAnswers() {
        return madeOf(definition.otherAnswers);
      },
      run: (context: Context & { params: Record<string, string> }) =>
        isPlain
          ? whenKnown<Response | z.input<Result>, Response>(handle(context as Parameters<typeof handle>[0]), answerOf)
          : runValidated(context),
    };
    async function runValidated(context: Context & { params: Record<string, string> }): Promise<Response> {
      const { request } = context;
      const schemas = {
        params: madeOf(definition.params),
        query: madeOf(definition.query),
        body: madeOf(definition.body),
      };
      const params = schemas.params ? parseInput(context.params, schemas.params) : {};
      const query = schemas.query ? read(request.url, schemas.query) : {};
      const body = schemas.body ? parseInput((await readJson(request, maxBodyBytes)).body, schemas.body) : {};
      if (schemas.body) context.requireStillAllowed?.();
      const inputs = { params: { ...context.params, ...params }, query, body };
      const result = await handle({
        ...context,
        ...(inputs as Pick<Parameters<typeof handle>[0], keyof typeof inputs>),
      });
      return answerOf(result);
    }
    function answerOf(result: Response | z.input<Result>): Response {
      return result instanceof Response ? result : Response.json(result, { headers });
    }
  };

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
  return parseInput(sent, schema);
}

/** Reads a client's query: the first of equal parameters counts, and an empty one is an empty text. */
export function readClientQuery<Schema extends z.ZodObject>(url: string, schema: Schema): z.output<Schema> {
  const sent = new URL(url).searchParams;
  const names = Object.keys(schema.shape).filter((name) => sent.has(name));
  return parseInput(Object.fromEntries(names.map((name) => [name, sent.get(name)])), schema);
}

/** @throws ProxyError `invalid_request` that names the parameter. */
export function parseInput<Schema extends z.ZodType>(sent: object, schema: Schema): z.output<Schema> {
  const result = schema.safeParse(sent);
  if (result.success) return result.data;
  throw invalidInput(result.error);
}

/** The error for an input that its schema refuses. It names the parameter. */
export const invalidInput = (error: z.ZodError): ProxyError =>
  invalid(formatPath(error.issues[0]?.path ?? []), explain(error));

/** Digits, or the form `1e9`. Documents describe it as an integer; in a URL it is a text. */
export const wholeNumber = lazy(() =>
  z
    .string()
    .regex(/^\d{1,30}(?:e\d{1,2})?$/i, "must be a whole number")
    .transform(Number)
    .meta({ type: "integer", minimum: 0 }),
);

const invalid = (param: string, message: string) => new ProxyError("invalid_request", message, { param });
