/**
 * Scenario: how soon a server of a team knows what another one has changed, and how long nobody waits for a database
 * that is away.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { formTokenIn, signedIn } from "../../support/form-fields";
import { leastOf, took } from "../../support/least";
import { watchFeed } from "../../support/live-feed";
import { type TestMember, untilKnown, withTeamStores } from "../../support/members";
import { type PgBouncer, startPgBouncer } from "../../support/pgbouncer";
import { describeWith } from "../../support/sandbox";
import { describeWithOwnPostgres } from "../../support/shared-postgres";
import { chatBody, individuals, startTeam, type Team, type TeamProcess, type TeamServer } from "../../support/teams";
import { until } from "../../support/until";

const send = async (server: TeamServer, key: string, more = {}) => {
  const response = await server.post("/v1/chat/completions", chatBody("Hello", more), { "x-api-key": key });
  await response.text();
  return response.status;
};

describeWithOwnPostgres("servers of a team", (postgres) => {
  afterEach(() => postgres.start());

  describe("what one server changes is known at the other within two seconds", () => {
    let team: Team;
    let one: TeamProcess;
    let other: TeamProcess;
    let owner: string;
    let anna: TestMember;
    let serial = 0;
    beforeAll(async () => {
      team = await startTeam(postgres, { accounts: individuals("octo-demo", "work-demo") });
      [one, other] = await Promise.all([team.process(), team.process()]);
      owner = (await one.admin("/keys", { name: "owner" })).key;
      anna = await team.addMember("anna", "anna-demo");
      await untilKnown([other], [{ key: owner }, anna]);
    });
    afterAll(() => team[Symbol.asyncDispose]());

    const newKey = async (): Promise<{ name: string; key: string }> => {
      const { name, key } = await one.admin("/keys", { name: `key-${++serial}` });
      return { name, key };
    };
    const revoke = (name: string) => one.admin(`/keys/${encodeURIComponent(name)}/revoke`, {});
    const accountsOf = async (): Promise<{ account_id: string; state: string }[]> =>
      (await other.admin("/accounts")).items;

    /** What is prepared, and is not measured; what is changed; and when it is known at the other server. */
    interface Change {
      change(): Promise<unknown>;
      isKnown(): boolean | Promise<boolean>;
    }
    const changes: Record<string, () => Promise<Change>> = {
      "a key that was made": async () => {
        let key = "";
        return {
          change: async () => {
            ({ key } = await newKey());
          },
          isKnown: async () => (await send(other, key)) === 200,
        };
      },
      "a key that was revoked": async () => {
        const { name, key } = await newKey();
        await untilKnown([other], [{ key }]);
        return { change: () => revoke(name), isKnown: async () => (await send(other, key)) === 401 };
      },
      "the end of live views and pages with their key": async () => {
        const headers = { authorization: `Bearer ${anna.key}` };
        const made = await one.post("/api/admin/keys", { name: `page-${++serial}` }, headers);
        const { name, key } = (await made.json()) as { name: string; key: string };
        await untilKnown([other], [{ key }]);
        const feeds = [
          await watchFeed(other.url, "/api/admin/live", { authorization: `Bearer ${key}` }),
          await watchFeed(other.url, "/admin/requests/live", await signedIn(other.url, key)),
        ];
        await until(() => feeds.every(({ heard }) => heard.length > 0), "both views have begun");
        return {
          change: () => one.post(`/api/admin/keys/${encodeURIComponent(name)}/revoke`, {}, headers),
          isKnown: () => feeds.every(({ ended }) => ended),
        };
      },
      "the models of a member": async () => {
        const models = serial++ % 2 === 0 ? ["claude-*"] : null;
        return {
          change: () => withTeamStores(team, ({ members }) => members.setLimits("anna", { models })),
          isKnown: async () => (await send(other, anna.key)) === (models ? 403 : 200),
        };
      },
      "a member who was removed": async () => {
        const name = `ben-${++serial}`;
        const member = await team.addMember(name, `${name}-demo`);
        await untilKnown([other], [member]);
        return {
          change: () => withTeamStores(team, ({ members }) => members.remove(name)),
          isKnown: async () => (await send(other, member.key)) === 401,
        };
      },
      "a change of the config": async () => {
        const retentionDays = 10 + ++serial;
        return {
          change: () => one.admin("/config", { retentionDays }),
          isKnown: async () => (await other.admin("/config")).config.retentionDays === retentionDays,
        };
      },
      "a budget": async () => {
        const name = `budget-${++serial}`;
        return {
          change: () => one.admin("/budgets", { name, unit: "requests", limit: 1e6, per: "month" }),
          isKnown: async () => (await other.admin(`/budgets?budget=${name}`)).items?.length === 1,
        };
      },
      "an account that was paused": async () => {
        const paused = serial++ % 2 === 0;
        const change = { account_key: "github.com/work-demo", paused };
        return {
          change: () => one.admin("/accounts/pause", change),
          isKnown: async () =>
            (await accountsOf()).some(
              ({ account_id, state }) => account_id === "work-demo" && (state === "paused") === paused,
            ),
        };
      },
      "a sign-in that was begun": async () => {
        const form_token = formTokenIn(await (await fetch(`${one.url}/admin/accounts`)).text());
        let path = "";
        return {
          change: async () => {
            const body = new URLSearchParams({ form_token });
            const begun = await fetch(`${one.url}/admin/accounts/sign-in`, {
              method: "POST",
              redirect: "manual",
              body,
            });
            path = begun.headers.get("location")!;
          },
          isKnown: async () => (await (await fetch(`${other.url}/admin/accounts`)).text()).includes(path),
        };
      },
      "an account that cools down": async () => {
        const [limited] = individuals(`limited-${++serial}`);
        await team.signIn([limited!]);
        team.demo.accounts.push(limited!);
        await until(
          async () => (await accountsOf()).some(({ account_id }) => account_id === limited!.login),
          "it is known",
        );
        const answer = () => Response.json({ message: "slow" }, { status: 429, headers: { "retry-after": "60" } });
        const before = (await accountsOf()).filter(({ state }) => state === "cooling").length;
        return {
          change: async () => {
            team.demo.intercept("/chat/completions", answer);
            await send(one, owner, { model: "claude-sonnet-4.6" });
          },
          isKnown: async () => (await accountsOf()).filter(({ state }) => state === "cooling").length > before,
        };
      },
    };

    test.each(Object.keys(changes))("%s", async (name) => {
      const measure = async () => {
        const { change, isKnown } = await changes[name]!();
        await change();
        return took(() => until(isKnown, `${name} is known`));
      };
      expect(await leastOf(2_000, measure)).toBeLessThan(2_000);
    });
  });

  test("a suspension by GitHub stops every server within a second", async () => {
    const measure = async () => {
      await using team = await startTeam(postgres);
      const all = await Promise.all([team.server(), team.server(), team.server()]);
      for (const server of all) expect((await server.post("/v1/chat/completions", chatBody("Hello"))).status).toBe(200);
      const words = { message: "Sorry. Your account was suspended" };
      team.demo.intercept("/chat/completions", () => Response.json(words, { status: 403 }));
      expect((await all[0]!.post("/v1/chat/completions", chatBody("Hello"))).status).toBe(403);
      const isStopped = async () =>
        (await Promise.all(all.map((server) => server.admin("/accounts")))).every(
          ({ items }) => items[0].state === "failed",
        );
      return await took(() => until(isStopped, "every server has stopped"));
    };
    expect(await leastOf(1_000, measure)).toBeLessThan(1_000);
  });

  test("a server that is killed in the exchange of a token holds another up for less than 2.5 s", async () => {
    const measure = async () => {
      await using team = await startTeam(postgres);
      const [one, other] = await Promise.all([team.process(), team.server()]);
      for (const server of [one, other]) await server.post("/v1/chat/completions", chatBody("Hello"));
      team.demo.expireTokens();
      const reached = Promise.withResolvers<void>();
      team.demo.intercept("/copilot_internal/v2/token", () => {
        reached.resolve();
        return new Promise<undefined>(() => {});
      });
      one.post("/v1/chat/completions", chatBody("Hello")).catch(() => {});
      await reached.promise;
      const waiting = other.post("/v1/chat/completions", chatBody("Hello"));
      await Bun.sleep(100);
      one.command.process.kill("SIGKILL");
      return await took(async () => expect((await waiting).status).toBe(200));
    };
    expect(await leastOf(2_500, measure)).toBeLessThan(2_500);
  });

  describe("while the database is away", () => {
    const away: [how: string, begin: () => void | Promise<void>, end: () => void | Promise<void>][] = [
      ["it hangs", () => postgres.pause(), () => postgres.resume()],
      ["it is stopped", () => postgres.stop(), () => postgres.start()],
    ];
    test.each(away)(
      "%s: one request waits, no other, changes are refused at once, and it is over soon",
      async (_how, begin, end) => {
        await using team = await startTeam(postgres);
        const server = await team.process();
        await server.admin("/budgets", { name: "team", unit: "requests", limit: 5_000, per: "month", then: "warn" });
        const one = async () => expect((await server.post("/v1/chat/completions", chatBody("Hello"))).status).toBe(200);
        const change = (logLevel: string) => server.admin("/config", { logLevel });
        await one();
        await begin();
        try {
          expect(await took(one), "the first request, ms").toBeLessThan(3_500);
          const later = await Promise.all(Array.from({ length: 20 }, () => took(one)));
          // One of them may have been the next to ask whether it is back.
          expect(later.filter((ms) => ms > 1_000).length, "requests that took more than a second").toBeLessThanOrEqual(
            1,
          );
          expect(await leastOf(1_500, () => took(() => change("debug"))), "a change, ms").toBeLessThan(1_500);
        } finally {
          await end();
        }
        const isBack = async () => (await change("warn")).error === undefined;
        expect(await took(() => until(isBack, "changes are made again")), "until it is over, ms").toBeLessThan(6_000);
        await until(async () => (await server.admin("/budgets")).items?.[0]?.used === 22, "the budget is exact");
      },
    );
  });
});

describeWith("pgbouncer", "behind PgBouncer", () => {
  describeWithOwnPostgres("servers of a team", (postgres) => {
    let pooler: PgBouncer;
    beforeAll(async () => {
      pooler = await startPgBouncer(await postgres.database());
    });
    afterAll(() => pooler[Symbol.asyncDispose]());

    test("a key that was revoked is refused everywhere within a second", async () => {
      await using team = await startTeam(postgres, { pooler });
      const all = await Promise.all([team.process(), team.process()]);
      await all[0]!.admin("/keys", { name: "spare" });
      let serial = 0;
      const measure = async () => {
        const name = `key-${++serial}`;
        const { key } = await all[0]!.admin("/keys", { name });
        await untilKnown(all, [{ key }]);
        await all[1]!.admin(`/keys/${name}/revoke`, {});
        return took(async () => {
          for (const server of all) await until(async () => (await send(server, key)) === 401, "the key is refused");
        });
      };
      expect(await leastOf(2_000, measure)).toBeLessThan(2_000);
    });
  });
});
