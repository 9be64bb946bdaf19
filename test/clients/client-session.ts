/**
 * A person with one client before an upstream that counts and bills by a measure of its own; and what dragoman says of the session,
 * made again from what that upstream was sent.
 */
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Advice } from "../../src/admin/api/advice";
import type { Prompt } from "../../src/admin/api/prompts";
import { portionsIn } from "../../src/books/history/portions";
import { clientOf, freshFiles } from "../../src/clients/index";
import { type ClientModel, chooseModels } from "../../src/clients/models";
import { creditAccounts } from "../../src/demo/accounts";
import { models } from "../../src/deploy/documents/client-settings";
import { formatAmount, percent } from "../../src/lib/format";
import { type RunningProxy, startProxy } from "../support/proxy";
import { printedFiles, type Tool, variablesOf } from "./clients";
import { type Billed, countAgain, type Scripted } from "./counted-upstream";
import type { Installed } from "./install";

/** Milliseconds for one prompt. */
const within = 90_000;
export const canary = "xylophone-canary";

export interface Ask {
  args?: string[];
  env?: Record<string, string>;
  /** More of the prompt, on standard input. */
  stdin?: string;
  /** Asked again and again while it runs: once it says yes, the person presses Ctrl-C. */
  interrupts?(): boolean;
}

/** A person with one client, and all that its upstream was sent. */
export class Session {
  readonly home: string;
  readonly work: string;
  readonly setup: ReturnType<ReturnType<typeof clientOf>["setUp"]>;
  said = "";

  constructor(
    readonly proxy: RunningProxy,
    readonly billed: readonly Billed[],
    readonly tool: Tool,
    readonly installed: Installed,
    model: ClientModel,
  ) {
    [this.home, this.work] = [join(proxy.home, "home"), join(proxy.home, "work")];
    for (const folder of [this.home, this.work]) mkdirSync(folder);
    const chosen = chooseModels(Object.values(models))!;
    this.setup = clientOf(tool.id).setUp({ url: proxy.url, models: chosen, model });
  }

  /** Gives the client a prompt, with the canary in it. */
  async ask(command: string[], { args = [], env, stdin, interrupts }: Ask = {}): Promise<void> {
    const [program = "", ...rest] = command;
    const child = Bun.spawn([this.installed.program(program), ...args, ...rest], {
      cwd: this.work,
      env: { PATH: process.env.PATH, HOME: this.home, ...variablesOf(this.setup), ...this.tool.quiet.env, ...env },
      ...({ stdin: new Blob([stdin ?? ""]), stdout: "pipe", stderr: "pipe", timeout: within } as const),
    });
    const looking = setInterval(() => interrupts?.() && child.kill("SIGINT"), 100);
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    clearInterval(looking);
    this.said += `${out}\n${err}\n`;
    if (code !== 0 && !interrupts) throw new Error(`It ended with ${code}: ${out.slice(-500)}\n${err.slice(-500)}`);
  }

  async textOf(path: string): Promise<string> {
    return (await fetch(this.proxy.url + path)).text();
  }

  async read<Read>(path: string): Promise<Read> {
    return JSON.parse(await this.textOf(path));
  }
}

/** @param told Whatever is wrong, as a sentence. */
export type Tell = (told: string) => void;
export const sumOf = (of: readonly (number | null | undefined)[]) =>
  of.reduce<number>((sum, one) => sum + (one ?? 0), 0);
const isNear = (one: number, other: number, share: number, of = other) => Math.abs(one - other) <= share * of;

