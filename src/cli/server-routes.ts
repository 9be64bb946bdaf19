/**
 * What the routes of the server take and answer, by the types that Elysia keeps of its apps (`~Routes`, as its client Eden reads
 * them). Nothing of the apps is loaded by a command.
 */
import type { AdminApi } from "../admin/api/plugin";
import type { Clients } from "../routes/clients";

interface Route {
  body: unknown;
  params: unknown;
  query: unknown;
  response: { 200: unknown };
}

/** Elysia nests the routes by the parts of their paths; a method is the last part. */
type RoutesIn<Tree, Path extends string = ""> = {
  [Name in keyof Tree & string]: Tree[Name] extends Route
    ? { method: Name; path: Path; route: Tree[Name] }
    : RoutesIn<Tree[Name], `${Path}/${Name}`>;
}[keyof Tree & string];

type Routes = RoutesIn<AdminApi["~Routes"] & Clients["~Routes"]>;
type Method = "get" | "post";

/** A path as its route writes it: `/api/admin/keys/:name/revoke`. */
export type PathOf<Of extends Method> = Extract<Routes, { method: Of }>["path"];

type RouteAt<Of extends Method, Path> = Extract<Routes, { method: Of; path: Path }>["route"];

/** Addresses are texts, whatever a schema makes of them. */
type Texts<Parameters> = { [Name in keyof Parameters]: string };

export interface Settings {
  headers?: Record<string, string>;
  /** Time limit for the answer in milliseconds; 30 seconds by default. */
  timeoutMs?: number;
}

type Asked<At extends Route> = Settings & {
  query?: keyof At["query"] extends never ? never : Partial<Texts<At["query"]>>;
};

/** What goes with a path: its parameters, if it has some, its query, and how it is asked. */
export type More<Of extends Method, Path> = keyof RouteAt<Of, Path>["params"] extends never
  ? [more?: Asked<RouteAt<Of, Path>>]
  : [more: Asked<RouteAt<Of, Path>> & { params: Texts<RouteAt<Of, Path>["params"]> }];

export type BodyAt<Path> = RouteAt<"post", Path>["body"];

declare const says: unique symbol;

/** What a server answered: it may be of another version than this one, whose answer this would be. `readAs` finds out. */
export interface Said<Answer> {
  readonly [says]?: Answer;
}

/** What is said at a path. A route that makes its response itself, as those that pass one on do, does not say. */
export type SaidAt<Of extends Method, Path> = Said<
  RouteAt<Of, Path>["response"][200] extends Response ? never : RouteAt<Of, Path>["response"][200]
>;
