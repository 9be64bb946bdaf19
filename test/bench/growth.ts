/**
 * `bun test/bench/growth.ts`: what grows with rows, members, accounts, keys, budgets, streams at once and the prompt's length, each
 * at three sizes, with its order, as one table. `--only members,keys` measures some. The servers of the three sizes run side by side and take turns.
 */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { inHome } from "../../src/config/home-names";
import { hourMs } from "../../src/lib/format";
import { sha256 } from "../../src/lib/net/in/credentials";
import { withTeamStores } from "../support/members";
import { clientPath, type Dialect, dialects, modelOf, requestBody } from "./dialects";
import { fillHistory } from "./full-history";
import type { StreamsResult } from "./load";
import { load, newFolder, type Started, startDragoman, startUpstream, subjects } from "./processes";
import { growthOf, machine, quantile, rssOf, workIn } from "./statistics";

interface Subject extends Started {
  size: number;
  /** What its requests send. */
  body: string;
  headers?: Record<string, string> | undefined;
}

/** What is there once. */
interface Filled {
  headers?: Record<string, string>;
  body?: string;
}

interface Growing {
  sizes: readonly [number, number, number];
  /** Fills a data folder. */
  fill(home: string, size: number): Promise<Filled>;
  figures: readonly Figure[];
}

interface Figure {
  name: string;
  digits?: number;
  of(subject: Subject): number | Promise<number>;
  /** The median of so many, in turns; one when missing. */
  turns?: number;
}

const small = requestBody("chat", modelOf("chat"), false);
const secret = `drg_${"0".repeat(40)}`;

const request: Figure = {
  name: "a request: CPU, µs",
  turns: 5,
  async of({ url, pid, body, headers }) {
    const count = body.length > 100_000 ? 40 : 1_000;
    const job = { kind: "requests", url: url + clientPath.chat, body, headers, connections: 4, count } as const;
    return ((await workIn(pid, () => load(job))) / count) * 1e6;
  },
};
const start: Figure = { name: "start: CPU to the first answer, ms", of: ({ startCpuMs }) => startCpuMs };
const memory: Figure = { name: "memory before the first request, MiB", of: ({ pid }) => rssOf(pid) };
const idle: Figure = {
  name: "an idle hour: CPU, s",
  digits: 1,
  of: async ({ pid }) => (await workIn(pid, () => Bun.sleep(5_000))) * (hourMs / 5_000),
};
const answer = (path: string): Figure => ({
  name: `\`${path.replace(/\?.*/, "")}\`: CPU, ms`,
  digits: 1,
  turns: 5,
  async of({ url, pid }) {
    const ask = async () => {
      const response = await fetch(url + path, { headers: { "x-admin-token": secret } });
      await response.text();
      if (!response.ok) throw new Error(`${path} answered ${response.status}`);
    };
    return (await workIn(pid, async () => Promise.all(Array.from({ length: 5 }, ask)))) * (1e3 / 5);
  },
});

/** Of a stream, each its own packet: 20 a second, so that the largest number of streams does not take the whole core. */
const [events, every] = [80, 50];
const event = (dialect: Dialect): Figure => ({
  name: `${dialect}: an event, CPU, µs`,
  turns: 2,
  async of(subject) {
    return ((await workIn(subject.pid, () => streams(dialect, subject))) / (subject.size * events)) * 1e6;
  },
});
const grown = (dialect: Dialect): Figure => ({
  name: `${dialect}: memory of all that speak, MiB`,
  turns: 2,
  async of(subject) {
    return (await growthOf(subject.pid, () => streams(dialect, subject))).growth;
  },
});

async function streams(dialect: Dialect, { url, size }: Subject): Promise<void> {
  await fetch(`${upstream.url}/script`, { method: "POST", body: JSON.stringify({ events, perRead: 1, every }) });
  const body = requestBody(dialect, modelOf(dialect), true);
  const job = { kind: "streams", url: url + clientPath[dialect], body, streams: size, times: 1 } as const;
  const { finished } = await load<StreamsResult>(job);
  if (finished < size) throw new Error(`Of ${size} streams ${finished} came to their end.`);
}

const ofServer = [request, start, memory, idle];
const nothing = async (): Promise<Filled> => ({});

const growing: Record<string, Growing> = {
  rows: {
    sizes: [10_000, 40_000, 160_000],
    fill: (home, size) => fillHistory(home, size).then(nothing),
    figures: [
      ...ofServer,
      answer("/api/admin/requests?limit=50"),
      answer("/api/admin/statistics?by=day,model"),
      answer("/api/admin/totals"),
    ],
  },
  members: { sizes: [10, 100, 1_000], fill: fillMembers, figures: [...ofServer, answer("/api/admin/members")] },
  accounts: { sizes: [1, 10, 100], fill: fillAccounts, figures: [...ofServer, answer("/api/admin/accounts")] },
  keys: { sizes: [10, 100, 1_000], fill: fillKeys, figures: [...ofServer, answer("/api/admin/keys")] },
  budgets: { sizes: [1, 10, 100], fill: fillBudgets, figures: [...ofServer, answer("/api/admin/budgets")] },
  "streams at once": {
    sizes: [30, 120, 480],
    fill: nothing,
    figures: dialects.flatMap((dialect) => [event(dialect), grown(dialect)]),
  },
  "bytes of a prompt": {
    sizes: [10_000, 100_000, 1_000_000],
    fill: async (_, size) => ({ body: requestBody("chat", modelOf("chat"), false, size) }),
    figures: [request],
  },
};

