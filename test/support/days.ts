/**
 * Simulated days: random schedules by a virtual clock, over servers that share one data folder or one Postgres. Accounts come, cool
 * down, run out, are revoked and suspended; GitHub issues no tokens for a while; requests stall over midnight; servers start and are
 * cut off. What each account could do is known from the upstream's own books, so that every answer is held against the truth.
 */
import { expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Stores } from "../../src/books/stores";
import { readEnvironment } from "../../src/config/environment";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import { type Demo, type SeenRequest, startDemo } from "../../src/demo/demo";
import { dayMs } from "../../src/lib/format";
import type { App } from "../../src/parts/app";
import { openApp } from "../../src/parts/open-app";
import { openStores } from "../../src/parts/open-stores";
import { handler } from "../../src/server";
import { quickest } from "./quickest";
import { type Chance, openChance } from "./random";
import { sharedPostgres } from "./shared-postgres";
import { upstreamEnv } from "./teams";
import { sharedTokenizer } from "./tokenizer";
import { until } from "./until";

const [second, minute] = [1000, 60_000];
const premium = "claude-sonnet-4.6";
const free = "gpt-5-mini";
const chat = "/chat/completions";
const exchange = "/copilot_internal/v2/token";
const endless = Number.POSITIVE_INFINITY;
/** Requests that a person may send in a day, and premium ones in a month. */
const [dayLimit, monthLimit] = [30, 150];
const budgets = [
  { name: "day", unit: "requests", limit: dayLimit, per: "day" },
  { name: "month", unit: "requests", limit: monthLimit, per: "month", scope: { model: premium } },
] as const;

/** Somebody whose requests use their own accounts only. */
interface Person {
  /** Null for the owner. */
  member: string | null;
  key: string | undefined;
  /** Those signed in, in their order, as GitHub knows them. */
  accounts: Known[];
  /** Period → requests that count. */
  used: Map<string, number>;
}
interface Known {
  demo: DemoAccount;
  limitedUntil: number;
  isSuspended: boolean;
}
interface Server {
  url: string;
  app: App;
  /** Cuts all connections. */
  stop(): Promise<void>;
}
/** What is known of a request that has been answered, or cut. */
interface Sent {
  marker: string;
  person: Person;
  status: number | null;
  text: string;
  id: string | null;
}

interface DaysOptions {
  /** Of every server; a data folder or a database, which must be empty. */
  env: Record<string, string>;
  days: number;
  /** Members beside the owner, where there is a database. */
  members?: readonly string[];
}

/** Lives through days and throws at the first thing that is not as it should be. @returns What happened, counted. */
export async function simulateDays({ env: given, days, members = [] }: DaysOptions): Promise<Record<string, number>> {
  const chance = openChance(`days ${members.length}`);
  let now = Date.parse("2026-11-29T00:00:00Z");
  const demo = startDemo({ pace: 0, accounts: [], now: () => now });
  const env = { ...upstreamEnv(demo), ...given };
  const simulation = new Days(chance, demo, env, {
    now: () => now,
    pass(ms) {
      now += ms;
    },
  });
  try {
    await simulation.begin(members);
    for (let day = 0; day < days; day += 1) await simulation.live();
    return simulation.counts;
  } finally {
    await simulation.end();
    await demo.stop();
  }
}

class Days {
  readonly counts: Record<string, number> = {};
  readonly #people: Person[] = [];
  readonly #servers: Server[] = [];
  readonly #names = { account: 0, request: 0 };
  #sent: Sent[] = [];
  /** The id of the last row that was looked at. */
  #lastRow = 0;
  /** Requests that the upstream holds, each with what lets it go. */
  #stalled = new Map<string, { reached: () => void; gate: Promise<void> }>();
  #tokensAreOut = false;

