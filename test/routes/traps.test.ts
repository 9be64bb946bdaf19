/**
 * Rows: what Elysia 1.4.30 does not say, and what would let somebody in, or end the process. `src/web/README.md` lists
 * it.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { z } from "zod";
import { features } from "../../src/admin/api/plugin";
import { adminPages, pageEndpoints } from "../../src/admin/pages/plugin";
import { webOf } from "../../src/server";
import { access } from "../../src/web/access";
import { accessOf } from "../../src/web/described";
import { startProxy } from "../support/proxy";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());
const app = webOf(proxy.app, () => ({ hosts: new Set(), origins: new Set() }));
const pages = adminPages(proxy.app, (thrown) => {
  throw thrown;
}).routes;

interface Hook {
  fn: (...given: never[]) => unknown;
  /** `resolve`: it adds to the context, and refuses nobody. */
  subType?: string;
}

describe("every route", () => {
  const routes = [...app.routes, ...features.routes, ...pages].map(
    (route) => [`${route.method} ${route.path}`, route] as const,
  );

  test("there are all of them", () => {
    expect(routes.length).toBeGreaterThan(80);
  });

  test.each(routes)("%s says who may use it, by the macro", (_, { hooks }) => {
    expect(accessOf(hooks)).toBeString();
  });

  test.each(routes)("%s has only checks that Elysia waits for", (_, { hooks }) => {
    const checks = (hooks.transform ?? []) as Hook[];
    const later = ((hooks.beforeHandle ?? []) as Hook[]).filter(({ subType }) => subType !== "resolve");
    // An arrow: of a minified method Elysia writes a warning to standard output, where a host reads events.
    for (const { fn } of [...checks, ...later, ...((hooks.mapResponse ?? []) as Hook[])])
      expect([fn.constructor.name, String(fn)]).toEqual(["AsyncFunction", expect.stringMatching(/^async \(/)]);
  });

  test.each(routes)("%s has no check of its own that would run before that of the macro", (_, { hooks }) => {
    expect(hooks.transform).toHaveLength(1);
  });

  test.each(routes)("%s is compiled, with the code that Elysia makes for it", (_, route) => {
    expect(route.compile()).toBeFunction();
  });

  test.each(routes)("%s leaves a body to its handler", (_, { hooks }) => {
    expect(((hooks.parse ?? []) as Hook[]).map(({ fn }) => fn as unknown)).toEqual(["none"]);
  });
});

test("a start makes no schema of what clients ask: it is made with the first request that it reads", () => {
  const asked = app.routes.flatMap(({ path, hooks }) =>
    [hooks.query, hooks.params].map((schema) => ({ path, schema })),
  );
  const given = asked.filter(({ schema }) => schema !== undefined);
  expect(given.length).toBeGreaterThan(4);
  expect(given.filter(({ schema }) => !(schema instanceof z.ZodLazy)).map(({ path }) => path)).toEqual([]);
});

test("what the traps are: a route above its `.use(access)` is not guarded, which its missing mark shows", async () => {
  const refusing = { refusing: true } as never;
  const wrong = new Elysia()
    .decorate("dragoman", refusing)
    .get("/wrong", () => "SERVED", { access: "models" } as object);
  const right = new Elysia()
    .decorate("dragoman", refusing)
    .use(access)
    .get("/right", () => "SERVED", { access: "models" });
  expect(accessOf(wrong.routes[0]!.hooks)).toBeUndefined();
  expect(await (await wrong.handle(new Request("http://localhost/wrong"))).text()).toBe("SERVED");
  expect(accessOf(right.routes[0]!.hooks)).toBe("models");
  expect(await (await right.handle(new Request("http://localhost/right"))).text()).not.toContain("SERVED");
});

test("these pages are for everybody: their handlers see to who may use them", () => {
  const open = pages.filter(({ hooks }) => accessOf(hooks) === "everybody");
  expect(open.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "GET /admin/join/:code",
    "POST /admin/join/:code/sign-in",
    "GET /admin/join/:code/sign-in/:id",
    "POST /admin/join/:code/key",
    "GET /admin/github",
    "GET /admin/github/done",
    "GET /admin/",
    "POST /admin/sign-in",
    "GET /admin/sign-in",
    "GET /admin/assets/*",
  ]);
  expect(pageEndpoints().length).toBe(pages.length - open.length);
  // One check, and one for what is shown.
  expect(pages.filter(({ hooks }) => (hooks.mapResponse as Hook[]).length !== 1)).toEqual([]);
  const known = ["member", "owner", "everybody"];
  expect(pages.filter(({ hooks }) => !known.includes(accessOf(hooks)!))).toEqual([]);
});
