/**
 * Rows: a promise in time: a stream costs what its length costs, into however many pieces its upstream cuts a list, a
 * block or a call. `fixtures/held/streams.txt` has them: of what is there `many` times, `@@` is the place.
 */
import { describe, expect, test } from "bun:test";
import { codecs } from "../../../src/dialects/codecs";
import type { Dialect } from "../../../src/dialects/hub/conversation";
import { blocksIn, unfolded } from "../../support/blocks";
import { workedMs } from "../../support/held";
import { collects, reads } from "../../support/streams";

const pieces = 12_000;

const streams = blocksIn("held/streams.txt").map((block) => {
  const [what = "", dialect, ...lines] = block.split("\n");
  const frames = lines.flatMap((line) => {
    const [, many, data = ""] = /^(many )?(.*)$/.exec(unfolded(line))!;
    return many ? Array.from({ length: pieces }, (_, at) => data.replaceAll("@@", String(at))) : [data];
  });
  return [what, dialect as Dialect, frames] as const;
});

const ways = {
  read: (dialect: Dialect) => reads(codecs[dialect])({ push() {}, end() {} }),
  collected: (dialect: Dialect) => collects(codecs[dialect], () => {}),
};

describe.each(Object.entries(ways))("%s", (way, open) => {
  test.each(streams)(`%s is ${way} in the time of its length`, (_what, dialect, frames) => {
    const sink = open(dialect);
    const before = workedMs();
    for (const data of frames) sink.push({ data });
    sink.end();
    expect(workedMs() - before).toBeLessThan(600);
  });
});
