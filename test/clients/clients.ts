/**
 * The tools that `bun run test:clients` runs, and the models they are tried with. How each is pointed at dragoman is
 * `dragoman connect`'s to say: the runs use what it writes, and src/clients/README.md shows the same.
 */

import { type Client, type ClientSetup, variablesBeside } from "../../src/clients/client";
import { type ClientId, clientIds, clientOf, freshFiles } from "../../src/clients/index";
import { type ClientModel, chooseModels } from "../../src/clients/models";
import { setVariables } from "../../src/clients/shells";
import { upstreamPaths } from "../../src/lib/api-paths";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";

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

const example = (
  id: string,
  name: string,
  dialects: (keyof typeof upstreamPaths)[],
  [context, prompt, output]: [number, number, number],
): ClientModel => ({
  id,
  name,
  endpoints: dialects.map((dialect) => upstreamPaths[dialect]),
  premium: true,
  summary: `1 premium request · ${prompt / 1000}K prompt`,
  preview: false,
  light: /-(?:luna|haiku)/.test(id),
  picked: true,
  tools: true,
  vision: true,
  reasoning: true,
  context,
  prompt,
  output,
});

// biome-ignore format: a table
export const models = {
  claude: example(exampleModels.claude, "Claude Sonnet 5.5", ["messages", "chat"], [1_000_000, 872_000, 128_000]),
  gpt: example(exampleModels.gpt, "GPT-6.1 Sol", ["responses"], [400_000, 272_000, 128_000]),
  gemini: example(exampleModels.gemini, "Gemini 4 Argon", ["chat"], [1_000_000, 936_000, 64_000]),
  small: example(exampleModels.small, "GPT-6 Luna", ["responses"], [1_050_000, 922_000, 128_000]),
  opus: example(exampleModels.opus, "Claude Opus 5.5", ["messages"], [1_000_000, 872_000, 128_000]),
  haiku: example(exampleModels.haiku, "Claude Haiku 5.5", ["messages"], [1_000_000, 872_000, 128_000]),
} satisfies Record<string, ClientModel>;

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

/** The settings of each client, for src/clients/README.md. */
export function clientSettings(): string {
  return clientIds.map((id) => section(id, clientOf(id))).join("\n\n");
}

/** Which command connects each client and which one starts it, for README.md. */
export function clientsTable(): string {
  const place = { url: "http://127.0.0.1:4141", models: chooseModels(Object.values(models))! };
  const all = clientIds.map((id) => ({ id, client: clientOf(id), ...clientOf(id).setUp(place) }));
  const isOwnRow = ({ command, client }: (typeof all)[number]) => command !== undefined || client.file !== undefined;
  const [started, others] = [all.filter(isOwnRow), all.filter((each) => !isOwnRow(each))];
  const rows = started.map(({ id, client, command }) => {
    const connect = client.file ? `dragoman connect ${id} --write` : `dragoman connect ${id}`;
    const before = client.file ? "" : "copy the printed lines; ";
    return `| ${client.name} | \`${connect}\` | ${before}${command ? `\`${command}\`` : client.name} |`;
  });
  const names = others.map(({ client }) => client.name).join(", ");
  const ids = others.map(({ id }) => `\`${id}\``).join(", ");
  const rest = `| ${names} | \`dragoman connect <name>\`: ${ids} | enter the printed settings |`;
  return ["| tool | connect it | then run |", "| --- | --- | --- |", ...rows, rest].join("\n");
}

/** Whose file is shown; the others' would be as long again. */
const shownWhole = new Set<ClientId>(["claude-code", "codex", "opencode"]);

function section(id: ClientId, client: Client): string {
  const choice = chooseModels(Object.values(models))!;
  const setup = client.setUp({ url: "http://127.0.0.1:4141", models: choice });
  const { file } = client;
  const title = `### ${client.name}`;
  const note = setup.note ? [setup.note] : [];
  if (!file) {
    const [program] = setup.programs;
    const lines = setVariables(setup.variables, "bash");
    const printed = program?.name.startsWith("~/") ? [`In \`${program.name}\`:`, block("yaml", program.text)] : [];
    const shown = lines === "" ? block(program?.shell ? "sh" : "text", program!.text) : block("sh", lines);
    return [
      title,
      block("sh", `dragoman connect ${id}    # prints this, with your address and key:`),
      ...(printed.length > 0 ? printed : [shown]),
      ...note,
    ].join("\n\n");
  }
  const commands = [`dragoman connect ${id} --write    # --undo restores the file`, setup.command].join("\n");
  const place = `\`${file.locate({ home: "~", env: {}, platform: "linux" })}\``;
  const files = freshFiles(id, setup, { home: "~", env: {}, platform: "linux" });
  const settings = shownWhole.has(id)
    ? [`In ${place}:`, block(file.format, files[0]!.text)]
    : [`The settings are in ${place}. \`dragoman connect ${id}\` prints them.`];
  const switches = client.switches?.map(({ path, does }) => `- \`${path.at(-1)}\`: ${does}`) ?? [];
  return [title, block("sh", commands), ...settings, ...[switches.join("\n")].filter(Boolean), ...note].join("\n\n");
}

const block = (language: string, text: string) => `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;
