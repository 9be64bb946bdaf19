/**
 * Scenario: the accounts through the admin API and the pages: signed in, paused, ordered and removed, without a token
 * in any answer.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DeviceCode } from "../../src/admin/pages/accounts/sign-in";
import type { Demo, DemoOptions } from "../../src/demo/demo";
import type { AppOptions } from "../../src/parts/open-app";
import { openAccountStore } from "../../src/people/accounts/account-store";
import { signInApps } from "../../src/people/accounts/hosts";
import { keptLog, savedFrom } from "../people/accounts/bench";
import { formTokenIn } from "../support/form-fields";
import { acme, installApp } from "../support/github-app";
import { type RunningProxy, startProxy } from "../support/proxy";
import { until } from "../support/until";

/** Pauses between polls that end when the test says so. */
function gate() {
  let open = Promise.withResolvers<void>();
  return {
    sleep: (_: number, signal?: AbortSignal) => {
      const aborted = Promise.withResolvers<never>();
      signal?.addEventListener("abort", () => aborted.reject(signal.reason));
      return Promise.race([open.promise, aborted.promise]);
    },
    /** All pauses end, those to come too. */
    open: () => open.resolve(),
    close() {
      open = Promise.withResolvers();
    },
  };
}

const atOnce = { sleep: async () => {} };

/** A server with accounts in files, in front of the demo as github.com and as a company's own GitHub. */
async function world({
  device,
  clock = atOnce,
  env,
}: {
  device?: DemoOptions["device"];
  clock?: AppOptions["clock"];
  env?: Record<string, string>;
} = {}) {
  const saved = (demo: Demo) => [savedFrom(demo.accounts[1]!)];
  const proxy = await startProxy({ saved, demo: { device: { interval: 0, ...device } }, clock, env });
  const ask = async (path: string, body?: object) => {
    const answer = await fetch(
      `${proxy.url}/api/admin/accounts${path}`,
      body && { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } },
    );
    return {
      status: answer.status,
      body: (await answer.json()) as Record<string, unknown> & { error: { message: string } },
    };
  };
  const ended = async (id: string) => {
    for (let state = await ask(`/sign-ins/${id}`); ; state = await ask(`/sign-ins/${id}`)) {
      if (state.body.state !== "waiting") return state.body;
      await Bun.sleep(5);
    }
  };
  return { ...proxy, ask, ended };
}

const tokens = /gh[uo]_\w+|tid=/;

/** A request of each dialect that a plan of the demo serves. */
const bodies: [path: string, body: object][] = [
  ["/v1/chat/completions", { model: "gemini-3.1-pro-preview", messages: [{ role: "user", content: "Hi" }] }],
  ["/v1/responses", { model: "gpt-5.3-codex", input: "Hi" }],
  ["/v1/messages", { model: "claude-sonnet-4.6", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }],
  ["/v1beta/models/gemini-3.1-pro-preview:generateContent", { contents: [{ parts: [{ text: "Hi" }] }] }],
];

describe("a sign-in by the admin API", () => {
  test.each(["company.ghe.com"])("at %s shows a code, and is followed until it is done", async (host) => {
    const waiting = gate();
    await using here = await world({ clock: { sleep: waiting.sleep } });
    const begun = await here.ask("/sign-ins", host === undefined ? {} : { host });
    expect(begun).toMatchObject({
      status: 200,
      body: { state: "waiting", user_code: "DEMO-0001", host: host ?? "github.com", app: "vscode", warning: null },
    });
    expect(begun.body.address).toBe(`${here.demo.url}/login/device`);
    expect(begun.body.notice).toContain("GitHub Copilot Plugin");
    expect(Number(begun.body.expires_at_ms) - Date.now()).toBeWithin(800_000, 901_000);
    const id = String(begun.body.id);
    expect((await here.ask(`/sign-ins/${id}`)).body.state).toBe("waiting");
    waiting.open();
    const key = `${host ?? "github.com"}/octo-demo`;
    expect(await here.ended(id)).toMatchObject({
      state: "done",
      account_id: "octo-demo",
      account_key: key,
      reason: null,
      renewed: false,
    });
    expect(here.app.accounts.map((account) => account.key)).toEqual(["github.com/work-demo", key]);
    expect((await here.post(...bodies[2]!)).status).toBe(200);
    expect(existsSync(join(here.home, `accounts/${key}.json`))).toBe(true);
    expect(JSON.stringify([await here.ask(`/sign-ins/${id}`), await here.ask("")]) + here.lines.join("")).not.toMatch(
      tokens,
    );
  });

  test("a second sign-in of the same person renews the first, also for an app that uses its token directly", async () => {
    await using here = await world();
    // The last is an app of one's own, by its client id.
    for (const [app, said, renewed] of [
      ["opencode", "opencode", false],
      ["opencode", "opencode", true],
      ["Ov23liOfMyOwn", "Ov23liOfMyOwn", true],
    ] as const) {
      const { body } = await here.ask("/sign-ins", { app });
      expect(body.notice).toContain(said);
      const end = await here.ended(String(body.id));
      expect(end).toMatchObject({ account_id: "plus-demo", renewed, reason: null });
      if (renewed && app === "opencode")
        expect((await here.ask("")).body.items).toMatchObject([{ app: "vscode" }, { account_id: "plus-demo", app }]);
    }
    await here.ask("/order", { account_keys: ["github.com/plus-demo"] });
    expect((await here.post(...bodies[2]!)).status).toBe(200);
    expect(here.rows(1)[0]!.account_id).toBe("plus-demo");
  });

  test("a sign-in by the admin API can be cancelled; only a few wait at a time; all end with the server", async () => {
    const waiting = gate();
    await using here = await world({ clock: { sleep: waiting.sleep } });
    const ids = [];
    for (let count = 0; count < 4; count++) ids.push(String((await here.ask("/sign-ins", {})).body.id));
    const full = { error: { message: expect.stringContaining("Finish or cancel") } };
    for (const [path, form, status, body] of [
      ["", {}, 409, full],
      [`/${ids[0]}/cancel`, {}, 200, { state: "cancelled" }],
      ["", {}, 200, {}],
      ["/none", undefined, 404, {}],
      ["/none/cancel", {}, 404, {}],
    ] as const)
      expect(await here.ask(`/sign-ins${path}`, form)).toMatchObject({ status, body });
    here.app.signIns.close();
    for (const id of ids) expect((await here.ended(id)).state).toBe("cancelled");
    waiting.open();
    expect(here.app.accounts).toHaveLength(1);
  });

  test("a sign-in by the admin API is of the owner's app unless another is chosen; what is none, or no GitHub, is refused", async () => {
    await using here = await world({ env: { DRAGOMAN_OAUTH_APP: "Ov23liOfMyOwn" } });
    for (const app of [undefined, "opencode"]) expect((await here.ask("/sign-ins", { app })).status).toBe(200);
    const codes = here.demo.journal.filter(({ path }) => path === "/login/device/code");
    const apps = codes.map(({ body }) => (body as { client_id: string }).client_id);
    expect(apps).toEqual(["Ov23liOfMyOwn", signInApps.opencode.clientId]);
    for (const wrong of [
      { host: "https://x" },
      { host: "127.0.0.1" },
      { host: "localhost" },
      { app: "../x" },
      { other: 1 },
    ])
      expect([wrong, (await here.ask("/sign-ins", wrong)).status]).toEqual([wrong, 400]);
    await here.demo.stop();
    expect((await here.ask("/sign-ins", {})).status).toBe(502);
  });
});

