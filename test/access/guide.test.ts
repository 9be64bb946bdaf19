/**
 * Rows: every caller in every setting that README, TEAMS and the compose files describe, at the paths of clients, of
 * the admin API, of tools that sign in and of the upstream's token. A setting is started as the guide says, and a
 * caller's connection is what the guide's proxy makes of it: the socket's address, and the headers that the proxy adds.
 */
import { expect, test } from "bun:test";
import { readEnvironment } from "../../src/config/environment";
import { startDemo } from "../../src/demo/demo";
import { openTrustedProxies } from "../../src/lib/net/in/trusted-proxies";
import { type AppOptions, openApp } from "../../src/parts/open-app";
import { openStores } from "../../src/parts/open-stores";
import { handler } from "../../src/server";
import { addMember, saveAccounts, withTeamStores } from "../support/members";
import { startProxy } from "../support/proxy";
import { describeWithMembers, individuals, placeOf, type TeamPlace, upstreamEnv } from "../support/teams";
import { temporaryFolder } from "../support/temporary-folder";
import { sharedTokenizer } from "../support/tokenizer";
import { testWritten } from "../support/written";
import { key, token } from "./callers";

interface Connection {
  /** The socket's address. */
  peer: string;
  headers: Record<string, string>;
}
type Proxy = (client: string, host: string, sent: Record<string, string>) => Connection;

const direct: Proxy = (client, host, sent) => ({ peer: client, headers: { host, ...sent } });
/** README's nginx, and Caddy's `reverse_proxy`, on dragoman's machine: both replace what the caller wrote there itself. */
const onThisMachine: Proxy = (client, host, sent) => ({
  peer: "127.0.0.1",
  headers: { ...sent, host, "x-forwarded-for": client, "x-forwarded-proto": "https" },
});
/** The Caddy of the compose file for teams. */
const composed: Proxy = (client, host, sent) => ({
  peer: "::ffff:172.30.0.5",
  headers: { ...sent, host, "x-forwarded-for": client, "x-forwarded-proto": "https", "x-forwarded-host": host },
});
/** The published port of the compose file for one: whoever calls is Docker's gateway. */
const published: Proxy = (_client, host, sent) => ({ peer: "172.17.0.1", headers: { host, ...sent } });
/** A proxy that adds nothing, and a tunnel such as `ssh -R`. */
const silent: Proxy = (_client, host, sent) => ({ peer: "127.0.0.1", headers: { host, ...sent } });

interface Setting {
  env?: Record<string, string>;
  config?: object;
  options?: Pick<AppOptions, "openTo" | "adminAuth">;
  trusts?: string[];
  /** The first key is a member's. */
  team?: "without members" | "with a member";
  by: Proxy;
  /** The name that callers use. */
  host: string;
}

interface Caller {
  client: string;
  host?: string;
  sent?: Record<string, string>;
}
const callers: Record<string, Caller> = {
  "this machine": { client: "127.0.0.1" },
  "this machine, by its own address": { client: "127.0.0.1", host: "192.0.2.1:4141" },
  "another machine": { client: "192.0.2.50" },
  "another machine that calls itself this one": { client: "192.0.2.50", sent: { "x-forwarded-for": "127.0.0.1" } },
  "another machine, by an address": { client: "192.0.2.50", host: "192.0.2.1" },
  "a wrong host": { client: "192.0.2.50", host: "evil.example" },
  "a page of another site": { client: "127.0.0.1", sent: { origin: "https://evil.example" } },
  "a page of its own over TLS": { client: "192.0.2.50", sent: { origin: "https://HOST" } },
  "the owner's key": { client: "192.0.2.50", sent: { "x-api-key": key } },
  "a member's key": { client: "192.0.2.50", sent: { "x-api-key": "MEMBER" } },
  "a member's key, under a wrong host": { client: "192.0.2.50", host: "evil.example", sent: { "x-api-key": "MEMBER" } },
  "the admin token": { client: "192.0.2.50", sent: { "x-admin-token": token } },
};

const keyAndToken = { DRAGOMAN_API_KEY: key, ADMIN_TOKEN: token };

