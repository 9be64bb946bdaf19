/** Runs cases by themselves: those of the clients that the command line names, or all. */
import type { Tool } from "./clients";
import { type Installed, install } from "./install";

interface Told {
  tool: Tool;
  faults: string[];
  measured?: string;
  said: string;
}

/** The end of what was said, to be read below the line that says what is wrong. */
export const lastLines = (said: string, count: number): string =>
  said.trim().split("\n").slice(-count).join("\n").replace(/^/gm, "    ");

/** @param about What a case is about, without its client. */
export async function runAlone<Case extends Told>(
  all: readonly Tool[],
  cases: (installed: Installed, isWanted: (tool: Tool) => boolean) => AsyncIterable<Case>,
  about: (each: Case, version: string) => string,
): Promise<void> {
  const only = process.argv.slice(2);
  const isWanted = ({ id }: Tool) => only.length === 0 || only.includes(id);
  const installed = await install(all.filter(isWanted).map(({ npm }) => npm));
  for await (const each of cases(installed, isWanted)) {
    const { tool, faults, measured, said } = each;
    const version = await installed.version(tool.npm);
    const outcome = (faults.join("; ") || "ok") + (measured ? ` (${measured})` : "");
    console.log(`${tool.id} ${version}, ${about(each, version)}: ${outcome}`);
    if (faults.length > 0) console.log(lastLines(said, 15));
  }
}
