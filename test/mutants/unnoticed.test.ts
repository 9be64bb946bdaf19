/** Rows: each change that may go unnoticed is one that can be made. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { changesOf } from "./changes";
import { unnoticed } from "./unnoticed";

const root = join(import.meta.dir, "../..");

test.each([...new Set(unnoticed.map(({ file }) => file))])(
  "each change of %s that may go unnoticed can still be made, and is named once",
  async (file) => {
    const changes = new Set(changesOf(file, await Bun.file(join(root, file)).text()).map(({ change }) => change));
    const named = unnoticed.filter((each) => each.file === file).map(({ change }) => change);
    expect(named.filter((change) => !changes.has(change))).toEqual([]);
    expect(named).toHaveLength(new Set(named).size);
  },
);
