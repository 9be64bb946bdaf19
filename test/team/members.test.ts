/** Scenario: members of a team: each one's key spends only what this member signed in, whatever fails. */
import { expect, test } from "bun:test";
import type { SeenRequest } from "../../src/demo/demo";
import { clientEndpoints } from "../../src/routes/clients";
import { addMember, type TestMember, withTeamStores } from "../support/members";
import fc from "../support/random";
import { describeWithMembers, individuals, startTeam, type TeamServer } from "../support/teams";
import { until } from "../support/until";

const say = (content: string) => [{ role: "user", content }];
const google = (text: string) => ({ contents: [{ role: "user", parts: [{ text }] }] });
const model = "gpt-5-mini";
const gemini = "/v1beta/models/gpt-5-mini";

/** One way to ask. */
interface Call {
  path: string;
  body?: object;
  /** Messages of a WebSocket in place of a body: each is sent when the one before is answered. */
  messages?: object[];
}

const responses = (text: string) => ({ model, input: text });
const messages = (text: string) => ({ model: "claude-sonnet-4.6", max_tokens: 64, messages: say(text) });
const searchFor = (text: string) => `Please search the web for ${text}`;

/** The ways in which each client path is asked with a text; none for a path that uses no account. */
const routes: Record<string, ((text: string) => Call)[]> = {
  "POST /v1/chat/completions": [
    (text) => ({ path: "/v1/chat/completions", body: { model, messages: say(text) } }),
    (text) => ({ path: "/v1/chat/completions", body: { model: "gpt-5.3-codex", messages: say(text), stream: true } }),
  ],
  "POST /v1/responses": [
    (text) => ({ path: "/v1/responses", body: { ...responses(text), stream: true } }),
    (text) => ({ path: "/v1/responses", body: responses(text) }),
    (text) => ({
      path: "/v1/responses",
      body: { ...responses(searchFor(text)), model: "claude-sonnet-4.6", tools: [{ type: "web_search" }] },
    }),
  ],
  "GET /v1/responses": [
    (text) => ({
      path: "/v1/responses",
      messages: [responses(text), { ...responses(`Again ${text}`), model: "claude-sonnet-4.6" }],
    }),
  ],
  "POST /v1/responses/compact": [(text) => ({ path: "/v1/responses/compact", body: { model, input: say(text) } })],
  "POST /v1/responses/input_tokens": [
    (text) => ({ path: "/v1/responses/input_tokens", body: { model, input: say(text) } }),
  ],
  "POST /v1/alpha/search": [
    (text) => ({ path: "/v1/alpha/search", body: { id: "s", model, commands: { search_query: [{ q: text }] } } }),
  ],
  "POST /v1/messages": [
    (text) => ({ path: "/v1/messages", body: { ...messages(text), stream: true } }),
    (text) => ({
      path: "/v1/messages",
      body: { ...messages(searchFor(text)), tools: [{ type: "web_search_20250305", name: "web_search" }] },
    }),
  ],
  "POST /v1/messages/count_tokens": [
    (text) => ({ path: "/v1/messages/count_tokens", body: { model: "claude-sonnet-4.6", messages: say(text) } }),
  ],
  "POST /v1/embeddings": [
    (text) => ({ path: "/v1/embeddings", body: { model: "text-embedding-3-small", input: text } }),
  ],
  "GET /v1/models": [() => ({ path: "/v1/models" })],
  "GET /v1/models/:id": [() => ({ path: `/v1/models/${model}` })],
  "POST /:provider/v1/messages": [
    (text) => ({ path: "/deep/v1/messages", body: { model: "x", max_tokens: 9, messages: say(text) } }),
  ],
  "POST /:provider/v1/messages/count_tokens": [
    (text) => ({ path: "/deep/v1/messages/count_tokens", body: { model: "x", messages: say(text) } }),
  ],
  "GET /:provider/v1/models": [() => ({ path: "/deep/v1/models" })],
  "POST /v1beta/models/:model:generateContent": [(text) => ({ path: `${gemini}:generateContent`, body: google(text) })],
  "POST /v1beta/models/:model:streamGenerateContent": [
    (text) => ({ path: `${gemini}:streamGenerateContent?alt=sse`, body: google(text) }),
  ],
  "POST /v1beta/models/:model:countTokens": [(text) => ({ path: `${gemini}:countTokens`, body: google(text) })],
  "GET /v1beta/models": [() => ({ path: "/v1beta/models" })],
  "GET /v1beta/models/:model": [() => ({ path: gemini })],
  "GET /usage": [() => ({ path: "/usage" })],
  "GET /usage/line": [() => ({ path: "/usage/line" })],
  "GET /usage/:accountIndex": [() => ({ path: "/usage/1" })],
  "GET /token": [() => ({ path: "/token" })],
  "POST /v1/logs": [],
  "POST /v1/metrics": [],
  "POST /v1/traces": [],
  "GET /managed/settings": [],
  "GET /api/oauth/usage": [],
  "GET /.well-known/oauth-authorization-server": [],
  "POST /oauth/device_authorization": [],
  "POST /oauth/token": [],
  "POST /oauth/revoke": [],
  "GET /": [],
  "GET /health": [],
  "GET /health/live": [],
  "GET /health/ready": [],
  "GET /metrics": [],
};

