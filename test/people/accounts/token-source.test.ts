/**
 * Scenario: Copilot's tokens: exchanged in time, for all who wait at once; `fixtures/scenes/tokens.txt` has what becomes of
 * requests, whatever GitHub answers.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Demo, type Interceptor, startDemo } from "../../../src/demo/demo";
import { Account } from "../../../src/people/accounts/account";
import { hostsFor } from "../../../src/people/accounts/hosts";
import { failureOf } from "../../support/refusal";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";
import {
  callsTo,
  exchangePath,
  exchangesOf,
  handClock,
  hostsOf,
  hour,
  keptLog,
  listModels,
  minute,
  openDemoAccount,
  savedFrom,
  second,
} from "./bench";

testScenes("tokens");

let demo: Demo;
beforeEach(() => {
  demo = startDemo({ pace: 0 });
});
afterEach(() => demo.stop());

const down: Interceptor = () => new Response("<html><h1>502 Bad Gateway</h1></html>", { status: 502 });
const always = 1_000_000;

/** A normal exchange, with some of its answer replaced; `undefined` removes a field. */
function exchangeSays(changes: Record<string, unknown>, times = 1) {
  demo.intercept(
    exchangePath,
    (seen) => {
      const account = demo.accounts.find(({ githubToken }) => seen.headers.authorization === `token ${githubToken}`)!;
      const token = `tid=${account.login};n=${demo.journal.length}`;
      const usual = { token, expires_at: Math.floor(Date.now() / 1000) + 1800, refresh_in: 1500 };
      return Response.json({ ...usual, endpoints: { api: demo.url }, ...changes });
    },
    times,
  );
}

describe("a token is there when it is needed", () => {
  test("nothing is asked of GitHub before the first need, at which 50 callers make one exchange", async () => {
    const { account } = openDemoAccount(demo);
    await Bun.sleep(10);
    expect(demo.journal).toEqual([]);
    const tokens = await Promise.all(Array.from({ length: 50 }, () => account.copilotToken()));
    expect([new Set(tokens).size, (await listModels(tokens[0]!)).status]).toEqual([1, 200]);
    expect(demo.journal.map(({ path }) => path)).toEqual([exchangePath, "/models"]);
  });

  test("GitHub is told who asks: dragoman, and nothing of another product", async () => {
    const { account } = openDemoAccount(demo);
    await account.copilotToken();
    expect(demo.journal[0]!.headers).toMatchObject({
      "user-agent": "dragoman/1.2.3",
      "editor-version": "dragoman/1.2.3",
      "editor-plugin-version": "dragoman/1.2.3",
      authorization: `token ${demo.accounts[0]!.githubToken}`,
    });
    expect(JSON.stringify(demo.journal[0]!.headers)).not.toMatch(/vscode|machine|device|telemetry/i);
  });

  test("the token is renewed a minute before GitHub wants it, and nobody waits for that", async () => {
    const { account, clock } = openDemoAccount(demo);
    const old = await account.copilotToken();
    clock.pass(1439 * second);
    expect(await account.copilotToken()).toBe(old);
    expect(exchangesOf(demo)).toBe(1);
    const { promise: held, resolve: release } = Promise.withResolvers<undefined>();
    demo.intercept(exchangePath, () => held);
    clock.pass(2 * second);
    expect(await account.copilotToken()).toBe(old);
    expect(await account.copilotToken()).toBe(old);
    release(undefined);
    await until(async () => (await account.copilotToken()) !== old, "the new token is used");
    expect(exchangesOf(demo)).toBe(2);
  });

  test("a wall clock that jumps at each request causes no storm", async () => {
    const { account, clock } = openDemoAccount(demo);
    for (let turn = 0; turn < 120; turn++) {
      await account.copilotToken();
      clock.jump(turn % 3 ? 24 * hour : -24 * hour);
      clock.pass(second);
    }
    expect(exchangesOf(demo)).toBeLessThanOrEqual(5); // two minutes
  });
});

