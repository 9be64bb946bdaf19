/**
 * The tools that `bun run test:clients` runs. How each is pointed at dragoman is `dragoman connect`'s to say: the runs use
 * what it writes, and src/clients/README.md shows the same.
 */

import { join } from "node:path";
import { z } from "zod";
import { type ClientSetup, variablesBeside } from "../../src/clients/client";
import { type ClientId, clientOf } from "../../src/clients/index";
import { type ClientModel, chooseModels } from "../../src/clients/models";
import type { Family } from "../../src/deploy/documents/works-with";
import { clientModelSource, clientModels } from "../../src/proxy/upstream/models/model-view";

export interface Tool {
  id: ClientId;
  npm: string;
  /** Gives the tool a task without a person at the terminal. */
  command(task: string, model: ClientModel): string[];
  /** Gives it a task that it lets the model think about, if it has to be told to. */
  thinking?(task: string, model: ClientModel): string[];
  /** Gives it a task about an image file, if it can be given one without its screen. */
  withImage?(task: string, file: string, model: ClientModel): string[];
  /** Goes on with the last session of the folder. */
  resumed?(task: string, model: ClientModel): string[];
  /** Added to search the web: the tool has to be allowed, and is not loaded by itself. */
  searching?: { env: Record<string, string>; args: string[] };
  /** What runs without a person add, so that nothing but dragoman is called. */
  quiet: { env: Record<string, string>; args: string[] };
  /** Has it write its settings file. */
  rewrites?: string[][];
  /** A person's settings from before, with comments and other things that must stay. None for a client without a file. */
  settings?: string;
}

const claudeCode: Tool = {
  id: "claude-code",
  npm: "@anthropic-ai/claude-code",
  command: (task) => ["claude", "-p", task, "--allowedTools", "Write"],
  withImage: (task, file) => ["claude", "-p", `${task} @${file}`, "--allowedTools", "Read"],
  resumed: (task) => ["claude", "--continue", "-p", task, "--allowedTools", "Write"],
  quiet: { env: { DISABLE_AUTOUPDATER: "1", DISABLE_TELEMETRY: "1", DISABLE_ERROR_REPORTING: "1" }, args: [] },
  // Its own file goes before the environment, and this before its own file.
  searching: {
    env: {},
    args: ["WebSearch", "--settings", JSON.stringify({ env: { ENABLE_TOOL_SEARCH: "false" } }), "--allowedTools"],
  },
  settings: `{\r\n\t"permissions": { "allow": ["Bash(git status)"] },\r\n\t"env": {\r\n\t\t"MY_OWN": "stays"\r\n\t}\r\n}`,
};

const codex: Tool = {
  id: "codex",
  npm: "@openai/codex",
  command: (task) => ["codex", "exec", "--skip-git-repo-check", "--sandbox", "workspace-write", task],
  withImage: (task, file) => ["codex", "exec", "--skip-git-repo-check", `--image=${file}`, task],
  resumed: (task) => ["codex", "exec", "resume", "--skip-git-repo-check", "--last", task],
  quiet: {
    env: {},
    args: ["check_for_update_on_startup", "analytics.enabled", "features.plugins", "features.apps"].flatMap((key) => [
      "-c",
      `${key}=false`,
    ]),
  },
  searching: { env: {}, args: ["-c", 'web_search="live"'] },
  rewrites: [["codex", "mcp", "add", "otter", "--", "true"]],
  settings: `# mine\nmodel = "o3" # for now\nmodel_reasoning_effort = "low"\n\n[model_providers.dragoman]\nname = "by hand"\nbase_url = "http://127.0.0.1:1/v1"\nenv_key = "NOT_SET"\n\n[tui]\nnotifications = false`,
};

const opencode: Tool = {
  id: "opencode",
  npm: "opencode-ai",
  command: (task) => ["opencode", "run", task],
  thinking: (task) => ["opencode", "run", "--variant", "high", task],
  withImage: (task, file) => ["opencode", "run", `--file=${file}`, "--", task],
  resumed: (task) => ["opencode", "run", "--continue", task],
  quiet: {
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_SHARE: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      // It fetches a package at every start otherwise.
      npm_config_registry: "http://127.0.0.1:9",
    },
    args: [],
  },
  rewrites: [["opencode", "mcp", "add", "otter", "--url", "http://127.0.0.1:9/mcp"]],
  settings: `{\n    // mine\n    "theme": "system",\n    "model": "anthropic/claude-sonnet-4-5", /* before */\n    "share": "disabled",\n}\n`,
};

/** What it asks of others than dragoman finds nobody. */
const nowhere = { HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "127.0.0.1" };

const continueCli: Tool = {
  id: "continue",
  npm: "@continuedev/cli",
  command: (task) => ["cn", "-p", "--auto", task],
  resumed: (task) => ["cn", "-p", "--auto", "--resume", task],
  quiet: { env: { ...nowhere, CONTINUE_TELEMETRY_ENABLED: "0" }, args: [] },
};

