/** Scenario: what src/deploy/TEAMS.md tells an operator who has lost the seal key, done as it stands there. */
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { textOfDocument } from "../../src/deploy/documents/documents";
import { addMember, saveAccounts, withTeamStores } from "../support/members";
import { describeWithDatabases } from "../support/shared-postgres";
import { individuals, startTeam, type TeamServer } from "../support/teams";
import { until } from "../support/until";

describeWithDatabases("a lost seal key", (postgres) => {
  test("a lost seal key costs config and tokens; members, keys, limits and the history stay", async () => {
    const accounts = individuals("anna-demo");
    await using team = await startTeam(postgres, { accounts: individuals("octo-demo") });
    const anna = await withTeamStores(team, async (stores) => {
      const added = await addMember(stores, team, "anna", accounts);
      await stores.members.setLimits("anna", { models: ["gpt-*"], key_days: 90 });
      return added;
    });
    const headers = { authorization: `Bearer ${anna.key}` };
    const chat = (server: TeamServer) =>
      server.post(
        "/v1/chat/completions",
        { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] },
        headers,
      );
    const before = await team.server();
    const limits = async (server: TeamServer) => (await server.admin("/config")).config.maxPromptTokens;
    await before.admin("/config", { maxPromptTokens: { "gpt-5": 1_000 } });
    expect(await limits(before)).toEqual({ "gpt-5": 1_000 });
    await until(async () => (await chat(before)).status === 200, "the request is served");
    await until(async () => (await before.admin("/requests")).items.length > 0, "its row is written");
    await before[Symbol.asyncDispose]();

    team.env.DRAGOMAN_SEAL_KEY = randomBytes(32).toString("base64");
    await expect(withTeamStores(team, async () => {})).rejects.toThrow("which is not here");
    const [, statements] = /```sql\n([\s\S]*?)```/.exec(textOfDocument("src/deploy/TEAMS.md"))!;
    await postgres.administer(statements!, team.env.DRAGOMAN_DATABASE_URL);

    const after = await team.server();
    expect(await after.admin("/accounts")).toEqual({ items: [] });
    expect(await limits(after)).toEqual({});
    expect((await after.admin("/requests")).items.length).toBeGreaterThan(0);
    expect((await after.admin("/members")).items).toEqual([
      expect.objectContaining({ name: "anna", keys: 1, models: ["gpt-*"], key_days: 90, accounts: [] }),
    ]);
    const own = await fetch(`${after.url}/api/admin/accounts`, { headers });
    expect([own.status, await own.json()]).toEqual([200, { items: [] }]);
    await withTeamStores(team, (stores) => saveAccounts(stores, accounts, anna.id));
    await until(async () => (await chat(after)).status === 200, "the request is served again");
  });
});
