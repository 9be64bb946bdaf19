/** The running requests of servers that share a Postgres, between stores in this process. Each has a list of requests of its own. */
import { afterEach, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { SQL } from "bun";
import { readEnvironment } from "../../src/config/environment";
import type { ProxyError } from "../../src/errors";
import type { InFlightRequest } from "../../src/history/entry";
import { InFlight } from "../../src/live/in-flight";
import type { RunningEvent, RunningRequests } from "../../src/live/running-requests";
import { openPostgresStores, type PostgresStores } from "../../src/team/stores";
import { entry, runningState } from "../support/history-rows";
import { openChance } from "../support/random";
import { describeWithOwnPostgres } from "../support/shared-postgres";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

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

const [anna, ben] = [crypto.randomUUID(), crypto.randomUUID()];

describeWithOwnPostgres("the running requests of a team", (postgres) => {
  let url: string;
  const opened: Server[] = [];
  afterEach(() => Promise.all(opened.splice(0).map(({ stores }) => stores.close())));

  async function team(count: number): Promise<Server[]> {
    url = await postgres.database();
    const sealKey = randomBytes(32).toString("base64");
    return Promise.all(Array.from({ length: count }, () => open(sealKey)));
  }

  async function open(sealKey: string): Promise<Server> {
    const home = temporaryFolder();
    const variables = { DRAGOMAN_DATABASE_URL: url, DRAGOMAN_SEAL_KEY: sealKey };
    const environment = readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...variables });
    const stores = await openPostgresStores(environment, { follow: true });
    const inFlight = new InFlight();
    const states = new Map<string, InFlightRequest>();
    const server: Server = {
      stores,
      inFlight,
      running: stores.openRunning(inFlight),
      stopped: [],
      begin(more = {}) {
        const id = crypto.randomUUID();
        states.set(id, runningState({ request_id: id, ...more }));
        const stop = (why: ProxyError) => {
          server.stopped.push(why);
          server.end(id);
        };
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

  test("one look lists what runs on all, and a member's only their own", async () => {
    const [one, two, three] = await team(3);
    const all = [one!.begin(), two!.begin({ member: anna }), three!.begin({ member: ben })].sort();
    const list = await one!.running.list();
    expect([ids(list.running), list.count, list.gap]).toEqual([all, 3, undefined]);
    expect(await Promise.all([undefined, anna, ben].map((member) => two!.running.list(member)))).toMatchObject(
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
    await until(() => one!.running.known().count === 1, "the request is known");
    const id = two!.begin({ member: anna });
    const about = (events: RunningEvent[], type: string, wanted = id) =>
      events.some(
        (event) =>
          event.type === type &&
          ("running" in event ? event.running : "entry" in event ? event.entry : undefined)?.request_id === wanted,
      );
    await until(() => about(heard, "running") && about(annas, "running"), "both heard of its beginning");
    two!.change(id, { first_byte_ms: 17 });
    await until(() => one!.running.findKnown(id)?.first_byte_ms === 17, "its first byte is known");
    two!.end(id);
    await until(() => about(heard, "finished") && about(annas, "finished"), "both heard of its end");
    two!.end(before);
    await until(() => about(heard, "finished", before), "its end was heard of");
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

  test("what a server ran is listed no more after it has stopped", async () => {
    const [one, two] = await team(2);
    two!.begin();
    const heard: RunningEvent[] = [];
    one!.running.watch((event) => heard.push(event));
    await until(() => one!.running.known().count === 1, "the request is known");
    heard.length = 0;
    opened.splice(opened.indexOf(two!), 1);
    await two!.stores.close();
    await until(
      () => one!.running.known().count === 0 && one!.running.known().gap === undefined,
      "the server that stopped is gone",
    );
    expect(heard.some(({ type }) => type === "renewed")).toBe(true);
  });

  test("nothing is written while nobody looks, and what was written for a page that was opened once is removed", async () => {
    const [one, two] = await team(2);
    const rows = () => postgres.administer("SELECT 1 FROM dragoman.running", url);
    two!.begin();
    expect(await rows()).toHaveLength(0);
    expect((await one!.running.list()).count).toBe(1);
    expect(await rows()).toHaveLength(1);
    await until(async () => (await rows()).length === 0, "the rows are removed");
  });

  test("while the database is away, what runs here is still known, and it is said that the rest is not", async () => {
    const [one, two] = await team(2);
    const own = one!.begin();
    two!.begin();
    const heard: RunningEvent[] = [];
    one!.running.watch((event) => heard.push(event));
    await until(() => one!.running.known().count === 2, "both requests are known");
    heard.length = 0;
    await postgres.stop();
    await until(
      () => one!.running.known().gap !== undefined && heard.some(({ type }) => type === "renewed"),
      "it is said that the rest is unknown",
    );
    const list = await one!.running.list(anna);
    expect([list.running, list.gap]).toEqual([
      [],
      "The database cannot be used now, so it is unknown what other servers run.",
    ]);
    expect(ids((await one!.running.list()).running)).toEqual([own]);
    await expect(one!.running.cancel("elsewhere")).rejects.toMatchObject({ details: { code: "database_away" } });
    const late = two!.begin();
    await postgres.start();
    await until(
      () => one!.running.findKnown(late) !== undefined && one!.running.known().gap === undefined,
      "the late request is known",
    );
    expect(one!.running.known().count).toBe(3);
  });

  test("a listening connection that is killed comes back, and what was missed is caught up with", async () => {
    const [one, two] = await team(2);
    one!.running.watch(() => {});
    const gone = two!.begin();
    await until(() => one!.running.known().count === 1, "the request is known");
    const sql = new SQL(url, { max: 1 });
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE 'LISTEN%'`;
    await sql.close();
    two!.end(gone);
    const id = two!.begin();
    await until(
      () => one!.running.findKnown(id) !== undefined && one!.running.findKnown(gone) === undefined,
      "what was missed is caught up with",
    );
  });

  test("whatever begins, changes and ends on three servers, and whichever connections are killed, all know the same in the end", async () => {
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
        await all[0]!.running.list();
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
        await until(() => {
          const { gap, ...known } = running.known(member);
          return (
            !gap && Bun.deepEquals([state(known.running), known.count], [state(truth(member)), truth(member).length])
          );
        }, "the servers agree");
      }
  });

  test("who runs so many that not all are listed hides nobody else's, here or elsewhere", async () => {
    const [here, there] = (await team(2)) as [Server, Server];
    const many = [here, there].flatMap((server) =>
      Array.from({ length: 450 }, (_, at) => ({ server, id: server.begin({ member: anna, started_at_ms: at }) })),
    );
    here.running.watch(() => {});
    await until(() => here.running.known().count === 900 && !here.running.known().gap, "all 900 are known");
    const few = [here, there, there].map((server, at) => server.begin({ member: at < 2 ? ben : null }));
    const listed = () => new Set(ids(here.running.known().running));
    await until(() => few.every((id) => listed().has(id)), "the few are listed");
    expect([listed().size, here.running.known().count]).toEqual([400, 903]);
    for (const { server, id } of many) server.end(id);
    await until(() => here.running.known().count === 3, "only the few are left");
    expect(ids(here.running.known().running)).toEqual(few.toSorted());
  });
});
