/**
 * Property: the pool and the Copilot tokens of its accounts follow a plain model: accounts cool down, run out, fail,
 * are suspended, paused and signed in again; tokens end and are refused; GitHub is away; the machine sleeps and its
 * clock is set.
 */
import { expect, test } from "bun:test";
import { type DemoAccount, demoAccounts } from "../../../src/demo/accounts";
import { type Demo, startDemo } from "../../../src/demo/demo";
import { Account } from "../../../src/people/accounts/account";
import { Pool } from "../../../src/people/accounts/pool";
import fc, { triesOf } from "../../support/random";
import { exchangePath, hostsOf, keptLog, listModels, minute, savedFrom, second } from "./bench";

/** What GitHub answers to an exchange. */
type Fault = "none" | "away" | "refused" | "suspended";
/** `truth` is GitHub's clock, `wall` may be set wrongly, and `monotonic` stands still in sleep. All in ms. */
interface Clocks {
  truth: number;
  wall: number;
  monotonic: number;
}
type State =
  | { name: "ready" }
  | { name: "exhausted" | "failed" | "suspended"; until: number }
  /** Ends by the clock that shows more: `monotonicUntil` is of the one that cannot be set. */
  | { name: "cooling"; until: number; monotonicUntil: number; ofPremium?: boolean };

interface ModelAccount {
  state: State;
  isPaused: boolean;
  fault: Fault;
  token?: Clocks & { isRefused: boolean };
  /** By the monotonic clock: when GitHub may be asked again, and when refused tokens were replaced. */
  waitUntil: number;
  forced: number[];
  /** Exchanges that failed in a row. */
  failures: number;
}
const signedIn = (): ModelAccount => ({
  state: { name: "ready" },
  isPaused: false,
  fault: "none",
  waitUntil: 0,
  forced: [],
  failures: 0,
});

class Model {
  readonly clock: Clocks = { truth: start, wall: start, monotonic: 5_000 };
  readonly accounts = [signedIn(), signedIn(), signedIn()];
  last: ModelAccount | undefined;
  exchanges = 0;

  get isStopped() {
    return this.accounts.some(({ state }) => state.name === "suspended");
  }
  isOver({ state }: ModelAccount): boolean {
    if (state.name === "ready" || state.name === "suspended") return false;
    return state.until <= this.clock.wall || (state.name === "cooling" && state.monotonicUntil <= this.clock.monotonic);
  }
  canServe(account: ModelAccount, premium: boolean): boolean {
    const { state } = account;
    if (account.isPaused) return false;
    if (state.name === "ready" || this.isOver(account)) return true;
    return !premium && (state.name === "exhausted" || (state.name === "cooling" && state.ofPremium === true));
  }
  candidates(premium: boolean): number[] {
    if (this.isStopped) return [];
    const turn = premium || !this.last ? 0 : this.accounts.indexOf(this.last) + 1;
    const order = [0, 1, 2].map((place) => (place + turn) % 3);
    const able = order.filter((place) => this.canServe(this.accounts[place]!, premium));
    if (!premium && able.length > 0) this.last = this.accounts[able[0]!];
    return able;
  }
  wait(premium: boolean): number | undefined {
    if (this.isStopped) return undefined;
    if (this.accounts.some((account) => this.canServe(account, premium))) return 0;
    const ends = this.accounts.flatMap(({ state, isPaused }) =>
      !isPaused && (state.name === "cooling" || state.name === "exhausted") ? [this.leftOf(state)] : [],
    );
    return ends.length > 0 ? Math.min(...ends) : undefined;
  }
  /** By the clock that shows less. */
  leftOf(state: Extract<State, { until: number }>): number {
    const left = state.until - this.clock.wall;
    return state.name === "cooling" ? Math.min(left, state.monotonicUntil - this.clock.monotonic) : left;
  }
  /** What the relay found out. A failed account stays failed. */
  mark(account: ModelAccount, state: State): void {
    const { name } = account.state;
    const isFailed = name === "suspended" || (name === "failed" && account.state.until > this.clock.wall);
    if (!isFailed) account.state = state;
  }
  age({ token }: ModelAccount): number {
    if (!token) return Number.POSITIVE_INFINITY;
    return Math.max(this.clock.wall - token.wall, this.clock.monotonic - token.monotonic);
  }
  /** @returns Whether there is a token. */
  token(account: ModelAccount): boolean {
    const { wall, monotonic } = this.clock;
    if (account.state.name !== "failed" && this.isOver(account)) account.state = { name: "ready" };
    const waits = () => monotonic < account.waitUntil;
    if (account.state.name === "failed") {
      account.token = undefined;
      account.waitUntil = 0;
    }
    const age = this.age(account);
    const isOver = !account.token || (account.failures > 0 && age >= 1_800 * second);
    if (!isOver && (age < 1_440 * second || waits())) return true;
    const isAsked = !(isOver && waits());
    if (isAsked) this.exchanges += 1;
    if (isAsked && account.fault === "none") {
      Object.assign(account, {
        token: { ...this.clock, isRefused: false },
        waitUntil: monotonic + 30 * second,
        failures: 0,
      });
      if (account.state.name === "failed") account.state = { name: "ready" };
      return true;
    }
    if (isAsked && account.fault !== "away") {
      account.state =
        account.fault === "refused" ? { name: "failed", until: wall + 5 * minute } : { name: "suspended", until: 0 };
      return false;
    }
    if (isAsked) {
      account.waitUntil = monotonic + Math.min(60, 2 ** account.failures) * second;
      account.failures = Math.min(account.failures + 1, 10);
    }
    if (account.token && age < 1_800 * second) return true;
    account.token = undefined;
    account.state = { name: "cooling", until: wall + account.waitUntil - monotonic, monotonicUntil: account.waitUntil };
    return false;
  }
  /** @returns Whether the model host takes the token. */
  isTaken({ token }: ModelAccount): boolean {
    return token !== undefined && !token.isRefused && this.clock.truth - token.truth < 1_800 * second;
  }
  /** After a 401. @returns Whether there is a token, which is the same one after three within 30 seconds. */
  renew(account: ModelAccount): boolean {
    const { monotonic } = this.clock;
    account.forced = account.forced.filter((at) => monotonic - at < 30 * second);
    if (account.forced.length === 3) return true;
    account.forced.push(monotonic);
    account.token = undefined;
    account.waitUntil = 0;
    return this.token(account);
  }
}