/** @param ahead Of this machine's clock, ms. */
export async function startSession(
  tool: Tool,
  model: ClientModel,
  installed: Installed,
  clock: { ahead: number },
  scripted?: Scripted,
) {
  const now = () => Date.now() + clock.ahead;
  const proxy = await startProxy({
    demo: { accounts: creditAccounts().slice(0, 1), generation: "C", now },
    config: { logLevel: "debug" },
    clock: { now },
  });
  const session = new Session(proxy, countAgain(proxy.demo, scripted), tool, installed, model);
  const { setup, home } = session;
  for (const { name, text } of freshFiles(tool.id, setup, { home, env: {} })) await Bun.write(name, text);
  for (const { path, text } of printedFiles(setup, home)) await Bun.write(path, text);
  return session;
}

/** The parts of each prompt, their costs, and the sums of the prompts, against what the upstream has counted and billed. */
export async function checkSums(session: Session, tell: Tell): Promise<void> {
  const { proxy, billed } = session;
  const rows = proxy.rows();
  const left = [...billed];
  // Codex opens its socket with a request that asks for nothing.
  for (const row of rows.filter(({ http_status, attempts }) => http_status === 200 && attempts !== "[]")) {
    const at = left.findIndex(
      (each) => each.model === row.upstream_model && each.input === row.input_tokens && each.cost === row.cost,
    );
    const [own] = at < 0 ? [] : left.splice(at, 1);
    if (!own) {
      tell(`a row of ${row.input_tokens} tokens that cost ${row.cost} was not billed so`);
      continue;
    }
    const portions = portionsIn(row.portions).filter(({ kind }) => kind !== "surcharge");
    const ofPrompt = portions.filter(({ kind }) => kind !== "output");
    const measured = sumOf(ofPrompt.map(({ tokens }) => tokens));
    if (!isNear(measured, own.input, 0.03)) tell(`the parts are ${measured} tokens of ${own.input}`);
    if (sumOf(ofPrompt.map(({ cached }) => cached)) !== own.cached) tell("the cached tokens are others");
    for (const [name, tokens] of own.tools) {
      const found = ofPrompt.find(({ kind, tool }) => kind === "tools" && tool === name);
      if (name.startsWith("mcp__") && !isNear(found?.tokens ?? 0, tokens, 0.03, own.input))
        tell(`${name} has ${found?.tokens} tokens in place of ${tokens}`);
    }
    const charged = sumOf(portions.map(({ cost }) => cost));
    if (Math.abs(charged - own.cost) > 100) tell(`the parts cost ${charged} in place of ${own.cost}`);
  }
  if (left.length > 0) tell(`${left.length} requests have no row`);

  const page = await session.read<{ items: Prompt[]; without_prompt: Pick<Prompt, "request_count" | "cost"> }>(
    "/api/admin/prompts",
  );
  for (const { prompt, request_count, cost, parts, why } of page.items) {
    const own = rows.filter((row) => row.prompt === prompt);
    const sum = sumOf(own.map((row) => row.cost));
    if (request_count !== own.length || (cost.credits ?? 0) !== sum) tell(`a prompt does not sum to its rows`);
    if (sumOf(parts.map((part) => part.cost.credits)) !== sum) tell("the parts of a prompt do not sum to it");
    if (!(await session.textOf(`/admin/prompts/${prompt}`)).includes(formatAmount(sum)))
      tell(`the page of a prompt does not say ${formatAmount(sum)}`);
    const largest = Math.max(...parts.map((part) => part.cost.credits ?? 0)) / sum;
    if (sum > 0 && !why.startsWith(`${largest === 1 ? "All of it" : percent(largest)} in `)) tell(`it says: ${why}`);
  }
  const { without_prompt } = page;
  const others = rows.filter(({ prompt }) => prompt === null);
  if (without_prompt.request_count !== others.length) tell("what named no prompt is counted otherwise");
  const known = sumOf(rows.filter(({ http_status }) => http_status === 200).map(({ cost }) => cost));
  if (known !== sumOf(billed.map(({ cost }) => cost))) tell(`${known} of all were billed otherwise`);
}

interface Break {
  reason: string;
  /** What changed, in JSON. */
  change?: string;
}

