/** Scenario: limits of members' keys, and keys that members make for themselves, on two servers of a team. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "../../src/lib/sql";
import { maxMemberKeys } from "../../src/people/keys/members";
import { formTokenIn, signedIn } from "../support/form-fields";
import { askTables, type TestMember, withTeamStores } from "../support/members";
import { describeWithMembers, startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

const dayMs = 86_400_000;

describeWithMembers("keys of members", (place) => {
  let team: Team;
  let servers: [TeamServer, TeamServer];
  beforeAll(async () => {
    team = await startTeam(place);
    servers = [await team.server(), await team.server()];
  });
  afterAll(() => team[Symbol.asyncDispose]());

  const ask = async (server: TeamServer, key: string, path: string, body?: object) => {
    const answer = await fetch(server.url + path, {
      method: body ? "POST" : "GET",
      body: body && JSON.stringify(body),
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    });
    return { status: answer.status, json: (await answer.json()) as Any };
  };
  // biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
  type Any = any;
  const chat = (server: TeamServer, key: string, model: string, more = {}) =>
    ask(server, key, "/v1/chat/completions", { model, messages: [{ role: "user", content: "Hello" }], ...more });
  const listed = async (server: TeamServer, key: string): Promise<string[]> =>
    (await ask(server, key, "/v1/models")).json.data.map(({ id }: Any) => id);
  async function untilOnBoth(holds: (server: TeamServer) => Promise<boolean>): Promise<void> {
    for (const server of servers) await until(() => holds(server), "it holds on every server");
  }
  async function join(name: string): Promise<TestMember> {
    const member = await team.addMember(name, `${name}-demo`);
    await untilOnBoth(async (server) => (await chat(server, member.key, "gpt-5-mini")).status === 200);
    return member;
  }

  test("a member's models bind each key on every server, wherever a model is named", async () => {
    const { key } = await join("anna");
    const [one, other] = servers;
    await one.admin("/config", {
      fallbacks: { "claude-sonnet-4.6": ["gpt-5-mini"] },
      modelAliases: { quick: "gpt-5-mini" },
    });
    const made = await ask(one, key, "/api/admin/keys", { name: "laptop", models: ["gpt-5*"] });
    expect([made.status, made.json.name]).toEqual([200, "anna/laptop"]);
    const laptop: string = made.json.key;
    await untilOnBoth(async (server) => (await chat(server, laptop, "quick")).status === 200);
    expect((await chat(other, laptop, "claude-sonnet-4.6")).json.error.code).toBe("model_not_allowed");

    await withTeamStores(team, ({ members }) => members.setLimits("ANNA", { models: ["claude-*"] }));
    await untilOnBoth(async (server) => (await chat(server, key, "gpt-5-mini")).status === 403);
    for (const server of servers) {
      expect((await listed(server, key)).filter((model) => !model.startsWith("claude-"))).toEqual([]);
      // The key's own models and the member's have nothing in common any more.
      expect(await listed(server, laptop)).toEqual([]);
      for (const model of ["gpt-5-mini", "quick", "claude-sonnet-4.6"])
        expect((await chat(server, laptop, model)).status).toBe(403);
      expect((await chat(server, key, "quick")).status).toBe(403);
      expect((await ask(server, key, "/v1/models/gpt-5-mini")).status).toBe(403);
      expect(
        (
          await ask(server, key, "/v1beta/models/gpt-5-mini:generateContent", {
            contents: [{ role: "user", parts: [{ text: "Hi" }] }],
          })
        ).status,
      ).toBe(403);
      const count = { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] };
      expect((await ask(server, key, "/v1/messages/count_tokens", count)).status).toBe(403);
      // Who is limited does not get the token, which knows no limits.
      expect((await ask(server, key, "/token")).status).toBe(403);
      // A fallback does not lead out of the limits.
      const fallen = await chat(server, key, "claude-sonnet-4.6", {
        messages: [{ role: "user", content: "[demo: 500]" }],
      });
      expect(fallen.status).toBeGreaterThanOrEqual(400);
    }
    const refused = await ask(one, key, "/api/admin/keys", { name: "wide", models: ["claude-*", "*"] });
    expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining("may not use `*`")]);
    expect((await ask(one, key, "/api/admin/keys", { name: "haiku", models: ["claude-haiku-*"] })).status).toBe(200);
    const { limits, items } = (await ask(one, key, "/api/admin/keys")).json;
    expect(limits).toEqual({ models: ["claude-*"], key_days: null, max_keys: maxMemberKeys });
    expect(items.map(({ name, models }: Any) => [name, models])).toContainEqual(["anna/haiku", ["claude-haiku-*"]]);

    await withTeamStores(team, ({ members }) => members.setLimits("anna", { models: null }));
    await untilOnBoth(async (server) => (await chat(server, key, "gpt-5-mini")).status === 200);
  });

  test("a member's longest life ends keys that exist, and bounds new ones", async () => {
    const { id, key } = await join("ben");
    const set = (key_days: number | null) =>
      withTeamStores(team, ({ members }) => members.setLimits("ben", { key_days }));
    await set(30);
    await untilOnBoth(async (server) => (await ask(server, key, "/api/admin/keys")).json.limits.key_days === 30);
    const [item] = (await ask(servers[1], key, "/api/admin/keys")).json.items;
    expect(item.expires_at_ms - Date.now()).toBeWithin(30 * dayMs - 60_000, 30 * dayMs);
    const day = (days: number) => new Date(Date.now() + days * dayMs).toISOString();
    const make = (name: string, expires_at?: string) => ask(servers[0], key, "/api/admin/keys", { name, expires_at });
    expect((await make("late", day(31))).json.error.message).toContain("Your keys last 30 days at most");
    expect((await make("gone", day(-1))).json.error.message).toContain("must not be in the past");
    expect((await make("short", day(2))).status).toBe(200);
    // As if the key had been made two months ago.
    await askTables(
      team,
      () => sql`UPDATE dragoman.keys SET created_at_ms = created_at_ms - CAST(${60 * dayMs} AS bigint)
        WHERE member = ${id} AND name = 'key-1'`,
    );
    await untilOnBoth(async (server) => (await chat(server, key, "gpt-5-mini")).status === 401);
    const { json } = await chat(servers[0], key, "gpt-5-mini");
    expect([json.error.code, json.error.message]).toEqual(["expired_api_key", expect.stringContaining("page Keys")]);
    await set(null);
    await untilOnBoth(async (server) => (await chat(server, key, "gpt-5-mini")).status === 200);
  });

  test("a key with limits of its own makes no key that may do more, on pages and by the API", async () => {
    const { key } = await join("gil");
    const [one, other] = servers;
    const until = new Date(Date.now() + dayMs).toISOString();
    const made = await ask(one, key, "/api/admin/keys", { name: "job", models: ["gpt-5*"], expires_at: until });
    const job: string = made.json.key;
    await untilOnBoth(async (server) => (await chat(server, job, "gpt-5-mini")).status === 200);
    const make = (body: object, by = job) => ask(other, by, "/api/admin/keys", body);
    for (const [body, why] of [
      [{ name: "wide", models: ["*"] }, "may not use `*`"],
      [{ name: "other", models: ["gpt-5-mini", "claude-*"] }, "may not use `claude-*`"],
      [{ name: "long", expires_at: new Date(Date.now() + 2 * dayMs).toISOString() }, "expires on"],
    ] as const) {
      const refused = await make(body);
      expect([refused.status, refused.json.error?.message]).toEqual([400, expect.stringContaining(why)]);
    }
    const names = new Map((await keysOf(key)).map((item: Any) => [item.name, item]));
    expect([...names.keys()].sort()).toEqual(["gil/job", "gil/key-1"]);

    // Without a wish, it gets the limits of the key that made it; within them, its own.
    const child: string = (await make({ name: "child" })).json.key;
    expect((await make({ name: "narrow", models: ["gpt-5-mini"] })).status).toBe(200);
    const after = new Map<string, Any>((await keysOf(key)).map((item: Any) => [item.name, item]));
    expect(after.get("gil/child")).toMatchObject({ models: ["gpt-5*"], expires_at_ms: Date.parse(until) });
    expect(after.get("gil/narrow")).toMatchObject({ models: ["gpt-5-mini"], expires_at_ms: Date.parse(until) });
    await untilOnBoth(async (server) => (await chat(server, child, "gpt-5-mini")).status === 200);
    expect((await chat(one, child, "claude-sonnet-4.6")).json.error.code).toBe("model_not_allowed");
    // The member's other keys are as free as before.
    expect((await make({ name: "free" }, key)).status).toBe(200);

    const { cookie } = await signedIn(other.url, job);
    const page = await (await fetch(`${other.url}/admin/keys`, { headers: { cookie } })).text();
    const form_token = formTokenIn(page);
    const submitted = await fetch(`${other.url}/admin/keys`, {
      method: "POST",
      headers: { cookie },
      body: new URLSearchParams({ form_token, name: "paged", models: "claude-*" }),
    });
    expect([submitted.status, await submitted.text()]).toEqual([400, expect.stringContaining("claude-*")]);

    // A key that was revoked a moment ago, of which this server may not know, makes none.
    const revoked = await withTeamStores(team, async ({ members }) => {
      await members.hearAll();
      const id = members.named("gil")!.id;
      await members.revokeKey(id, "job");
      const by = new Bun.CryptoHasher("sha256").update(job).digest();
      return members.createKey(id, { name: "late", models: null, expiresAt: null, by }).catch(({ kind }) => kind);
    });
    expect(revoked).toBe("authentication");
    async function keysOf(by: string): Promise<Any[]> {
      return (await ask(other, by, "/api/admin/keys")).json.items;
    }
  });

  test("two servers make a key of one name at once: one does, and the other says why not", async () => {
    const { key } = await join("cleo");
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(
        [`laptop ${round}`, `LAPTOP ${round}`].map((name, at) => ask(servers[at]!, key, "/api/admin/keys", { name })),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
      const { error } = answers.find(({ status }) => status === 409)!.json;
      expect([error.type, error.message]).toEqual([
        "key_exists",
        expect.stringContaining("already. Choose another name"),
      ]);
    }
    expect((await ask(servers[0], key, "/api/admin/keys", { name: "key-7" })).json.error.message).toContain(
      "invitations",
    );
    // A revoked name is free again, and the key is refused everywhere.
    const { json } = await ask(servers[0], key, "/api/admin/keys", { name: "phone" });
    await untilOnBoth(async (server) => (await chat(server, json.key, "gpt-5-mini")).status === 200);
    expect((await ask(servers[1], key, "/api/admin/keys/phone/revoke", {})).status).toBe(200);
    await untilOnBoth(async (server) => (await chat(server, json.key, "gpt-5-mini")).status === 401);
    expect((await ask(servers[0], key, "/api/admin/keys", { name: "phone" })).status).toBe(200);
  });

  test("a member has so many keys at most, from all servers together; the owner revokes one by its whole name", async () => {
    const { key } = await join("dora");
    const wanted = Array.from({ length: maxMemberKeys + 4 }, (_, at) => `box-${at}`);
    const answers = await Promise.all(
      wanted.map((name, at) => ask(servers[at % 2]!, key, "/api/admin/keys", { name })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(maxMemberKeys - 1);
    expect(answers.find(({ status }) => status !== 200)!.json.error.message).toContain("Revoke one");
    const link = await withTeamStores(team, ({ members }) => members.invite("dora"));
    const full = await fetch(`${servers[0].url}/admin/join/${link.code}/key`, { method: "POST" });
    expect([full.status, await full.text()]).toEqual([409, expect.stringContaining("20 keys already")]);
    const { name, key: made } = answers.find(({ status }) => status === 200)!.json;
    expect(await servers[1].admin(`/keys/${encodeURIComponent(name.toUpperCase())}/revoke`, {})).toEqual({
      revoked: true,
    });
    await untilOnBoth(async (server) => (await chat(server, made, "gpt-5-mini")).status === 401);
    // The invitation was not used up by the failure.
    const accepted = await fetch(`${servers[0].url}/admin/join/${link.code}/key`, { method: "POST" });
    expect([accepted.status, await accepted.text()]).toEqual([200, expect.stringContaining("drg_")]);
  });

  test("keys that are made and revoked again and again end for the day, because their rows stay", async () => {
    const { id, key } = await join("elsa");
    const at = Date.now();
    const old = Array.from({ length: 100 - 1 }, (_, i) => sql`(${`old ${i}`}, ${id}, 'old', 'old', ${at}, ${at})`);
    await askTables(
      team,
      () => sql`INSERT INTO dragoman.keys (sha256, member, name, folded, created_at_ms, revoked_at_ms)
        VALUES ${old.reduce((one, other) => sql`${one}, ${other}`)}`,
    );
    const refused = await ask(servers[0], key, "/api/admin/keys", { name: "one more" });
    expect([refused.status, refused.json.error.message]).toEqual([409, expect.stringContaining("Try again tomorrow")]);
    await askTables(
      team,
      () => sql`UPDATE dragoman.keys SET created_at_ms = created_at_ms - CAST(${dayMs} AS bigint) WHERE member = ${id}`,
    );
    expect((await ask(servers[1], key, "/api/admin/keys", { name: "one more" })).status).toBe(200);
  });
});
