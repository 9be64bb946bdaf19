/**
 * What a prompt of the real Claude Code costs: a session with two subagents that summarizes itself when its context is full. The
 * sums of the prompts are those of their rows, and no word of the prompts is kept or shown. `bun test/clients/prompt-bill.ts`.
 * Needs npm and its registry; not part of the tests.
 */
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Prompt } from "../../src/admin/api/prompts";
import { portionsIn } from "../../src/books/history/portions";
import { clientOf } from "../../src/clients/index";
import { chooseModels } from "../../src/clients/models";
import { demoAccounts, quotas } from "../../src/demo/accounts";
import { models } from "../../src/deploy/documents/client-settings";
import { percent } from "../../src/lib/format";
import { startProxy } from "../support/proxy";
import { tools as settings } from "./clients";
import { install } from "./install";

/** Milliseconds for one prompt. */
const within = 90_000;
const canary = "xylophone-canary";

const installed = await install(["@anthropic-ai/claude-code"]);
const [account] = demoAccounts();
await using proxy = await startProxy({
  demo: { accounts: [{ ...account!, plan: "individual_pro", quota: quotas.credits() }], generation: "C" },
  config: { logLevel: "debug" },
});
const [home, work] = [join(proxy.home, "home"), join(proxy.home, "work")];
for (const folder of [home, work]) mkdirSync(folder);
const model = models.claude;
const setup = clientOf("claude-code").setUp({ url: proxy.url, models: chooseModels(Object.values(models))!, model });

/** @param more Variables. @returns What Claude Code said. */
async function ask(text: string, args: string[] = [], more: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn([installed.program("claude"), "-p", ...args, `${text} ${canary}`], {
    cwd: work,
    env: { PATH: process.env.PATH, HOME: home, ...setup.variables, ...settings.claudeCode.quiet.env, ...more },
    ...({ stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const),
    timeout: within,
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`Claude Code ended with ${code}: ${out}\n${err}`);
  return out;
}
const step = (sentence: string) => console.log(`ok: ${sentence}`);
function expectEqual(what: string, found: unknown, expected: unknown): void {
  if (!Bun.deepEquals(found, expected))
    throw new Error(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
}

const long = "Look at everything that there is. ".repeat(1_500);
await ask(`${long} call Agent twice in parallel`);
// Its window is full by then.
await ask("thanks", ["--continue"], {
  CLAUDE_CODE_AUTO_COMPACT_WINDOW: "100000",
  CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: "10",
});

proxy.app.history.flush();
const rows = proxy.rows();
const counts = new Map([...Map.groupBy(rows, ({ kind }) => kind)].map(([kind, of]) => [kind, of.length]));
if (
  (counts.get("subagent") ?? 0) < 2 ||
  !counts.has("compaction") ||
  rows.some(({ http_status }) => http_status !== 200)
)
  throw new Error(`There were no two subagents and a compaction: ${JSON.stringify([...counts])}`);
step(`it sent ${[...counts].map(([kind, count]) => `${count} ${kind}`).join(", ")}`);

const textOf = async (path: string) => (await fetch(proxy.url + path)).text();
const page: { items: Prompt[]; without_prompt: Pick<Prompt, "request_count" | "cost"> } = JSON.parse(
  await textOf("/api/admin/prompts"),
);
const sumOf = (of: readonly (number | null | undefined)[]) => of.reduce<number>((sum, cost) => sum + (cost ?? 0), 0);
const ofRows = (of: typeof rows) => sumOf(of.map(({ cost }) => cost));
const creditsIn = (of: readonly Pick<Prompt, "cost">[]) => sumOf(of.map(({ cost }) => cost.credits));
for (const item of page.items) {
  const own = rows.filter(({ prompt }) => prompt === item.prompt);
  expectEqual("requests and credits", [item.request_count, item.cost.credits], [own.length, ofRows(own)]);
  expectEqual("credits of the parts", creditsIn(item.parts), item.cost.credits);
}
const others = rows.filter(({ prompt }) => prompt === null);
const { request_count, cost } = page.without_prompt;
expectEqual("what named no prompt", [request_count, cost.credits ?? 0], [others.length, ofRows(others)]);
expectEqual("credits of all", creditsIn([...page.items, page.without_prompt]), ofRows(rows));
step(`the sums of ${page.items.length} prompts, and of what named none, are those of ${rows.length} rows`);

const item = page.items.at(-1)!;
for (const part of item.parts) {
  const share = `${percent(part.cost.credits! / item.cost.credits!)} in `;
  if (!item.why.includes(share)) throw new Error(`The sentence does not say ${share}: ${item.why}`);
}
step(`the sentence is right: ${item.why}`);

const tools = new Map<string, number>();
for (const row of rows) {
  const portions = portionsIn(row.portions).filter(({ kind }) => kind !== "surcharge");
  const [ofPrompt, ofReply] = [
    portions.filter(({ kind }) => kind !== "output"),
    portions.filter(({ kind }) => kind === "output"),
  ];
  const tokensOf = (some: typeof portions) => sumOf(some.map(({ tokens }) => tokens));
  expectEqual("tokens of the portions", [tokensOf(ofPrompt), tokensOf(ofReply)], [row.input_tokens, row.output_tokens]);
  expectEqual("cached tokens", sumOf(ofPrompt.map(({ cached }) => cached)), row.cached_tokens);
  const charged = sumOf(portions.map(({ cost }) => cost));
  if (Math.abs(charged - row.cost!) > 100) throw new Error(`The portions cost ${charged} instead of ${row.cost}.`);
  for (const { kind, tool, tokens } of ofPrompt)
    tools.set(`${kind} ${tool ?? ""}`, (tools.get(`${kind} ${tool ?? ""}`) ?? 0) + tokens);
}
const largest = [...tools].sort(([, one], [, other]) => other - one).slice(0, 8);
step(
  `what the prompts were made of adds up: ${largest.map(([name, tokens]) => `${name.trim()} ${tokens}`).join(", ")}`,
);
step(
  `cache misses: ${JSON.stringify(rows.flatMap(({ cache_miss, cache_change }) => (cache_miss ? [[cache_miss, cache_change]] : [])))}`,
);

const shown = await Promise.all(
  ["/api/admin/prompts", "/api/admin/requests", "/admin/prompts", `/admin/prompts/${item.prompt}`].map(textOf),
);
const files = (readdirSync(proxy.home, { recursive: true }) as string[]).filter((name) => name.includes(".sqlite"));
const kept = files.map((name) => readFileSync(join(proxy.home, name), "latin1"));
if (files.length === 0 || [...shown, ...kept, ...proxy.lines].some((text) => text.includes(canary)))
  throw new Error("A word of a prompt was kept or shown.");
step(`no word of the prompts is in ${files.length} files, the log, the API or the pages`);
