/** Scenario: where `auto` is listed, and what says that a plan has nothing else. */
import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { modelLines } from "../../src/cli/models";
import { chooseModels } from "../../src/clients/models";
import { demoAccounts } from "../../src/demo/accounts";
import { clientModelSource, clientModels } from "../../src/proxy/upstream/models/model-view";
import { autoAccounts } from "../support/auto-accounts";
import { type RunningProxy, startProxy } from "../support/proxy";

const { free, student, pro } = autoAccounts();
/** The plans are known, as soon after a start. */
async function withAccounts(accounts: ReturnType<typeof demoAccounts>, config?: object): Promise<RunningProxy> {
  const proxy = await startProxy({ demo: { accounts: structuredClone(accounts) }, config });
  await Promise.all(proxy.app.accounts.map((account) => account.quota()));
  return proxy;
}

const json = async <T>(proxy: RunningProxy, path: string, init?: RequestInit): Promise<T> =>
  (await fetch(proxy.url + path, init)).json() as Promise<T>;
const idsOf = async (proxy: RunningProxy, init?: RequestInit) =>
  (await json<{ data: { id: string }[] }>(proxy, "/v1/models", init)).data.map(({ id }) => id);

describe("the lists", () => {
  test("`auto` is listed in both forms, with a plain description, without a prompt being sent", async () => {
    await using proxy = await withAccounts([student]);
    const { data } = await json<{ data: Record<string, unknown>[] }>(proxy, "/v1/models");
    expect(data.find(({ id }) => id === "auto")).toMatchObject({
      display_name: "Auto (GitHub Copilot chooses the model)",
      kind: "chat",
      enabled: true,
      model_picker_enabled: true,
    });
    expect(await json<object>(proxy, "/v1/models/auto")).toMatchObject({ id: "auto", owned_by: "GitHub" });
    const google = await json<{ models: { name: string }[] }>(proxy, "/v1beta/models");
    expect(google.models.map(({ name }) => name)).toContain("models/auto");
    expect(proxy.demo.journal.filter(({ path }) => path === "/auto" || path.startsWith("/models/session"))).toEqual([]);
  });

  test("beside named models it is listed where the list names its discount, with the least limits of its pool", async () => {
    await using proxy = await withAccounts([pro]);
    const { data } = await json<{ data: Record<string, unknown>[] }>(proxy, "/v1/models");
    const limits = { max_prompt_tokens: 128_000, max_output_tokens: 32_000 };
    expect(data.slice(-3)).toMatchObject(
      ["auto", "auto-efficiency", "auto-intelligence"].map((id) => ({ id, ...limits })),
    );
  });

  test("it is not listed where nothing shows that it is offered, until it has served", async () => {
    const quiet = { ...pro, auto: { ...pro.auto, discount: 0 } };
    await using proxy = await withAccounts([quiet]);
    expect(await idsOf(proxy)).not.toContain("auto");
    const asked = { model: "auto", messages: [{ role: "user", content: "hello" }] };
    expect((await proxy.post("/v1/chat/completions", asked)).status).toBe(200);
    expect(await idsOf(proxy)).toContain("auto");
  });

  test("it is not listed any more once the account was told that it does not have it", async () => {
    await using proxy = await withAccounts([{ ...pro, auto: { ...pro.auto, protocols: [] } }]);
    expect(await idsOf(proxy)).toContain("auto");
    await proxy.post("/v1/chat/completions", { model: "auto", messages: [{ role: "user", content: "hello" }] });
    expect(await idsOf(proxy)).not.toContain("auto");
  });

  test("accounts without Auto list what they listed before", async () => {
    await using proxy = await withAccounts(demoAccounts());
    expect(await idsOf(proxy)).not.toContain("auto");
  });

  test("a key that may use a part of the models sees `auto`; one that may use none of the chat models does not", async () => {
    const key = (name: string, models: string[]) => ({ name, key: name.padEnd(20, "k"), models });
    const apiKeys = [key("some", ["gpt-*"]), key("none", ["text-embedding-*"])];
    await using proxy = await withAccounts([pro], { auth: { apiKeys } });
    const listed = (name: string) => idsOf(proxy, { headers: { authorization: `Bearer ${name.padEnd(20, "k")}` } });
    expect(await listed("some")).toContain("auto");
    expect(await listed("none")).not.toContain("auto");
  });

  test("tokens can be counted for the model auto", async () => {
    await using proxy = await withAccounts([student]);
    const messages = [{ role: "user", content: "hello" }];
    const counted = await proxy.post("/v1/messages/count_tokens", { model: "auto", messages });
    expect(((await counted.json()) as { input_tokens: number }).input_tokens).toBeGreaterThan(0);
  });
});