describe("odd answers of the exchange", () => {
  test.each([
    ["0", { refresh_in: 0 }, 30 * second],
    ["-1", { refresh_in: -1 }, 30 * second],
    ["a word", { refresh_in: "soon" }, 1435 * second],
    ["2^40", { refresh_in: 2 ** 40 }, 1735 * second],
    ["2^40, with an end long past", { refresh_in: 2 ** 40, expires_at: 1 }, 24 * hour - minute],
    ["missing", { refresh_in: undefined }, 1435 * second],
    ["missing, like the end", { refresh_in: undefined, expires_at: undefined }, 1435 * second],
  ])("refresh_in %s is put between half a minute and a day", async (_, changes, due) => {
    exchangeSays(changes);
    const { account, clock } = openDemoAccount(demo);
    const first = await account.copilotToken();
    clock.pass(due - 2 * second);
    expect(await account.copilotToken()).toBe(first);
    await Bun.sleep(5);
    expect(exchangesOf(demo)).toBe(1);
    clock.pass(10 * second);
    await account.copilotToken();
    await until(() => exchangesOf(demo) === 2, "GitHub is asked for the next token");
  });

  test("refresh_in 0 in every answer means no more than two exchanges a minute", async () => {
    exchangeSays({ refresh_in: 0, expires_at: 1 }, always);
    const { account, clock } = openDemoAccount(demo);
    for (let turn = 0; turn < 240; turn++) {
      await account.copilotToken();
      clock.pass(second);
    }
    expect(exchangesOf(demo)).toBeLessThanOrEqual(9); // four minutes
  });
});

describe("while GitHub is down", () => {
  test("the old token goes on until its end, and GitHub is asked after 1, 2, 4 … 60 s", async () => {
    const { account, clock, lines } = openDemoAccount(demo);
    const old = await account.copilotToken();
    clock.pass(1445 * second);
    const askedAfter = [0, 1, 3, 7, 15, 31, 63, 123];
    demo.intercept(exchangePath, down, askedAfter.length);
    const unsupportedParams = () =>
      lines.filter((line) => line.includes("Its present Copilot token stays in use for now.")).length;
    for (let seconds = 0; seconds < 180; seconds++) {
      expect(await account.copilotToken()).toBe(old);
      const asked = askedAfter.indexOf(seconds) + 1;
      if (asked > 0) await until(() => unsupportedParams() === asked, "the failure is in the log");
      clock.pass(second);
    }
    expect(exchangesOf(demo)).toBe(1 + askedAfter.length);
    expect(account.state.name).toBe("ready");
    clock.pass(4 * second);
    await account.copilotToken();
    await until(async () => (await account.copilotToken()) !== old, "the new token is used");
  });

  test("an exchange that hangs holds up no request with a good token, and without one ends at its limit, in words", async () => {
    const { account, clock } = openDemoAccount(demo, "octo-demo", { timeoutMs: 600_000 });
    const old = await account.copilotToken();
    demo.intercept(exchangePath, () => new Promise(() => {}), always);
    clock.pass(1445 * second);
    expect(await account.copilotToken()).toBe(old);
    const { account: other } = openDemoAccount(demo, "octo-demo", { timeoutMs: 100 });
    const error = await failureOf(other.copilotToken());
    expect([error.status, error.message]).toEqual([503, expect.stringContaining("did not answer within 0.1 s.")]);
    expect(other.state).toMatchObject({ name: "cooling", outage: true });
  });
});

test("a failure the relay found is kept for five minutes, whatever renewal ends meanwhile; then GitHub is asked anew", async () => {
  const { account, clock } = openDemoAccount(demo);
  const rejected = await account.copilotToken();
  const { promise: answered, resolve: release } = Promise.withResolvers<undefined>();
  demo.intercept(exchangePath, () => answered);
  const renewing = account.renewToken(rejected);
  account.setState({ name: "failed", reason: "GitHub Copilot refuses fresh tokens." });
  release(undefined);
  const late = await renewing;
  for (const asked of [account.copilotToken(), account.renewToken(late)])
    expect((await failureOf(asked)).message).toContain("refuses fresh tokens");
  expect([account.state.name, exchangesOf(demo)]).toEqual(["failed", 2]);
  clock.pass(5 * minute);
  expect(await account.copilotToken()).not.toBe(late);
  expect(account.state.name).toBe("ready");
});

