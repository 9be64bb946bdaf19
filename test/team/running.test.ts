/** The running requests of servers that share a Postgres, between stores in this process. Each has a list of requests of its own. */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { readEnvironment } from "../../src/config/environment";
import type { ProxyError } from "../../src/errors";
import { type InFlight, type InFlightRequest, openInFlight } from "../../src/history/in-flight";
import type { RunningEvent, RunningRequests } from "../../src/history/running-requests";
import { payloadsOf, readRunningMessage } from "../../src/team/running/messages";
import { openPostgresStores, type PostgresStores } from "../../src/team/stores";
import { entry } from "../support/history-rows";
import { describeWithPostgres, startPostgres, type TestPostgres } from "../support/postgres";
import { until } from "../support/proxy";
import { openChance } from "../support/random";
import { unloadedNow } from "../support/unloaded";

interface Server {
  stores: PostgresStores;
  inFlight: InFlight;
  running: RunningRequests;
  /** Begins a request; its id. */
  begin(more?: Partial<InFlightRequest>): string;
  /** Reports that more is known of it. */
  change(id: string, more: Partial<InFlightRequest>): void;
  end(id: string): void;
  stopped: ProxyError[];
}

/** As the relay reports it. */
function stateOf(id: string): InFlightRequest {
  const { duration_ms, http_status, stop_reason, error_type, error_message, ...rest } = entry({ request_id: id });
  const { session, cache_miss, fixups, dropped, tokens_estimated, nano_credits, premium_units, ...more } = rest;
  const { input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, ...state } = more;
  return { ...state, started_at_ms: Date.now() };
}

const [anna, ben] = [crypto.randomUUID(), crypto.randomUUID()];

