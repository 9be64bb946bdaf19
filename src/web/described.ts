/** The descriptions that routes give of themselves, for the OpenAPI document and the tables in the README. */
import type { AnyElysia, DocumentDecoration } from "elysia";
import type { z } from "zod";
import type { ClientDialect } from "../dialects/hub/conversation";
import type { ErrorKind } from "../lib/errors";

/** An endpoint as its route describes it. @template Access The rules of its app. */
export interface Described<Access extends string = string> {
  method: "GET" | "POST";
  /** Parameters as `/:name`. */
  path: string;
  /** By which it is used. */
  access: Access;
  dialect: ClientDialect;
  /** One sentence, also for the generated documents. */
  about: string;
  /** Schemas of path parameters that are not plain texts. */
  params?: z.ZodObject;
  /** Query parameters; others are ignored. */
  query?: z.ZodObject;
  /** A JSON object, validated before the handler. */
  body?: z.ZodObject;
  /** A JSON object that the handler reads and validates itself, or a shape for each content type. */
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

type Made<Schema> = Schema | (() => Schema);

/** The parts of a description that Elysia's own options (`params`, `query`, `body`, `response`) do not say. */
export interface Description extends Pick<Described, "errors" | "reference"> {
  /** One sentence. */
  about: string;
  /** In which the errors of its path are written; `chat` if missing. */
  dialect?: ClientDialect;
  /** As in {@link Described}. */
  reads?: Made<NonNullable<Described["reads"]>>;
  /** An answer that is passed on, or written here, without a check: JSON of this shape, or a shape for each content type. */
  answers?: Made<NonNullable<Described["response"]>>;
  otherAnswers?: Made<NonNullable<Described["otherAnswers"]>>;
  /** The query, where the handler reads it itself. */
  query?: Made<z.ZodObject>;
}

/** The member of Elysia's `detail` that has a route's descriptions. */
const member = "x-described";

/** By the end of a path, the description of what is served there. */
type Descriptions = Readonly<Record<string, Description>>;

/** The `detail` of a route. */
export const described = (description: Description): DocumentDecoration => detailOf({ "": description });

/** The `detail` of a route that ends in a wildcard, by what stands in its place: `:model:countTokens`. */
export const describedForms = (forms: Descriptions): DocumentDecoration => detailOf(forms);

const detailOf = (forms: Descriptions) => ({ [member]: forms }) as DocumentDecoration;

/** The `detail` by which a macro marks the routes that it guards. */
export const accessDetail = (rule: string): DocumentDecoration => ({ [accessMember]: rule }) as DocumentDecoration;

const accessMember = "x-access";

/** The endpoints of an app, as its routes describe them. */
export const endpointsOf = <Access extends string>({ routes }: Pick<AnyElysia, "routes">): Described<Access>[] =>
  routes.flatMap(({ method, path, hooks }) => {
    const forms = (hooks.detail as Record<string, unknown> | undefined)?.[member] as Descriptions | undefined;
    return Object.entries(forms ?? {}).map(([end, form]) => ({
      method: method as Described["method"],
      path: path.replace(/\*$/, end),
      access: accessOf(hooks) as Access,
      dialect: form.dialect ?? "chat",
      about: form.about,
      get params() {
        return whole(hooks.params);
      },
      body: hooks.body,
      errors: form.errors,
      reference: form.reference,
      // Schemas are made for documents only: what refuses a request asks for neither.
      get query() {
        return made(form.query) ?? whole(hooks.query);
      },
      get reads() {
        return made(form.reads);
      },
      get response() {
        return made(form.answers) ?? hooks.response;
      },
      get otherAnswers() {
        return made(form.otherAnswers);
      },
    }));
  });

/** A route's schema may be a `z.lazy`, which is made with the first request that it reads: a start needs none. */
const whole = (schema: z.ZodObject | z.ZodLazy<z.ZodObject> | undefined): z.ZodObject | undefined =>
  schema && "unwrap" in schema ? schema.unwrap() : schema;

/** The rule by which a route is used; undefined for a route that no rule guards. */
export const accessOf = ({ detail }: { detail?: object }): string | undefined =>
  (detail as { [accessMember]?: string } | undefined)?.[accessMember];

const made = <Schema extends object>(given: Made<Schema> | undefined): Schema | undefined =>
  typeof given === "function" ? given() : given;
