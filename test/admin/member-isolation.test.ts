/**
 * Scenario: nothing of another person reaches a member: every page and every endpoint of the admin API is opened as
 * each of two members and as the owner, with data of all three present. The routes come from the tables, so a new one
 * is walked as well; where it needs an id that this file does not know, the test says so.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Role } from "../../src/admin/access/authorize";
import { adminEndpoints } from "../../src/admin/api/plugin";
import { pageEndpoints } from "../../src/admin/pages/plugin";
import { dimensions } from "../../src/books/history/dimensions";
import { nameColumns } from "../../src/books/history/entry";
import type { Entry } from "../../src/books/history/history";
import { formatAmount } from "../../src/lib/format";
import { formTokenIn, signedIn } from "../support/form-fields";
import { entry } from "../support/history-rows";
import { addMember, type TestMember, withTeamStores } from "../support/members";
import { proof } from "../support/proof";
import { drawn, openChance } from "../support/random";
import { describeWithMembers, individuals, startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

/** What a member may begin without naming anything of anybody else; each is the member's own. */
const ownBeginnings = [
  ...["POST /admin/sign-out", "POST /admin/accounts/sign-in", "POST /api/admin/accounts/sign-ins"],
];

interface Route {
  name: string;
  method: string;
  path: string;
  role: Role;
  isPage: boolean;
  body?: { shape: object } | undefined;
  query?: { shape: object } | undefined;
}

const routes: Route[] = [
  ...pageEndpoints().map(({ method, path, role }) => ({ method, path, role, isPage: true })),
  ...adminEndpoints().map(({ method, path, role, body, query }) => ({
    method,
    path,
    role,
    isPage: false,
    body,
    query,
  })),
].map((route) => ({ ...route, name: `${route.method} ${route.path}` }));

