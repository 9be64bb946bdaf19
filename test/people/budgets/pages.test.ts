/** Scenario: budgets on their page and in the admin API. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subject } from "../../../src/people/budgets/budgets";
import type { Reservation } from "../../../src/people/budgets/entries";
import { credits } from "../../support/amounts";
import { formTokenIn } from "../../support/form-fields";
import { type RunningProxy, startProxy } from "../../support/proxy";

const admin = async (proxy: RunningProxy, path = "", body?: unknown) => {
  const response = await fetch(`${proxy.url}/api/admin/budgets${path}`, {
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    headers: { "content-type": "application/json" },
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

const submit = async (proxy: RunningProxy, path: string, fields: Record<string, string>) => {
  const page = await (await fetch(`${proxy.url}/admin/budgets`)).text();
  const form_token = formTokenIn(page);
  return fetch(proxy.url + path, {
    method: "POST",
    redirect: "manual",
    body: new URLSearchParams({ form_token, ...fields }),
  });
};

const subject: Subject = { account: "octo", key: null, model: "gpt-4.1" };

test("a budget is added, shows what is used and when it would end at the rate since then, and is removed", async () => {
  let now = Date.parse("2026-11-06T00:00:00Z");
  await using proxy = await startProxy({ clock: { now: () => now } });
  const added = await admin(proxy, "", { name: "Month", unit: "credits", limit: 100, per: "month" });
  expect(added).toEqual({ status: 200, body: { added: true } });
  expect((await admin(proxy, "", { name: "Month", unit: "requests", limit: 1, per: "day" })).status).toBe(409);

  now = Date.parse("2026-11-11T00:00:00Z");
  const { budgets } = proxy.app;
  const amounts = credits(50);
  budgets.settle(budgets.reserve(subject, amounts) as Reservation, {
    model: subject.model,
    expected: amounts,
    real: amounts,
  });
  budgets.reserve(subject, credits(5));
  const { body } = await admin(proxy);
  expect(body.items).toEqual([
    {
      name: "Month",
      scope: {},
      unit: "credits",
      limit: 100,
      per: "month",
      warn: [0.5, 0.8],
      then: "stop",
      exhausted: false,
      used: 50,
      reserved: 5,
      unknown_price_count: 0,
      started_at_ms: Date.parse("2026-11-01T00:00:00Z"),
      counted_from_ms: Date.parse("2026-11-06T00:00:00Z"),
      resets_at_ms: Date.parse("2026-12-01T00:00:00Z"),
      // Half of it in the five days since it was added: the rest lasts for five more.
      forecast_ends_at_ms: Date.parse("2026-11-16T00:00:00Z"),
      holders: null,
    },
  ]);
  now = Date.parse("2026-12-01T00:00:00Z");
  expect((await admin(proxy)).body.items).toMatchObject([{ used: 0, reserved: 0, forecast_ends_at_ms: null }]);
  expect((await admin(proxy, "/remove", { name: "Month" })).body).toEqual({ removed: true });
  expect((await admin(proxy, "/remove", { name: "Month" })).status).toBe(404);
  expect((await admin(proxy)).body.items).toEqual([]);
});

test("the page adds and removes a budget without a script, and names what is wrong", async () => {
  await using proxy = await startProxy();
  const wrong = await submit(proxy, "/admin/budgets", {
    name: "Opus",
    unit: "credits",
    limit: "-1",
    per: "day",
    then: "stop",
  });
  const text = await wrong.text();
  expect([wrong.status, text.includes("limit: "), text.includes('value="Opus"')]).toEqual([400, true, true]);
  const added = await submit(proxy, "/admin/budgets", {
    name: "Opus",
    unit: "credits",
    limit: "2.5",
    per: "day",
    then: "stop",
    model: "claude-opus-*",
    account: "",
  });
  expect([added.status, added.headers.get("location")]).toEqual([303, "/admin/budgets?added=Opus"]);
  expect(proxy.app.config.current.budgets).toMatchObject([
    { name: "Opus", limit: 2.5, scope: { model: "claude-opus-*" } },
  ]);
  const shown = await (await fetch(`${proxy.url}/admin/budgets?added=Opus`)).text();
  expect(shown).toContain("of 2.5 credits used");
  expect(shown).toMatch(/The budget .*Opus.* was added/);
  const asks = await (await fetch(`${proxy.url}/admin/budgets`)).text();
  expect(asks).toMatch(/<summary aria-label="Remove Opus…">Remove…<\/summary>[\s\S]*action="\/admin\/budgets\/remove"/);
  const removed = await submit(proxy, "/admin/budgets/remove", { name: "Opus" });
  expect(removed.headers.get("location")).toBe("/admin/budgets?removed=Opus");
  const said = await (await fetch(`${proxy.url}/admin/budgets?removed=Opus`)).text();
  expect(said).toMatch(/There is no budget .*Opus.* any more: it was removed/);
  expect(proxy.app.config.current.budgets).toEqual([]);
});

test("a budget for each key, by the form: who used most comes first, page by page", async () => {
  await using proxy = await startProxy();
  const fields = { name: "Each", unit: "requests", limit: "4", per: "day", then: "stop", each: "key" };
  const wrong = await submit(proxy, "/admin/budgets", { ...fields, limits: "key-1 many" });
  expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining("limits.key-1: ")]);
  const idle = await submit(proxy, "/admin/budgets", { ...fields, each: "", limits: "key-1 1" });
  expect([idle.status, await idle.text()]).toEqual([400, expect.stringContaining("limits: needs")]);
  expect((await submit(proxy, "/admin/budgets", { ...fields, limits: "key-1 1\r\nkey-2: 40\n" })).status).toBe(303);
  expect(proxy.app.config.current.budgets).toMatchObject([{ each: "key", limits: { "key-1": 1, "key-2": 40 } }]);

  const amounts = credits(0);
  const use = async (key: string) => {
    const reservation = await proxy.app.budgets.reserve({ ...subject, key }, amounts);
    proxy.app.budgets.settle(reservation as Reservation, { model: subject.model, expected: amounts, real: amounts });
  };
  for (let at = 0; at < 60; at += 1) await use(`key-${at}`);
  for (let count = 0; count < 2; count += 1) await use("key-30");
  const page = await (await fetch(`${proxy.url}/admin/budgets`)).text();
  const rowsIn = (text: string) => [...text.matchAll(/key_name=(key-\d+)/g)].map(([, name]) => name);
  expect(rowsIn(page)).toEqual(["key-1", "key-30", "key-0", "key-10", "key-11"]);
  expect(page).toContain("Exhausted for some");
  const [, path] = /href="([^"]+)">All 60 keys/.exec(page)!;
  const first = await (await fetch(proxy.url + path!.replaceAll("&amp;", "&"))).text();
  const [, next] = /rel="next" href="([^"]+)"/.exec(first)!;
  const last = await (await fetch(proxy.url + next!.replaceAll("&amp;", "&"))).text();
  const all = [...rowsIn(first), ...rowsIn(last)];
  expect([rowsIn(first).length, new Set(all).size, all.at(-1)]).toEqual([50, 60, "key-2"]);
  expect(last).not.toContain('rel="next"');
  expect((await fetch(`${proxy.url}/admin/budgets?budget=nothing`)).status).toBe(404);
  const { body } = await admin(proxy, "?budget=Each&limit=25&offset=50");
  expect(body.items).toMatchObject([{ used: null, exhausted: false, holders: { count: 60, next_offset: null } }]);
});

test("the page of budgets says without members that a budget for them counts nothing", async () => {
  const budgets = [{ name: "M", unit: "requests", limit: 4, per: "day", each: "member" }];
  await using proxy = await startProxy({ config: { budgets } });
  await (await proxy.post("/v1/chat/completions", { model: "gpt-4.1", messages: [] })).text();
  const page = await (await fetch(`${proxy.url}/admin/budgets`)).text();
  expect(page).toContain("There are no members: a budget");
  expect(page).not.toContain('id="f-member"');
});

test("the parts of a budget are what it has counted, also when it is added in the middle of its period", async () => {
  await using proxy = await startProxy({
    config: { auth: { apiKeys: [{ name: "laptop", key: "k-of-the-laptop-0001" }] } },
  });
  const body = JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] });
  const send = async (count: number) => {
    for (let at = 0; at < count; at += 1) {
      const headers = { "x-api-key": "k-of-the-laptop-0001" };
      await (await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", headers, body })).text();
    }
  };
  const parts = async () => {
    const page = await (await fetch(`${proxy.url}/admin/budgets`)).text();
    const text = page.replace(/<[^>]+>/g, " ").replace(/\s+/g, " ");
    return {
      used: Number(/(\d+) of 1,000 requests used/.exec(text)?.[1]),
      sum: [...text.matchAll(/(\d+) requests? (?=Counted|Resets|the rest|laptop)/g)].reduce(
        (sum, [, each]) => sum + Number(each),
        0,
      ),
      since: /Counted since .*?, when it was added/.test(text),
      from: Number(/from_ms=(\d+)">Requests since then/.exec(page)?.[1]),
    };
  };
  await send(5);
  const before = Date.now();
  await admin(proxy, "", { name: "month", unit: "requests", limit: 1000, per: "month" });
  await send(2);
  expect(await parts()).toMatchObject({ used: 2, sum: 2, since: true });
  expect((await parts()).from).toBeGreaterThanOrEqual(before);
  // One that is added again goes on with what it had used before, so a forecast must not begin at this moment.
  for (const budget of [{ name: "month" }, { name: "keys", each: "key" }]) {
    const wanted = { unit: "requests", limit: 1000, per: "month", ...budget };
    await admin(proxy, "", wanted);
    await send(1);
    await admin(proxy, "/remove", { name: budget.name });
    await admin(proxy, "", wanted);
    const { items } = (await admin(proxy, `?budget=${budget.name}`)).body as { items: Record<string, number>[] };
    expect(items[0]!.counted_from_ms).toBe(items[0]!.started_at_ms!);
  }
});

test("a budget that somebody wrote into the config in the middle of its period shows no parts that it has not counted", async () => {
  await using proxy = await startProxy();
  const body = JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] });
  const send = async () => (await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", body })).text();
  await send();
  const budgets = [{ name: "month", unit: "requests", limit: 1000, per: "month" }];
  writeFileSync(join(proxy.home, "config.json"), JSON.stringify({ budgets }));
  await proxy.app.config.reload();
  await send();
  const page = await (await fetch(`${proxy.url}/admin/budgets`)).text();
  expect(page).toContain("of 1,000 requests used");
  expect(page).not.toContain("without a key");
});
