/**
 * Finds the row of a route table. Rows of a path without parameters are found in a table, and others by an Elysia of their own,
 * which only matches paths here.
 */
import type { Elysia } from "elysia";
import { ProxyError } from "./errors";
import { lazy } from "./lazy";
import { pathOfUrl } from "./net/in/params";

/** A row of a route table. */
export interface Route {
  method: "GET" | "POST";
  /** Parameters as `/:name`; `*` at the end for the rest. */
  path: string;
}

export interface Answers<Row> {
  answer(row: Row, request: Request, params: Record<string, string>): Response | Promise<Response>;
  /** For a path of no row, or with a method that none of its rows has. @param rows Those of the path. */
  miss(request: Request, rows: readonly Row[]): Response | Promise<Response>;
  /** For what the others throw at a path with parameters. At other paths it is thrown on. */
  fail(thrown: unknown, request: Request): Response;
}

/** Answers requests by the row of their method and path. GET implies HEAD. @throws What `answer` throws. */
export function matcherOf<Row extends Route>(
  rows: readonly Row[],
  { answer, miss, fail }: Answers<Row>,
): (request: Request) => Response | Promise<Response> {
  // Loaded with the first request for another path: it and what it brings along take a seventh of a start.
  const router = lazy(async () => routerOf(rows, (await import("elysia")).Elysia, { answer, miss, fail }));
  const fixed = new Map(rows.filter(isFixed).map((row) => [`${row.method} ${row.path}`, row]));
  return (request) => {
    const row = fixed.get(`${request.method} ${pathOfUrl(request.url)}`);
    return row === undefined ? router().then((found) => found.handle(request)) : answer(row, request, noParams);
  };
}

function routerOf<Row extends Route>(
  rows: readonly Row[],
  Router: typeof Elysia,
  { answer, miss, fail }: Answers<Row>,
) {
  const elysia = new Router({ handler: { standardHostname: false }, strictPath: true }).onError(
    async ({ error, code, request }) => {
      if (code !== "NOT_FOUND") return fail(error, request);
      try {
        return await miss(request, []);
      } catch (thrown) {
        return fail(thrown, request);
      }
    },
  );
  // Elysia reads a handler's source to find the fields it needs, so the parameter names them.
  for (const row of rows)
    elysia.route(row.method, row.path, ({ request, params }) => answer(row, request, params ?? {}), { parse: "none" });
  for (const [path, same] of Map.groupBy(rows, (row) => row.path))
    elysia.all(path, ({ request }) => miss(request, same), { parse: "none" });
  return elysia;
}

const isFixed = ({ path }: Route): boolean => !/[:*]/.test(path);

const noParams: Record<string, string> = Object.freeze({});

/** The methods of each path. GET implies HEAD. */
export function methodsByPathOf(rows: readonly Route[]): Map<string, string[]> {
  return new Map([...Map.groupBy(rows, ({ path }) => path)].map(([path, same]) => [path, methodsOf(same)]));
}

/** GET implies HEAD. */
export const methodsOf = (rows: readonly Pick<Route, "method">[]): string[] =>
  rows.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));

export const methodNotAllowed = (method: string, methods: readonly string[]): ProxyError =>
  new ProxyError("method_not_allowed", `${method} is not served at this path; use ${methods.join(" or ")}.`, {
    headers: { allow: methods.join(", ") },
  });
