/**
 * Scenario: `GET /usage`, `GET /usage/:accountIndex` and `GET /token`: what a script or a dashboard reads of the
 * accounts.
 */
import { describe, expect, test } from "bun:test";
import { adminEndpoints } from "../../src/admin/api/plugin";
import type { Demo } from "../../src/demo/demo";
import { clientEndpoints } from "../../src/routes/clients";
import type { UsageItem } from "../../src/routes/usage";
import { startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";

testScenes("usage");

describe("a GitHub token that is used directly", () => {
  /** Every path that answers a GET, with what stands for its parameters. */
  const everyPath = [...clientEndpoints(), ...adminEndpoints()]
    .filter(({ method, path }) => method === "GET" && path !== "/api/admin/live")
    .map(({ path }) => path.replace(":accountIndex", "0").replace(":id", "gpt-5-mini").replace(/:\w+/, "x"));
  const pages = [
    "",
    "/accounts",
    "/requests",
    "/requests/export?format=json",
    "/models",
    "/connect",
    "/config",
    "/health",
  ];

  test.each([
    ["by the app it was signed in with", { accounts: ["plus-demo"] }],
    [
      "since GitHub does not exchange it",
      { accounts: [], temporaryToken: (demo: Demo) => demo.accounts[2]!.githubToken },
    ],
  ] as const)("%s is in no answer, no page and no line; /token says so with 409", async (_name, parts) => {
    await using proxy = await startProxy({ config: { logLevel: "debug" }, ...parts });
    const { demo, lines, url } = proxy;
    const secret = demo.accounts[2]!.githubToken;
    const said: string[] = [];
    const ask = async (path: string, init?: RequestInit) => {
      const response = await fetch(url + path, init);
      said.push(`${path}: ${await response.text()} ${JSON.stringify([...response.headers])}`);
      return response.status;
    };
    const chat = (content: string) =>
      ask("/v1/chat/completions", {
        method: "POST",
        body: JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content }] }),
      });
    const paths = [...everyPath, ...pages.map((page) => `/admin${page}`)];
    expect(await chat("Hello")).toBe(200);
    const sent = demo.journal.filter(({ path }) => path === "/chat/completions");
    expect(sent[0]!.headers.authorization).toBe(`Bearer ${secret}`);
    for (const path of ["/token", "/token?account=0"]) expect(await ask(path)).toBe(409);
    for (const path of paths) await ask(path);
    const refused = said.find((text) => text.startsWith("/token"));
    expect(refused).toContain('"type":"invalid_request_error","param":null,"code":"direct_account"');
    expect(refused).toContain("plus-demo has no Copilot token");
    // Whose token is refused fails, and everything is said once more.
    expect(await chat("[demo: 400-body] Hello")).toBe(400);
    expect(await chat("[demo: 401-pat] Hello")).toBeGreaterThan(399);
    for (const path of paths) await ask(path);
    expect([...said, ...lines].filter((text) => text.includes(secret))).toEqual([]);
  });
});

test("a temporary account is /usage/0, the saved ones follow, its token is shown nowhere and never saved", async () => {
  await using proxy = await startProxy({ temporaryToken: (demo) => demo.accounts[1]!.githubToken });
  const { demo, home, lines, url } = proxy;
  const secret = demo.accounts[1]!.githubToken;
  const get = async (path: string) => (await (await fetch(url + path)).json()) as UsageItem & { accounts: UsageItem[] };
  const all = await get("/usage");
  expect(all.accounts.map(({ id }) => id)).toEqual(["work-demo", "octo-demo"]);
  const zero = await get("/usage/0");
  expect(zero).toMatchObject({ id: "work-demo", temporary: true });
  expect(await get("/usage/1")).toMatchObject({ id: "octo-demo", temporary: false });
  expect((await fetch(`${url}/usage/2`)).status).toBe(404);
  expect(JSON.stringify([all, zero, lines])).not.toContain(secret);
  expect([...new Bun.Glob("**/*").scanSync(home)].filter((name) => name.startsWith("accounts"))).toEqual([]);
});
