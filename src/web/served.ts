/** The paths for clients in each of their spellings: who may use them, and what a path without an endpoint may stand for. */
import type { AnyElysia } from "elysia";
import { geminiPath, modelsPath } from "../lib/api-paths";
import { nearestName } from "../lib/edit-distance";
import { ProxyError } from "../lib/errors";
import { lazy } from "../lib/lazy";
import { type Access, type AccessName, accessRules } from "./access";
import { type Described, endpointsOf } from "./described";
import { Paths } from "./paths";

/** Only requests that are refused need most of it. */
export class Served extends Paths<Described<AccessName>> {
  /** @param clients The apps' routes, asked when the first request is there. */
  constructor(clients: () => Pick<AnyElysia, "routes">) {
    super(() => endpointsOf<AccessName>(clients()));
  }

  /** Whether a path is served at the address of a project: tools ask for it, and it is nothing of the server's own. */
  isForProjects(path: string): boolean {
    return this.at(path)?.some(({ access }) => ruleOf(access).forProjects) === true;
  }

  /** Whether pages of the config's `allowedOrigins` may use a path. */
  isForPages(path: string): boolean {
    const closest = this.closest(path);
    return closest !== undefined && ruleOf(closest.access).forPages === true;
  }

  /**
   * The endpoint of a path, or of the path that it begins like: an error under `/v1/messages/` is one of the Messages API.
   * Undefined where no path begins like it.
   */
  closest(path: string): Described<AccessName> | undefined {
    if (googleForm.test(path)) return [...this.byPath].find(([served]) => served.startsWith(`${geminiPath}/`))?.[1][0];
    const endpoints = this.at(path);
    if (endpoints) return endpoints[0];
    const asked = path.split("/").slice(1);
    let closest: { endpoint: Described<AccessName>; score: number } | undefined;
    for (const [served, endpoints] of this.byPath) {
      const segments = served.split("/").slice(1);
      const differs = segments.findIndex((segment, at) => !segment.startsWith(":") && segment !== asked[at]);
      const same = segments.slice(0, differs < 0 ? segments.length : differs).slice(0, asked.length);
      const literals = same.filter((segment) => !segment.startsWith(":")).length;
      const score = literals === 0 ? 0 : same.length + literals / 100;
      if (score > (closest?.score ?? 0)) closest = { endpoint: endpoints[0]!, score };
    }
    return closest?.endpoint;
  }

  /** A served path that a wrong one may stand for: with a slash too many, below another base, or misspelt; undefined if there is none. */
  nearest(path: string): string | undefined {
    const single = path.replace(/\/{2,}/g, "/");
    if (single !== path && this.methodsAt(single) !== undefined) return single;
    const bare = single.replace(/\/$/, "").replace(/^(?:\/(?:v1|api|openai|anthropic))+(?=\/)/, "");
    const below = [`/v1${bare}`, bare].find((each) => each !== path && this.methodsAt(each) !== undefined);
    return below ?? (/^\/[^/]/.test(bare) ? nearestName(`/v1${bare}`, this.#literalPaths()) : undefined);
  }

  /** Those of models that have no parameter. */
  readonly #literalPaths = lazy(() => [...this.byPath.keys()].filter((path) => /^\/v1\/(?!v1\/)[^:]+$/.test(path)));

  /** The error for a request that no route answers: 405 with the methods that are served, or 404 with the path that may be meant. */
  refusal(method: string, path: string): ProxyError {
    const wrong = this.wrongMethod(method, path);
    if (wrong) return wrong;
    const meant = this.nearest(path);
    const hint = meant === undefined ? "" : ` Did you mean ${meant.slice(0, 200)}?`;
    return new ProxyError("not_found", `No such path: ${path.slice(0, 200)}.${hint} GET / lists the paths.`);
  }
}

/** Only Google's clients end the name of a model like this. */
const googleForm = new RegExp(`^${modelsPath}/.+(?::|%3a)[a-z]+$`, "i");

const ruleOf = (name: AccessName): Access => accessRules[name];
