/**
 * Scenario: accounts of a GitHub App, for one run, and on two hosts, by the admin API and the pages; `fixtures/books/` has those of
 * people, who sign in, pause, order and remove them.
 */
import { expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DeviceCode } from "../../src/admin/pages/accounts/sign-in";
import type { Demo } from "../../src/demo/demo";
import { openAccountStore } from "../../src/people/accounts/account-store";
import { keptLog, savedFrom } from "../people/accounts/bench";
import { formTokenIn } from "../support/form-fields";
import { acme, installApp } from "../support/github-app";
import { postJson } from "../support/post-json";
import { type ProxyOptions, startProxy } from "../support/proxy";

/** A server with an account in a file, in front of the demo as github.com and as a company's own GitHub. */
async function world({ clock, env }: Pick<ProxyOptions, "clock" | "env"> = {}) {
  const saved = (demo: Demo) => [savedFrom(demo.accounts[1]!)];
  const proxy = await startProxy({ saved, demo: { device: { interval: 0 } }, clock, env });
  const ask = async (path: string, body?: object) => {
    const url = `${proxy.url}/api/admin/accounts${path}`;
    const answer = await (body ? postJson(url, body) : fetch(url));
    return {
      status: answer.status,
      body: (await answer.json()) as Record<string, unknown> & { error: { message: string } },
    };
  };
  return { ...proxy, ask };
}

/** A request of each dialect that a plan of the demo serves. */
const bodies: [path: string, body: object][] = [
  ["/v1/chat/completions", { model: "gemini-3.1-pro-preview", messages: [{ role: "user", content: "Hi" }] }],
  ["/v1/responses", { model: "gpt-5.3-codex", input: "Hi" }],
  ["/v1/messages", { model: "claude-sonnet-4.6", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }],
  ["/v1beta/models/gemini-3.1-pro-preview:generateContent", { contents: [{ parts: [{ text: "Hi" }] }] }],
];

test("sign-ins that wait end with the server", async () => {
  const approved = Promise.withResolvers<void>();
  await using here = await world({ clock: { sleep: () => approved.promise } });
  const ids = [];
  for (let count = 0; count < 4; count++) ids.push(String((await here.ask("/sign-ins", {})).body.id));
  here.app.signIns.close();
  for (const id of ids) expect((await here.ask(`/sign-ins/${id}`)).body.state).toBe("cancelled");
  approved.resolve();
  expect(here.app.accounts).toHaveLength(1);
});

const { app, installation } = acme;
const entered = { app, installation: installation.id, private_key: installation.privateKey };
const secrets = /gh[so]_\w+|tid=|PRIVATE KEY/;

