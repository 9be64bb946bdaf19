/** Scenario: `neverOverage`: paid overage is not used even if GitHub permits it. */
import { expect, test } from "bun:test";
import { demoAccounts } from "../../../src/demo/accounts";
import { startProxy } from "../../support/proxy";

const premium = { model: "claude-opus-4.6", max_tokens: 50, messages: [{ role: "user", content: "Hi" }] };
const free = { ...premium, model: "gpt-5-mini" };

/** An account whose included quota is used up, with paid overage. */
function inOverage() {
  const [account] = demoAccounts();
  account!.quota.premium = { ...account!.quota.premium, remaining: 1, overagePermitted: true };
  return account!;
}

test("an account in overage serves free models only, until the owner permits overage again", async () => {
  await using proxy = await startProxy({ demo: { accounts: [inOverage()] }, config: { neverOverage: true } });
  const statusOf = async (body: object) => {
    const response = await proxy.post("/v1/messages", body);
    return { status: response.status, text: await response.text() };
  };
  // The last of the included quota.
  expect((await statusOf(premium)).status).toBe(200);
  const sent = proxy.demo.journal.length;
  const refused = await statusOf(premium);
  expect([refused.status, refused.text]).toEqual([429, expect.stringContaining("neverOverage")]);
  expect(proxy.demo.journal.length).toBe(sent);
  expect((await statusOf(free)).status).toBe(200);
  const [account] = ((await (await fetch(`${proxy.url}/api/admin/accounts`)).json()) as { items: { state: string }[] })
    .items;
  expect(account!.state).toBe("exhausted");

  await proxy.app.config.change({ neverOverage: false });
  expect((await statusOf(premium)).status).toBe(200);
});

test("another account takes over where the first would be charged for overage", async () => {
  const [, second] = demoAccounts();
  await using proxy = await startProxy({ demo: { accounts: [inOverage(), second!] }, config: { neverOverage: true } });
  for (let at = 0; at < 3; at += 1) expect((await proxy.post("/v1/messages", premium)).status).toBe(200);
  expect(proxy.rows().map(({ account_id }) => account_id)).toEqual([second!.login, second!.login, "octo-demo"]);
});

test("a quota that is not known yet is asked for before the first premium request", async () => {
  const account = inOverage();
  account.quota.premium.remaining = 0;
  await using proxy = await startProxy({ demo: { accounts: [account] }, config: { neverOverage: true } });
  const response = await proxy.post("/v1/messages", premium);
  expect([response.status, await response.text()]).toEqual([429, expect.stringContaining("neverOverage")]);
  expect(proxy.demo.journal.filter(({ path }) => path === "/v1/messages")).toEqual([]);
});
