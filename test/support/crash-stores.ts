/**
 * What dragoman keeps on a disk: a few changes of each store, and how to read it again. As a program of its own it makes the
 * changes and prints which were done: `crash-stores.ts <store> <folder>`.
 */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openHistory } from "../../src/books/history/history";
import { openSentNotices } from "../../src/books/notices/sent-notices";
import { undoSettings } from "../../src/clients/settings-file/undo";
import { type SettingsFile, writeSettings } from "../../src/clients/settings-file/write";
import { budgetSchema } from "../../src/config/budget-schema";
import { openConfig } from "../../src/config/store";
import type { Awaitable } from "../../src/lib/awaitable";
import { createLogger } from "../../src/lib/logger";
import { openAccountStore, type SavedAccount, secretOf } from "../../src/people/accounts/account-store";
import { openLedger } from "../../src/people/budgets/ledger";
import { createKey, revokeKey } from "../../src/people/keys/stored-keys";
import { openDiskQueues } from "../../src/team/disk-queue";
import { credits } from "./amounts";
import { entry, noon } from "./history-rows";

/** What is stored under a name; null: nothing. */
export type Items = Record<string, unknown>;

interface Step {
  /** What the items are afterwards. */
  sets: Items;
  run(): Awaitable<unknown>;
}

export interface CrashStore {
  /** What stands in the folder before. */
  prepare?(folder: string): void;
  /** Null without it. */
  initial?: Items;
  steps(folder: string): Step[];
  /** What a step could not write is written with the next one. */
  catchesUp?: boolean;
  /** Opens it again. @throws If something is half there. */
  read(folder: string): Awaitable<Items>;
}

const warnings: string[] = [];
const warn = (sentence: string) => void warnings.push(sentence);
/** A store that goes on and warns where it could not write. */
const unlessWarned = <T>(result: T): T => {
  const [said] = warnings.splice(0);
  if (said !== undefined) throw new Error(said);
  return result;
};

function config(): CrashStore {
  const at = (folder: string) => openConfig(join(folder, "config.json"));
  return {
    steps(folder) {
      const store = at(folder);
      return [
        { sets: { logLevel: "warn" }, run: () => store.change({ logLevel: "warn" }) },
        { sets: { one: true }, run: () => createKey(store, { name: "one" }) },
        { sets: { two: true }, run: () => createKey(store, { name: "two" }) },
        { sets: { maxRows: 4711 }, run: () => store.change({ maxRows: 4711 }) },
        { sets: { one: null }, run: () => revokeKey(store, "one") },
      ];
    },
    read(folder) {
      const { logLevel, maxRows, auth } = at(folder).stored as { [name: string]: unknown; auth?: { apiKeys: Items[] } };
      return { logLevel, maxRows, ...Object.fromEntries((auth?.apiKeys ?? []).map(({ name }) => [name, true])) };
    },
  };
}

function accounts(): CrashStore {
  const logger = createLogger(() => "error");
  const account = (login: string, token: string): SavedAccount => ({
    ...({ login, host: "github.com", app: "vscode", mode: "exchange", addedAt: noon } as const),
    githubToken: `ghu_${token}`,
  });
  return {
    steps(folder) {
      const store = openAccountStore(join(folder, "accounts"), logger);
      const add = (login: string, token: string) => ({
        sets: { [login]: `ghu_${token}` },
        run: () => store.add(account(login, token)),
      });
      return [
        { sets: {}, run: () => store.prepare("github.com") },
        add("ada", "first"),
        add("bob", "second"),
        add("ada", "third"),
        { sets: { bob: null }, run: () => store.remove("bob") },
      ];
    },
    read(folder) {
      const skipped: string[] = [];
      const strict = createLogger(
        () => "info",
        (line) => void skipped.push(line),
      );
      const loaded = openAccountStore(join(folder, "accounts"), strict).load();
      if (skipped.length > 0) throw new Error(skipped.join("\n"));
      return Object.fromEntries(loaded.map((account) => [account.login, secretOf(account)]));
    },
  };
}

