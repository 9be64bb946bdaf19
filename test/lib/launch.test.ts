/** Scenario: the settings that Bun reads before our first line: set by starting again, once. */
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/temporary-folder";

const folder = temporaryFolder(afterAll);

const compiler = ["BUN_JSC_thresholdForFTLOptimizeAfterWarmUp", "BUN_JSC_thresholdForFTLOptimizeSoon"];

/** A program that starts itself again: what it was started with in the end, and what it hands to its own children. */
async function startedWith(env: Record<string, string>, version = Bun.version) {
  const file = join(folder, "program.ts");
  writeFileSync(
    file,
    `import { startAgainWithSettings } from ${JSON.stringify(join(import.meta.dir, "../../src/lib/launch"))};
     startAgainWithSettings(${JSON.stringify(version)});
     const child = Bun.spawnSync(["env"], { env: process.env }).stdout.toString();
     console.log(JSON.stringify({ pid: process.pid, words: process.argv.slice(2), child,
       own: require("node:fs").readFileSync("/proc/self/environ", "utf8") }));`,
  );
  const child = Bun.spawn([process.execPath, "--no-env-file", file, "two words", "--flag"], {
    env: { PATH: process.env.PATH ?? "", ...env },
    stdout: "pipe",
    stderr: "inherit",
  });
  const printed = JSON.parse(await child.stdout.text());
  expect(await child.exited).toBe(0);
  expect(printed.pid).toBe(child.pid);
  expect(printed.words).toEqual(["two words", "--flag"]);
  const read = (lines: string[]): Record<string, string> =>
    Object.fromEntries(lines.filter((line) => line.startsWith("BUN_")).map((line) => line.split(/=(.*)/s).slice(0, 2)));
  return { own: read(printed.own.split("\0")), child: read(printed.child.split("\n")) };
}

const linux = test.if(process.platform === "linux");

linux("this Bun knows every option that is set, and our children do not inherit them", async () => {
  const { own, child } = await startedWith({});
  expect(own.BUN_CONFIG_MAX_HTTP_REQUESTS).toBe("4096");
  expect(Object.keys(own)).toEqual(expect.arrayContaining(compiler));
  expect(child).toEqual({ BUN_CONFIG_MAX_HTTP_REQUESTS: "4096" });
});

linux("a Bun that was not tried gets no option that could stop it", async () => {
  expect((await startedWith({}, "1.4.6")).own).toEqual({ BUN_CONFIG_MAX_HTTP_REQUESTS: "4096" });
});

linux("the owner's own values stay, for our children too", async () => {
  const own = { BUN_CONFIG_MAX_HTTP_REQUESTS: "300", BUN_JSC_thresholdForFTLOptimizeSoon: "5000" };
  const started = await startedWith(own);
  expect(started.own).toMatchObject(own);
  expect(started.own.BUN_JSC_thresholdForFTLOptimizeAfterWarmUp).toBe("1000000");
  expect(started.child).toEqual(own);
});
