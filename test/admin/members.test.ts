/** Scenario: an invitation from the command to the key, as a browser without script goes through it. */
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { readEnvironment } from "../../src/config/environment";
import { startDemo } from "../../src/demo/demo";
import { openApp } from "../../src/parts/open-app";
import { openStores } from "../../src/parts/open-stores";
import { handler } from "../../src/server";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { postJson } from "../support/post-json";
import { describeWithMembers, individuals, placeOf, upstreamEnv } from "../support/teams";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

describeWithMembers("an invitation", (place) => {
  /** A server whose other pages are closed to everybody: guests have no token. */
  async function world(sleep = async () => {}) {
    const home = temporaryFolder();
    const demo = startDemo({ pace: 0, accounts: individuals("anna-demo", "ben-demo"), device: { interval: 0 } });
    const env: Record<string, string> = { DRAGOMAN_HOME: home, ...upstreamEnv(demo), ...(await placeOf(place)) };
    const environment = readEnvironment({ HOME: home, ...env });
    const lines: string[] = [];
    const stores = await openStores(environment, { follow: true, write: (line) => void lines.push(line) });
    const app = openApp({ environment, stores, version: "1", adminAuth: "always", clock: { sleep } });
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: handler(app, false) });
    const url = server.url.origin;
    return {
      ...{ demo, app, url, lines, home: env.DRAGOMAN_HOME! },
      /** The link that the command prints, on this server. */
      async invite(name: string): Promise<string> {
        await using command = run(["member", "add", name, "--url", "https://dragoman.example/x"], { env });
        expect([await command.exited, command.stderr()]).toEqual([0, expect.stringContaining("works once")]);
        expect(command.stdout()).toMatch(/^https:\/\/dragoman\.example\/admin\/join\/[\w-]{32}\n$/);
        return url + new URL(command.stdout().trim()).pathname;
      },
      command: (...words: string[]) => inProcess(words, env),
      /** Follows the forms and redirects up to the key. */
      /** Of the browser that accepted an invitation. */
      cookie: "",
      async accept(link: string): Promise<string> {
        const page = await (await fetch(link)).text();
        const [, action] = /<form method="post" action="([^"]+\/sign-in)"/.exec(page)!;
        const begun = await post(url + action!);
        expect(begun.status).toBe(303);
        const place = url + begun.headers.get("location")!;
        let shown = "";
        do shown = await (await fetch(place)).text();
        while (shown.includes("data-waiting"));
        const [, key] = /<form method="post" action="([^"]+\/key)"/.exec(shown) ?? [];
        if (!key) return shown;
        const answer = await post(url + key);
        this.cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
        const last = await answer.text();
        return /<pre id="new-key">(drg_[\w-]{43})<\/pre>/.exec(last)![1]!;
      },
      async [Symbol.asyncDispose]() {
        await server.stop(true);
        app.close();
        await stores.close();
        await demo.stop();
      },
    };
  }

  const post = (address: string, headers: Record<string, string> = {}) =>
    fetch(address, { method: "POST", redirect: "manual", headers });
  const chat = (url: string, key: string) =>
    postJson(
      `${url}/v1/chat/completions`,
      { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] },
      { authorization: `Bearer ${key}` },
    );

  test("leads from the command to a key that spends the member's account, once", async () => {
    await using team = await world();
    const link = await team.invite("anna");
    // The server learns of its first member a moment later. The pages behind the guard stay closed.
    await until(() => team.app.members!.needKeys, "the server has learned of its first member");
    expect((await fetch(`${team.url}/admin`)).status).toBe(401);
    // Without an account there is no key, and the link stays good.
    expect((await post(`${link}/key`)).status).toBe(409);
    const key = await team.accept(link);
    const own = { headers: { cookie: team.cookie } };
    expect(await (await fetch(`${team.url}/admin/device`, own)).text()).toMatch(/Sign in a tool.*anna/s);
    expect((await chat(team.url, key)).status).toBe(200);
    expect(team.demo.journal.at(-1)!.account).toBe("anna-demo");
    for (const again of [await fetch(link), await post(`${link}/sign-in`), await post(`${link}/key`)])
      expect([again.status, await again.text()]).toEqual([404, expect.stringContaining("a link works once")]);
    expect(team.lines.join("")).not.toContain(key);

    const { stdout } = await team.command("member", "ls", "--json");
    expect(JSON.parse(stdout).items).toMatchObject([
      {
        name: "anna",
        keys: 1,
        accounts: [{ account_key: "github.com/anna-demo", state: place === "folder" ? null : "ready" }],
      },
    ]);
    expect((await team.command("member", "rm", "ANNA")).code).toBe(0);
    await until(async () => (await chat(team.url, key)).status === 401, "the key of the removed member is refused");
    expect((await fetch(`${team.url}/admin/device`, own)).status).toBe(401);
    expect((await team.command("member", "rm", "anna")).stderr).toContain("There is no member anna");
  });

  test("an invitation gives nobody else's account: not that of another member, nor a sign-in of another invitation", async () => {
    await using team = await world();
    const [anna, ben] = [await team.invite("anna"), await team.invite("ben")];
    const begun = await post(`${anna}/sign-in`);
    const sign = begun.headers.get("location")!.split("/").at(-1);
    expect((await fetch(`${ben}/sign-in/${sign}`)).status).toBe(404);
    expect((await post(`${anna}/sign-in`, { origin: "https://evil.example" })).status).toBe(403);
    expect((await fetch(`${team.url}/admin/join/${"x".repeat(32)}`)).status).toBe(404);
    expect((await fetch(`${team.url}/admin/join/short`)).status).toBe(404);
    await until(async () => (await team.app.signIns.find(sign!))!.state.name !== "waiting", "Anna's sign-in has ended");
    // The only account that is left is anna's.
    team.demo.accounts.splice(1);
    expect(await team.accept(ben)).toContain("belongs to somebody else");
    expect(team.app.allAccounts.map(({ id }) => id)).toEqual(["anna-demo"]);
    expect(team.app.accounts).toEqual([]);
  });

  if (place === "folder")
    test("whose member is not in a restored file of members takes their account along, and nobody's who is there", async () => {
      await using team = await world();
      await team.accept(await team.invite("anna"));
      // The tables may not be as old as the accounts.
      for (const name of ["members.sqlite", "members.sqlite-wal", "members.sqlite-shm"])
        rmSync(join(team.home, name), { force: true });
      team.demo.accounts.splice(1);
      expect(await team.accept(await team.invite("anna"))).toMatch(/^drg_/);
      expect(await team.accept(await team.invite("ben"))).toContain("belongs to somebody else");
    });

  test.each(["member rm anna --yes", "member withdraw anna", "member add anna --url https://dragoman.example"])(
    "whoever is at GitHub when a command ends their link leaves no account behind: %s",
    async (words) => {
      const approved = Promise.withResolvers<void>();
      await using team = await world(() => approved.promise);
      const link = await team.invite("anna");
      const begun = await post(`${link}/sign-in`);
      expect((await team.command(...words.split(" "))).code).toBe(0);
      approved.resolve();
      const id = begun.headers.get("location")!.split("/").at(-1)!;
      await until(async () => (await team.app.signIns.find(id))?.state.name !== "waiting", "the sign-in has ended");
      expect(team.app.accountStore.load()).toEqual([]);
    },
  );
});
