/**
 * Which lines of src one small request runs, by Bun's coverage: the proxy serves many requests in a process of its own, and
 * in another one none. A line that ran for at least four of five requests more often belongs to the way of each.
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type LineCounts, readLcov } from "../support/lcov";
import type { Dialect } from "./dialects";
import { newFolder } from "./processes";
import { markdown } from "./statistics";

/** What is asked for. */
interface Asked {
  dialect: Dialect;
  stream: boolean;
}

export const nameOf = ({ dialect, stream }: Asked): string => (stream ? `${dialect}, a stream` : dialect);

const requests = 100;
const root = join(import.meta.dir, "../..");

/** @returns The lines of each file. Rows of the demo's own upstream are left out. */
export async function linesOfRequests(all: readonly Asked[]): Promise<Map<string, number>[]> {
  const idle = await runsOf({ dialect: "chat", stream: false }, 0);
  const found: Map<string, number>[] = [];
  for (const asked of all) found.push(linesBeside(idle, await runsOf(asked, requests)));
  return found;
}

function linesBeside(idle: LineCounts, busy: LineCounts): Map<string, number> {
  const isOfEach =
    (file: string) =>
    ([line, count]: [number, number]) =>
      count - (idle.get(file)?.get(line) ?? 0) >= 0.8 * requests;
  return new Map(
    [...busy]
      .filter(([file]) => file.startsWith("src/") && !file.startsWith("src/demo/"))
      .map(([file, lines]) => [file, [...lines].filter(isOfEach(file)).length] as const)
      .filter(([, lines]) => lines > 0),
  );
}

async function runsOf(asked: Asked, count: number): Promise<LineCounts> {
  const folder = newFolder();
  const reports = ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${folder}`];
  try {
    const run = Bun.spawn([process.execPath, "test", ...reports, "./test/bench/request-lines-run.ts"], {
      cwd: root,
      env: { ...process.env, ASKED: JSON.stringify({ ...asked, count }) },
      stdout: "ignore",
      stderr: "pipe",
    });
    const said = await new Response(run.stderr).text();
    if ((await run.exited) !== 0) throw new Error(`The requests were not served:\n${said}`);
    return readLcov(readFileSync(join(folder, "lcov.info"), "utf8"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The sums by room, the largest first, as Markdown. */
export function tableOfLines(all: readonly Asked[], found: readonly Map<string, number>[]): string {
  const roomOf = (file: string) => file.split("/").slice(1, -1)[0] ?? "src itself";
  const sums = found.map((files) => {
    const rooms = new Map<string, number>();
    for (const [file, lines] of files) rooms.set(roomOf(file), (rooms.get(roomOf(file)) ?? 0) + lines);
    return rooms;
  });
  const rooms = [...new Set(sums.flatMap((each) => [...each.keys()]))].toSorted(
    (one, next) => (sums[0]?.get(next) ?? 0) - (sums[0]?.get(one) ?? 0),
  );
  return markdown(
    ["lines of src that one small request runs", ...all.map(nameOf)],
    [
      ...rooms.map((room) => [room, ...sums.map((each) => each.get(room) ?? 0)]),
      ["**sum**", ...found.map(sumOf)],
      ["files", ...found.map(({ size }) => size)],
    ],
  );
}

export const sumOf = (files: ReadonlyMap<string, number>): number =>
  [...files.values()].reduce((sum, each) => sum + each, 0);