test("the same cooldown announced by many answers is one line in the log", () => {
  const { account, clock, lines } = openDemoAccount(demo);
  for (let turn = 0; turn < 20; turn++)
    account.setState({ name: "cooling", until: clock.now() + 20 * second, reason: "Slow down." });
  expect(lines.length).toBe(1);
  expect(lines[0]).toContain("warn  octo-demo is cooling down until 2026-11-21T10:00:20.000Z: Slow down.");
});

test("a clock that is wrong by GitHub's is said once, and once more when it is right again", async () => {
  const truth = handClock();
  const own = startDemo({ pace: 0, now: truth.now });
  const { account, clock, lines } = openDemoAccount(own);
  for (const hours of [0, 2, 0, -4, 2]) {
    clock.jump(hours * hour);
    await account.renewToken(await account.copilotToken());
    for (const each of [truth, clock]) each.pass(30 * second);
  }
  await own.stop();
  const said = lines.flatMap((line) => /This machine's clock is (.*), by GitHub's\./.exec(line)?.[1] ?? []);
  expect(said).toEqual(["120 minutes ahead", "120 minutes behind", "right again"]);
});

describe("the model host refuses", () => {
  test("200 refused callers, late ones included, make one exchange", async () => {
    const { account } = openDemoAccount(demo);
    const old = await account.copilotToken();
    demo.expireTokens();
    const early = Array.from({ length: 150 }, () => account.renewToken(old));
    const [fresh] = await Promise.all(early);
    const late = await Promise.all(Array.from({ length: 50 }, () => account.renewToken(old)));
    for (const token of [...(await Promise.all(early)), ...late]) expect(token).toBe(fresh!);
    expect((await listModels(fresh!)).status).toBe(200);
    expect(exchangesOf(demo)).toBe(2);
  });

  test("a client that is refused over and over does not make GitHub suffer", async () => {
    const { account, clock } = openDemoAccount(demo);
    let token = await account.copilotToken();
    for (let turn = 0; turn < 20; turn++) {
      token = await account.renewToken(token);
      clock.pass(second);
    }
    expect(exchangesOf(demo)).toBe(4);
    expect(await account.renewToken(token)).toBe(token);
  });

  test("a token GitHub does not exchange (404) is used directly", async () => {
    const saved = savedFrom(demo.accounts[2]!);
    const { logger, lines } = keptLog();
    const account = new Account(
      { ...saved, app: "Iv1.mine", mode: "exchange" },
      { hosts: hostsOf(demo), version: "1", logger },
    );
    const token = await account.copilotToken();
    expect(token.mode).toBe("direct");
    expect((await listModels(token)).status).toBe(200);
    expect(account.state.name).toBe("ready");
    expect(lines.join("")).toContain("GitHub does not exchange the token of this sign-in; it is used directly.");
    await account.copilotToken();
    expect(exchangesOf(demo)).toBe(1);
  });

  const userPath = "/copilot_internal/user";

  test.each([
    ["octo-demo", "relearnHost", exchangePath],
    ["plus-demo", "relearnHost", userPath],
    ["plus-demo", "renewTokenOrHost", userPath],
  ] as const)(
    "%s, whose seat was moved, learns its host by %s, for which one call is made however many ask",
    async (login, learn, path) => {
      const { account } = openDemoAccount(demo, login);
      const old = await account.copilotToken();
      demo.accounts.find((each) => each.login === login)!.host = "business";
      expect((await listModels(old)).status).toBe(421);
      const [first, ...others] = await Promise.all(Array.from({ length: 20 }, () => account[learn](old)));
      expect([(await listModels(first!)).status, first!.baseUrl]).toEqual([200, demo.businessUrl]);
      for (const token of [...others, await account.copilotToken()]) expect(token).toEqual(first!);
      if (learn === "renewTokenOrHost") expect(await account.renewTokenOrHost(first!)).toBe(first!);
      expect(callsTo(demo, path)).toBe(2);
    },
  );

  test("in direct mode the quota endpoint names the host from the start, by one call for host and quota", async () => {
    demo.accounts[2]!.host = "business";
    const { account } = openDemoAccount(demo, "plus-demo");
    const tokens = await Promise.all(Array.from({ length: 20 }, () => account.copilotToken()));
    expect(new Set(tokens).size).toBe(1);
    expect(tokens[0]!.baseUrl).toBe(demo.businessUrl);
    expect((await listModels(tokens[0]!)).status).toBe(200);
    expect((await account.quota()).plan).toBe("individual_pro");
    expect(callsTo(demo, userPath)).toBe(1);
  });

  test("in direct mode the general host serves while GitHub cannot name another, and GitHub is asked again", async () => {
    demo.accounts[2]!.host = "business";
    demo.intercept(userPath, down);
    const { account, clock } = openDemoAccount(demo, "plus-demo");
    expect((await account.copilotToken()).baseUrl).toBe(demo.url);
    expect(account.state.name).toBe("ready");
    await account.copilotToken();
    expect(callsTo(demo, userPath)).toBe(1);
    clock.pass(6 * minute);
    expect((await account.copilotToken()).baseUrl).toBe(demo.businessUrl);
  });

  test.each(["octo-demo", "plus-demo"])("when GitHub names no other host, %s fails and says so", async (login) => {
    const { account } = openDemoAccount(demo, login);
    const old = await account.copilotToken();
    expect((await failureOf(account.relearnHost(old))).message).toContain("does not serve this account");
    expect(account.state.name).toBe("failed");
  });

  test("DRAGOMAN_COPILOT_API_URL wins over the host in the token", async () => {
    const hosts = hostsFor("github.com", { githubApiUrl: demo.url, copilotApiUrl: "https://mirror.example/copilot" });
    const { account } = openDemoAccount(demo, "octo-demo", { hosts });
    expect((await account.copilotToken()).baseUrl).toBe("https://mirror.example/copilot");
  });
});

