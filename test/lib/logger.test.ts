/** Pairs: the log: one line an event, no secret, and no more than a line holds. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { createLogger, type Level } from "../../src/lib/logger";
import { testPairs } from "../support/pairs";

function logger(level: () => Level = () => "debug") {
  const lines: string[] = [];
  return { log: createLogger(level, (line) => void lines.push(line)), lines };
}

test.each([
  ["gho_0123456789abcdef0123456789abcdef0123", "a GitHub token"],
  ["github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "a fine-grained token"],
  ["tid=0f1e2d3c;exp=1785000000;sku=x:6f1d2c3b", "a Copilot token"],
  ["sk-ant-0123456789abcdef0123", "an API key"],
  ["Bearer abcdefghijklmnop", "a bearer"],
  ["http://user:hunter22@proxy.example", "a proxy's password"],
  ["redis://:hunter22@cache.example", "a password without a name"],
])("a secret never reaches a line of the log: %s", (secret) => {
  const { log, lines } = logger();
  log.error(`before ${secret} after`, new Error(`caused by ${secret}`, { cause: new Error(secret) }));
  const word = secret.replace(/^(Bearer |http:\/\/user:|redis:\/\/:)/, "").replace(/@(?:proxy|cache)\.example/, "");
  expect(lines.join("")).not.toContain(word);
  expect(lines.join("")).toContain("before");
  expect(lines.join("")).toContain("after");
});

testPairs("log", {
  /** A text, and the secrets that were told before. */
  scrub(text: string, ...secrets: string[]) {
    const { log } = logger();
    for (const secret of secrets) log.conceal(secret);
    return log.scrub(text);
  },
});

test("one line per event, whatever the text holds", () => {
  const { log, lines } = logger();
  log.warn("a\r\nb\u001b]52;c;evil\u0007\u0000\u2028\u202e");
  expect(lines).toHaveLength(1);
  expect(lines[0]!.match(/[\u0000-\u001f\u2028\u202e]/g)).toEqual(["\n"]);
});

test("a line is cut at 512 characters", () => {
  const { log, lines } = logger();
  log.info("x".repeat(100_000));
  expect(lines[0]!.length).toBeLessThan(600);
});

test("half of a secret is not shown where a long text is cut", () => {
  const { log } = logger();
  log.conceal("my own long secret");
  // Names of secrets make the text shorter, so that its cut comes into view.
  const tokens = `tid=${"x".repeat(100)} `.repeat(200);
  for (let length = 9_000; length < 12_000; length++)
    expect(log.scrub(`${tokens.slice(0, length)} my own long secret`)).not.toContain("my own");
});

test("a character is not cut in half", () => {
  const { log } = logger();
  for (const length of [510, 511, 512])
    expect(log.scrub(`${"x".repeat(length)}😀`.repeat(40)).isWellFormed()).toBe(true);
});

test("lines below the level are not written, and the level is read each time", () => {
  let level: Level = "warn";
  const { log, lines } = logger(() => level);
  log.info("no");
  log.warn("yes");
  level = "debug";
  log.debug("now");
  expect(lines.map((line) => line.trim().split(/\s+/).slice(1).join(" "))).toEqual(["warn yes", "debug now"]);
});

/** Two hundred lines, and what ends the process: before they would be written by themselves, or once it has said `last`. */
async function linesUntil(ending: string, last?: string) {
  const script = `
      const { createLogger } = await import(${JSON.stringify(join(import.meta.dir, "../../src/lib/logger.ts"))});
      const log = createLogger(() => "info");
      process.on("SIGTERM", () => process.exit(0));
      for (let at = 0; at < 200; at++) log.info("line " + at);
      ${ending}
    `;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "ignore", stderr: "pipe" });
  let text = "";
  for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (last !== undefined && text.includes(last)) child.kill("SIGKILL");
  }
  await child.exited;
  return [...text.matchAll(/ (?:info|warn|error) +(.*)/g)].map(([, line]) => line);
}
const all = Array.from({ length: 200 }, (_, at) => `line ${at}`);

test.each([
  ["the process exits", "process.exit(0);"],
  ["a signal ends it", 'process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000);'],
  ["an exception that nobody catches ends it", 'throw new Error("crash");'],
  ["a promise that nobody awaits ends it", 'await null; Promise.reject(new Error("crash"));'],
  ["there is nothing more to do", ""],
])("lines that are gathered are all there, in order, when %s", async (_, ending) =>
  expect(await linesUntil(ending)).toEqual(all),
);

test.each(["warn", "error"])(
  "lines that are gathered are written before a line of the level %s, which does not wait",
  async (level) => {
    const ending = `log.${level}("trouble"); process.kill(process.pid, "SIGKILL");`;
    expect(await linesUntil(ending)).toEqual([...all, "trouble"]);
  },
);

test("lines that are gathered are written while the process goes on", async () => {
  expect(await linesUntil("setInterval(() => {}, 1000);", "line 199")).toEqual(all);
});