describe("where the plan has nothing else", () => {
  test.each([free, student])("$login: `connect` chooses `auto` for every tool", async (account) => {
    await using proxy = await withAccounts([account]);
    const { data } = await json<{ data: unknown }>(proxy, "/v1/models");
    const { claude, opus, haiku, gpt, small, all } = chooseModels(
      clientModels(z.array(clientModelSource()).parse(data)),
    )!;
    expect(new Set([claude, opus, haiku, gpt, small].map(({ id }) => id))).toEqual(new Set(["auto"]));
    expect(all.map(({ id }) => id)).toEqual(["auto", "auto-efficiency", "auto-intelligence"]);
  });

  test("beside named models `connect` chooses those, and offers `auto`", async () => {
    await using proxy = await withAccounts([pro]);
    const { data } = await json<{ data: unknown }>(proxy, "/v1/models");
    const { claude, gpt, small, all } = chooseModels(clientModels(z.array(clientModelSource()).parse(data)))!;
    expect([claude, gpt, small].map(({ id }) => id)).not.toContain("auto");
    expect(all.map(({ id }) => id)).toContain("auto");
  });

  test("the admin API, `dragoman models` and the pages say so", async () => {
    await using proxy = await withAccounts([student]);
    const { items } = await json<{ items: Parameters<typeof modelLines>[0] }>(proxy, "/api/admin/models");
    const accountsOf = (id: string) => items.find((item) => item.id === id)?.accounts;
    expect([accountsOf("auto"), accountsOf("gpt-5-mini")]).toEqual([["student-demo"], []]);
    const lines = modelLines(items);
    expect(lines.find((line) => line.startsWith("auto "))).toEndWith("ready, for each conversation");
    expect(lines.find((line) => line.startsWith("gpt-5-mini "))).toEndWith("the plan allows `auto` only");
    const accounts = await json<{ items: { auto_only: boolean }[] }>(proxy, "/api/admin/accounts");
    expect(accounts.items.map(({ auto_only }) => auto_only)).toEqual([true]);
    expect(await (await fetch(`${proxy.url}/admin/accounts`)).text()).toContain("Copilot Student");
    for (const page of ["models", "accounts"])
      expect(await (await fetch(`${proxy.url}/admin/${page}`)).text()).toContain("offers Auto only");
    expect(await (await fetch(`${proxy.url}/admin/connect`)).text()).toContain("auto");
  });

  test("a plan on which models can be named is none of those, whatever its list looks like", async () => {
    await using proxy = await withAccounts([{ ...student, plan: "business" }]);
    await fetch(`${proxy.url}/api/admin/accounts`);
    const accounts = await json<{ items: { auto_only: boolean }[] }>(proxy, "/api/admin/accounts");
    expect(accounts.items.map(({ auto_only }) => auto_only)).toEqual([false]);
  });

  test("the page of a request says how its model was chosen, and with which discount", async () => {
    await using proxy = await withAccounts([pro]);
    const answer = await proxy.post("/v1/chat/completions", {
      model: "auto",
      messages: [{ role: "user", content: "hello" }],
    });
    proxy.rows();
    const id = answer.headers.get("x-request-id");
    const page = await (await fetch(`${proxy.url}/admin/requests/${id}`)).text();
    expect(page).toContain("GitHub Copilot chose the model for this conversation");
    expect(page).toContain("code_gen 0.82");
    expect(page).toContain("a discount of 10%");
    const { item } = await json<{ item: { auto: object } }>(proxy, `/api/admin/requests/${id}`);
    expect(item.auto).toEqual({ by: "auto", why: "code_gen 0.82", discount: 0.1 });
  });
});
