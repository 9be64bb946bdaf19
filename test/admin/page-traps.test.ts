/**
 * Rows: what Elysia 1.4.30 does not say, and what would let somebody into a page, or end the process.
 * `src/web/README.md` lists it.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { adminPages, pageEndpoints } from "../../src/admin/pages/plugin";
import { accessOf } from "../../src/web/described";
import { startProxy } from "../support/proxy";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());
const { routes } = adminPages(proxy.app, (thrown) => {
  throw thrown;
});

type Hook = { fn: (...given: never[]) => unknown };

describe("every route", () => {
  const named = routes.map((route) => [`${route.method} ${route.path}`, route] as const);

  test("there are all of them", () => {
    expect(named.length).toBeGreaterThan(30);
  });

  test.each(named)("%s says who may open it, by the macro", (_, { hooks }) => {
    expect(["member", "owner", "everybody"]).toContain(accessOf(hooks)!);
  });

  test.each(named)("%s has one check, and Elysia waits for it and for what is shown", (_, { hooks }) => {
    for (const those of [hooks.transform, hooks.mapResponse] as Hook[][])
      expect(those.map(({ fn }) => [fn.constructor.name, String(fn)])).toEqual([
        ["AsyncFunction", expect.stringMatching(/^async \(/)],
      ]);
  });

  test.each(named)("%s is compiled, with the code that Elysia makes for it", (_, route) => {
    expect(route.compile()).toBeFunction();
  });

  test.each(named)("%s leaves a body to the macro", (_, { hooks }) => {
    expect(((hooks.parse ?? []) as Hook[]).map(({ fn }) => fn as unknown)).toEqual(["none"]);
  });
});

test("these are for everybody: their handlers see to who may use them", () => {
  const open = routes.filter(({ hooks }) => accessOf(hooks) === "everybody");
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
  expect(pageEndpoints().length).toBe(routes.length - open.length);
});
