/**
 * Real clients with the model `auto`, as `dragoman connect` would set them up: on accounts that have nothing else, and beside
 * named models. Where there is nothing else, a named model has to be answered with the sentence that names `auto`.
 * `bun test/clients/auto-cases.ts [client …]` runs these alone.
 */
import { chooseModels } from "../../src/clients/models";
import type { DemoAccount } from "../../src/demo/accounts";
import { models } from "../../src/deploy/documents/client-settings";
import { autoAccounts } from "../support/auto-accounts";
import { startProxy } from "../support/proxy";
import { runAlone } from "./alone";
import { faultsOfTask, offeredBy, type Tool, task, tools } from "./clients";
import type { Installed } from "./install";
import { meet } from "./meet";

interface AutoOutcome {
  tool: Tool;
  account: string;
  model: string;
  seconds: number;
  faults: string[];
  said: string;
}

/** Milliseconds. */
const within = 120_000;

const named = { "claude-code": "claude", codex: "gpt", opencode: "claude" } as const;

export async function* autoOutcomes(
  installed: Installed,
  isWanted: (tool: Tool) => boolean,
): AsyncGenerator<AutoOutcome> {
  const accounts: DemoAccount[] = Object.values(autoAccounts());
  for (const tool of [tools.claudeCode, tools.codex, tools.opencode].filter(isWanted)) {
    for (const account of accounts) yield await askAuto(tool, structuredClone(account), installed);
    yield await askByName(tool, installed);
  }
}

/** The task, by whichever model is chosen. */
async function askAuto(tool: Tool, account: DemoAccount, installed: Installed): Promise<AutoOutcome> {
  await using proxy = await startProxy({ demo: { accounts: [account] } });
  const offered = await offeredBy(proxy.url);
  const auto = offered.find(({ id }) => id === "auto");
  const faults: string[] = [];
  const chosen = chooseModels(offered)!;
  if (!auto) faults.push("`auto` is not listed");
  if (account.auto?.only && chosen.claude.id !== "auto") faults.push(`connect would choose ${chosen.claude.id}`);
  const worked = async (folder: string) => void faults.push(...(await faultsOfTask(folder)));
  const meeting = { tool, model: auto ?? models.claude, url: proxy.url, task, words: /$^/, timeoutMs: within, worked };
  const { ended, said } = await meet(meeting, installed);
  const rows = proxy.rows();
  const bad = rows.filter((row) => row.http_status !== 200);
  if (bad.length > 0)
    faults.push(bad.map((row) => `${row.client_model}: ${row.http_status} ${row.error_message}`).join(", "));
  if (!rows.some((row) => row.client_model === "auto" && row.auto !== null)) faults.push("`auto` was not asked for");
  // Codex opens its socket with a request that asks for nothing.
  if (rows.some((row) => row.upstream_model === "auto" && row.attempts !== "[]"))
    faults.push("a row does not say which model served");
  const choices = proxy.demo.journal.filter(({ method, path }) => method === "POST" && path === "/auto");
  const served = new Set(rows.filter((row) => row.attempts !== "[]").map((row) => row.upstream_model));
  // One for the task, and opencode's one for its title.
  if (choices.length > (tool.id === "opencode" ? 2 : 1)) faults.push(`${choices.length} choices were made`);
  return {
    ...{ tool, account: account.login, seconds: ended ?? within / 1000, faults, said },
    model: `auto: ${[...served].join(", ")}`,
  };
}

/** A model by its name, where the plan has nothing but Auto. */
async function askByName(tool: Tool, installed: Installed): Promise<AutoOutcome> {
  await using proxy = await startProxy({ demo: { generation: "C", accounts: [autoAccounts().student] } });
  const model = named[tool.id as keyof typeof named];
  const words = /ask for\s+the\s+model\s+`auto`/;
  const { shown, said } = await meet({ tool, model, url: proxy.url, words, timeoutMs: 45_000 }, installed);
  const faults = shown === undefined ? ["its person was not told"] : [];
  return { tool, account: "student-demo", model: models[model].id, seconds: shown ?? 45, faults, said };
}

if (import.meta.main)
  await runAlone([tools.claudeCode, tools.codex, tools.opencode], autoOutcomes, ({ account, model, seconds }) => {
    return `on ${account}, ${model}, ${seconds.toFixed(1)} s`;
  });
