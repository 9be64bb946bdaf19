/** Scenario: a member who was removed and another of the same name, and names that look alike, on two servers. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { signedIn } from "../support/form-fields";
import type { TestMember } from "../support/members";
import { describeWithMembers, startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

describeWithMembers("members of the same name", (place) => {
  let team: Team;
  let servers: [TeamServer, TeamServer];
  beforeAll(async () => {
    team = await startTeam(place);
    servers = [await team.server(), await team.server()];
  });
  afterAll(() => team[Symbol.asyncDispose]());

  // biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
  type Any = any;
  const api = async (server: TeamServer, key: string, path: string, body?: object) => {
    const answer = await fetch(`${server.url}/api/admin${path}`, {
      method: body ? "POST" : "GET",
      body: body && JSON.stringify(body),
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    });
    return { status: answer.status, json: (await answer.json()) as Any };
  };
  const ask = (server: TeamServer, key: string, content: string, more = {}) =>
    server.post(
      "/v1/chat/completions",
      { model: "gpt-5-mini", messages: [{ role: "user", content }], stream: true, ...more },
      { "x-api-key": key, "x-session-id": "s-1" },
    );
  const statusOf = async (server: TeamServer, key: string, content = "Hello") => {
    const answer = await ask(server, key, content);
    await answer.text();
    return answer.status;
  };
  const add = (name: string, ...logins: string[]) => team.addMember(name, ...logins);
  const signIn = async (server: TeamServer, key: string) => {
    const { cookie } = await signedIn(server.url, key);
    return cookie;
  };

  /** From this machine, everybody is the owner. */
  const remote = { "x-forwarded-for": "192.0.2.7" };

  test("the new one reaches nothing of the former, whose running request goes on to its end", async () => {
    const [here, there] = servers;
    await here.admin("/budgets", { name: "each", unit: "requests", limit: 1000, per: "month", each: "member" });
    const former = await add("anna", "anna-hub");
    for (const server of servers)
      await until(async () => (await statusOf(server, former.key)) === 200, "the server knows the former key");
    expect((await api(here, former.key, "/keys", { name: "laptop" })).status).toBe(200);
    const used = async (server: TeamServer, key: string) => (await api(server, key, "/budgets")).json.items[0].used;
    await until(async () => (await used(here, former.key)) > 0, "the former's use is counted");
    const { json } = await api(here, former.key, "/accounts/sign-ins", {});
    const cookie = await signIn(here, former.key);
    const running = await ask(there, former.key, "[demo: silence 25] Hello");
    const id = running.headers.get("x-request-id")!;
    await here.post("/api/admin/members/anna/remove", {});

    const next = await add("Anna", "anna-hub");
    for (const server of servers)
      await until(
        async () => (await api(server, next.key, "/accounts")).json.items?.length === 1,
        "the next one has an account",
      );
    for (const server of servers) {
      await until(async () => (await statusOf(server, former.key)) === 401, "the former's key is refused");
      expect((await fetch(`${server.url}/admin`, { headers: { cookie, ...remote } })).status).not.toBe(200);
      const seen = async (path: string) => (await api(server, next.key, path)).json;
      expect((await seen("/requests")).items).toEqual([]);
      expect((await seen("/totals")).request_count).toBe(0);
      expect((await seen("/keys")).items.map(({ name }: Any) => name)).toEqual(["Anna/key-1"]);
      expect(JSON.stringify(await seen("/accounts"))).not.toContain(json.id);
      expect((await api(server, next.key, `/accounts/sign-ins/${json.id}`)).status).toBe(404);
      expect((await api(server, next.key, `/requests/${id}`)).status).toBe(404);
      expect((await api(server, next.key, `/live/${id}/cancel`, {})).status).toBe(404);
      const exported = await fetch(`${server.url}/api/admin/export`, { headers: { "x-admin-token": next.key } });
      expect((await exported.text()).trim().split("\n").length).toBe(1);
      expect(await used(server, next.key)).toBe(0);
    }
    expect((await there.post(`/api/admin/live/${id}/cancel`, {})).status).toBe(200);
    expect(await running.text()).toContain("cancelled");
    // A key of the same name as a revoked one begins anew.
    expect((await api(there, next.key, "/keys", { name: "laptop" })).status).toBe(200);
  });

  test("names that differ in the case of letters are one person's", async () => {
    const [one, other] = [await add("Änne", "aenne-hub"), await add("änne", "aenne-two")];
    expect(other.id).toBe(one.id);
  });

  test("a name like a word of ours, a path or a pattern is a name, and nothing else", async () => {
    const [here] = servers;
    const names = ["owner", "null", "constructor", "everybody", "member", "x..", "a.b@c", "0"];
    const members: TestMember[] = [];
    for (const [at, name] of names.entries()) members.push(await add(name, `odd-${at}`));
    for (const bad of ["", "..", "../x", "a/b", "a%2fb", "*", "x".repeat(64), "a\u0301", "\u202ex", "a\u200bb"])
      expect([bad, (await here.post("/api/admin/members", { name: bad })).status]).toEqual([bad, 400]);
    // White space around a name is not part of it: who is invited again is nobody new.
    for (const spaced of [" 0", "0\n"])
      expect(await here.admin("/members", { name: spaced })).toMatchObject({ name: "0", is_known: true });
    for (const { name, key } of members) {
      await until(async () => (await statusOf(here, key)) === 200, "the server knows the key");
      await until(async () => (await api(here, key, "/requests")).json.items?.length === 1, "the row is written");
      const [row] = (await api(here, key, "/requests")).json.items;
      expect([name, row.key_name]).toEqual([name, `${name}/key-1`]);
      expect((await api(here, key, "/config")).status).toBe(403);
      expect((await here.admin(`/members/${encodeURIComponent(name)}`)).item.name).toBe(name);
    }
  });
});