describe("a GitHub App of an organization", () => {
  const { app, installation } = acme;
  const entered = { app, installation: installation.id, private_key: installation.privateKey };
  const secrets = /gh[so]_\w+|tid=|PRIVATE KEY/;

  test("is signed in, serves each dialect before the next account does, is refused, and removed", async () => {
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

  test("that cannot serve is told so when it is entered, on the page too", async () => {
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

describe("the page", () => {
  const textOf = async (proxy: RunningProxy, path = "/admin/accounts") => (await fetch(proxy.url + path)).text();

  const send = (proxy: RunningProxy, path: string, form: Record<string, string>) =>
    fetch(proxy.url + path, { method: "POST", body: new URLSearchParams(form), redirect: "manual" });

  test("leads through a sign-in without a script, and never shows a token", async () => {
    const waiting = gate();
    await using proxy = await startProxy({
      accounts: ["work-demo"],
      demo: { device: { interval: 0, pending: 1 } },
      clock: { sleep: waiting.sleep },
    });
    const form_token = formTokenIn(await textOf(proxy));
    const begun = await send(proxy, "/admin/accounts/sign-in", { form_token, host: " GitHub.com ", app: "vscode" });
    const path = begun.headers.get("location")!;
    expect([begun.status, path]).toEqual([303, expect.stringMatching(/^\/admin\/accounts\/sign-in\/[\w-]{22}$/)]);
    const shown = await textOf(proxy, path);
    for (const text of [
      "DEMO-0001",
      `<code>${proxy.demo.url}/login/device</code>`,
      '<noscript><meta http-equiv="refresh" content="5"',
      "Waiting for your approval",
    ])
      expect(shown).toContain(text);
    expect(await textOf(proxy)).toContain("show its code");
    waiting.open();
    let html = shown;
    await until(async () => {
      html = await textOf(proxy, path);
      return !html.includes("data-waiting");
    }, "the sign-in has ended");
    expect(html).toContain("Signed in as");
    for (const gone of ["DEMO-0001", "noscript", "data-poll"]) expect(html).not.toContain(gone);
    expect(shown + html + (await textOf(proxy))).not.toMatch(tokens);
    expect(proxy.app.accounts.map(({ id }) => id)).toEqual(["work-demo", "octo-demo"]);
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

  test("cancels a sign-in, and names what went wrong with another", async () => {
    const waiting = gate();
    await using proxy = await startProxy({
      demo: { device: { interval: 0, outcome: "access_denied" } },
      clock: { sleep: waiting.sleep },
    });
    const form_token = formTokenIn(await textOf(proxy));
    const begin = async (form: Record<string, string> = {}) =>
      send(proxy, "/admin/accounts/sign-in", { form_token, ...form });
    const first = (await begin()).headers.get("location")!;
    expect((await send(proxy, `${first}/cancel`, { form_token })).status).toBe(303);
    expect(await textOf(proxy, first)).toContain("Nothing was saved");
    const second = (await begin()).headers.get("location")!;
    waiting.open();
    let html = "";
    await until(async () => {
      html = await textOf(proxy, second);
      return !html.includes("data-waiting");
    }, "the sign-in has ended");
    expect(html).toContain("declined in the browser");
    const wrong = await begin({ host: "no host" });
    expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining("bare public host name")]);
    expect((await fetch(`${proxy.url}/admin/accounts/sign-in/none`)).status).toBe(404);
  });
});