  constructor(
    readonly chance: Chance,
    readonly demo: Demo,
    readonly env: Record<string, string>,
    readonly clock: { now(): number; pass(ms: number): void },
  ) {
    demo.intercept(chat, (seen) => this.#answer(seen), endless);
    demo.intercept(exchange, () => (this.#tokensAreOut ? new Response("", { status: 502 }) : undefined), endless);
  }

  async begin(members: readonly string[]): Promise<void> {
    const stores = await openStores(readEnvironment(this.env), { follow: false });
    const each = members.length > 0 ? { each: "key" } : {};
    const config = stores.config;
    const keys = members.length > 0 ? { auth: { apiKeys: [{ name: "owner", key: "k-owner-0123456789" }] } } : {};
    await config.change({ budgets: budgets.map((budget) => ({ ...budget, ...each })), retentionDays: 3_650, ...keys });
    config.close();
    const person = (member: string | null, key?: string): Person => ({ member, key, accounts: [], used: new Map() });
    this.#people.push(person(null, members.length > 0 ? "k-owner-0123456789" : undefined));
    for (const name of members) {
      const { member, key } = (await stores.members!.accept((await stores.members!.invite(name)).code))!;
      this.#people.push(person(member.id, key));
    }
    await stores.close();
    await this.#start();
    for (const each of this.#people) for (let count = 0; count < 2; count += 1) await this.#signIn(each);
  }

  async live(): Promise<void> {
    const { chance, clock } = this;
    const times = Array.from({ length: chance.below(4) + 1 }, () => chance.below(dayMs - 60 * minute)).sort(
      (a, b) => a - b,
    );
    const midnight = clock.now();
    for (const time of times) {
      this.#pass(Math.max(0, midnight + time - clock.now()));
      await this.#happen();
      await this.#ask();
    }
    const end = chance.maybe(0.2) ? await this.#stall() : undefined;
    this.#pass(midnight + dayMs - clock.now());
    await end?.();
    await this.#look();
  }

  async end(): Promise<void> {
    for (const server of this.#servers.splice(0)) await server.stop();
  }

  #count(what: string, by = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + by;
  }

  #pass(ms: number): void {
    const month = new Date(this.clock.now()).getUTCMonth();
    this.clock.pass(ms);
    if (new Date(this.clock.now()).getUTCMonth() === month) return;
    for (const { accounts } of this.#people)
      for (const { demo } of accounts) demo.quota.premium.remaining = demo.quota.premium.entitlement;
  }

  /** At most one event before each batch of requests. */
  async #happen(): Promise<void> {
    const { chance, clock } = this;
    const person = chance.pick(...this.#people);
    const account = chance.pick(...person.accounts);
    const events: [number, string, () => unknown][] = [
      [
        0.1,
        "account limited",
        () => account && Object.assign(account, { limitedUntil: clock.now() + chance.pick(1, 30, 600) * minute }),
      ],
      [0.04, "account revoked", () => account && this.#revoke(account)],
      [0.02, "account suspended", () => account && Object.assign(account, { isSuspended: true })],
      [0.1, "account came", () => person.accounts.length < 4 && this.#signIn(person)],
      [0.1, "account left", () => this.#clearUp(person)],
      [0.05, "server started", () => this.#servers.length < 3 && this.#start()],
      [0.05, "server cut off", () => this.#cutOff(chance.pick(...this.#servers))],
      [0.05, "tokens out", () => this.#tokensOut()],
    ];
    let share = chance.next();
    for (const [part, what, happen] of events) {
      if (share < part) {
        this.#count(what);
        await happen();
        return;
      }
      share -= part;
    }
  }

  #revoke({ demo }: Known): void {
    const place = this.demo.accounts.indexOf(demo);
    if (place >= 0) this.demo.accounts.splice(place, 1);
  }

  /** For some minutes GitHub issues no tokens: requests may fail, but nothing else may go wrong. */
  async #tokensOut(): Promise<void> {
    this.#tokensAreOut = true;
    await this.#ask();
    this.#tokensAreOut = false;
    this.#pass(2 * minute);
  }

  async #start(): Promise<void> {
    const environment = readEnvironment(this.env);
    const stores: Stores = await openStores(environment, { follow: true, write: () => {} });
    const { now } = this.clock;
    const app = openApp({
      environment,
      stores,
      tokenizer: sharedTokenizer(),
      version: "1",
      clock: { now, monotonic: now, random: () => 0.5 },
    });
    const listening = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: handler(app, false) });
    this.#servers.push({
      url: listening.url.origin,
      app,
      async stop() {
        await listening.stop(true);
        await app.inFlight.idle();
        app.close();
        await stores.close();
      },
    });
  }

  /** A server is cut off while it serves a request; another one takes its place. */
  async #cutOff(server: Server): Promise<void> {
    const person = this.#people[0]!;
    const { budget, able } = this.#truth(person, free);
    if (this.#isInTrouble(person) || budget === 0 || able.length === 0) return;
    await this.#renew();
    const { sending, letGo } = await this.#hold(server, person);
    this.#servers.splice(this.#servers.indexOf(server), 1);
    const stopping = server.stop();
    const { status, text } = await sending;
    expect(status, `the answer of a server that is cut off: ${text}`).toBeNull();
    await stopping;
    letGo();
    if (this.#servers.length === 0) await this.#start();
    await this.#refresh();
  }

  /** A request that the upstream holds until after midnight counts for the day on which it began. */
  async #stall(): Promise<(() => Promise<void>) | undefined> {
    const person = this.chance.pick(...this.#people);
    const { budget, able } = this.#truth(person, free);
    if (this.#isInTrouble(person) || budget === 0 || able.length === 0) return undefined;
    await this.#renew();
    const { sending, letGo } = await this.#hold(this.chance.pick(...this.#servers), person);
    this.#charge(person, free);
    this.#count("request over midnight");
    return async () => {
      letGo();
      expect((await sending).status, "a request over midnight").toBe(200);
    };
  }

  /** A request that the upstream has, and holds until it is let go. */
  async #hold(server: Server, person: Person): Promise<{ sending: Promise<Sent>; letGo(): void }> {
    const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const marker = this.#marker();
    this.#stalled.set(marker, { reached: reached.resolve, gate: gate.promise });
    const sending = this.#send(server, person, free, marker);
    await Promise.race([reached.promise, sending]);
    const letGo = () => {
      this.#stalled.delete(marker);
      gate.resolve();
    };
    return { sending, letGo };
  }

  async #signIn(person: Person): Promise<void> {
    const login = `hub-${String(++this.#names.account).padStart(5, "0")}`;
    const demo: DemoAccount = {
      ...demoAccounts()[0]!,
      login,
      githubToken: `ghu_DEMO${login.replace("-", "").padEnd(32, "0")}`,
    };
    demo.quota = quotas.pro();
    Object.assign(demo.quota.premium, { entitlement: 60, remaining: this.chance.below(40) });
    this.demo.accounts.push(demo);
    person.accounts.push({ demo, limitedUntil: 0, isSuspended: false });
    const saved = {
      login,
      host: "github.com",
      app: "vscode",
      mode: "exchange",
      githubToken: demo.githubToken,
    } as const;
    await this.#store().add({
      ...saved,
      addedAt: this.#names.account,
      ...(person.member && { member: person.member }),
    });
    await this.#refresh();
  }

  /** A person removes the accounts that cannot serve any more, and signs in with others. */
  async #clearUp(person: Person): Promise<void> {
    const isBroken = ({ demo, isSuspended }: Known) => isSuspended || !this.demo.accounts.includes(demo);
    for (const account of person.accounts.filter(isBroken)) {
      person.accounts.splice(person.accounts.indexOf(account), 1);
      await this.#store().remove(`github.com/${account.demo.login}`);
    }
    if (person.accounts.length === 0) await this.#signIn(person);
    await this.#refresh();
  }

