/** Scenario: the runner itself, over test files of a folder of its own. */
import { describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mostQuarantined, quarantine } from "./quarantine";
import { withNames } from "./support/blocks";

const good = `import { test } from "bun:test"; test("good", () => {});`;
const wrong = `import { expect, test } from "bun:test"; test("good", () => {});
  test("wrong", () => expect(1, "the number of things").toBe(2));`;
const unloadable = `throw new Error("cannot load");`;
const crashing = `import { test } from "bun:test"; test("ends the process", () => process.exit(0));`;
/** What it waits for takes longer while another file runs: here, the first time. */
const racing = `import { expect, test } from "bun:test"; import { existsSync, writeFileSync } from "node:fs";
  test("good", () => {});
  test("races", () => { const isAgain = existsSync("again"); writeFileSync("again", ""); expect(isAgain).toBe(true); });`;
const fromSeed = `import { test } from "bun:test"; import fc from "./support/random";
  test("holds for every number", () =>
    fc.assert(fc.property(fc.integer({ min: 1, max: 200 }), (n) => n !== 77), { numRuns: 9000 }));`;
const lacking = `import { test } from "bun:test"; test("good", () => {});
  test.skip("a container (this machine lacks root)", () => {});`;
const quarantined = (name: string) => `export const quarantine = [
  { file: "test/wrong.test.ts", name: ${JSON.stringify(name)}, reason: "unknown yet", since: "2026-11-23" }];`;

interface Run {
  code: number;
  /** The lines that name a failure, a pardon or a skipped test. */
  titles: string[];
  last: string | undefined;
  printed: string;
}

async function outcomeOf(
  files: Record<string, string>,
  env: Record<string, string> = {},
  filters: string[] = [],
): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-runner-"));
  try {
    for (const name of ["attacks", "faults", "proof/load"]) mkdirSync(join(folder, "test", name), { recursive: true });
    for (const name of ["run.ts", "quarantine.ts"])
      copyFileSync(join(import.meta.dir, name), join(folder, "test", name));
    symlinkSync(join(import.meta.dir, "support"), join(folder, "test/support"));
    const all = { "attacks/a.test.ts": good, "faults/f.test.ts": good, "other.test.ts": good, ...files };
    for (const [path, text] of Object.entries(all)) writeFileSync(join(folder, "test", path), text);
    const child = Bun.spawn([process.execPath, "test/run.ts", ...filters], {
      cwd: folder,
      stderr: "ignore",
      env: { ...process.env, SEED: undefined, MAY_LACK: undefined, ...env },
    });
    const [printed, code] = [await new Response(child.stdout).text(), await child.exited];
    const titles = printed.split("\n").filter((line) => /^(?:failed|skipped)/.test(line));
    return { code, titles, last: printed.trim().split("\n").at(-1), printed };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the runner prints each failure with its message before the last line, which counts everything", async () => {
  const { printed, ...rest } = await outcomeOf({ "wrong.test.ts": wrong, "attacks/b.test.ts": wrong });
  const titles = [
    "failed, and fails alone too: test/wrong.test.ts",
    "failed, and fails alone too: test/attacks/b.test.ts",
  ];
  expect({ ...rest, titles: rest.titles.toSorted() }).toEqual({
    code: 1,
    titles: titles.toSorted(),
    last: "5 passed, 2 failed",
  });
  expect(printed).toContain("the number of things");
  expect(printed).toContain("Expected: 2");
});

test("a file of the proof tier runs only where it is named, and gets no second run", async () => {
  const files = { "proof/load/heavy.test.ts": wrong };
  expect(await outcomeOf(files)).toMatchObject({ code: 0, last: "3 passed, 0 failed" });
  const titles = ["failed: test/proof/load/heavy.test.ts"];
  expect(await outcomeOf(files, {}, ["test/proof"])).toMatchObject({ code: 1, titles, last: "1 passed, 1 failed" });
});

test.each(["", "1"])("a test that fails only beside others makes the run red (CLAUDECODE=%p)", async (CLAUDECODE) => {
  const { printed, ...rest } = await outcomeOf({ "racing.test.ts": racing }, { CLAUDECODE });
  const titles = ["failed, but only beside others: test/racing.test.ts"];
  expect(rest).toEqual({ code: 1, titles, last: "4 passed, 1 failed" });
});

