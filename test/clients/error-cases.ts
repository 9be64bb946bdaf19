/** What nobody can wait for, and whether real clients tell it to their person at once. */
import { demoAccounts, quotas } from "../../src/demo/accounts";
import type { models } from "../../src/deploy/documents/client-settings";
import { type ProxyOptions, startProxy } from "../support/proxy";
import { type Tool, tools } from "./clients";
import type { Installed } from "./install";
import { meet } from "./meet";

interface Situation {
  name: string;
  options: ProxyOptions;
  /** Of our sentence. */
  words: RegExp;
}

const situations: Situation[] = [
  { name: "nobody is signed in", options: { accounts: [] }, words: /dragoman auth/ },
  {
    name: "the client key is missing or wrong",
    options: { config: { auth: { apiKeys: ["k-owner-0123456789"] } } },
    // Copilot CLI has a sentence of its own, which names the variable.
    words: /[Cc]lient key is (?:needed|not one)|Check your COPILOT_PROVIDER_API_KEY/,
  },
  {
    name: "all quota is used up",
    options: { demo: { accounts: [{ ...demoAccounts()[0]!, quota: quotas.exhausted() }] } },
    words: /cost no quota/,
  },
  {
    name: "a budget is used up",
    options: { config: { budgets: [{ name: "Agents", unit: "requests", limit: 0.5, per: "month" }] } },
    words: /budget `?Agents/,
  },
];

/** By the dialect that each speaks. */
const clients: [Tool, keyof typeof models][] = [
  [tools.claudeCode, "claude"],
  [tools.codex, "gpt"],
  [tools.opencode, "claude"],
  [tools.opencode, "gpt"],
  [tools.opencode, "gemini"],
  [tools.geminiCli, "gemini"],
  [tools.copilotCli, "claude"],
  [tools.copilotCli, "gpt"],
  [tools.qwenCode, "claude"],
  [tools.qwenCode, "gpt"],
];

/** Milliseconds. Codex repeats a 401 for seven seconds whatever it says; opencode takes three to start. */
const within = 45_000;

interface Telling {
  tool: Tool;
  model: keyof typeof models;
  name: string;
  seconds?: number;
  said: string;
}

export async function* tellings(installed: Installed, isWanted: (tool: Tool) => boolean): AsyncGenerator<Telling> {
  for (const { name, options, words } of situations)
    for (const [tool, model] of clients.filter(([each]) => isWanted(each))) {
      await using proxy = await startProxy({ ...options, demo: { generation: "C", ...options.demo } });
      const { shown, said } = await meet({ tool, model, url: proxy.url, words, timeoutMs: within }, installed);
      yield { tool, model, name, seconds: shown, said };
    }
}