/** Each planted break is named, with what it cost, and nothing else is. */
export async function checkBreaks(session: Session, planted: readonly Break[], tell: Tell): Promise<void> {
  const missed = session.proxy
    .rows()
    .toReversed()
    .filter(({ cache_miss }) => cache_miss !== null);
  const found = missed.map((row) => ({
    reason: row.cache_miss!,
    ...(row.cache_change !== null && { change: row.cache_change }),
  }));
  if (!Bun.deepEquals(found, planted)) tell(`the breaks are ${JSON.stringify(found)}`);
  for (const row of missed) {
    const at = session.billed.findIndex(({ input, cost }) => input === row.input_tokens && cost === row.cost);
    const own = session.billed[at]!;
    const before = session.billed
      .slice(0, at)
      .findLast(({ model, text }) => model === own.model && text.includes(canary))!;
    const { input, cacheRead, cacheWrite = input } = session.proxy.demo.pricesOf(own.model);
    const lost = (Math.min(own.input, before.input) - own.cached) * (cacheWrite - cacheRead) * 1_000;
    if (!isNear(row.cache_lost_cost ?? 0, lost, 0.001))
      tell(`${row.cache_miss} cost ${row.cache_lost_cost} in place of ${lost}`);
    const page = await session.textOf(`/admin/requests/${row.request_id}`);
    if (!page.includes(formatAmount(row.cache_lost_cost!))) tell(`the page does not say what ${row.cache_miss} cost`);
  }
}

/** The same advice, and no other, with the same sums. */
export async function checkAdvice(session: Session, expected: Partial<Record<Advice["about"], number>>, tell: Tell) {
  const { items, total_nano_credits } = await session.read<{ items: Advice[]; total_nano_credits: number }>(
    "/api/admin/advice",
  );
  if (total_nano_credits < 100e9) tell("too little was spent for any advice");
  const about = items.map((item) => item.about).sort();
  if (!Bun.deepEquals(about, Object.keys(expected).sort()))
    tell(`there is advice about ${about.join(", ") || "nothing"}`);
  for (const item of items) {
    const sum = expected[item.about] ?? 0;
    // Tools are measured by their bytes, at the tokens for a byte of the whole prompt.
    if (!isNear(item.saves_nano_credits, sum, item.about === "unused_tools" ? 0.1 : 0.001))
      tell(`${item.says} It should be ${formatAmount(sum)}`);
  }
}

/** No word of a prompt is in any file of the data folder, in the log, the metrics, the API or the pages. */
export async function checkCanary(session: Session, tell: Tell): Promise<void> {
  const { proxy, home, work } = session;
  const rows = proxy.rows();
  const paths = [
    ...[
      "/metrics",
      "/health",
      "/usage",
      "/admin",
      "/admin/prompts",
      "/admin/requests",
      "/admin/cache",
      "/admin/health",
    ],
    ...["prompts", "requests", "cache", "advice", "drift", "usage"].map((name) => `/api/admin/${name}`),
    ...new Set(
      rows.flatMap(({ prompt }) => (prompt ? [`/admin/prompts/${prompt}`, `/api/admin/prompts/${prompt}`] : [])),
    ),
    ...rows.flatMap(({ request_id }) => [`/admin/requests/${request_id}`, `/api/admin/requests/${request_id}`]),
  ];
  for (const path of paths) if ((await session.textOf(path)).includes(canary)) tell(`the canary is in ${path}`);
  const files = (readdirSync(proxy.home, { recursive: true }) as string[])
    .map((name) => join(proxy.home, name))
    .filter((name) => ![home, work].some((folder) => name.startsWith(folder)) && statSync(name).isFile());
  if (!files.some((name) => name.endsWith(".sqlite"))) tell("there is no history");
  for (const name of files) if (readFileSync(name, "latin1").includes(canary)) tell(`the canary is in ${name}`);
  if (proxy.lines.some((line) => line.includes(canary))) tell("the canary is in the log");
}
