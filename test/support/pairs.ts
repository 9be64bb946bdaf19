/** The files of `fixtures/pairs/`: under a title what goes in and what comes out, in lines of JSON. */
import { afterAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { ProxyError } from "../../src/lib/errors";
import { fixtures } from "./streams";

interface Pair {
  special: unknown;
  given: unknown[];
  out: unknown[];
}

/**
 * Behind a title each pair has a line with `:` for what is special about it (often none), those with `>` for what goes in,
 * and those with `<` for what comes out. A sign alone says that there is nothing.
 */
export function pairsIn(text: string): [title: string, pairs: Pair[]][] {
  return text.split("\n\n").map((block) => {
    const [title = "", ...lines] = block.trimEnd().split("\n");
    const pairs = lines.join("\n").matchAll(/(:.*\n)?((?:>.*\n)+)((?:<.*(?:\n|$))+)/g);
    return [
      title,
      [...pairs].map(([, special = "", given = "", out = ""]) => ({
        special: valuesIn(special)[0],
        given: valuesIn(given),
        out: valuesIn(out),
      })),
    ];
  });
}

const valuesIn = (lines: string) =>
  lines.split("\n").flatMap((line): unknown[] => (line.length > 2 ? [JSON.parse(line.slice(2))] : []));

/** Tests the pairs of a folder; `UPDATE=1` writes what comes out anew. @param acts By the name of a file what takes its values, one in each line. */
export function testPairs(folder: string, acts: Record<string, (...given: never[]) => unknown>): void {
  for (const [name, act] of Object.entries(acts)) {
    const file = join(fixtures, "pairs", folder, `${name}.txt`);
    let text = readFileSync(file, "utf8");
    test.each(pairsIn(text))(`${name}: %s`, async (title, pairs) => {
      expect(pairs.length).toBeGreaterThan(0);
      const outs: unknown[] = [];
      for (const { given, out } of pairs) {
        outs.push(await outOf(() => act(...(given as never[]))));
        if (!process.env.UPDATE) expect({ given, out: outs.at(-1) }).toEqual({ given, out: out[0] });
      }
      text = text.replace(blockOf(title, text), (block) => withOuts(block, outs));
    });
    if (process.env.UPDATE) afterAll(() => writeFileSync(file, text));
  }
}

const blockOf = (title: string, text: string): string =>
  text.split("\n\n").find((block) => block.startsWith(`${title}\n`))!;

const withOuts = (block: string, [...outs]: unknown[]): string =>
  block.replace(/^(?:<.*\n?)+/gm, (lines) => {
    const out = outs.shift();
    if (Bun.deepEquals(out, valuesIn(lines)[0])) return lines;
    return `${out === undefined ? "<" : `< ${JSON.stringify(out)}`}${lines.endsWith("\n") ? "\n" : ""}`;
  });

/** A file of `whole/`: its first words and input as they stand, what goes in, and by a title what comes out. */
export function wholeIn(file: string) {
  const [head = "", ...rest] = readFileSync(join(wholes, file), "utf8").split(/^=== /m);
  const out = rest.map((each): [string, string] => [
    each.split("\n", 1)[0]!,
    each.slice(each.indexOf("\n") + 1).trimEnd(),
  ]);
  return { head, given: head.replace(/^#.*\n/gm, ""), out: new Map(out) };
}

export const wholes = join(fixtures, "pairs", "whole");

/** The members that differ from those of the plain one, and those that are missing. */
export function changes(plain: object, all: object): JsonObject {
  const [before, after] = [plain, all].map((each): JsonObject => JSON.parse(JSON.stringify(each)));
  const changed = Object.entries(after!).filter(([name, value]) => !Bun.deepEquals(value, before![name]));
  const without = Object.keys(before!).filter((name) => !(name in after!));
  return { ...Object.fromEntries(changed), ...(without.length > 0 && { without }) };
}

/** As JSON; an error as the client is told of it and as it is written down. */
export async function outOf(act: () => unknown): Promise<unknown> {
  try {
    return plain(await act());
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    return { refused: plain(thrown) };
  }
}

function plain(value: unknown): unknown {
  const text = JSON.stringify(value, (_, member) => {
    if (!(member instanceof ProxyError)) return member;
    const { status, message, written, details } = member;
    return { status, message, ...(written !== message && { written }), ...details };
  });
  return text === undefined ? undefined : JSON.parse(text);
}