interface Real {
  demo: Demo;
  accounts: Account[];
  pool: Pool;
  /** So far. */
  exchanges(): number;
  signIn(place: number): void;
}
type Command = fc.AsyncCommand<Model, Real>;
const start = Date.parse("2026-11-21T10:00:00Z");
const command = (name: string, run: (model: Model, real: Real) => Promise<void> | void): Command => ({
  check: () => true,
  run: async (model, real) => run(model, real),
  toString: () => name,
});

/** A request as the relay sends it: by the first account that can serve, with another token after a 401. */
const ask = (premium: boolean): Command => ({
  // Between 24 and 30 minutes, while GitHub is away, a renewal runs beside the request: its end cannot be waited for.
  check: (model) =>
    !model.accounts.some(
      (each) => each.failures > 0 && model.age(each) >= 1_440 * second && model.age(each) < 1_800 * second,
    ),
  toString: () => `ask for a ${premium ? "premium" : "free"} model`,
  async run(model, { pool, accounts, exchanges }) {
    expect(pool.wait({ premium }), "how long nobody can serve").toBe(model.wait(premium) as number);
    const expected = model.candidates(premium);
    const candidates = pool.takeTurn({ premium });
    expect(
      candidates.map((account) => accounts.indexOf(account)),
      "the accounts in their order",
    ).toEqual(expected);
    const [account] = candidates;
    if (!account) return;
    const modelled = model.accounts[expected[0]!]!;
    const token = await account.copilotToken().catch(() => undefined);
    expect(token !== undefined, "there is a token").toBe(model.token(modelled));
    if (token) {
      const isTaken = model.isTaken(modelled);
      expect((await listModels(token)).status === 200, "the token is taken").toBe(isTaken);
      if (!isTaken) {
        const next = await account.renewToken(token).catch(() => undefined);
        expect(next !== undefined, "there is a token after a 401").toBe(model.renew(modelled));
        if (next)
          expect((await listModels(next)).status === 200, "the new token is taken").toBe(model.isTaken(modelled));
      }
    }
    expect(exchanges(), "exchanges").toBe(model.exchanges);
  },
});

const mark = (place: number, name: "cooling" | "exhausted", minutes: number, ofPremium: boolean) =>
  command(
    `account ${place} is ${name} for ${minutes} min${ofPremium ? ", for premium models" : ""}`,
    (model, { accounts }) => {
      const until = model.clock.wall + minutes * minute;
      const premiumOnly = name === "cooling" && ofPremium;
      accounts[place]!.setState({ name, until, reason: "The upstream said so.", ...(premiumOnly && { premiumOnly }) });
      const monotonicUntil = model.clock.monotonic + minutes * minute;
      const state: State =
        name === "cooling" ? { name, until, monotonicUntil, ofPremium: premiumOnly } : { name, until };
      model.mark(model.accounts[place]!, state);
    },
  );
