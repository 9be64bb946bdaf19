/** Answers the requests of clients: finds the row of a path in any of its spellings, and what a path without a row comes closest to. */
import { geminiPath, modelsPath, telemetryPaths } from "../api-paths";
import type { Server } from "../app";
import { type Awaitable, whenKnown } from "../awaitable";
import { nearestName } from "../edit-distance";
import type { KeyedCaller } from "../keys/client-keys";
import { lazy } from "../lazy";
import { type Answers, matcherOf, methodsOf, type Route } from "../matcher";
import type { Visitor } from "../net/in/guard";
import { decodedParams } from "../net/in/params";
import { requireGoogleKey } from "./access";
import { findGoogleRow, routerPath } from "./google-paths";
import { type ClientRoute, googleRows, routes } from "./routes";

const telemetry: ReadonlySet<string> = new Set(Object.values(telemetryPaths));

const isGoogleMethod = (path: string) => path.startsWith(`${geminiPath}/:model:`);

/** Base URLs may lack the `/v1`. For messages it may be there twice: Claude Code would blame the model for the 404. */
const spellings = (path: string) => {
  if (path.startsWith(geminiPath)) return isGoogleMethod(path) ? [path, path.replace(geminiPath, modelsPath)] : [path];
  // Without the `/v1`, one of them would be the path of our own metrics.
  if (!path.startsWith("/v1/") || telemetry.has(path)) return [path];
  const twice = path.startsWith("/v1/messages") ? [`/v1${path}`] : [];
  return [path, path.slice("/v1".length), ...twice];
};

interface SpelledRoute extends Route {
  answer(request: Request, caller: KeyedCaller, server: Server, params: Record<string, string>): Awaitable<Response>;
}

/** A handler has what the person may use whose key was sent. */
const scopeOf = (server: Server, { key }: KeyedCaller) => server.forMember(key?.member ?? null);

/** The router's rows: each row in all its spellings, but Google's by the path before the model, which may have slashes. */
const spelledRoutes = (): SpelledRoute[] => [
  ...routes
    .filter(({ path }) => routerPath(path) === path)
    .flatMap(({ method, path, access, run }) =>
      spellings(path).map(
        (spelling): SpelledRoute => ({
          method,
          path: spelling,
          answer(request, caller, server, params) {
            return whenKnown(access.authorize(server, request, caller), () => {
              const app = scopeOf(server, caller);
              return run({ server, app, request, caller, params: decodedParams(params) });
            });
          },
        }),
      ),
    ),
  ...(
    [
      ["GET", geminiPath],
      ["POST", geminiPath],
      ["POST", modelsPath],
    ] as const
  ).map(
    ([method, base]): SpelledRoute => ({
      method,
      path: `${base}/*`,
      answer(request, caller, server, params) {
        return whenKnown(requireGoogleKey(server, request, caller), () => {
          const { row, model } = findGoogleRow(googleRows(), method, params["*"] ?? "");
          return row.run({ server, app: scopeOf(server, caller), request, caller, params: { model } });
        });
      },
    }),
  ),
];

/** @param callerOf The caller of a request, as it was checked before routing. */
export const clientAnswers = (
  server: Server,
  callerOf: (request: Request) => Visitor,
  { miss, fail }: Pick<Answers<Route>, "miss" | "fail">,
) =>
  matcherOf<SpelledRoute>(spelledRoutes(), {
    answer: (row, request, params) => row.answer(request, callerOf(request), server, params),
    miss,
    fail,
  });

/** Only requests that are refused need them. */
const forms = lazy(() => {
  const all = routes.flatMap((row) => spellings(row.path).map((spelling) => ({ spelling, row })));
  return [...Map.groupBy(all, ({ spelling }) => spelling)].map(([spelling, same]) => ({
    spelling,
    rows: same.map(({ row }) => row),
    pattern: new RegExp(`^${spelling.replace("/:model", "/.+").replace(/\/:\w+/g, "/[^/]+")}$`),
    segments: spelling.split("/").slice(1),
  }));
});

/** The rows of a path as a client sends it; undefined if there is no such path. */
function rowsAt(path: string): readonly ClientRoute[] | undefined {
  const found = forms().filter(({ spelling, pattern }) => spelling === path || pattern.test(path));
  const exact = found.find(({ spelling }) => spelling === path);
  // What ends in a method of Google's comes before what takes it for a part of the model's name.
  return (exact ?? found.find(({ rows }) => isGoogleMethod(rows[0]!.path)) ?? found[0])?.rows;
}

/** The methods of a path as a client sends it; undefined if there is no such path. */
export function methodsAt(path: string): string[] | undefined {
  const rows = rowsAt(path);
  return rows && methodsOf(rows);
}

/** Whether a path is served at the address of a project: what tools ask, and nothing of the server's own. */
export const isForProjects = (path: string): boolean => rowsAt(path)?.some((row) => row.access.forProjects) === true;

/**
 * The row of a path, or of the path that it begins like: an error under `/v1/messages/` is one of the Messages API. Undefined
 * where no row begins like it.
 */
export function closestRow(path: string): ClientRoute | undefined {
  if (googleForm.test(path)) return googleRows()[0];
  const rows = rowsAt(path);
  if (rows) return rows[0];
  const asked = path.split("/").slice(1);
  let closest: { row: ClientRoute; score: number } | undefined;
  for (const { segments, rows } of forms()) {
    const differs = segments.findIndex((segment, at) => !segment.startsWith(":") && segment !== asked[at]);
    const same = segments.slice(0, differs < 0 ? segments.length : differs).slice(0, asked.length);
    const literals = same.filter((segment) => !segment.startsWith(":")).length;
    const score = literals === 0 ? 0 : same.length + literals / 100;
    if (score > (closest?.score ?? 0)) closest = { row: rows[0]!, score };
  }
  return closest?.row;
}

/** Only Google's clients end the name of a model like this. */
const googleForm = new RegExp(`^${modelsPath}/.+(?::|%3a)[a-z]+$`, "i");

/** A served path that a wrong one may stand for: with a slash too many, below another base, or misspelt; undefined if there is none. */
export function nearestPath(path: string): string | undefined {
  const single = path.replace(/\/{2,}/g, "/");
  if (single !== path && methodsAt(single) !== undefined) return single;
  const bare = single.replace(/\/$/, "").replace(/^(?:\/(?:v1|api|openai|anthropic))+(?=\/)/, "");
  const below = ["/v1", geminiPath.replace("/models", "")]
    .map((version) => version + bare)
    .find((each) => each !== path && methodsAt(each) !== undefined);
  return below ?? (/^\/[^/]/.test(bare) ? nearestName(`/v1${bare}`, literalPaths()) : undefined);
}

/** Those of models that have no parameter. */
const literalPaths = lazy(() => routes.map(({ path }) => path).filter((path) => /^\/v1\/[^:]+$/.test(path)));
