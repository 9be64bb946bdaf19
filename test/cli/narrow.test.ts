/** Scenario: what a person sees in a terminal of 80 columns, while the demo runs. */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { atTerminal } from "../support/terminal";
import { until } from "../support/until";

const demo = run(["start", "--demo", "--port", "0"]);
afterAll(() => demo[Symbol.asyncDispose]());
await until(() => demo.stderr().includes("Next, in another terminal"), "the demo is ready");
const port = Number(/Address +http:\/\/127\.0\.0\.1:(\d+)/.exec(demo.stderr())![1]);
const env = { HOME: demo.home, DRAGOMAN_HOME: join(demo.home, "data") };

/** The lines of a command, none of which is longer than the terminal. */
async function screenOf(args: string[], columns = 80): Promise<string[]> {
  const { stdout, stderr } = await inProcess(args, env, { columns });
  const lines = Bun.stripANSI(`${stdout}\n${stderr}`).trimEnd().split("\n");
  expect(lines.filter((line) => Bun.stringWidth(line) > columns)).toEqual([]);
  return lines;
}

/** The lines below the heads, up to the first empty one. */
function rowsBelow(lines: string[], heads: RegExp): string[] {
  const at = lines.findIndex((line) => heads.test(line));
  expect([at >= 0, lines]).toEqual([true, lines]);
  const below = lines.slice(at + 1);
  const end = below.indexOf("");
  return end < 0 ? below : below.slice(0, end);
}

test("a prompt has one line and its reason, with the client as the pages call it", async () => {
  const rows = rowsBelow(await screenOf(["usage", "prompts"]), /^time +client +project +requests +cost$/);
  const prompts = rows.filter((row) => !row.startsWith("  "));
  expect(prompts).toHaveLength(20);
  for (const row of prompts)
    expect(row).toMatch(
      /^(?:\d+ [A-Z][a-z]{2}, )?\d\d:\d\d:\d\d +(?:Claude Code|Codex) \d\S* +\S+ +\d+ +(?:≥ )?\S+ AI credits$/,
    );
});

test("a budget has one row, whose cells break between words where its amounts are in the thousands", async () => {
  const [first, ...more] = rowsBelow(await screenOf(["budget"]), /^budget +scope +used +limit +resets +state$/);
  expect(first).toMatch(/^Everything +all requests +[\d,]+ \(\d+%\) +[\d,]+ credits .+ ready$/);
  const words = [first, ...more].flatMap((line) => line!.trim().split(/\s+/));
  expect(words).toEqual(expect.arrayContaining(["credits", "per", "month", "00:00", "UTC"]));
});

test("what stays after an uninstallation is a list that breaks between words", async () => {
  await using other = atTerminal(["uninstall"], {}, undefined, 80);
  await other.shows("Uninstall dragoman? [y/N]");
  other.type("n\r");
  await other.exited;
  expect(other.screen()).toContain(`
  -  the permission that you gave at GitHub, until you revoke it in GitHub's
     settings
`);
});

test("the demo is named where it holds the port, and where its log is asked for", async () => {
  const start = await inProcess(["start", "--port", String(port)], env);
  expect(start.code).toBe(1);
  const { pid } = demo.process;
  expect(start.stderr).toContain(`Port ${port} is in use by another dragoman server (process ${pid}).`);
  expect((await screenOf(["logs"])).join(" ")).toContain(
    `No service is installed; the demo at http://127.0.0.1:${port} writes its log to the terminal it was started in`,
  );
});

test.skipIf(process.platform !== "linux")(
  "a file of the service is shown as it is written: no line of it is broken",
  async () => {
    const words = ["service", "install", "--print", "--host", "a-host.of-a-long-name.example"];
    const { stderr } = await inProcess(words, env, { columns: 80 });
    expect(stderr).toMatch(/"start" "--host" "a-host\.of-a-long-name\.example"/);
    expect(stderr).toMatch(/^ {2}\S+=?.{79,}$/m);
  },
);
