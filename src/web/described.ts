/** The descriptions that routes give of themselves, for the OpenAPI document and the tables in the README. */
import type { AnyElysia, DocumentDecoration } from "elysia";
import type { z } from "zod";
import type { ClientDialect } from "../dialects/hub/conversation";
import type { EndpointDocument } from "../endpoint";

type Made<Schema> = Schema | (() => Schema);

/** The parts of a description that Elysia's own options (`params`, `query`, `body`, `response`) do not say. */
export interface Description extends Pick<EndpointDocument, "errors" | "reference"> {
  /** One sentence. */
  about: string;
  /** In which the errors of its path are written; `chat` if missing. */
  dialect?: ClientDialect;
  /** As in {@link EndpointDocument}. */
  reads?: Made<NonNullable<EndpointDocument["reads"]>>;
  /** An answer that is passed on, or written here, without a check: JSON of this shape, or a shape for each content type. */
  answers?: Made<NonNullable<EndpointDocument["response"]>>;
  otherAnswers?: Made<NonNullable<EndpointDocument["otherAnswers"]>>;
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

/** The rules of `access.ts`. */
export type AccessName =
  | "models"
  | "google"
  | "usage"
  | "tools"
  | "token"
  | "signIn"
  | "metrics"
  | "probes"
  | "everybody";

/** An endpoint, and by which rule of `access.ts` it is used. */
export interface Described extends EndpointDocument {
  access: AccessName;
  dialect: ClientDialect;
}

/** The `detail` by which a rule of `access.ts` marks its routes. */
export const accessDetail = (name: AccessName): DocumentDecoration => ({ [accessMember]: name }) as DocumentDecoration;

const accessMember = "x-access";

/** The endpoints of an app, as its routes describe them. */
export const endpointsOf = ({ routes }: Pick<AnyElysia, "routes">): Described[] =>
  routes.flatMap(({ method, path, hooks }) => {
    const forms = (hooks.detail as Record<string, unknown> | undefined)?.[member] as Descriptions | undefined;
    return Object.entries(forms ?? {}).map(([end, form]) => {
      const { about, dialect = "chat", reads, answers, otherAnswers, query, errors, reference } = form;
      return {
        method: method as EndpointDocument["method"],
        path: path.replace(/\*$/, end),
        access: accessOf(hooks)!,
        dialect,
        about,
        params: hooks.params,
        query: made(query) ?? hooks.query,
        body: hooks.body,
        reads: made(reads),
        response: made(answers) ?? hooks.response,
        otherAnswers: made(otherAnswers),
        errors,
        reference,
      };
    });
  });

/** The rule by which a route is used; undefined for a route that no rule guards. */
export const accessOf = ({ detail }: { detail?: object }): AccessName | undefined =>
  (detail as { [accessMember]?: AccessName } | undefined)?.[accessMember];

const made = <Schema extends object>(given: Made<Schema> | undefined): Schema | undefined =>
  typeof given === "function" ? given() : given;