describe("a temporary account", () => {
  const temporary = (githubToken: string) => {
    const { logger, lines } = keptLog();
    const account: Account = new Account(
      { temporary: true, githubToken },
      { hosts: hostsOf(demo), version: "1", logger },
    );
    return { account, lines };
  };

  test("it learns its name with its first token, and asks for it once", async () => {
    const { account } = temporary(demo.accounts[1]!.githubToken);
    expect([account.id, account.temporary]).toEqual(["temporary", true]);
    expect(demo.journal).toEqual([]);
    await account.copilotToken();
    await until(() => account.id === "work-demo", "the account has its name");
    await account.copilotToken();
    expect(callsTo(demo, "/user")).toBe(1);
  });

  test("a name that cannot be had does not hold up its requests", async () => {
    demo.intercept("/user", () => new Promise(() => {}));
    const { account } = temporary(demo.accounts[0]!.githubToken);
    expect((await listModels(await account.copilotToken())).status).toBe(200);
    expect(account.id).toBe("temporary");
    await account.quota();
    expect(account.id).toBe("octo-demo");
  });

  test("while its name cannot be had, it is asked for once a minute", async () => {
    const clock = handClock();
    demo.intercept("/user", down, always);
    const waking = { hosts: hostsOf(demo), version: "1", logger: keptLog().logger, ...clock };
    const account = new Account({ temporary: true, githubToken: demo.accounts[0]!.githubToken }, waking);
    for (let turn = 0; turn < 61; turn++) {
      await account.copilotToken();
      clock.pass(second);
    }
    await until(() => callsTo(demo, "/user") === 2, "the name is asked for again");
    await Bun.sleep(5);
    expect(callsTo(demo, "/user")).toBe(2);
  });

  test("a token that is not exchanged is used directly", async () => {
    const { account } = temporary(demo.accounts[2]!.githubToken);
    expect((await account.copilotToken()).mode).toBe("direct");
    expect((await account.quota()).plan).toBe("individual_pro");
  });
});

test("no token is ever written to the log, whatever it looks like", async () => {
  demo.accounts[0]!.githubToken = "ghu_of-no-known-kind";
  exchangeSays({ token: "a-copilot-token-of-no-known-kind" });
  const { account, lines } = openDemoAccount(demo);
  const { bearer } = await account.copilotToken();
  account.setState({ name: "failed", reason: `refused ${bearer} and ${demo.accounts[0]!.githubToken}` });
  const error = await failureOf(account.copilotToken());
  for (const secret of [bearer, demo.accounts[0]!.githubToken]) {
    expect(lines.join("")).not.toContain(secret);
    expect(error.message).not.toContain(secret);
    expect(JSON.stringify(account.state)).not.toContain(secret);
  }
});
