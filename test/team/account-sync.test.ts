/** Scenario: what one server finds out about an account, and another knows. */
import { afterAll, afterEach, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readEnvironment } from "../../src/config/environment";
import {
  type AccountSync,
  type AccountUpdate,
  type SharedSignIn,
  signInOf,
} from "../../src/people/accounts/account-sync";
import type { Quota } from "../../src/people/accounts/quota";
import type { TeamAccountSync } from "../../src/team/account-sync";
import { openPostgresStores, type PostgresStores } from "../../src/team/stores";
import { failureOf } from "../support/refusal";
import { describeWithDatabases } from "../support/shared-postgres";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

const token = "ghu_anna0123456789";
const anna: SharedSignIn = { key: "github.com/anna", signIn: signInOf(token) };

describeWithDatabases("what servers share of an account", (postgres) => {
  const home = temporaryFolder(afterAll);
  const opened: PostgresStores[] = [];
  let env: Record<string, string>;
  afterEach(() => Promise.all(opened.splice(0).map((stores) => stores.close())));

  async function server(): Promise<PostgresStores & { accountSync: AccountSync }> {
    const stores = await openPostgresStores(readEnvironment({ DRAGOMAN_HOME: home, HOME: home, ...env }), {
      follow: true,
    });
    opened.push(stores);
    return stores as PostgresStores & { accountSync: AccountSync };
  }

  async function team(count: number) {
    const sealKey = randomBytes(32).toString("base64");
    env = { DRAGOMAN_DATABASE_URL: await postgres.database(), DRAGOMAN_SEAL_KEY: sealKey };
    const servers = await Promise.all(Array.from({ length: count }, server));
    await signIn(servers[0]!);
    return servers;
  }

  const signIn = (stores: PostgresStores, githubToken = token) =>
    stores.accounts.add({
      login: "anna",
      host: "github.com",
      app: "vscode",
      mode: "exchange",
      githubToken,
      addedAt: 1,
    });

  const heardBy = ({ accountSync }: { accountSync: AccountSync }) => {
    const heard: AccountUpdate[] = [];
    accountSync.follow((account, found) => {
      if (account.key === anna.key) heard.push(found);
    });
    return heard;
  };
  const nobody = { key: "github.com/nobody", signIn: "0" };
  const limited = {
    account: { name: "cooling", until: 1_900_000_000_000, reason: "It is limited." },
    models: {},
  } as const;
  const quota = { unit: "premium", remaining: 12, at: 1_000 } as unknown as Quota;

  test("a state is known to the others at once, to those that start later too, and is not told back", async () => {
    const [one, other] = await team(2);
    const [own, heard] = [heardBy(one!), heardBy(other!)];
    one!.accountSync.publish(anna, { state: limited });
    await until(() => heard.length === 1, "the other server has heard of the account");
    expect(heard).toEqual([{ state: limited }]);
    expect((await server()).accountSync.cached(anna)).toEqual({ state: limited });
    expect(own).toEqual([]);
  });

  test("a quota does not change the state that is known, and what was published last counts", async () => {
    const [one, other] = await team(2);
    const heard = heardBy(other!);
    one!.accountSync.publish(anna, { state: limited });
    one!.accountSync.publish(anna, { quota });
    await until(() => heard.some((found) => found.quota !== undefined), "the other server has heard of the quota");
    expect(other!.accountSync.cached(anna)).toEqual({ state: limited, quota });
    const ready = { account: { name: "ready" }, models: {} } as const;
    other!.accountSync.publish(anna, { state: ready });
    await until(
      () => one!.accountSync.cached(anna).state?.account.name === "ready",
      "the account is ready there again",
    );
    expect(one!.accountSync.cached(anna)).toEqual({ state: ready, quota });
  });

  test("a state reaches a server that stores a quota of the same account before it has read", async () => {
    const [one, other] = (await team(2)) as unknown as { accountSync: TeamAccountSync }[];
    const heard = heardBy(other!);
    one!.accountSync.publish(anna, { state: limited });
    await one!.accountSync.flush();
    other!.accountSync.publish(anna, { quota });
    await other!.accountSync.flush();
    await until(() => heard.length > 0, "the other server has heard of the state");
    expect(heard).toEqual([{ state: limited }]);
  });

  test("what was found out is gathered for a moment, and read once", async () => {
    const [one, other] = (await team(2)) as unknown as { accountSync: TeamAccountSync }[];
    const heard = heardBy(other!);
    one!.accountSync.publish(anna, { quota: { ...quota, at: 1 } });
    one!.accountSync.publish(anna, { quota });
    await one!.accountSync.flush();
    await other!.accountSync.read();
    expect([heard.at(-1), other!.accountSync.cached(anna)]).toEqual([{ quota }, { quota }]);
    // Nothing is read again, unless another transaction was under way.
    await until(async () => (await other!.accountSync.read()) === 0, "nothing is read again");
  });

  test("a new sign-in ends the state that another server gave the account", async () => {
    const [one, other] = await team(2);
    const account = { name: "failed", suspended: true, retryAt: 9e12, reason: "Blocked." } as const;
    const suspended = { account, models: {} };
    const heard = heardBy(other!);
    one!.accountSync.publish(anna, { state: suspended });
    await until(() => heard.length === 1, "the other server has heard of the account");
    await signIn(other!, "ghu_anna_anew_0123456789");
    const anew = { ...anna, signIn: signInOf("ghu_anna_anew_0123456789") };
    for (const server of [one!, other!]) expect(server.accountSync.cached(anew)).toEqual({});
    // What somebody still finds out with the old sign-in does not count.
    one!.accountSync.publish(anna, { state: suspended });
    one!.accountSync.publish(anew, { state: limited });
    await until(() => other!.accountSync.cached(anew).state !== undefined, "the other server knows the new account");
    expect(other!.accountSync.cached(anew)).toEqual({ state: limited });
  });

  test("an account of a member who was removed meanwhile is not saved", async () => {
    const [one] = await team(1);
    const saved = { login: "ben", host: "github.com", app: "vscode", mode: "exchange", githubToken: token } as const;
    const failure = await failureOf(
      Promise.resolve(one!.accounts.add({ ...saved, addedAt: 1, member: crypto.randomUUID() })),
    );
    expect([failure.status, failure.details.code]).toEqual([404, "member_not_found"]);
    expect(one!.accounts.load().map(({ login }) => login)).toEqual(["anna"]);
  });

  test("an account that nobody has signed in, or that was removed, has no state", async () => {
    const [one, other] = await team(2);
    one!.accountSync.publish(nobody, { state: limited });
    await one!.accounts.remove("anna");
    one!.accountSync.publish(anna, { state: limited });
    const heard = heardBy(other!);
    await signIn(one!);
    one!.accountSync.publish(anna, { quota });
    one!.accountSync.publish(anna, { state: limited });
    await until(() => heard.length > 0, "the other server has heard of it");
    expect(other!.accountSync.cached(nobody)).toEqual({});
    expect([...(await one!.postgres.ask((sql) => sql`SELECT account FROM dragoman.account_states`))]).toEqual([
      { account: anna.key },
    ]);
  });
});