function history(): CrashStore {
  let maxRows = 1_000;
  const at = (folder: string) =>
    openHistory(join(folder, "admin.sqlite"), {
      retentionDays: () => 14,
      maxRows: () => maxRows,
      warn,
      now: () => noon,
    });
  const batches = ["a", "b", "c", "d"];
  return {
    catchesUp: true,
    steps(folder) {
      const opened = at(folder);
      const add = (batch: string) => {
        for (const one of [1, 2, 3]) opened.add(entry({ request_id: `${batch}-${one}`, session: batch }));
        // A batch that was refused is still queued, and is written with the next one.
        if (!opened.flush() || opened.degraded) throw new Error("They wait.");
      };
      return [
        ...batches.map((batch) => ({ sets: { [batch]: 3 }, run: () => add(batch) })),
        {
          sets: { a: null, b: null },
          async run() {
            maxRows = 6;
            await opened.prune();
            unlessWarned(opened.close());
          },
        },
      ];
    },
    async read(folder) {
      maxRows = 1_000;
      const opened = at(folder);
      const { items } = await opened.list({}, 100);
      const { totals } = await opened.statistics({}, []);
      opened.close();
      if (totals.request_count !== items.length)
        throw new Error(`${totals.request_count} requests in the statistics, and ${items.length} in the list`);
      unlessWarned(undefined);
      const of = (batch: string) => items.filter(({ session }) => session === batch).length || undefined;
      return Object.fromEntries(batches.map((batch) => [batch, of(batch)]));
    },
  };
}

function ledger(): CrashStore {
  const [own, all] = ["key", undefined].map((each) =>
    budgetSchema().parse({ name: each ?? "all", unit: "credits", limit: 100, per: "month", each }),
  );
  const at = (folder: string) => openLedger(join(folder, "budgets.sqlite"), { now: () => noon, warn });
  const subjectOf = (key: string) => ({ account: "octo", model: "gpt-4.1", key });
  const keys = ["anna", "ben", "ci"];
  return {
    steps(folder) {
      const opened = at(folder);
      const holds = (key: string, used: number, held: number) => ({ [key]: [used, held] });
      return keys.flatMap((key, order) => {
        const reserve = () => opened.reserve([all!, own!], subjectOf(key), credits(4));
        let reserved: ReturnType<typeof reserve> | undefined;
        const reservation = () => {
          if (!reserved || "exceeded" in reserved) throw new Error("Nothing is reserved.");
          return reserved.reservation;
        };
        return [
          { sets: holds(key, 0, 4), run: () => (reserved = reserve()) },
          order === 1
            ? { sets: { [key]: [0, 0] }, run: () => opened.release(reservation()) }
            : { sets: holds(key, 1.5, 0), run: () => opened.settle(reservation(), credits(1.5)) },
        ];
      });
    },
    read(folder) {
      const opened = at(folder);
      const read = keys.map((key) => opened.states([all!, own!], subjectOf(key)));
      opened.close();
      // A file that was made and not written yet has counted nothing.
      if (warnings.splice(0).some((sentence) => !sentence.includes("was empty"))) throw new Error("It was damaged.");
      const sums = (each: "used" | "reserved") => read.reduce((sum, [, state]) => sum + state![each], 0);
      for (const each of ["used", "reserved"] as const)
        if (sums(each) !== read[0]![0]![each]) throw new Error(`${each} is ${read[0]![0]![each]} and ${sums(each)}`);
      return Object.fromEntries(read.map(([, state], at) => [keys[at], [state!.used, state!.reserved]]));
    },
    initial: Object.fromEntries(keys.map((key) => [key, [0, 0]])),
  };
}

function sentNotices(): CrashStore {
  const at = (folder: string) => openSentNotices(join(folder, "notices.json"), { now: () => noon, warn });
  return {
    steps(folder) {
      const store = at(folder);
      return ["quota", "drift", "update"].map((id) => ({
        sets: { [id]: true },
        async run() {
          await store.claim([id]);
          unlessWarned(await store.note([{ id, delivered: ["mail"], isDone: true }]));
        },
      }));
    },
    read: async (folder) => Object.fromEntries((await at(folder).all()).map((id) => [id, true])),
  };
}

