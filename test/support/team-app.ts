/** A server of a team within this process, so that its parts can be looked at, in front of the demo as GitHub and Copilot. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readEnvironment } from "../../src/config/environment";
import { type Demo, startDemo } from "../../src/demo/demo";
import type { App } from "../../src/parts/app";
import { openApp } from "../../src/parts/open-app";
import { openStores } from "../../src/parts/open-stores";
import { handler } from "../../src/server";
import type { PostgresStores } from "../../src/team/stores";
import { addMember, type TestMember } from "./members";
import { quickest } from "./quickest";
import { individuals, placeOf, type TeamPlace, upstreamEnv } from "./teams";
import { sharedTokenizer } from "./tokenizer";
import { until } from "./until";

export interface TeamApp extends AsyncDisposable {
  url: string;
  app: App;
  demo: Demo;
  /** Those in a folder have no `postgres`. */
  stores: PostgresStores;
  /** The environment of every server of this team. */
  env: Record<string, string>;
  lines: string[];
  /** Resolves when the server knows the accounts. */
  addMember(name: string, ...logins: string[]): Promise<TestMember>;
}

interface TeamAppOptions {
  env?: Record<string, string>;
  demo?: Demo;
  /** Until the listener closes a connection on which nothing is sent, as Bun does. */
  idleSeconds?: number;
}

/** @param options.env More of the environment; that of another server makes one more of its team. */
export async function startTeamApp(
  place: TeamPlace,
  { env: more = {}, demo: given, idleSeconds = 10 }: TeamAppOptions = {},
): Promise<TeamApp> {
  const home = mkdtempSync(join(quickest(), "dragoman-"));
  const demo = given ?? startDemo({ pace: 0, accounts: [] });
  const env: Record<string, string> = {
    ...upstreamEnv(demo),
    ...(await placeOf(more.DRAGOMAN_DATABASE_URL ?? place)),
    ...more,
  };
  const environment = readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...env });
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const stores = (await openStores(environment, { follow: true, write })) as PostgresStores;
  const app = openApp({ environment, stores, tokenizer: sharedTokenizer(), version: "1" });
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: idleSeconds, fetch: handler(app, false) });
  return {
    ...{ url: server.url.origin, app, demo, stores, env, lines },
    async addMember(name, ...logins) {
      const member = await addMember(stores, { demo }, name, individuals(...logins));
      await until(() => app.forMember(member.id).accounts.length === logins.length, "the server knows the accounts");
      return member;
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
      app.close();
      await stores.close();
      if (!given) await demo.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
