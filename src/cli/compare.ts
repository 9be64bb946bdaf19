/** `dragoman doctor --compare`: reads a report of another machine against what this version assumes of the upstream. */
import { readFileSync, statSync } from "node:fs";
import { asProxyError } from "../errors";
import { plural } from "../format";
import { type Assumption, assumptions, type Findings } from "../upstream/changes/assumptions";
import { readShapes, type Shapes } from "./deep/shapes";
import { table } from "./layout";
import { print } from "./terminal";
import { UsageError } from "./usage-error";

const maxBytes = 1024 * 1024;

/** Prints the assumptions that the report does not bear out. @returns The exit code: 1 if there are some. */
export function compareReport(path: string): number {
  const shapes = readShapes(textOf(path), path);
  const judged = assumptions.map((assumption) => ({ assumption, verdict: verdictOf(assumption, shapes) }));
  const looked = judged.filter(({ verdict }) => verdict !== undefined);
  const differing = looked.filter(({ verdict }) => verdict?.fits === false);
  print(`A report of dragoman ${shapes.dragoman} of ${shapes.day}.`);
  if (differing.length > 0)
    print(
      ...table([
        ["assumed", "by", "found"],
        ...differing.map(({ assumption, verdict }) => [
          assumption.assumes,
          `${assumption.source}, ${assumption.date}`,
          foundInWords(assumption, verdict!.found),
        ]),
      ]),
    );
  const of = `${looked.length} of ${plural(assumptions.length, "assumption")} could be compared`;
  print(differing.length === 0 ? `${of}, and all fit.` : `${of}; ${differing.length} differ.`);
  return differing.length === 0 ? 0 : 1;
}

/** Undefined if the report does not say. */
function verdictOf({ look, fits }: Assumption, { looks }: Shapes): { fits: boolean; found: Findings } | undefined {
  const taken = looks[look];
  if (!taken || "skipped" in taken) return undefined;
  const fit = fits(taken.found);
  return fit === undefined ? undefined : { fits: fit, found: taken.found };
}

const foundInWords = ({ about }: Assumption, found: Findings): string =>
  about
    .filter((name) => found[name] !== undefined)
    .map((name) => {
      const value = found[name];
      return `${name}: ${Array.isArray(value) ? value.join(" ") || "none" : String(value)}`;
    })
    .join("; ");

function textOf(path: string): string {
  try {
    if (statSync(path).size > maxBytes) throw new UsageError(`${path} is too large for a report.`);
    return readFileSync(path, "utf8");
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    throw new UsageError(`${path} cannot be read: ${asProxyError(thrown).message}`);
  }
}