function queues(): CrashStore {
  const at = (folder: string) => openDiskQueues(join(folder, "waiting.sqlite"), warn);
  return {
    steps(folder) {
      const opened = at(folder);
      const [requests, settlements] = [opened.queue("request"), opened.queue("settlement")];
      return [
        { sets: { r1: 1, r2: 2 }, run: () => requests.add([["r1", 1], ["r2", 2]]) }, // biome-ignore format: two pairs
        { sets: { s1: { credits: 3 } }, run: () => settlements.add([["s1", { credits: 3 }]]) },
        { sets: { r1: null, r2: null }, run: () => requests.remove(["r1", "r2"]) },
        { sets: { r3: 3 }, run: () => requests.add([["r3", 3]]) },
      ];
    },
    read(folder) {
      const opened = at(folder);
      const waiting = [...opened.queue("request").take(9), ...opened.queue("settlement").take(9)];
      opened.close();
      unlessWarned(undefined);
      const items: Items = Object.fromEntries(waiting);
      if (items.r1 !== items.r2 && items.r2 !== 2) throw new Error("One of two rows is there.");
      return items;
    },
  };
}

/** The settings of a client, written twice and taken back. @param original What the person had; undefined: no file. */
function connect(original: string | undefined): CrashStore {
  const placeIn = (folder: string): SettingsFile => ({
    ...{
      undoneBy: "dragoman connect claude-code --undo",
      id: "claude-code",
      format: "json",
      home: join(folder, "data"),
      warn() {},
    },
    path: join(folder, "home/.claude/settings.json"),
  });
  const edits = (url: string) => [{ path: ["env", "ANTHROPIC_BASE_URL"], value: url }];
  const now = (folder: string) => {
    const { path } = placeIn(folder);
    return statSync(path, { throwIfNoEntry: false }) ? readFileSync(path, "utf8") : undefined;
  };
  const write = (folder: string, url: string) => writeSettings([[placeIn(folder), { edits: edits(url) }]]);
  const urls = ["http://127.0.0.1:1", "http://127.0.0.1:2"];
  return {
    prepare(folder) {
      if (original === undefined) return;
      mkdirSync(dirname(placeIn(folder).path), { recursive: true });
      writeFileSync(placeIn(folder).path, original);
    },
    steps: (folder) => [
      ...urls.map((url) => ({ sets: { url }, run: () => write(folder, url) })),
      { sets: { url: null }, run: () => undoSettings([placeIn(folder)], false) },
      { sets: { url: urls[0] }, run: () => write(folder, urls[0]!) },
    ],
    async read(folder) {
      const found = now(folder);
      const url = found === undefined ? undefined : JSON.parse(found).env?.ANTHROPIC_BASE_URL;
      // Whatever happened, an undo brings back what the person had, and asks for no force.
      await undoSettings([placeIn(folder)], false);
      if (now(folder) !== original) throw new Error(`An undo left ${now(folder)}`);
      return { url };
    },
  };
}

export const crashStores = {
  "the config with its client keys": config(),
  "the accounts with their tokens": accounts(),
  "the history": history(),
  "the ledger of the budgets": ledger(),
  "what waits for the database": queues(),
  "the notices that were sent": sentNotices(),
  "a client's settings": connect('{\n  "model": "opus"\n}\n'),
  "a client's settings where there were none": connect(undefined),
} satisfies Record<string, CrashStore>;

/** What the program prints before a step and after it. */
export type Said = { begins: Items } | { served: true } | { refused: string };

if (import.meta.main) {
  const [name, folder] = process.argv.slice(2) as [keyof typeof crashStores, string];
  const say = (said: Said) => console.log(JSON.stringify(said));
  for (const { sets, run } of crashStores[name].steps(folder)) {
    say({ begins: sets });
    try {
      await run();
      say({ served: true });
    } catch (thrown) {
      say({ refused: String(thrown) });
    }
  }
}