describeWithPostgres("the running requests of a team", () => {
  let postgres: TestPostgres;
  let url: string;
  const opened: Server[] = [];
  const homes: string[] = [];
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres[Symbol.asyncDispose]());
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(({ stores }) => stores.close()));
    for (const home of homes.splice(0)) rmSync(home, { recursive: true, force: true });
  });

  async function team(count: number): Promise<Server[]> {
    url = await postgres.database();
    const sealKey = randomBytes(32).toString("base64");
    return Promise.all(Array.from({ length: count }, () => open(sealKey)));
  }

  async function open(sealKey: string): Promise<Server> {
    const home = mkdtempSync(join(tmpdir(), "dragoman-running-"));
    homes.push(home);
    const variables = { DRAGOMAN_DATABASE_URL: url, DRAGOMAN_SEAL_KEY: sealKey };
    const environment = readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...variables });
    const stores = await openPostgresStores(environment, { follow: true });
    const inFlight = openInFlight();
    const states = new Map<string, InFlightRequest>();
    const server: Server = {
      stores,
      inFlight,
      running: stores.openRunning(inFlight),
      stopped: [],
      begin(more = {}) {
        const id = crypto.randomUUID();
        states.set(id, { ...stateOf(id), ...more });
        const stop = (why: ProxyError) => void server.stopped.push(why);
        inFlight.begin(id, { member: states.get(id)!.member, tell: () => states.get(id)!, stop });
        return id;
      },
      change(id, more) {
        states.set(id, { ...states.get(id)!, ...more });
        inFlight.notify(id);
      },
      end: (id) => inFlight.end(entry({ ...states.get(id)!, request_id: id })),
    };
    opened.push(server);
    return server;
  }

  const ids = (requests: InFlightRequest[]) => requests.map(({ request_id }) => request_id).sort();
  const soon = async (claim: () => boolean | Promise<boolean>, ms = 1_000): Promise<number> => {
    const begun = unloadedNow();
    while (!(await claim())) {
      if (unloadedNow() - begun > ms) throw new Error(`Not so after ${ms} ms: ${claim}`);
      await Bun.sleep(5);
    }
    return unloadedNow() - begun;
  };
  const notifications = async (work: () => Promise<unknown>): Promise<{ count: number; bytes: number }> => {
    const sql = new SQL(url, { max: 1 });
    const heard = { count: 0, bytes: 0 };
    for (const channel of ["dragoman", "dragoman_running"])
      await sql.listen(channel, (payload) => {
        heard.count += 1;
        heard.bytes += payload.length;
      });
    await work();
    await Bun.sleep(50);
    await sql.close({ timeout: 0 });
    return heard;
  };

  test("one look lists what runs on all, and a member's only their own", async () => {
    const [one, two, three] = await team(3);
    const all = [one!.begin(), two!.begin({ member: anna }), three!.begin({ member: ben })].sort();
    const began = unloadedNow();
    const list = await one!.running.list();
    expect(unloadedNow() - began).toBeLessThan(500);
    expect([ids(list.running), list.count, list.gap]).toEqual([all, 3, undefined]);
    expect(await Promise.all([undefined, anna, ben].map((member) => two!.running.count(member)))).toEqual(
      [3, 1, 1].map((count) => ({ count, gap: undefined })),
    );
    const own = await one!.running.list(anna);
    expect([own.running.map(({ member }) => member), own.count, own.gap]).toEqual([[anna], 1, undefined]);
  });

  test("a watcher elsewhere hears of beginnings, changes and ends; a member of their own only", async () => {
    const [one, two] = await team(2);
    const before = two!.begin({ member: ben });
    const heard: RunningEvent[] = [];
    const annas: RunningEvent[] = [];
    const leave = [
      one!.running.watch((event) => heard.push(event)),
      one!.running.watch((event) => annas.push(event), anna),
    ];
    await soon(() => one!.running.known().count === 1);
    const id = two!.begin({ member: anna });
    const about = (events: RunningEvent[], type: string, wanted = id) =>
      events.some(
        (event) =>
          event.type === type &&
          ("running" in event ? event.running : "entry" in event ? event.entry : undefined)?.request_id === wanted,
      );
    expect(await soon(() => about(heard, "running") && about(annas, "running"))).toBeLessThan(600);
    two!.change(id, { first_byte_ms: 17 });
    await soon(() => one!.running.findKnown(id)?.first_byte_ms === 17);
    two!.end(id);
    await soon(() => about(heard, "finished") && about(annas, "finished"));
    two!.end(before);
    await soon(() => about(heard, "finished", before));
    expect(one!.running.known().count).toBe(0);
    expect(JSON.stringify(annas)).not.toContain(before);
    expect(one!.running.findKnown(before, anna)).toBeUndefined();
    for (const each of leave) each();
  });

  test("one is found and cancelled wherever it runs; another's does not exist for a member", async () => {
    const [one, two, three] = await team(3);
    const id = two!.begin({ member: anna });
    expect(await one!.running.find(id)).toMatchObject({ request_id: id });
    expect(await one!.running.find(id, anna)).toMatchObject({ request_id: id });
    expect(await one!.running.find(id, ben)).toBeUndefined();
    expect([await one!.running.cancel(id, ben), await three!.running.cancel("unknown"), two!.stopped]).toEqual([
      false,
      false,
      [],
    ]);
    expect(await three!.running.cancel("x".repeat(10_000))).toBe(false);
    expect(await three!.running.cancel(id, anna)).toBe(true);
    expect(two!.stopped.map(({ message }) => message)).toEqual(["The member whose key it uses cancelled the request."]);
  });

  test("a server that stops is gone at once", async () => {
    const [one, two] = await team(2);
    two!.begin();
    const heard: RunningEvent[] = [];
    one!.running.watch((event) => heard.push(event));
    await soon(() => one!.running.known().count === 1);
    heard.length = 0;
    opened.splice(opened.indexOf(two!), 1);
    await two!.stores.close();
    await soon(() => one!.running.known().count === 0 && one!.running.known().gap === undefined, 3_500);
    expect(heard.some(({ type }) => type === "renewed")).toBe(true);
  });

  test("nothing is sent while nobody watches, and a page that was opened once is forgotten", async () => {
    const [one, two] = await team(2);
    const work = async () => {
      for (let count = 0; count < 50; count += 1) two!.end(two!.begin());
      await Bun.sleep(300);
    };
    expect((await notifications(work)).count).toBe(0);
    expect((await one!.running.list()).count).toBe(0);
    expect((await notifications(work)).count).toBeGreaterThan(0);
    // Some seconds for the page, and some for the last order.
    await soon(async () => (await notifications(work)).count === 0, 15_000);
  });

  test("while the database is away, what runs here is still known, and it is said that the rest is not", async () => {
    const [one, two] = await team(2);
    const own = one!.begin();
    two!.begin();
    const heard: RunningEvent[] = [];
    one!.running.watch((event) => heard.push(event));
    await soon(() => one!.running.known().count === 2);
    heard.length = 0;
    await postgres.stop();
    await soon(() => one!.running.known().gap !== undefined && heard.some(({ type }) => type === "renewed"), 5_000);
    const began = unloadedNow();
    const list = await one!.running.list(anna);
    expect([list.running, list.gap]).toEqual([
      [],
      "The database cannot be used now, so it is unknown what other servers run.",
    ]);
    expect(ids((await one!.running.list()).running)).toEqual([own]);
    expect(unloadedNow() - began).toBeLessThan(1_500);
    expect(one!.running.cancel("elsewhere")).rejects.toMatchObject({ details: { code: "database_away" } });
    const late = two!.begin();
    await postgres.start();
    await soon(() => one!.running.findKnown(late) !== undefined && one!.running.known().gap === undefined, 10_000);
    expect(one!.running.known().count).toBe(3);
  });

  test("a listening connection that is killed comes back, and what was missed is caught up with", async () => {
    const [one, two] = await team(2);
    one!.running.watch(() => {});
    const gone = two!.begin();
    await soon(() => one!.running.known().count === 1);
    const sql = new SQL(url, { max: 1 });
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE 'LISTEN%'`;
    await sql.close();
    two!.end(gone);
    const id = two!.begin();
    await soon(() => one!.running.findKnown(id) !== undefined && one!.running.findKnown(gone) === undefined, 3_000);
  });

  test("whatever begins, changes and ends on three servers, and whichever connections are killed, all soon know the same", async () => {
    const all = await team(3);
    const members = [undefined, anna, ben];
    const kill = async () => {
      const sql = new SQL(url, { max: 1 });
      await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.3`;
      await sql.close();
    };
    const live = new Map<string, Server>();
    const chance = openChance("team/running");
    const pick = <T>(list: readonly T[]): T => list[chance.below(list.length)]!;
    for (let round = 0; round < 40; round += 1) {
      for (let step = 0; step < 20; step += 1) {
        const [id, server] = pick([...live]) ?? [];
        if (!id || chance.next() < 0.4) {
          const where = pick(all);
          live.set(where.begin({ member: pick([null, anna, ben]) }), where);
        } else if (chance.next() < 0.5) server!.change(id, { first_byte_ms: round * 100 + step });
        else {
          server!.end(id);
          live.delete(id);
        }
      }
      // More than is sent at once.
      if (round === 20) for (const id of Array.from({ length: 300 }, () => all[0]!.begin())) all[0]!.end(id);
      if (round === 30) {
        const many = Array.from({ length: 300 }, () => all[1]!.begin({ member: anna }));
        await Bun.sleep(400);
        for (const id of many) all[1]!.end(id);
      }
      if (round % 8 === 0) pick(all).running.watch(() => {}, pick(members));
      if (round % 15 === 14) await kill();
      await Bun.sleep(20);
    }
    const truth = (member?: string) =>
      all.flatMap(({ inFlight }) => inFlight.running().filter((each) => !member || each.member === member));
    const state = (requests: InFlightRequest[]) =>
      requests.map(({ request_id, first_byte_ms }) => `${request_id} ${first_byte_ms}`).sort();
    for (const { running } of all)
      for (const member of members) {
        await running.list(member);
        await soon(() => {
          const { gap, ...known } = running.known(member);
          return (
            !gap && Bun.deepEquals([state(known.running), known.count], [state(truth(member)), truth(member).length])
          );
        }, 6_000);
      }
  });

  test("who runs so many that not all are listed hides nobody else's, here or elsewhere", async () => {
    const [here, there] = (await team(2)) as [Server, Server];
    const many = [here, there].flatMap((server) =>
      Array.from({ length: 450 }, (_, at) => ({ server, id: server.begin({ member: anna, started_at_ms: at }) })),
    );
    here.running.watch(() => {});
    await until(() => here.running.known().count === 900 && !here.running.known().gap);
    const few = [here, there, there].map((server, at) => server.begin({ member: at < 2 ? ben : null }));
    const listed = () => new Set(ids(here.running.known().running));
    await until(() => few.every((id) => listed().has(id)));
    expect([listed().size, here.running.known().count]).toEqual([400, 903]);
    for (const { server, id } of many) server.end(id);
    await until(() => here.running.known().count === 3);
    expect(ids(here.running.known().running)).toEqual(few.toSorted());
  });

  test("14 servers and 3,000 running requests: one watcher costs little, and the list says what it leaves out", async () => {
    const all = await team(14);
    const each = Math.ceil(3_000 / all.length);
    for (const server of all) for (let count = 0; count < each; count += 1) server.begin({ started_at_ms: count });
    const busy = () => process.cpuUsage().user + process.cpuUsage().system;
    let cpu = 0;
    const first = await notifications(async () => {
      const began = performance.now();
      const list = await all[0]!.running.list();
      console.log(`The list was there after ${(performance.now() - began).toFixed(0)} ms.`);
      expect(list.gap).toBeUndefined();
      expect([list.running.length, list.count]).toEqual([400, each * all.length]);
    });
    all[0]!.running.watch(() => {});
    let turns = 0;
    const steady = await notifications(async () => {
      const before = busy();
      // 250 requests a second end, and as many begin.
      for (const end = performance.now() + 2_000; performance.now() < end; turns += 1) {
        const server = all[turns % all.length]!;
        const id = server.inFlight.running()[0]!.request_id;
        server.end(id);
        const next = server.begin();
        server.change(next, { first_byte_ms: 5 });
        await Bun.sleep(4);
      }
      cpu = (busy() - before) / 1_000;
    });
    console.log(
      `To begin: ${first.count} messages of ${first.bytes} bytes. In 2 s with ${turns} requests: ${steady.count} of ${steady.bytes}, ${cpu.toFixed(0)} ms of CPU for all servers.`,
    );
    expect(first.bytes).toBeLessThan(1_000_000);
    expect(steady.bytes / 2).toBeLessThan(600_000);
  });

  test("a message has at most 7,999 bytes, whatever the requests are called", () => {
    const names = ["\u0000", "\ud800", "語", '"', "x"];
    for (const name of names) {
      const long = name.repeat(4_000);
      const texts = { path: long, client_model: long, client_name: long, upstream_model: long, initiator_reason: long };
      const requests = Array.from({ length: 20 }, () =>
        entry({
          ...texts,
          error_message: long,
          attempts: JSON.stringify([long, long]),
          request_id: crypto.randomUUID(),
        }),
      );
      const items = requests.flatMap((request) => [{ running: request }, { ended: request }]);
      const payloads = payloadsOf(crypto.randomUUID(), 0, items);
      for (const payload of payloads) expect(Buffer.byteLength(payload)).toBeLessThan(8_000);
      const read = payloads.flatMap((payload) => readRunningMessage(payload)!.items);
      expect(
        read.map((item) => ("running" in item ? item.running : "ended" in item ? item.ended : undefined)?.request_id),
      ).toEqual(requests.flatMap(({ request_id }) => [request_id, request_id]));
    }
  });
});