  #store() {
    return this.#servers[0]!.app.accountStore;
  }

  async #refresh(): Promise<void> {
    const expected = this.#people.flatMap(({ accounts }) => accounts.map(({ demo }) => demo.login)).sort();
    for (const { app } of this.#servers)
      await until(async () => {
        await app.accountStore.reload?.();
        app.refreshAccounts();
        const logins = app.allAccounts.map(({ id }) => id);
        return Bun.deepEquals(logins.sort(), expected);
      }, "a server knows the accounts");
  }

  #marker = () => `request ${++this.#names.request}`;

  async #send(server: Server, person: Person, model: string, marker: string): Promise<Sent> {
    const headers = { "content-type": "application/json", ...(person.key && { "x-api-key": person.key }) };
    const stream = this.#names.request % 4 === 0 && !this.#stalled.has(marker);
    const body = JSON.stringify({ model, stream, messages: [{ role: "user", content: marker }] });
    const sent: Sent = { marker, person, status: null, text: "", id: null };
    this.#sent.push(sent);
    try {
      const response = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", headers, body });
      const text = await response.text();
      Object.assign(sent, { status: response.status, text, id: response.headers.get("x-request-id") });
    } catch {
      // The server was cut off.
    }
    return sent;
  }

  /** What servers would renew beside a request, which would still run when the clock is moved. */
  async #renew(): Promise<void> {
    const scopes = this.#servers.flatMap(({ app }) => this.#people.map(({ member }) => app.forMember(member)));
    await Promise.all(scopes.map(({ catalogue }) => catalogue.current().catch(() => {})));
  }

  /** A person's requests at once, to any servers: as many are served as budgets and accounts allow. */
  async #ask(): Promise<void> {
    const person = this.chance.pick(...this.#people);
    const model = this.chance.pick(premium, premium, free);
    const count = this.chance.below(8) + 1;
    await this.#renew();
    const { budget, able } = this.#truth(person, model);
    const capacity = able.reduce(
      (sum, { demo }) => sum + (model === premium ? demo.quota.premium.remaining : endless),
      0,
    );
    const before = able.map(({ demo }) => demo.quota.premium.remaining);
    const answers = await Promise.all(
      Array.from({ length: count }, () =>
        this.#send(this.chance.pick(...this.#servers), person, model, this.#marker()),
      ),
    );
    const served = answers.filter(({ status }) => status === 200).length;
    for (let each = 0; each < served; each += 1) this.#charge(person, model);
    this.#count("served", served);
    this.#count("refused", count - served);
    const isUncertain = this.#isInTrouble(person);
    const expected = Math.min(count, budget, capacity);
    if (isUncertain) expect(served, "requests served in spite of trouble").toBeLessThanOrEqual(expected);
    else
      expect(
        served,
        `of ${count} requests, with ${budget} left of the budget and ${capacity} of the quota; ${answers.find(({ status }) => status !== 200)?.text}`,
      ).toBe(expected);
    if (isUncertain || model === free) return;
    let wanted = served;
    for (const [place, { demo }] of able.entries()) {
      const share = Math.min(wanted, before[place]!);
      expect(
        before[place]! - demo.quota.premium.remaining,
        `premium requests of ${demo.login}, in the order of registration`,
      ).toBe(share);
      wanted -= share;
    }
  }

  /** While an account is suspended, or GitHub issues no tokens, fewer requests may be served than accounts could. */
  #isInTrouble({ accounts }: Person): boolean {
    return this.#tokensAreOut || accounts.some(({ isSuspended }) => isSuspended);
  }

  /** Who can serve now, by the upstream's books, and what the budgets have left. */
  #truth({ accounts, used }: Person, model: string) {
    const able = accounts.filter(
      ({ demo, limitedUntil, isSuspended }) =>
        !isSuspended && limitedUntil <= this.clock.now() && this.demo.accounts.includes(demo),
    );
    const left = this.#periods(model).map(({ key, limit }) => limit - (used.get(key) ?? 0));
    return { able, budget: Math.min(...left) };
  }

  #periods(model: string) {
    const date = new Date(this.clock.now()).toISOString();
    const periods = [{ key: `day ${date.slice(0, 10)}`, limit: dayLimit }];
    return model === premium ? [...periods, { key: `month ${date.slice(0, 7)}`, limit: monthLimit }] : periods;
  }

  #charge({ used }: Person, model: string): void {
    for (const { key } of this.#periods(model)) used.set(key, (used.get(key) ?? 0) + 1);
  }

  async #answer({ account: login, body }: SeenRequest): Promise<Response | undefined> {
    const marker = markerOf(body);
    const owner = this.#people.find(({ accounts }) => accounts.some(({ demo }) => demo.login === login));
    const sender = this.#sent.findLast((sent) => sent.marker === marker)!.person;
    expect(owner === undefined || owner === sender, "a request uses its own person's accounts only").toBe(true);
    const account = owner?.accounts.find(({ demo }) => demo.login === login);
    if (account?.isSuspended) {
      return Response.json(
        { error: { code: "account_suspended", message: "Your account was suspended." } },
        { status: 403 },
      );
    }
    const wait = (account?.limitedUntil ?? 0) - this.clock.now();
    if (wait > 0) {
      const error = { code: "rate_limited", message: "Too many requests." };
      return Response.json({ error }, { status: 429, headers: { "retry-after": String(Math.ceil(wait / second)) } });
    }
    const stalled = this.#stalled.get(marker);
    if (!stalled) return undefined;
    stalled.reached();
    await stalled.gate;
    const choices = [{ index: 0, message: { role: "assistant", content: "Late." }, finish_reason: "stop" }];
    return Response.json({ id: "late", object: "chat.completion", created: 1, model: free, choices });
  }

  /** The invariants of each day. */
  async #look(): Promise<void> {
    const [{ app }] = this.#servers as [Server];
    for (const server of this.#servers) await server.app.history.flush();
    const rows = await app.history.after(this.#lastRow, 10_000);
    this.#lastRow = rows.at(-1)?.id ?? this.#lastRow;
    const answered = this.#sent.filter(({ id }) => id !== null);
    const ids = new Set(rows.map(({ request_id }) => request_id));
    expect([rows.length, ids.size], "rows, and different ones").toEqual([this.#sent.length, this.#sent.length]);
    for (const { id, marker } of answered) expect(ids.has(id!), `the row of ${marker}`).toBe(true);

    const upstream = Map.groupBy(
      this.demo.journal.filter(({ path }) => path === chat),
      ({ body }) => markerOf(body),
    );
    for (const { marker, status } of this.#sent) {
      const tries = upstream.get(marker) ?? [];
      const served = tries.filter((seen) => seen.status === 200).length;
      // What was cut off may have been answered, but to nobody.
      if (status === null) expect(served, `answers to ${marker}, which was cut off`).toBeLessThanOrEqual(1);
      else expect(served, `answers to ${marker}`).toBe(status === 200 ? 1 : 0);
      expect(new Set(tries.map(({ account }) => account)).size, `${marker} goes to no account twice`).toBe(
        tries.length,
      );
    }
    const exchanges = this.demo.journal.filter(({ path }) => path === exchange).length;
    this.#count("exchanges", exchanges);

    await this.#checkBudgets(app);
    this.demo.journal.length = 0;
    this.#sent = [];
  }

  /** Each person's amounts are exact: in a team, as soon as they are written. */
  async #checkBudgets(app: App): Promise<void> {
    for (const budget of app.budgets.budgets) {
      const period = this.#periods(premium).find(({ key }) => key.startsWith(budget.name))!;
      const expected = this.#people.map(({ used }) => used.get(period.key) ?? 0);
      if (this.#people.length === 1) {
        const [state] = await app.budgets.overview([budget]);
        expect([state!.used, state!.reserved], `what is used and reserved of a ${budget.name}`).toEqual([
          expected[0]!,
          0,
        ]);
      } else {
        const wanted = expected.filter((used) => used > 0).sort();
        await until(async () => {
          const { states } = await app.budgets.holders(budget, { limit: 10 });
          return Bun.deepEquals(
            states
              .map(({ used }) => used)
              .filter((used) => used > 0)
              .sort(),
            wanted,
          );
        }, `of a ${budget.name}, people have used ${wanted}`);
      }
    }
  }
}

const markerOf = (body: unknown): string => (body as { messages: { content: string }[] }).messages.at(-1)!.content;

/** An empty data folder. */
export function openHome(): { env: Record<string, string> } & Disposable {
  const home = mkdtempSync(join(quickest(), "dragoman-days-"));
  return {
    env: { HOME: home, DRAGOMAN_HOME: home },
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** An empty database, and a folder for what its servers keep beside it. */
export async function openTeamHome(): Promise<{ env: Record<string, string> } & AsyncDisposable> {
  const [home, server] = [openHome(), await sharedPostgres()];
  const DRAGOMAN_SEAL_KEY = randomBytes(32).toString("base64");
  return {
    env: { ...home.env, DRAGOMAN_DATABASE_URL: await server.database(), DRAGOMAN_SEAL_KEY },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      home[Symbol.dispose]();
    },
  };
}
