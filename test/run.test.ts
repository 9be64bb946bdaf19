/** The runner itself, over test files of a folder of its own. */
import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const good = `import { test } from "bun:test"; test("good", () => {});`;
const wrong = `import { expect, test } from "bun:test"; test("good", () => {}); test("wrong", () => expect(1).toBe(2));`;
const unloadable = `throw new Error("cannot load");`;
const onlyFirst = `import { expect, test } from "bun:test"; import { existsSync, writeFileSync } from "node:fs";
  test("good", () => {});
  test("busy", () => { const isAgain = existsSync("again"); writeFileSync("again", ""); expect(isAgain).toBe(true); });`;
/** Bun names the failures of a long run once more at its end. */
const long = `import { test } from "bun:test"; for (let at = 0; at < 300; at += 1) test("of many " + at, () => {});`;

async function outcome(files: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), "dragoman-runner-"));
  try {
    for (const name of ["attacks", "faults", "support"]) mkdirSync(join(folder, "test", name), { recursive: true });
    for (const name of ["run.ts", "support/limit.ts"])
      copyFileSync(join(import.meta.dir, name), join(folder, "test", name));
    const all = { "attacks/a.test.ts": good, "faults/f.test.ts": good, "other.test.ts": good, ...files };
    for (const [path, text] of Object.entries(all)) writeFileSync(join(folder, "test", path), text);
    const child = Bun.spawn([process.execPath, "test/run.ts"], { cwd: folder, stderr: "ignore" });
    const [printed, code] = [await new Response(child.stdout).text(), await child.exited];
    const titles = printed.split("\n").filter((line) => line.startsWith("failed"));
    return { code, titles, last: printed.trim().split("\n").at(-1), printed };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("what fails is printed once more before the last line, which counts everything", async () => {
  const { printed, ...rest } = await outcome({ "wrong.test.ts": wrong, "attacks/b.test.ts": wrong });
  const titles = ["failed: test/wrong.test.ts", "failed: test/attacks/b.test.ts"];
  expect(rest).toEqual({ code: 1, titles, last: "5 passed, 2 failed" });
  expect(printed).toContain("Expected: 2");
});

test.each([
  [{}, 5],
  [{ "long.test.ts": long }, 305],
])("what fails only beside others passes, and is named", async (more: Record<string, string>, passed) => {
  const { printed, ...rest } = await outcome({ "busy.test.ts": onlyFirst, ...more });
  const titles = ["failed, and passed alone: test/busy.test.ts"];
  expect(rest).toEqual({ code: 0, titles, last: `${passed} passed, 0 failed` });
});

test("a file that cannot be loaded, or many that fail, are failures", async () => {
  expect(await outcome({ "broken.test.ts": unloadable })).toMatchObject({ code: 1, last: "3 passed, 1 failed" });
  const many = Object.fromEntries([1, 2, 3, 4, 5, 6].map((n) => [`wrong-${n}.test.ts`, wrong]));
  const { printed, code, last } = await outcome(many);
  expect([code, last]).toEqual([1, "9 passed, 6 failed"]);
  expect(printed).not.toContain("Once more");
});
