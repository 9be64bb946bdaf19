/**
 * Scenario: a scripted day: three accounts, 2,000 requests, ten at a time. What each account could do is known from the
 * upstream's own books, so every answer and the order of the accounts can be held against the truth.
 */
import { expect, test } from "bun:test";
import { type DemoAccount, demoAccounts, quotas } from "../../../src/demo/accounts";
import type { SeenRequest } from "../../../src/demo/state";
import { startProxy } from "../../support/proxy";

const second = 1000;
const hour = 3600 * second;
const premium = "claude-sonnet-4.6";
const free = "gpt-5-mini";
const exchange = "/copilot_internal/v2/token";

/** Truth, and how this machine's clocks see it: the wall's may be set wrongly, the other stands still in sleep. */
function skewedClock() {
  let truth = Date.parse("2026-11-10T06:00:00Z");
  let slept = 0;
  let skew = 0;
  return {
    truth: () => truth,
    now: () => truth + skew,
    monotonic: () => truth - slept,
    pass(milliseconds: number) {
      truth += milliseconds;
    },
    sleep(milliseconds: number) {
      truth += milliseconds;
      slept += milliseconds;
    },
    jump(milliseconds: number) {
      skew += milliseconds;
    },
  };
}

/** One account of the day, exchanged and limited. */
const person = (login: string, remaining: number): DemoAccount => {
  const account: DemoAccount = { ...demoAccounts()[0]!, login, githubToken: `ghu_DEMO${login}DEMO0123456789` };
  account.quota = quotas.pro();
  account.quota.premium.remaining = remaining;
  account.quota.premium.entitlement = 1000;
  return account;
};

