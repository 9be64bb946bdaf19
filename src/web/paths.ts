/** The paths of an app, and which of them a request means. */
import { ProxyError } from "../lib/errors";
import { lazy } from "../lib/lazy";

/** @template Endpoint What one method serves at one path, in which parameters are written `:name`. */
export class Paths<Endpoint extends { method: string; path: string }> {
  readonly #endpoints: () => readonly Endpoint[];

  /** @param endpoints Asked when the first request is there. */
  constructor(endpoints: () => readonly Endpoint[]) {
    this.#endpoints = endpoints;
  }

  readonly #byPath = lazy(() => Map.groupBy(this.#endpoints(), ({ path }) => path));

  readonly #patterns = lazy(() =>
    [...this.#byPath()]
      .filter(([path]) => path.includes("/:"))
      .map(([path, endpoints]) => ({ path, endpoints, pattern: patternOf(path) })),
  );

  /** The endpoints by their path. */
  protected get byPath(): ReadonlyMap<string, readonly Endpoint[]> {
    return this.#byPath();
  }

  /** The endpoints of a path as a client sends it; undefined if there is no such path. */
  at(path: string): readonly Endpoint[] | undefined {
    const exact = this.#byPath().get(path);
    if (exact) return exact;
    const found = this.#patterns().filter(({ pattern }) => pattern.test(path));
    // A path that ends in a method of Google's comes before one that takes it for a part of the model's name.
    return (found.find((each) => each.path.includes("/:model:")) ?? found[0])?.endpoints;
  }

  /** The methods of a path as a client sends it; undefined if there is no such path. GET implies HEAD. */
  methodsAt(path: string): string[] | undefined {
    return this.at(path)?.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  }

  /** The error for a method that is not served at a path; undefined if nothing is. */
  wrongMethod(method: string, path: string): ProxyError | undefined {
    const methods = this.methodsAt(path);
    return methods && methodNotAllowed(method, methods);
  }
}

/** A model's name may have slashes. */
const patternOf = (path: string): RegExp =>
  new RegExp(
    `^${path
      .replaceAll(".", "\\.")
      .replace("/:model", "/.+")
      .replace(/\/:\w+/g, "/[^/]+")}$`,
  );

export const methodNotAllowed = (method: string, methods: readonly string[]): ProxyError =>
  new ProxyError("method_not_allowed", `${method} is not served at this path; use ${methods.join(" or ")}.`, {
    headers: { allow: methods.join(", ") },
  });