const signedIn = (login: string) => {
  const githubToken = `ghu_${randomBytes(20).toHex()}`;
  return { login, host: "github.com", app: "vscode", mode: "exchange", githubToken, addedAt: Date.now() } as const;
};

/** What a difference has to be, as a share of the smallest size's value, to be more than noise. */
const noise = 0.15;

const at = process.argv.indexOf("--only");
const only = at < 0 ? Object.keys(growing) : process.argv[at + 1]!.split(",");
const begun = performance.now();
const upstream = await startUpstream();
try {
  console.log("| with | figure | sizes | | | order |\n| --- | --- | --: | --: | --: | --- |");
  for (const name of only) console.log((await measured(name, growing[name]!)).join("\n"));
  const took = Math.round((performance.now() - begun) / 1000);
  console.log(`\n${machine()}; ${new Date().toISOString().slice(0, 10)}; ${took} s`);
} finally {
  await upstream.stop();
}

async function measured(name: string, { sizes, fill, figures }: Growing): Promise<string[]> {
  const subjectsOf: Subject[] = [];
  try {
    for (const size of sizes) {
      const home = newFolder();
      const { body = small, headers } = await fill(home, size);
      const started = await startDragoman(subjects.source, upstream, home, { ADMIN_TOKEN: secret });
      subjectsOf.push({ ...started, size, body, headers });
      // What a start does after its first answer.
      await Bun.sleep(3_000);
    }
    const lines = [`| ${name} | | ${sizes.map((size) => size.toLocaleString("en")).join(" | ")} | |`];
    // The one that is warmed up by requests comes last.
    for (const figure of figures.toSorted((one, other) => Number(one === request) - Number(other === request)))
      lines.push(lineOf(figure, sizes, await valuesOf(figure, subjectsOf)));
    return lines;
  } finally {
    await Promise.all(subjectsOf.map((subject) => subject.stop()));
  }
}

async function valuesOf({ of, turns = 1 }: Figure, all: readonly Subject[]): Promise<number[]> {
  const taken: number[][] = all.map(() => []);
  // The first turn of several warms up.
  for (let turn = turns > 1 ? -1 : 0; turn < turns; turn++)
    for (const [place, subject] of all.entries()) {
      const value = await of(subject);
      if (turn >= 0) taken[place]!.push(value);
    }
  return taken.map((values) => quantile(values, 0.5));
}

function lineOf({ name, digits = 0 }: Figure, sizes: readonly number[], values: readonly number[]): string {
  const shown = values.map((value) => value.toLocaleString("en", { maximumFractionDigits: digits }));
  return `| | ${name} | ${shown.join(" | ")} | ${orderOf(sizes, values)} |`;
}

/** How the part of a figure that grows does: what is the same at all sizes tells nothing of it. */
function orderOf([small, middle, large]: readonly number[], [one, two, three]: readonly number[]): string {
  const grown = three! - one!;
  if (grown < noise * one! || three! < two!) return "the same";
  const perThousand = (grown / (large! - small!)) * 1_000;
  const each = `${perThousand.toLocaleString("en", { maximumSignificantDigits: 2 })} for 1,000 more`;
  // Of a figure that grows as n to the power p, two differences tell p.
  const power =
    Math.log((three! - two!) / Math.max(two! - one!, 1e-9)) / Math.log((large! - middle!) / (middle! - small!));
  if (two! - one! < (noise / 3) * one!) return `grows late: ${each}`;
  return `${power < 0.6 ? "slower than linear" : power < 1.4 ? "linear" : "faster than linear"}: ${each}`;
}

// ── Data folders ──

function withStores<T>(home: string, work: Parameters<typeof withTeamStores<T>>[1]): Promise<T> {
  return withTeamStores({ env: { DRAGOMAN_HOME: home } }, work);
}

/** Each has a key and an account; the last one asks. */
function fillMembers(home: string, size: number): Promise<Filled> {
  return withStores(home, async ({ members, accounts }) => {
    let key = "";
    for (let place = 0; place < size; place++) {
      const made = await members.accept((await members.invite(`member-${place}`)).code);
      await accounts.add({ ...signedIn(`login-${place}`), member: made!.member.id });
      key = made!.key;
    }
    return { headers: { "x-api-key": key } };
  });
}

function fillAccounts(home: string, size: number): Promise<Filled> {
  return withStores(home, async ({ accounts }) => {
    for (let place = 0; place < size; place++) await accounts.add(signedIn(`login-${place}`));
    return {};
  });
}

function writeConfig(home: string, config: object): Promise<Filled> {
  writeFileSync(inHome(home, "config"), JSON.stringify(config), { mode: 0o600 });
  return nothing();
}

/** The last one is sent. */
async function fillKeys(home: string, size: number): Promise<Filled> {
  const key = `drg_${randomBytes(20).toHex()}`;
  const apiKeys = Array.from({ length: size }, (_, place) => ({
    name: `key-${place}`,
    sha256: (place === size - 1 ? sha256(key) : randomBytes(32)).toHex(),
  }));
  await writeConfig(home, { auth: { apiKeys } });
  return { headers: { "x-api-key": key } };
}

/** Each counts every request. */
function fillBudgets(home: string, size: number): Promise<Filled> {
  const common = { unit: "requests", per: "month", limit: 1_000_000 };
  return writeConfig(home, {
    budgets: Array.from({ length: size }, (_, place) => ({ name: `budget ${place}`, ...common })),
  });
}