test("these pages and endpoints are the owner's alone, and no others", () => {
  const below = (path: string) => path.replace(/^\/(?:api\/)?admin\//, "").split("/")[0]!;
  const owners = routes.filter(({ role }) => role === "owner");
  const wholly = ["config", "drift", "health", "members", "meta", "notices", "reconcile"];
  expect(owners.filter(({ path }) => !wholly.includes(below(path))).map(({ name }) => name)).toEqual([
    "POST /admin/accounts/app",
    "POST /admin/budgets",
    "POST /admin/budgets/remove",
    "POST /api/admin/accounts/apps",
    "POST /api/admin/budgets",
    "POST /api/admin/budgets/remove",
  ]);
  expect(routes.filter(({ path, role }) => wholly.includes(below(path)) && role !== "owner")).toEqual([]);
});

/** A member or the owner, with everything that the others must not see. Every text of theirs contains the tag. */
interface Person {
  tag: string;
  /** Null for the owner. */
  member: TestMember | null;
  row: Entry;
  /** A request that is running. */
  running: string;
  signIn: { id: string; user_code: string };
  nanoCredits: number;
}

const memberOf = ({ member }: Person) => member?.id ?? "(none)";
const keyOf = ({ tag, member }: Person) => (member ? `${tag}/key-1` : `${tag}-key`);
const loginOf = ({ tag }: Person) => `${tag}-hub`;

const secretsOf = (person: Person): string[] => [
  person.tag,
  person.running,
  person.signIn.id,
  person.signIn.user_code,
  String(person.nanoCredits),
  formatAmount(person.nanoCredits),
  ...(person.member ? [person.member.id, person.member.key] : []),
];

/** Ids for a path's parameter, by the route. */
const idsOf = (route: Route, person: Person): string[] => {
  if (!/\/:/.test(route.path)) return [""];
  if (/\/prompts\/:id/.test(route.path)) return [person.row.prompt!];
  if (/\/sign-ins?\/:id/.test(route.path)) return [person.signIn.id];
  if (/\/(requests|live)\/:/.test(route.path)) return [person.row.request_id, person.running];
  if (/\/keys\/:name/.test(route.path)) return [keyOf(person)];
  if (/\/members\/:name/.test(route.path)) return [person.tag];
  throw new Error(`What does the parameter of ${route.name} name? Add it here, so that others' ids are tried.`);
};

const at = (route: Route, id: string) => route.path.replace(/:\w+/, encodeURIComponent(id));

/** Everything by which a form or a JSON body may name what is another person's. */
const namesOf = (person: Person): Record<string, unknown> => ({
  account_key: `github.com/${loginOf(person)}`,
  account_keys: [`github.com/${loginOf(person)}`],
  paused: true,
  by: 1,
  host: "github.com",
  app: "vscode",
  id: person.signIn.id,
  member: memberOf(person),
  name: keyOf(person),
  key: keyOf(person),
  model: "gpt-5-mini",
  field: "temperature",
  request_id: person.row.request_id,
});

const chance = openChance("isolation");
/** The check tries one in twelve, other ones in each run. */
const tried = (queries: string[]) => queries.filter(() => proof || chance.maybe(1 / 12));

/** Queries that ask for what is another person's, and every way to add up, as far as the route may read them. */
const queriesOf = (person: Person, { path, isPage, query }: Route): string[] => {
  const names = namesIn(person.row);
  const all = ["", ...tried([...names, ...nameColumns.map((name) => `${name}=(none)`), ...otherQueries])];
  if (isPage) return path.startsWith("/admin/requests") ? all : ["", names.join("&"), ...tried(otherQueries)];
  return all.filter((each) => each === "" || (query !== undefined && each.split("=")[0]! in query.shape));
};

const namesIn = (row: Entry) =>
  nameColumns.map((name) => `${name}=${encodeURIComponent(String(row[name] ?? "(none)"))}`);

const otherQueries = [
  ...dimensions.map((dimension) => `by=${dimension}`),
  ...["csv", "json"].map((format) => `format=${format}`),
  "include_stats=1&since_ms=0",
  "from_ms=0&to_ms=9007199254740991&limit=200",
  "has_error=1",
  "period=month",
  "period=30d",
  "measure=requests",
  "follow=1",
];

/** What changes by itself while the test runs. */
const steady = (text: string) =>
  text
    .replace(/(name="form_token" value=)"[^"]*"/g, "$1TOKEN")
    .replace(/\b\d{13}\b/g, "TIME")
    // GitHub says when it answered, and it is asked now and then.
    .replace(/(timestamp_utc\W+)[\d:.TZ-]+/g, "$1TIME")
    .replace(/(updated <time )[^>]*>[^<]*</g, "$1TIME<")
    .replace(/\b\d+(?:\.\d+)?\s?(?:ms|s|min|minutes?|hours?|days?)\b(?: ago)?/g, "SPAN")
    .replace(/just now|less than a minute ago|SPAN ago/g, "SPAN")
    // "1 min" becomes "1 min 1 s".
    .replace(/SPAN SPAN/g, "SPAN");

const own = (role: Role, method: string) => routes.filter((route) => route.role === role && route.method === method);

describeWithMembers("a member of a team", (place) => {
  let team: Team;
  let server: TeamServer;
  let owner: Person;
  let anna: Person;
  let ben: Person;
  /** A stream that nobody holds is garbage, and the request then ends. */
  const streams: ReadableStream[] = [];
  const cookies = new Map<Person, { cookie: string; token: string }>();

  const rowsOf = (tag: string, member: TestMember | null, nanoCredits: number): Entry[] =>
    [{}, { http_status: 400, error_type: "invalid_request", error_message: `${tag} went wrong` }].map((more, index) =>
      entry({
        request_id: `req-${tag}-${index}-${crypto.randomUUID()}`,
        started_at_ms: Date.now() - 60_000 * (index + 1),
        account_id: `${tag}-hub`,
        client_model: `${tag}-asked`,
        upstream_model: `${tag}-model`,
        client_name: `${tag}-client`,
        key_name: member ? `${tag}/key-1` : `${tag}-key`,
        member: member?.id ?? null,
        path: `/v1/${tag}`,
        upstream_endpoint: `/${tag}`,
        session: `${tag}-session`,
        prompt: `${tag}-prompt`,
        kind: "subagent",
        agent_type: `${tag}-agent`,
        project: `${tag}-project`,
        cache_miss: "tools",
        input_tokens: 10_000,
        cached_tokens: 0,
        attempts: JSON.stringify([{ account: `${tag}-hub`, status: 200, ms: 3 }]),
        cost: nanoCredits,
        ...more,
      }),
    );

  async function addRows(rows: Entry[]): Promise<void> {
    await withTeamStores(team, async (stores) => {
      const history = stores.openHistory({ retentionDays: () => 30, maxRows: () => 1e9, warn: () => {} });
      for (const row of rows) history.add(row);
      await history.flush();
    });
  }

  /** A person with rows, and later with a request and a sign-in that run. */
  const person = (tag: string, member: TestMember | null, nanoCredits: number): Person => {
    const row = rowsOf(tag, member, nanoCredits)[0]!;
    return { tag, member, row, running: "", signIn: { id: "", user_code: "" }, nanoCredits };
  };

  beforeAll(async () => {
    // Streams of the demo take many seconds, so that requests are running during the tests.
    team = await startTeam(place, { accounts: individuals("zebra-hub"), pace: 2_000 });
    team.demo.device.pending = 1_000_000;
    const budget = (tag: string, scope: object) => ({
      name: `cap-of-${tag}`,
      scope,
      unit: "premium",
      limit: 100,
      per: "day",
    });
    const added = await withTeamStores(team, async (stores) => ({
      anna: await addMember(stores, team, "annalena", individuals("annalena-hub", "annalena-two")),
      ben: await addMember(stores, team, "benedikt", individuals("benedikt-hub")),
    }));
    server = await team.server();
    owner = person("zebra", null, 712_345_000_000_000);
    anna = person("annalena", added.anna, 823_456_000_000_000);
    ben = person("benedikt", added.ben, 934_567_000_000_000);
    const changed = await server.admin("/config", {
      auth: { apiKeys: [{ name: "zebra-key", key: "zebra-key-0123456789" }] },
      providers: { "zebra-provider": { type: "chat", baseUrl: "http://127.0.0.1:9/v1" } },
      budgets: [
        budget("zebra", { key: "zebra-key" }),
        budget("annalena", { key: "annalena/*" }),
        budget("benedikt", { key: "benedikt/*" }),
        // Whatever others have used of it is theirs.
        budget("zebra-everybody", {}),
        { ...budget("each", { member: "*" }), each: "member", limits: { annalena: 8, benedikt: 9 } },
        { ...budget("keys", {}), each: "key", limits: { "annalena/key-1": 8, "benedikt/key-1": 9, "zebra-key": 7 } },
        { ...budget("hubs", {}), each: "account", limits: { "annalena-hub": 8, "benedikt-hub": 9, "zebra-hub": 7 } },
        budget("only-annalena", { member: "annalena" }),
        budget("only-benedikt", { member: "benedikt" }),
      ],
    });
    expect(changed.error).toBeUndefined();
    for (const each of [owner, anna, ben]) {
      await addRows([each.row, rowsOf(each.tag, each.member, each.nanoCredits)[1]!]);
      each.running = await beginRequest(each);
      if (each.member) cookies.set(each, await signIn(each.member.key));
      each.signIn = JSON.parse((await as(each, "POST", "/api/admin/accounts/sign-ins", {})).text);
    }
  });
  afterAll(async () => {
    for (const stream of streams) await stream.cancel();
    await team[Symbol.asyncDispose]();
  });

  /** @returns The id of a request that runs for longer than any test. */
  async function beginRequest({ tag, member }: Person): Promise<string> {
    const stream = {
      model: "gpt-5-mini",
      stream: true,
      messages: [{ role: "user", content: "[demo: long 400] Hello" }],
    };
    const headers = { "x-api-key": member?.key ?? "zebra-key-0123456789", "user-agent": `${tag}-agent` };
    const answer = await server.post("/v1/chat/completions", stream, headers);
    expect([tag, answer.status]).toEqual([tag, 200]);
    streams.push(answer.body!);
    return answer.headers.get("x-request-id")!;
  }

  async function signIn(key: string): Promise<{ cookie: string; token: string }> {
    const { cookie } = await signedIn(server.url, key);
    const page = await (await fetch(`${server.url}/admin/models`, { headers: { cookie } })).text();
    return { cookie, token: formTokenIn(page) };
  }

  /** Of a stream of events, the first one. */
  async function textOf(answer: Response): Promise<string> {
    if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) return answer.text();
    const reader = answer.body!.getReader();
    const { value } = await reader.read();
    await reader.cancel();
    return new TextDecoder().decode(value);
  }

  const headersOf = ({ member }: Person): Record<string, string> =>
    member ? { authorization: `Bearer ${member.key}` } : {};

  /** Opens a page with the sign-in, and an endpoint with the key. */
  async function as(who: Person, method: string, path: string, body: Record<string, unknown> = {}) {
    const { cookie, token } = cookies.get(who) ?? { cookie: "", token: "" };
    const isPage = path.startsWith("/admin");
    const form = new URLSearchParams({ form_token: token });
    for (const [name, value] of Object.entries(body)) form.set(name, String(value === true ? 1 : value));
    const json = { "content-type": "application/json" };
    const answer = await fetch(server.url + path, {
      method,
      redirect: "manual",
      headers: isPage ? { cookie } : { ...headersOf(who), ...(method === "POST" && json) },
      ...(method === "POST" && { body: isPage ? form : JSON.stringify(body) }),
    });
    return { status: answer.status, text: await textOf(answer) };
  }

  const othersOf = (who: Person) => [owner, anna, ben].filter((each) => each !== who);
  const expectNothingOf = (others: Person[], where: string, text: string, sent = "") => {
    const found = others.flatMap(secretsOf).filter((secret) => text.includes(secret) && !sent.includes(secret));
    expect([where, found]).toEqual([where, []]);
  };

  /** The same text of a person who does not exist. */
  const ofNobody = (text: string, other: Person) => {
    let changed = text.replaceAll(other.tag, "x".repeat(other.tag.length));
    const ids = [other.member?.id, other.running, other.signIn.id].filter((id) => id);
    for (const id of ids as string[]) changed = changed.replaceAll(id, id.replace(/[0-9a-z]/gi, "0"));
    return changed;
  };

  test("sees on the pages, and gets from the API, what is their own", async () => {
    for (const who of [anna, ben])
      for (const [path, shown] of Object.entries({
        "/admin": loginOf(who),
        "/admin/accounts": loginOf(who),
        "/admin/requests": who.row.request_id,
        "/admin/requests/export": String(who.nanoCredits),
        "/admin/cache": who.row.client_name!,
        "/admin/models": "gpt-5-mini",
        "/admin/connect": server.url,
        "/api/admin/accounts": loginOf(who),
        "/api/admin/requests": who.row.request_id,
        [`/api/admin/requests/${who.row.request_id}`]: memberOf(who),
        "/api/admin/keys": keyOf(who),
        "/api/admin/budgets": `cap-of-${who.tag}`,
      })) {
        const { status, text } = await as(who, "GET", path);
        expect([path, status]).toEqual([path, 200]);
        expect([path, text.includes(shown)]).toEqual([path, true]);
      }
  });

  test("a member of a team is refused every page and endpoint of the owner's", async () => {
    for (const who of [anna, ben])
      for (const route of routes.filter(({ role }) => role === "owner"))
        for (const id of idsOf(route, owner)) {
          const { status, text } = await as(who, route.method, at(route, id), namesOf(owner));
          expect([route.name, status]).toEqual([route.name, 403]);
          expect(text).toContain(route.isPage ? "This page is the owner" : "owner_only");
          expectNothingOf(othersOf(who), route.name, text, id);
        }
  });

  test.each(own("member", "GET"))("sees nothing of anybody else, whatever they ask for: $name", async (route) => {
    const pairs = [
      [anna, ben],
      [ben, owner],
    ] as const;
    for (const [who, other] of drawn(route.name, pairs, 2))
      for (const id of [...idsOf(route, other), ...(route.path.includes(":") ? idsOf(route, who) : [])])
        for (const query of queriesOf(other, route)) {
          const path = `${at(route, id)}?${query}`;
          const sent = decodeURIComponent(path);
          const { text, status } = await as(who, "GET", path);
          expectNothingOf(othersOf(who), `${who.tag}: ${path}`, text, sent);
          const unknown = ofNobody(sent, other);
          if (unknown === sent) continue;
          // What exists and what does not cannot be told apart.
          const same = await as(who, "GET", encodeURI(unknown));
          expect([path, status, steady(ofNobody(text, other))]).toEqual([path, same.status, steady(same.text)]);
        }
  });

  test("a member of a team changes nothing of anybody else", async () => {
    const everything = async (who: Person) => {
      const texts = ["accounts", "keys", "budgets"].map((path) => as(who, "GET", `/api/admin/${path}`));
      const requests = [who.row.request_id, who.running].map((id) => as(who, "GET", `/api/admin/requests/${id}`));
      const signIn = as(who, "GET", `/api/admin/accounts/sign-ins/${who.signIn.id}`);
      return (await Promise.all([...texts, ...requests, signIn])).map(({ text }) => steady(text));
    };
    const config = async () => (await as(owner, "GET", "/api/admin/config")).text;
    const before = [await everything(owner), await everything(ben), await config()];
    for (const other of [ben, owner])
      for (const route of own("member", "POST"))
        for (const id of idsOf(route, other)) {
          // A new key of anna's may have the name that somebody else's has: what names it would then be her own.
          if (/sign-out$|\/keys$/.test(route.path)) continue;
          const names = namesOf(other);
          const body = route.body
            ? Object.fromEntries(Object.keys(route.body.shape).map((name) => [name, names[name]]))
            : route.isPage
              ? names
              : {};
          const { status, text } = await as(anna, "POST", at(route, id), body);
          if (!ownBeginnings.includes(route.name)) expect([route.name, status >= 400]).toEqual([route.name, true]);
          expectNothingOf(othersOf(anna), route.name, text, JSON.stringify(body) + id);
        }
    expect([await everything(owner), await everything(ben), await config()]).toEqual(before);
  });

  test("sees the same whether others work or not", async () => {
    const all = async () => {
      const seen: Record<string, string> = {};
      for (const route of own("member", "GET"))
        for (const id of idsOf(route, anna)) {
          const { status, text } = await as(anna, "GET", at(route, id));
          expect([route.name, status]).toEqual([route.name, 200]);
          seen[`${route.name} ${id}`] = steady(text);
        }
      return seen;
    };
    const before = await all();
    await beginRequest(ben);
    const late = [ben, owner].flatMap(({ tag, member }) => rowsOf(tag, member, 1_111_000_000_000));
    await addRows([...late, ...late.map((row) => ({ ...row, request_id: crypto.randomUUID() }))]);
    const carl = await team.addMember("carl", "carl-hub");
    const ask = () => fetch(`${server.url}/v1/models`, { headers: { "x-api-key": carl.key } });
    await until(async () => (await ask()).status === 200, "the key is known");
    expect(await all()).toEqual(before);
  });

  test("a member of a team is one of those whom the owner sees", async () => {
    // The sign-in of a tool is confirmed by a member only.
    const shown = routes.filter(({ method, path }) => method === "GET" && !/\/live$|\/device$/.test(path));
    for (const route of shown)
      for (const id of idsOf(route, ben).filter((id) => id !== ben.signIn.id)) {
        const { status, text } = await as(owner, "GET", at(route, id));
        expect([route.name, status]).toEqual([route.name, 200]);
        for (const { member } of [anna, ben]) expect(text).not.toContain(member!.key);
      }
    const { text } = await as(owner, "GET", "/api/admin/requests?limit=200");
    for (const { row } of [anna, ben]) expect(text).toContain(row.request_id);
    // Which member a request, a cost or an account belongs to; of an account no more than its state and quota.
    const filtered = (await as(owner, "GET", `/admin/requests?limit=200&member=${ben.member!.id}`)).text;
    const [choices, rows = ""] = filtered.split('<table class="rows requests"');
    expect(choices).toContain(`<option value="${ben.member!.id}" selected>benedikt</option>`);
    expect(choices).toContain(`<option value="${anna.member!.id}">annalena</option>`);
    expect([rows.includes(ben.row.request_id), rows.includes(anna.row.request_id)]).toEqual([true, false]);
    expect(rows).toContain('of <bdi class="value">benedikt</bdi>');
    const request = (await as(owner, "GET", `/admin/requests/${ben.row.request_id}`)).text;
    expect(request).toContain(`member=${ben.member!.id}`);
    const overview = (await as(owner, "GET", "/admin")).text;
    for (const name of ["annalena", "benedikt", "the owner"])
      expect(overview.split("<h3>Usage by member")[1]).toContain(`>${name}</bdi>`);
    const accounts = (await as(owner, "GET", "/admin/accounts")).text;
    expect(accounts.split(">Accounts of members</h2>")[1]).toContain(">benedikt</bdi>");
    for (const login of ["benedikt-hub", "annalena-hub", "annalena-two"]) expect(accounts).not.toContain(login);
  });
});