test("a GitHub App of an organization is signed in, serves each dialect before the next account does, is refused, and removed", async () => {
  await using here = await world();
  installApp(here.demo);
  const added = await here.ask("/apps", entered);
  const account_key = "github.com/acme-corp";
  expect(added).toMatchObject({
    status: 200,
    body: { account_id: "Acme-Corp", account_key, renewed: false, reason: null },
  });
  expect((await here.ask("/apps", entered)).body.renewed).toBe(true);
  await here.ask("/order", { account_keys: [account_key] });
  for (const [path, body] of bodies) expect([path, (await here.post(path, body)).status]).toEqual([path, 200]);
  expect(here.rows(4).map(({ account_id, cost_unit }) => [account_id, cost_unit])).toEqual(
    bodies.map(() => ["Acme-Corp", "credits"]),
  );
  const file = join(here.home, `accounts/${account_key}.json`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const page = await (await fetch(`${here.url}/admin/accounts`)).text();
  expect(page).toContain("billed to the organization");
  expect(JSON.stringify([added, await here.ask("")]) + here.lines.join("") + page).not.toMatch(secrets);
  // The organization takes the permission back: the next account serves, as for any other that fails.
  here.demo.intercept(
    "/copilot_internal/v2/token",
    ({ headers }) =>
      headers.authorization?.includes("ghs_") ? Response.json({ message: "Forbidden" }, { status: 403 }) : undefined,
    99,
  );
  here.demo.expireTokens();
  expect((await here.post(...bodies[2]!)).status).toBe(200);
  expect(here.rows(1)[0]!.account_id).toBe("work-demo");
  expect((await here.ask("")).body.items).toMatchObject([
    { account_key, kind: "app", state: "failed", reason: expect.stringContaining("GitHub says: Forbidden.") },
    { kind: "person" },
  ]);
  expect(await here.ask("/remove", { account_key })).toMatchObject({
    body: { revoke_at: "https://github.com/organizations/Acme-Corp/settings/installations/987654" },
  });
  expect(existsSync(file)).toBe(false);
});

test("a GitHub App of an organization that cannot serve is told so when it is entered, on the page too", async () => {
  await using here = await world({ env: { DRAGOMAN_OAUTH_APP: "Ov23liOfMyOwn" } });
  const state = installApp(here.demo, { permissions: {} });
  const tell = async (changes: object) => {
    const { status, body } = await here.ask("/apps", { ...entered, ...changes });
    return [status, body.error.message];
  };
  expect(await tell({})).toEqual([503, expect.stringContaining("may not make Copilot requests for Acme-Corp")]);
  expect(await tell({ installation: "x" })).toEqual([400, "The installation of the App is not valid."]);
  expect(await tell({ private_key: "no key" })).toEqual([400, expect.stringContaining("private key cannot be read")]);
  expect(here.app.accounts).toHaveLength(1);
  state.permissions = { organization_copilot_requests: "read" };
  here.demo.intercept("/copilot_internal/v2/token", () => Response.json({ token: "", expires_at: 0 }));
  const page = await (await fetch(`${here.url}/admin/accounts`)).text();
  const form_token = formTokenIn(page);
  const answer = await fetch(`${here.url}/admin/accounts/app`, {
    method: "POST",
    body: new URLSearchParams({
      ...{ form_token, app_id: app, installation: installation.id, private_key: installation.privateKey },
    }),
  });
  // The form beside it offers the app that the variable names.
  expect(page).toContain('<option value="Ov23liOfMyOwn" selected');
  // Two forms of a page name their fields apart.
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  expect(ids.toSorted()).toEqual([...new Set(ids)].sort());
  expect(await answer.text()).toMatch(/The App is signed in for .*Acme-Corp[\s\S]*no active Copilot plan/);
  expect(here.app.accounts.map(({ id }) => id)).toEqual(["work-demo", "Acme-Corp"]);
});

test("a temporary account is neither paused nor removed; the same login on two hosts is told apart", async () => {
  await using proxy = await startProxy({
    saved: ({ accounts: [octo] }) => ["github.com", "company.ghe.com"].map((host) => ({ ...savedFrom(octo!), host })),
    temporaryToken: ({ accounts: [, work] }) => work!.githubToken,
  });
  const change = (what: string, body: object) => proxy.post(`/api/admin/accounts/${what}`, body);
  for (const [what, more] of [
    ["pause", { paused: true }],
    ["remove", {}],
  ] as const)
    expect((await change(what, { account_key: "github.com/(temporary)", ...more })).status).toBe(409);
  expect((await change("order", { account_keys: ["company.ghe.com/octo-demo"] })).status).toBe(200);
  expect(proxy.app.accounts.map(({ key }) => key)).toEqual([
    "github.com/(temporary)",
    "company.ghe.com/octo-demo",
    "github.com/octo-demo",
  ]);
  expect((await change("remove", { account_key: "company.ghe.com/octo-demo" })).status).toBe(200);
  const store = openAccountStore(join(proxy.home, "accounts"), keptLog().logger);
  expect(store.load().map(({ host }) => host)).toEqual(["github.com"]);
});

test("links to GitHub's own page, and never to another", () => {
  const nothing = { account_id: null, account_key: null, renewed: false, reason: null, expires_at_ms: 0 };
  const item = {
    id: "x",
    state: "waiting",
    host: "github.com",
    app: "vscode",
    notice: "",
    user_code: "AB<1",
  } as const;
  const frame = { version: "1", demo: false, signedIn: false, menu: [], assets: "", formToken: "t" };
  const shown = (address: string, warning: string | null) =>
    String(DeviceCode({ signIn: { ...item, ...nothing, address, warning }, frame }));
  const page = "https://github.com/login/device";
  const own = shown(page, null);
  expect(own).toContain(`<a class="button primary" href="${page}" rel="noreferrer" target="_blank">`);
  expect(own).toContain('<code id="user-code">AB&lt;1</code>');
  const other = shown("https://evil.test/login", "This address is not at https://github.com.");
  expect(other).not.toContain("href=");
  expect(other).toContain('role="alert"');
});