/** The provider depends on the model: `connect` says what to run. */
const piWith = (model: ClientModel, ...options: string[]) => {
  const { command } = clientOf("pi").setUp({ url: "", models: chooseModels([model])!, model });
  return [...command!.split(" "), "--offline", "-p", ...options];
};

const pi: Tool = {
  id: "pi",
  npm: "@mariozechner/pi-coding-agent",
  command: (task, model) => piWith(model, task),
  withImage: (task, file, model) => piWith(model, `@${file}`, task),
  resumed: (task, model) => piWith(model, "--continue", task),
  quiet: { env: { ...nowhere, PI_OFFLINE: "1", PI_TELEMETRY: "0", PI_SKIP_VERSION_CHECK: "1" }, args: [] },
  settings: `{ "providers": { "own": { "baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "apiKey": "x", "models": [] } } }`,
};

const geminiCli: Tool = {
  id: "gemini-cli",
  npm: "@google/gemini-cli",
  command: (task) => ["gemini", "--yolo", "-p", task],
  withImage: (task, file) => ["gemini", "--yolo", "-p", `${task} @${file}`],
  rewrites: [
    ["gemini", "mcp", "add", "--scope", "user", "otter", "true"],
    ["gemini", "mcp", "remove", "--scope", "user", "otter"],
  ],
  resumed: (task) => ["gemini", "--yolo", "--resume", "latest", "-p", task],
  quiet: { env: { ...nowhere, GEMINI_CLI_TRUST_WORKSPACE: "true" }, args: [] },
  settings: `{\n  // mine\n  "ui": { "theme": "GitHub" },\n  "security": {\n    "auth": { "selectedType": "oauth-personal" } /* before */\n  }\n}\n`,
};

const copilotCli: Tool = {
  id: "copilot-cli",
  npm: "@github/copilot",
  command: (task) => ["copilot", "--allow-all-tools", "-p", task],
  withImage: (task, file) => ["copilot", "--allow-all-tools", "--attachment", file, "-p", task],
  resumed: (task) => ["copilot", "--allow-all-tools", "--continue", "-p", task],
  quiet: { env: { ...nowhere, COPILOT_AUTO_UPDATE: "false" }, args: [] },
};

const qwenCode: Tool = {
  id: "qwen-code",
  npm: "@qwen-code/qwen-code",
  command: (task) => ["qwen", "--yolo", "-p", task],
  withImage: (task, file) => ["qwen", "--yolo", "-p", `${task} @${file}`],
  rewrites: [
    ["qwen", "mcp", "add", "--scope", "user", "otter", "true"],
    ["qwen", "mcp", "remove", "--scope", "user", "otter"],
  ],
  resumed: (task) => ["qwen", "--yolo", "--continue", "-p", task],
  quiet: { env: { ...nowhere, QWEN_CODE_SUPPRESS_YOLO_WARNING: "1" }, args: [] },
  settings: `{\n  // mine\n  "$version": 4,\n  "ui": { "theme": "GitHub" },\n  "modelProviders": {\n    "openai": [\n      { "id": "own", "baseUrl": "http://127.0.0.1:1/v1" } // theirs\n    ]\n  },\n  "model": { "name": "own" }\n}\n`,
};

export const tools = { claudeCode, codex, opencode, geminiCli, copilotCli, qwenCode, continueCli, pi };

/** Those that a tool is tried with: opencode and pi speak to each in the dialect that it is served in. */
export const familiesOf = ({ id }: Tool): readonly Family[] =>
  id === "opencode" || id === "pi" ? ["claude", "gpt", "gemini"] : [id === "codex" ? "gpt" : "claude"];

/** What a server lists, as a set-up takes it. */
export async function offeredBy(url: string): Promise<ClientModel[]> {
  const list = await (await fetch(`${url}/v1/models`)).json();
  return clientModels(z.object({ data: z.array(clientModelSource()) }).parse(list).data);
}

/** What a person sets in the environment, because the client's file has no place for it. */
export const variablesOf = (setup: ClientSetup): Record<string, string> =>
  Object.fromEntries(variablesBeside(setup).map((name) => [name, setup.variables[name]!]));

/** The files that a person makes of what `connect` prints, because it writes none of this client. */
export const printedFiles = ({ programs }: ClientSetup, home: string): { path: string; text: string }[] =>
  programs
    .filter(({ name }) => name.startsWith("~/"))
    .map(({ name, text }) => ({ path: name.replace("~", home), text }));

/** What the scripted model of `--demo` understands. */
export const task = "write a file hello.txt with the text Hi there";

/** What is wrong after it. @param work The folder. */
export async function faultsOfTask(work: string): Promise<string[]> {
  const written = await Bun.file(join(work, "hello.txt"))
    .text()
    .catch(() => undefined);
  if (written === undefined) return ["hello.txt was not written"];
  return written.trimEnd() === "Hi there" ? [] : [`hello.txt says ${JSON.stringify(written)}`];
}
