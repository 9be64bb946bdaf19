/**
 * Which objects one small request makes: what it makes has to be collected, which no profile charges to whoever made it. Bun says
 * how many of each type there are; between two looks without a collection, the difference is what the requests made.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { clientPath, type Dialect, modelOf, requestBody } from "./dialects";
import { load, newFolder, type Running, startDragoman, subjects } from "./processes";
import { markdown } from "./statistics";

/** Requests between two looks: so few that a collection seldom comes between. */
const perLook = 60;
const looks = 16;

/** How many of each type a request makes. */
export type Made = ReadonlyMap<string, number>;

export async function objectsOfRequest(upstream: Running, dialect: Dialect, stream: boolean): Promise<Made> {
  const folder = newFolder();
  const [bun, ...words] = subjects.source as [string, ...string[]];
  const counted = join(folder, "counted.json");
  const command = [bun, "--preload", join(import.meta.dir, "count-objects.ts"), ...words];
  const dragoman = await startDragoman(command, upstream, undefined, { COUNTED_OBJECTS: counted });
  const body = requestBody(dialect, modelOf(dialect), stream);
  const job = { kind: "requests", url: dragoman.url + clientPath[dialect], body, connections: 4 } as const;
  const look = async () => {
    process.kill(dragoman.pid, "SIGUSR2");
    for (let tries = 0; !existsSync(counted) && tries < 100; tries++) await Bun.sleep(20);
    const counts = JSON.parse(readFileSync(counted, "utf8")) as Record<string, number>;
    rmSync(counted);
    return counts;
  };
  try {
    // What is made once, and what the compiler makes, is made by then.
    await load({ ...job, count: 4_000 });
    const windows: Made[] = [];
    let before = await look();
    for (let at = 0; at < looks; at++) {
      await load({ ...job, count: perLook });
      const after = await look();
      windows.push(madeBetween(before, after));
      before = after;
    }
    // A collection makes a difference smaller, and nothing makes it larger but a little of the process' own work.
    return windows.toSorted((one, next) => totalOf(next) - totalOf(one))[Math.floor(looks / 4)]!;
  } finally {
    await dragoman.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const madeBetween = (before: Record<string, number>, after: Record<string, number>): Made =>
  new Map(Object.entries(after).map(([type, count]) => [type, (count - (before[type] ?? 0)) / perLook]));

export const totalOf = (made: Made): number => [...made.values()].reduce((sum, each) => sum + each, 0);

/** The types of which the first request makes most come first; rare ones are one row. As Markdown. */
export function tableOfObjects(names: readonly string[], found: readonly Made[]): string {
  const row = (name: string, read: (made: Made) => number) => [name, ...found.map((made) => read(made).toFixed(0))];
  const types = [...new Set(found.flatMap((made) => [...made.keys()]))]
    .filter((type) => found.some((made) => (made.get(type) ?? 0) >= 4))
    .toSorted((one, next) => (found[0]?.get(next) ?? 0) - (found[0]?.get(one) ?? 0));
  const named = (made: Made) => types.reduce((sum, type) => sum + (made.get(type) ?? 0), 0);
  return markdown(
    ["objects that one small request makes", ...names],
    [
      ...types.map((type) => row(type, (made) => made.get(type) ?? 0)),
      row("others", (made) => totalOf(made) - named(made)),
      row("**sum**", totalOf),
    ],
  );
}