test("a property that fails for one input in 200 makes the run red, and its seed shows it again", async () => {
  const first = await outcomeOf({ "seed.test.ts": fromSeed });
  expect(first).toMatchObject({ code: 1, last: "3 passed, 1 failed" });
  const [, SEED] = /SEED=(\d+) bun test\/run\.ts <file>/.exec(first.printed)!;
  expect(first.printed).toContain(`{ seed: ${SEED}, path: "`);
  const second = await outcomeOf({ "seed.test.ts": fromSeed }, { SEED: SEED! });
  const tries = (text: string) => /Property failed after (\d+) tests/.exec(text)?.[1];
  expect(tries(second.printed)).toBe(tries(first.printed)!);
});

test.each([
  ["cannot be loaded", unloadable, "failed, and fails alone too: test/broken.test.ts"],
  ["has no test", "", "failed, and fails alone too: test/broken.test.ts"],
  ["ends the process", crashing, "failed, and fails alone too: test/broken.test.ts"],
])("a file that %s is a failure", async (_, text, title) => {
  const { code, titles, last } = await outcomeOf({ "broken.test.ts": text });
  expect({ code, titles, last }).toEqual({ code: 1, titles: [title], last: "3 passed, 1 failed" });
});

test("more failed files than are worth a second run are failures without a label", async () => {
  const many = Object.fromEntries([1, 2, 3, 4, 5, 6].map((n) => [`wrong-${n}.test.ts`, wrong]));
  const { titles, code, last } = await outcomeOf(many);
  expect({ code, last }).toEqual({ code: 1, last: "9 passed, 6 failed" });
  expect(titles).toContain("failed: test/wrong-1.test.ts");
});

describe("the quarantine", () => {
  test("pardons the test that it names, and the runner prints it", async () => {
    const files = { "quarantine.ts": quarantined("wrong"), "wrong.test.ts": wrong };
    const { printed, ...rest } = await outcomeOf(files);
    const titles = ["failed, and is in quarantine: test/wrong.test.ts"];
    expect(rest).toEqual({ code: 0, titles, last: "4 passed, 0 failed" });
  });

  test("pardons no other test of the file", async () => {
    const files = { "quarantine.ts": quarantined("another"), "wrong.test.ts": wrong };
    expect(await outcomeOf(files)).toMatchObject({ code: 1, last: "4 passed, 1 failed" });
  });

  test("the quarantine is short, and each entry names a file, a reason and a date", async () => {
    expect(quarantine.length).toBeLessThanOrEqual(mostQuarantined);
    for (const { file, name, reason, since } of quarantine) {
      expect(await Bun.file(join(import.meta.dir, "..", file)).exists(), file).toBe(true);
      expect(reason.length, name).toBeGreaterThan(20);
      expect(since, name).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    }
  });
});

test("a skipped test is counted with its reason, and is a failure where the machine must not lack it", async () => {
  const files = { "lacking.test.ts": lacking };
  const titles = ["skipped: 1, because this machine lacks root"];
  expect(await outcomeOf(files)).toMatchObject({ code: 0, titles, last: "4 passed, 0 failed, 1 skipped" });
  expect(await outcomeOf(files, { MAY_LACK: "root,Caddy" })).toMatchObject({ code: 0 });
  expect(await outcomeOf(files, { MAY_LACK: "Caddy" })).toMatchObject({ code: 1, last: "4 passed, 1 failed" });
});

test("a number of a run is found where it stands alone", () => {
  const names = [
    ["127.0.0.1:46399", "server.test"],
    ["46399", "44444"],
    ["/tmp/home-a", "/home/ann"],
  ] as const;
  const text = 'at 127.0.0.1:46399, port 46399; 1795046399999 a46399f {"path":"\\n/tmp/home-a/data"} /tmp/home-ab $&';
  expect(withNames(text, names)).toBe(
    'at server.test, port 44444; 1795046399999 a46399f {"path":"\\n/home/ann/data"} /tmp/home-ab $&',
  );
});