const github = (place: number, fault: Fault) =>
  command(`GitHub is ${fault} for account ${place}`, ({ accounts }) => {
    accounts[place]!.fault = fault;
  });
const pause = (place: number, isPaused: boolean) =>
  command(`${isPaused ? "pause" : "resume"} account ${place}`, ({ accounts }) => {
    accounts[place]!.isPaused = isPaused;
  });
const refuseTokens = command("the model host refuses all tokens", ({ accounts }, { demo }) => {
  demo.expireTokens();
  for (const { token } of accounts) if (token) token.isRefused = true;
});
const signInAgain = (place: number) =>
  command(`sign in account ${place} again`, (model, { signIn }) => {
    model.accounts[place] = signedIn();
    signIn(place);
  });
/** @param clocks Which of them move. */
const pass = (minutes: number, what: string, ...clocks: (keyof Clocks)[]) =>
  command(`${what} ${minutes} min`, ({ clock }) => {
    for (const name of clocks) clock[name] += minutes * minute;
  });

const answers: Record<Exclude<Fault, "none">, () => Response> = {
  away: () => new Response("", { status: 502 }),
  refused: () => Response.json({ message: "Bad credentials" }, { status: 401 }),
  suspended: () => Response.json({ message: "Your account was suspended." }, { status: 403 }),
};

test("the pool offers the accounts that can serve, with valid tokens, whatever happens to accounts, tokens, GitHub and clocks", async () => {
  let model = new Model();
  const people: DemoAccount[] = ["one", "two", "three"].map((login) => ({
    ...demoAccounts()[0]!,
    login,
    githubToken: `ghu_DEMO${login}0123456789`,
  }));
  const demo = startDemo({ pace: 0, accounts: people, keep: 1, now: () => model.clock.truth });
  let exchanges = 0;
  const faultOf = (authorization?: string) => {
    const place = people.findIndex(({ githubToken }) => authorization === `token ${githubToken}`);
    return model.accounts[place]?.fault ?? "none";
  };
  demo.intercept(
    exchangePath,
    ({ headers }) => {
      exchanges += 1;
      const fault = faultOf(headers.authorization);
      return fault === "none" ? undefined : answers[fault]();
    },
    Number.POSITIVE_INFINITY,
  );
  const setup = () => {
    model = new Model();
    exchanges = 0;
    const own = model;
    const accounts: Account[] = [];
    const pool = new Pool({ accounts: () => accounts, now: () => own.clock.wall });
    const parts = { hosts: hostsOf(demo), version: "1", logger: keptLog().logger, random: () => 0.5 };
    const clocks = { now: () => own.clock.wall, monotonic: () => own.clock.monotonic };
    const signIn = (place: number) => {
      const paused = () => own.accounts[place]!.isPaused;
      accounts[place] = new Account(savedFrom(people[place]!), {
        ...parts,
        ...clocks,
        paused,
        suspensionError: () => pool.suspensionError(),
      });
    };
    for (const place of people.keys()) signIn(place);
    return { model: own, real: { demo, accounts, pool, exchanges: () => exchanges, signIn } };
  };
  const place = fc.nat(2);
  const commands = [
    fc.boolean().map(ask),
    fc.boolean().map(ask),
    fc.boolean().map(ask),
    fc
      .tuple(
        place,
        fc.constantFrom<("cooling" | "exhausted")[]>("cooling", "exhausted"),
        fc.constantFrom(5, 10, 60),
        fc.boolean(),
      )
      .map((given) => mark(...given)),
    fc
      .tuple(place, fc.constantFrom<Fault[]>("none", "none", "away", "away", "refused", "suspended"))
      .map((given) => github(...given)),
    fc.tuple(place, fc.boolean()).map((given) => pause(...given)),
    place.map(signInAgain),
    fc.constant(refuseTokens),
    // In steps of five minutes, between which no renewal begins beside a request.
    fc.constantFrom(5, 10, 25, 30, 60).map((minutes) => pass(minutes, "work", "truth", "wall", "monotonic")),
    fc.constantFrom(5, 30, 480).map((minutes) => pass(minutes, "sleep", "truth", "wall")),
    fc.constantFrom(-120, -30, 120).map((minutes) => pass(minutes, "set the clock by", "wall")),
  ];
  try {
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { size: "+1" }), (steps) => fc.asyncModelRun(setup, steps)),
      { numRuns: triesOf(300) },
    );
  } finally {
    await demo.stop();
  }
});