const settings: Record<string, Setting> = {
  "dragoman start": {
    by: direct,
    host: "localhost:4141",
  },
  "behind a proxy on this machine, without the steps that README names": {
    by: onThisMachine,
    host: "dragoman.example",
  },
  // Whether the proxy may be believed nobody has said.
  "the same, as localhost": {
    by: onThisMachine,
    host: "localhost",
  },
  "behind a proxy that adds no headers, which cannot be told apart: README's first warning": {
    by: silent,
    host: "localhost:4141",
  },
  "behind a proxy on this machine, with README's three steps": {
    config: { auth: { apiKeys: [key] } },
    env: { ADMIN_TOKEN: token },
    options: { adminAuth: "always" },
    by: onThisMachine,
    host: "dragoman.example",
  },
  "--host 0.0.0.0 with a key": {
    config: { auth: { apiKeys: [key] } },
    env: { ADMIN_TOKEN: token },
    options: { openTo: "nobody" },
    by: direct,
    host: "box.lan:4141",
  },
  "--host 0.0.0.0 after its last key was removed": {
    options: { openTo: "nobody" },
    by: direct,
    host: "192.0.2.1:4141",
  },
  "--host 0.0.0.0 --allow-open": {
    options: { openTo: "anyone" },
    by: direct,
    host: "192.0.2.1:4141",
  },
  "--allow-open behind a proxy on this machine": {
    options: { openTo: "anyone" },
    by: onThisMachine,
    host: "192.0.2.1",
  },
  "compose.yaml": {
    env: keyAndToken,
    options: { openTo: "nobody" },
    by: published,
    host: "localhost:4141",
  },
  // The proxy may stand in front of anybody.
  "a team behind a proxy on this machine, before anybody has a key": {
    team: "without members",
    env: { ADMIN_TOKEN: token },
    trusts: ["127.0.0.1"],
    by: onThisMachine,
    host: "localhost",
  },
  "the same, asked beside the proxy": {
    team: "without members",
    env: { ADMIN_TOKEN: token },
    trusts: ["127.0.0.1"],
    by: silent,
    host: "localhost:4141",
  },
  "a team behind a proxy on this machine, with a member": {
    team: "with a member",
    env: { ADMIN_TOKEN: token },
    trusts: ["127.0.0.1"],
    by: onThisMachine,
    host: "localhost",
  },
  "a team that names no proxy, called directly": {
    team: "with a member",
    env: { ADMIN_TOKEN: token },
    by: direct,
    host: "localhost:4141",
  },
  "compose.yaml of a team": {
    team: "with a member",
    env: keyAndToken,
    options: { openTo: "nobody" },
    trusts: ["172.30.0.0/24"],
    by: composed,
    host: "dragoman.example.com",
  },
};

interface Started extends AsyncDisposable {
  memberKey: string;
  ask(path: string, connection: Connection, init?: RequestInit): Promise<Response>;
}

async function start(
  { team, env = {}, config = {}, options, trusts }: Setting,
  place: TeamPlace = "folder",
): Promise<Started> {
  const demo = startDemo({ pace: 0, accounts: individuals("octo-demo") });
  const kept: (() => void)[] = [];
  const home = temporaryFolder((remove) => kept.push(remove));
  const database = team ? { ...upstreamEnv(demo), ...(place !== "folder" && (await placeOf(place))) } : {};
  const variables = { HOME: home, DRAGOMAN_HOME: home, ...database, ...env };
  await Bun.write(`${home}/config.json`, JSON.stringify(config));
  let memberKey = "";
  if (team)
    await withTeamStores({ env: variables }, async (stores) => {
      await saveAccounts(stores, individuals("octo-demo"));
      if (team === "with a member")
        memberKey = (await addMember(stores, { demo }, "anna", individuals("anna-octo"))).key;
    });
  const environment = readEnvironment(variables);
  const stores = await openStores(environment, { follow: true, write: () => {} });
  const app = openApp({
    ...{ environment, stores, version: "1", tokenizer: sharedTokenizer(), write: () => {} },
    ...(!team && { demo: { url: demo.url, accounts: demo.accounts } }),
    ...(trusts && { trustedProxies: openTrustedProxies(trusts) }),
    ...options,
  });
  const answer = handler(app, options?.openTo !== undefined);
  return {
    memberKey,
    ask(path, { peer, headers }, init = {}) {
      const server = { requestIP: () => ({ address: peer }), timeout() {} } as unknown as Bun.Server<never>;
      const address = `http://${headers.host}${path}`;
      return answer(new Request(address, { ...init, headers: { ...headers, ...(init.headers as object) } }), server);
    },
    async [Symbol.asyncDispose]() {
      app.close();
      await stores.close();
      await demo.stop();
      for (const remove of kept) remove();
    },
  };
}

const asks: Record<string, [path: string, init?: RequestInit]> = {
  client: ["/v1/models"],
  admin: ["/api/admin/accounts"],
  token: ["/token"],
  "sign-in": ["/oauth/device_authorization", { method: "POST", body: new URLSearchParams({ surface: "a tool" }) }],
};

/** Each caller of a setting in a line, with what it gets of each kind: a status and, where it is refused, why. */
async function tableOf(setting: Setting, place?: TeamPlace): Promise<string> {
  await using started = await start(setting, place);
  const lines = [["", ...Object.keys(asks)]];
  for (const [who, caller] of Object.entries(callers)) {
    const host = caller.host ?? setting.host;
    const sent = Object.entries(caller.sent ?? {}).map(([name, value]) => [
      name,
      value.replace("HOST", host).replace("MEMBER", started.memberKey),
    ]);
    const connection = setting.by(caller.client, host, Object.fromEntries(sent));
    const cells = Object.values(asks).map(async ([path, init]) => outcomeOf(await started.ask(path, connection, init)));
    lines.push([who, ...(await Promise.all(cells))]);
  }
  return lines.map(([who, ...cells]) => who!.padEnd(48) + cells.map((cell) => cell.padEnd(26)).join("")).join("\n");
}