test("a day with three accounts: nothing fails that an able account could have served, and the order is the specification's", async () => {
  const clock = skewedClock();
  const [one, two, three] = [person("first", 300), person("second", 250), person("third", 600)];
  await using proxy = await startProxy({
    demo: { accounts: [one, two, three], now: clock.truth },
    clock: { now: clock.now, monotonic: clock.monotonic, random: () => 0.5 },
    config: { logLevel: "debug" },
  });
  const { demo } = proxy;

  const limited = { from: Number.POSITIVE_INFINITY, until: 0 };
  const isLimited = () => clock.truth() >= limited.from && clock.truth() < limited.until;
  demo.intercept(
    "/chat/completions",
    ({ account }) => {
      if (account !== "second" || !isLimited()) return undefined;
      const wait = Math.ceil((limited.until - clock.truth()) / second);
      const body = { error: { code: "rate_limited", message: "Too many requests." } };
      return Response.json(body, { status: 429, headers: { "retry-after": String(wait) } });
    },
    Number.POSITIVE_INFINITY,
  );
  let exchangeIsDown = false;
  demo.intercept(
    exchange,
    () => (exchangeIsDown ? new Response("", { status: 502 }) : undefined),
    Number.POSITIVE_INFINITY,
  );

  /** Who can serve now, by the upstream's books: in order, with how many premium requests each has left. */
  const truth = () =>
    demo.accounts
      .filter((account) => account !== two || !isLimited())
      .map((account) => ({ login: account.login, left: account.quota.premium.remaining }));

  let served = 0;
  let refused = 0;
  let step = 0;
  /** Ten requests at once, six of them premium; every answer is held against the truth of before. */
  async function ten(): Promise<void> {
    const before = truth();
    const mark = demo.journal.length;
    const answers = await Promise.all(
      Array.from({ length: 10 }, async (_, at) => {
        const model = at % 5 < 3 ? premium : free;
        const stream = (at + step) % 4 === 0;
        const body = { model, stream, messages: [{ role: "user", content: `Hello ${step} ${at}` }] };
        const response = await proxy.post("/v1/chat/completions", body);
        return { model, status: response.status, text: await response.text() };
      }),
    );
    const seen = demo.journal.slice(mark).filter(({ path }) => path === "/chat/completions");
    const by = (model: string, login: string) =>
      seen.filter((each) => each.status === 200 && each.account === login && modelOf(each) === model).length;

    // Premium: the first in order gives what it has, the next one the rest.
    let wanted = 6;
    for (const { login, left } of before) {
      const share = Math.min(wanted, Math.max(0, left));
      expect([step, login, by(premium, login)]).toEqual([step, login, share]);
      wanted -= share;
    }
    const failures = answers.filter(({ status }) => status !== 200);
    expect([step, failures.length, failures.map(({ text }) => text)]).toEqual([step, wanted, expect.anything()]);
    for (const { status, text, model } of failures) {
      expect([status, model]).toEqual([429, premium]);
      for (const name of ["first", "second", "third"]) expect(text).toContain(name);
    }
    // Free: each in its turn, whoever is out of premium requests; a batch that finds one unable may lean on the next.
    const turns = before.map(({ login }) => by(free, login));
    expect([step, turns.reduce((sum, turn) => sum + turn, 0)]).toEqual([step, 4]);
    if (before.length === 3 && seen.every(({ status }) => status === 200))
      expect([step, Math.max(...turns) - Math.min(...turns)]).toEqual([step, 1]);
    // However many wait, an account is exchanged once.
    for (const { login } of before)
      expect(
        demo.journal.slice(mark).filter(({ path, account }) => path === exchange && account === login).length,
      ).toBeLessThanOrEqual(1);
    served += answers.length - failures.length;
    refused += failures.length;
    step += 1;
  }

  const events: Record<number, () => void | Promise<void>> = {
    20: () => clock.jump(2 * hour),
    30: () => clock.jump(-4 * hour),
    40: () => clock.jump(2 * hour),
    60: () => {
      limited.from = clock.truth();
      limited.until = clock.truth() + 1800 * second;
    },
    87: () => void demo.accounts.splice(demo.accounts.indexOf(two), 1), // revoked at GitHub
    120: () => clock.sleep(8 * hour),
  };
  while (step < 200) {
    await events[step]?.();
    await ten();
    clock.pass(432 * second);
    if (step !== 150) continue;
    // Five minutes without the exchange, while the tokens are due: found by waiting until they nearly are.
    await ten();
    const due = demo.journal.findLast(({ path, account }) => path === exchange && account === "third")!.at;
    clock.pass(Math.max(0, due + 1446 * second - clock.truth()));
    exchangeIsDown = true;
    const askedBefore = demo.journal.length;
    for (let minute = 0; minute < 5; minute++) {
      await ten();
      clock.pass(60 * second);
    }
    const asked = demo.journal.slice(askedBefore).filter(({ path }) => path === exchange).length;
    expect(asked).toBeWithin(2, 40); // some tries, no storm
    exchangeIsDown = false;
  }

  // The sum of the day.
  expect(served + refused).toBe(2000);
  expect(refused).toBeGreaterThan(50);
  expect(proxy.app.accounts.map(({ id, state }) => [id, state.name])).toEqual([
    ["first", "exhausted"],
    ["second", "failed"],
    ["third", "exhausted"],
  ]);
  const log = proxy.lines.join("");
  for (const words of ["120 minutes ahead", "120 minutes behind", "right again"])
    expect(log).toContain(`This machine's clock is ${words}, by GitHub's.`);
  expect(log).toMatch(/first is exhausted until 2026-12-01\S+: /);
  expect(log).toMatch(/second is cooling down until \S+: GitHub Copilot answered with status 429/);
  expect(log).toMatch(/second has failed: GitHub no longer accepts its sign-in/);
  expect(log).toMatch(/third is exhausted until 2026-12-01\S+: /);
  expect(log).toMatch(/third: GitHub cannot issue Copilot tokens at the moment/);

  // One exchange for each expiry: never two of an account within a token's life, but where a clock was set.
  for (const login of ["first", "third"]) {
    const times = demo.journal
      .filter(({ path, account, status }) => path === exchange && account === login && status === 200)
      .map(({ at }) => at);
    const early = times.slice(1).filter((at, place) => at - times[place]! < 1440 * second);
    expect(early.length).toBeLessThanOrEqual(3);
    expect(times.length).toBeWithin(45, 65);
  }
  // Nothing went up with a token that had expired: the only 401s are the revoked account's.
  const unsupportedParams = demo.journal.filter(({ path, status }) => path === "/chat/completions" && status === 401);
  expect(new Set(unsupportedParams.map(({ account }) => account))).toEqual(new Set(["second"]));
  proxy.rows();
  expect(await proxy.app.history.count()).toBe(served + refused);
});

const modelOf = ({ body }: SeenRequest) => (body as { model?: string }).model;