/** Paths of the upstream that are sent a text of a client. */
const withTexts = new Set([
  "/chat/completions",
  "/responses",
  "/v1/messages",
  "/v1/messages/count_tokens",
  "/embeddings",
]);

/** Each on the first account of the member, or on whichever is asked. */
const failures = [
  ...["", "[demo: 401-expired once]", "[demo: 401-expired]", "[demo: 500 once]", "[demo: 502]", "[demo: 421 once]"],
  ...["[demo: 429 1 @FIRST]", "[demo: 429-model 1 @FIRST]", "[demo: 402 @FIRST]", "[demo: 403 @FIRST]"],
  ...[
    "[demo: 401-pat @FIRST]",
    "[demo: reset once]",
    "[demo: first-error @FIRST]",
    "[demo: empty once]",
    "[demo: cut]",
  ],
  ...["[demo: 429-overloaded @FIRST]", "[demo: 404 once]", "[demo: 400-encrypted once]", "[demo: 529 once]"],
];

interface Person extends Pick<TestMember, "name" | "key" | "logins"> {
  /** Null for the owner. */
  id: string | null;
}

describeWithMembers("members of a team", (place) => {
  /** What comes back, and whether it was served. */
  async function converse(server: TeamServer, { key }: { key: string }, { path, messages = [] }: Call) {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}${path}`, {
      headers: { authorization: `Bearer ${key}`, "x-session-id": "shared" },
    });
    const waiting = [...messages];
    const answers: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const next = () => {
      const message = waiting.shift();
      if (message) socket.send(JSON.stringify({ type: "response.create", ...message }));
      else resolve();
    };
    for (const event of ["close", "error"] as const) socket.addEventListener(event, () => resolve());
    socket.onopen = next;
    socket.onmessage = ({ data }) => {
      answers.push(String(data));
      if (/"type":"(?:response\.(?:completed|incomplete|failed)|error)"/.test(answers.at(-1)!)) next();
    };
    await promise;
    socket.close();
    return { ok: answers.some((text) => text.includes('"response.completed"')), text: answers.join("\n") };
  }

  const ask = (server: TeamServer, { key }: { key: string }, call: Call) =>
    fetch(server.url + call.path, {
      method: call.body ? "POST" : "GET",
      body: call.body && JSON.stringify(call.body),
      // All clients name the same session, so that affinity would lead to whoever used it last.
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "x-session-id": "shared" },
    });

  async function answerOf(server: TeamServer, person: { key: string }, call: Call) {
    const answer = await ask(server, person, call);
    return { ok: answer.ok, text: await answer.text().catch(() => "") };
  }

  test("every client path is part of the property below", () => {
    const paths = clientEndpoints().map(({ method, path }) => `${method} ${path}`);
    expect(Object.keys(routes).sort()).toEqual(paths.sort());
  });

  test("whatever is asked and whatever fails, no request leaves with the token of somebody else", async () => {
    await using team = await startTeam(place, { accounts: individuals("octo-demo") });
    const server = await team.server();
    const { key } = await server.admin("/keys", { name: "owner" });
    await server.admin("/config", {
      accountAffinity: true,
      providers: { deep: { type: "anthropic", baseUrl: `${team.demo.url}/deep`, apiKey: "sk-of-the-owner" } },
    });
    const reply = { type: "message", role: "assistant", content: [{ type: "text", text: "Deep." }] };
    const used = { stop_reason: "end_turn", usage: { input_tokens: 1, output_tokens: 1 } };
    const always = Number.POSITIVE_INFINITY;
    team.demo.intercept("/deep/v1/messages", () => Response.json({ id: "m", model: "x", ...reply, ...used }), always);
    team.demo.intercept("/deep/v1/models", () => Response.json({ data: [{ type: "model", id: "x" }] }), always);
    const owner: Person = { id: null, name: "owner", key, logins: ["octo-demo"] };
    const served = new Map<string, number>();
    /** What was answered at least once. */
    const asked = new Set<(text: string) => Call>();
    let failedOver = 0;
    let runs = 0;

    await withTeamStores(team, async (stores) => {
      const callArbitrary = fc.record({
        who: fc.nat(3),
        route: fc.constantFrom(...Object.values(routes).flat()),
        failure: fc.constantFrom(...failures),
      });
      const property = async (batches: { who: number; route: (text: string) => Call; failure: string }[][]) => {
        runs += 1;
        const [anna, ben, cleo] = [
          await addMember(stores, team, `anna ${runs}`, individuals(`anna-${runs}a`, `anna-${runs}b`)),
          await addMember(stores, team, `ben ${runs}`, individuals(`ben-${runs}x`)),
          await addMember(stores, team, `cleo ${runs}`, []),
        ];
        const people: Person[] = [owner, anna, ben, cleo];
        await untilKnown(server, ben);
        const others = (who: Person) => people.filter((each) => each !== who).flatMap(({ logins }) => logins);
        const since = team.demo.journal.length;
        const marks = new Map<string, Person>();
        const tokens: [Person, string][] = [];
        for (const batch of batches)
          await Promise.all(
            batch.map(async ({ who, route, failure }) => {
              const person = people[who]!;
              const mark = `mark-${marks.size}-${runs}-end`;
              marks.set(mark, person);
              const text = `${failure.replace("FIRST", person.logins[0] ?? "nobody")} ${mark}`;
              const call = route(text);
              const answer = call.messages
                ? await converse(server, person, call)
                : await answerOf(server, person, call);
              const answered = answer.text;
              for (const login of others(person)) expect(answered).not.toContain(login);
              if (call.path === "/token" && answer.ok) tokens.push([person, JSON.parse(answered).token]);
              if (person === cleo && (call.body ?? call.messages) && !/count|input_tokens/i.test(call.path))
                expect(answer.ok).toBe(false);
              if (answer.ok) asked.add(route);
            }),
          );
        for (const [person, token] of tokens) {
          await fetch(`${team.demo.url}/models`, { headers: { authorization: `Bearer ${token}` } });
          const users = team.demo.journal.filter(({ headers }) => headers.authorization === `Bearer ${token}`);
          expect(person.logins).toContain(users.at(-1)?.account ?? "nobody");
        }
        const sent = team.demo.journal.slice(since);
        for (const [mark, { id, logins }] of marks) {
          const own = sent.filter(({ bytes }) => Buffer.from(bytes).includes(mark));
          for (const entry of own) {
            if (id === null && entry.path.startsWith("/deep")) continue;
            expect(logins).toContain(entry.account ?? `${entry.path} without an account`);
            served.set(logins[0]!.split("-")[0]!, 1 + (served.get(logins[0]!.split("-")[0]!) ?? 0));
          }
          if (new Set(own.map(({ account }) => account)).size > 1) failedOver += 1;
        }
        // Nothing leaves without being on behalf of somebody: also what the proxy asks by itself, such as a search.
        for (const { bytes, account, path } of sent) {
          if (!withTexts.has(path) || account === undefined) continue;
          const found = [...marks].filter(([mark]) => Buffer.from(bytes).includes(mark));
          expect([path, found.map(([, { logins }]) => logins.includes(account))]).toEqual([path, [true]]);
        }
        expect(sent.filter(({ headers }) => isOwnersKey(headers)).every((entry) => isOwners(entry, marks))).toBe(true);
        for (const name of [anna, ben, cleo]) await stores.members.remove(name.name);
      };
      const batchesArbitrary = fc.array(fc.array(callArbitrary, { minLength: 1, maxLength: 4 }), { maxLength: 8 });
      // A premium model uses the accounts in their order, so the first one is asked first.
      const route = routes["POST /v1/messages"]![0]!;
      const everything = Object.values(routes).flatMap((ways) =>
        ways.map((way) => [0, 1, 2].map((who) => ({ who, route: way, failure: "" }))),
      );
      const certain = [0, 1, 2].map((who) => ({ who, route, failure: "[demo: 429 1 @FIRST]" }));
      await fc.assert(fc.asyncProperty(batchesArbitrary, property), {
        numRuns: 10,
        endOnFailure: true,
        examples: [[[certain.map((call) => ({ ...call, failure: "" })), certain, ...everything]]],
      });
    });
    // The property was about something: everybody with an account was served, and accounts were replaced.
    expect([...served.keys()].sort()).toEqual(["anna", "ben", "octo"]);
    expect(failedOver).toBeGreaterThan(0);
    const unanswered = Object.entries(routes).flatMap(([name, ways]) =>
      ways.every((way) => asked.has(way)) ? [] : [name],
    );
    expect(unanswered).toEqual([]);
  }, 90_000);

  const isOwnersKey = (headers: Record<string, string>) => JSON.stringify(headers).includes("sk-of-the-owner");
  const isOwners = ({ bytes }: SeenRequest, marks: Map<string, Person>) =>
    [...marks].every(([mark, { id }]) => id === null || !Buffer.from(bytes).includes(mark));

  test("rows carry the member; a removed member's key is refused everywhere", async () => {
    await using team = await startTeam(place);
    const [one, other] = [await team.server(), await team.server()];
    await withTeamStores(team, async (stores) => {
      const anna = await addMember(stores, team, "Anna", individuals("anna-demo"));
      const call = routes["POST /v1/chat/completions"]![0]!("Hello");
      for (const server of [one, other]) {
        await untilKnown(server, anna);
        expect((await ask(server, anna, call)).status).toBe(200);
      }
      // Once there is a member, everybody needs a key: here the owner has none.
      expect((await ask(one, { key: "wrong-key" }, call)).status).toBe(401);
      expect((await fetch(`${one.url}/v1/models`)).status).toBe(401);
      let rows: { member: string; key_name: string; account_id: string }[] = [];
      await until(async () => {
        rows = (await one.admin("/requests")).items;
        return rows.length === 2;
      }, "both rows are written");
      expect(rows.map(({ member, key_name, account_id }) => [member, key_name, account_id])).toEqual(
        Array(2).fill([anna.id, "Anna/key-1", "anna-demo"]),
      );
      await stores.members.remove("anna");
      for (const server of [one, other])
        await until(
          async () => (await ask(server, anna, call)).status === 401,
          "the key of the removed member is refused",
        );
      // And the last member's removal opens the server to nobody.
      expect((await fetch(`${other.url}/v1/models`)).status).toBe(401);
      // Accounts are read apart from keys, and may follow them.
      const states = async () => ((await (await fetch(`${one.url}/health`)).json()) as { accounts: string[] }).accounts;
      await until(async () => (await states()).join() === "ready", "the only account is the owner's");
    });
  });

  test("GitHub's suspension of a member's account stops this member, and nobody else", async () => {
    await using team = await startTeam(place);
    const server = await team.server();
    await withTeamStores(team, async (stores) => {
      const anna = await addMember(stores, team, "anna", individuals("anna-one", "anna-two"));
      const ben = await addMember(stores, team, "ben", individuals("ben-demo"));
      const call = routes["POST /v1/chat/completions"]![0]!("Hello");
      for (const each of [anna, ben]) await untilKnown(server, each);
      const words = { message: "Sorry. Your account was suspended" };
      team.demo.intercept("/chat/completions", () => Response.json(words, { status: 403 }));
      expect((await ask(server, anna, call)).status).toBe(403);
      const calls = team.demo.journal.length;
      expect(await (await ask(server, anna, call)).text()).toContain("account_suspended");
      expect(team.demo.journal).toHaveLength(calls);
      expect((await ask(server, ben, call)).status).toBe(200);
    });
  });

  /** The server has read the member's key and accounts. */
  async function untilKnown(server: TeamServer, person: TestMember): Promise<void> {
    await until(async () => {
      const answer = await ask(server, person, { path: "/usage" });
      const { accounts = [] } = (await answer.json()) as { accounts?: object[] };
      // Until it knows of members, it shows the owner's to everybody here.
      const isOwn = person.logins.every((login) => JSON.stringify(accounts).includes(`"${login}"`));
      return answer.status === 200 && isOwn && accounts.length === person.logins.length;
    }, "the server knows the member's key and accounts");
  }
});