async function outcomeOf(response: Response): Promise<string> {
  const text = await response.text();
  if (response.ok) return String(response.status);
  // In the shape of the path, and in words that help.
  const { error, error_description } = JSON.parse(text);
  expect(error.message ?? error_description).toMatch(/\w+ \w+ \w+/);
  if (error.code === "no_client_key") expect(error.message).toContain("dragoman key add");
  return `${response.status} ${error.code ?? error.type ?? error}`;
}

const rowsOf = (isTeam: boolean, place?: TeamPlace) =>
  Object.entries(settings)
    .filter(([, { team }]) => (team !== undefined) === isTeam)
    .map(([title, setting]) => [title, () => tableOf(setting, place)] as const);

testWritten("access/guide.txt", rowsOf(false));

describeWithMembers("for a team", (place) => {
  testWritten("access/guide-team.txt", rowsOf(true, place));

  test("`https://localhost` behind a trusted proxy can be signed in to, with the form of its own page", async () => {
    const setting = settings["a team behind a proxy on this machine, before anybody has a key"]!;
    await using started = await start(setting, place);
    const signIn = (host: string, origin: string, by: Proxy = onThisMachine) =>
      started.ask("/admin/sign-in", by("192.0.2.50", host, { origin }), {
        method: "POST",
        body: new URLSearchParams({ token }),
      });
    const right = await signIn("localhost:8443", "https://localhost:8443");
    expect([right.status, right.headers.get("set-cookie")]).toEqual([303, expect.stringContaining("__Host-")]);
    for (const origin of ["https://localhost:8444", "https://localhost", "https://evil.example", "null"])
      expect([origin, (await signIn("localhost:8443", origin)).status]).toEqual([origin, 403]);
    // The proxy says nothing of TLS; and one that nobody trusts.
    expect((await signIn("localhost:8443", "https://localhost:8443", silent)).status).toBe(403);
    const elsewhere: Proxy = (...given) => ({ ...onThisMachine(...given), peer: "127.0.0.9" });
    const untrusted = await signIn("localhost:8443", "https://localhost:8443", elsewhere);
    expect([untrusted.status, await untrusted.text()]).toEqual([403, expect.stringContaining("--trust-proxy")]);
  });
});

test("a refused name and a refused page are told the line of the config that allows them, and that line does", async () => {
  await using proxy = await startProxy();
  const asks = { allowedHosts: { host: "dragoman.example" }, allowedOrigins: { origin: "https://page.example" } };
  for (const [name, headers] of Object.entries(asks)) {
    const ask = () => fetch(`${proxy.url}/v1/models`, { headers });
    const refused = await ask();
    const { error } = (await refused.json()) as { error: { message: string } };
    expect([refused.status, error.message]).toEqual([403, expect.stringContaining(`"${name}": [`)]);
    const [line] = /"allowed\w+": \["[^"]+"\]/.exec(error.message)!;
    await proxy.app.config.change(JSON.parse(`{${line}}`));
    expect([name, (await ask()).status]).toEqual([name, 200]);
  }
});

test("the refusal of who may be elsewhere is in the shape of each API", async () => {
  await using started = await start(settings["the same, as localhost"]!);
  for (const path of ["/v1/chat/completions", "/v1/messages", "/v1beta/models"]) {
    const method = path.startsWith("/v1beta") ? "GET" : "POST";
    const init = { method, ...(method === "POST" && { body: "{}", headers: { "content-type": "application/json" } }) };
    const answer = await started.ask(path, onThisMachine("203.0.113.9", "localhost", {}), init);
    const body = (await answer.json()) as {
      type?: string;
      error: { message: string; code?: unknown; status?: string };
    };
    expect([path, answer.status, body.error.message]).toEqual([path, 401, expect.stringContaining("dragoman key add")]);
    if (path === "/v1/messages") expect(body.type).toBe("error");
    if (path === "/v1/chat/completions") expect(body.error.code).toBe("no_client_key");
    if (path === "/v1beta/models") expect(body.error.status).toBe("UNAUTHENTICATED");
  }
});

test("without a key, who is named by a header as calling from elsewhere is refused, and who is named as this machine is not", async () => {
  await using started = await start(settings["dragoman start"]!);
  for (const name of [
    "x-forwarded-for",
    "x-real-ip",
    "cf-connecting-ip",
    "true-client-ip",
    "x-client-ip",
    "forwarded",
  ]) {
    const ask = async (client: string) => {
      const parts = client.split(", ").map((each) => `proto=https;for="${each.includes(":") ? `[${each}]` : each}"`);
      const value = name === "forwarded" ? parts.join(", ") : client;
      return (await started.ask("/v1/models", { peer: "127.0.0.1", headers: { host: "localhost", [name]: value } }))
        .status;
    };
    for (const client of ["203.0.113.9", "10.0.0.3", "2001:db8::1", "unknown", "127.0.0.1, 203.0.113.9"])
      expect([name, client, await ask(client)]).toEqual([name, client, 401]);
    for (const client of ["127.0.0.1", "::1", "127.0.0.9"])
      expect([name, client, await ask(client)]).toEqual([name, client, 200]);
  }
});
