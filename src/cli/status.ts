/** `dragoman status`: the server, the accounts, today's requests and the connected tools, in about ten lines. */
import type { z } from "zod";
import { metaSchema, totalsSchema } from "../admin/api/schemas";
import { ago, day, formatCount, plural, startOfDayIn } from "../lib/format";
import { costInWords } from "../lib/money";
import { wholeOf } from "../parts/facts";
import type { UsageItem } from "../routes/usage";
import { connectedTools } from "./connect/tools";
import { quotaBar, remainingInWords, stateOf } from "./format-usage";
import { table } from "./layout";
import type { ListOptions } from "./list-command";
import { ask, demoNotice, findServer, type RunningServer, readAs } from "./running-server";
import { print, printJson, say, styled } from "./terminal";
import { usageOfServer } from "./usage";

const metaShape = metaSchema.pick({
  version: true,
  demo: true,
  started_at_ms: true,
  time_zone: true,
  running_count: true,
  facts: true,
});
const totalsShape = totalsSchema.pick({
  request_count: true,
  error_count: true,
  cost: true,
  cost_at_least: true,
});

interface Status {
  url: string;
  meta: z.infer<typeof metaShape>;
  accounts: UsageItem[];
  today: z.infer<typeof totalsShape>;
  /** The names of the tools whose settings lead here. */
  tools: string[];
}

/** @returns The exit code: 0 only if a server runs. */
export async function status({ environment, json }: ListOptions): Promise<number> {
  const server = findServer(environment);
  if (!server) {
    if (json) printJson({ running: false });
    else
      say("No dragoman server is running. `dragoman start` starts one, `dragoman service install` keeps one running.");
    return 1;
  }
  const found = await statusOf(server);
  if (json) printJson({ running: true, ...found });
  else {
    if (server.demo) say(demoNotice);
    print(...statusLines(found, Date.now()));
  }
  return 0;
}

async function statusOf(server: RunningServer): Promise<Status> {
  const meta = readAs(metaShape, await ask(server, "/api/admin/meta"), server);
  const midnight = startOfDayIn(meta.time_zone, Date.now());
  const [today, { accounts }] = await Promise.all([
    ask(server, "/api/admin/totals", { query: { from_ms: String(midnight) } }),
    usageOfServer(server),
  ]);
  return {
    url: server.url,
    meta,
    accounts,
    today: readAs(totalsShape, today, server),
    tools: connectedTools(server.url).map(({ name }) => name),
  };
}

/** Accounts that are shown by themselves. */
const maxAccounts = 5;

function statusLines({ url, meta, accounts, today, tools }: Status, now: number): string[] {
  const others = accounts.length - maxAccounts;
  const rows = accounts.slice(0, maxAccounts).map(accountCell);
  if (rows.length === 0) rows.push("none: `dragoman auth` signs in");
  // The accounts' own rows say what is wrong with them.
  const wrong = meta.facts.filter(({ name, state }) => name !== "Accounts" && (state === "warn" || state === "bad"));
  if (others > 0) rows.push(`and ${formatCount(others)} more: \`dragoman usage\``);
  return table(
    [
      ["Server", `dragoman ${meta.version} at ${url}, started ${ago(meta.started_at_ms, now)}`],
      ...wrong.map((fact, at) => [at === 0 ? "Attention" : "", styled("red", wholeOf(fact))]),
      ...rows.map((row, at) => [at === 0 ? "Accounts" : "", row]),
      ["Today", todayCell(today, meta.running_count)],
      ["Tools", tools.join(", ") || "none: `dragoman connect` lists those it can set up"],
      ["Admin", `${url}/admin`],
    ].map(([name = "", ...cells]) => [styled("bold", name), ...cells]),
    { heads: false },
  );
}

function accountCell(usage: UsageItem): string {
  const bar = quotaBar(usage);
  const left = bar === "" ? `${remainingInWords(usage)} left` : bar;
  const reset = usage.reset_at === null ? "" : `, resets ${day(Date.parse(usage.reset_at), Date.now())}`;
  return `${usage.id}  ${stateOf(usage)}  ${left}${reset}`;
}

function todayCell(today: Status["today"], running: number): string {
  const { request_count: requests, error_count: errors } = today;
  const parts = [
    plural(requests, "request"),
    ...(errors > 0 ? [styled("red", `${formatCount(errors)} failed`)] : []),
    ...(requests > 0 ? [costInWords(today) ?? "cost unknown"] : []),
    ...(running > 0 ? [`${formatCount(running)} running now`] : []),
  ];
  return parts.join(", ");
}
