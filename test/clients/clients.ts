/**
 * How each tool is told where dragoman is. README's passage and the runs of `bun run test:clients` are both made of
 * this, so that what stands there is what was tried.
 */

/** Where dragoman listens, and the client key where one is configured. */
export interface Place {
  url: string;
  key?: string;
}

/** opencode's provider packages, one for each dialect. */
export type Package = "@ai-sdk/anthropic" | "@ai-sdk/openai" | "@ai-sdk/openai-compatible";

export interface Model {
  id: string;
  /** The package that speaks the dialect the model is served in. */
  package: Package;
  /** Tokens, as `GET /v1/models` tells them. */
  context: number;
  prompt: number;
  output: number;
}

export interface Setup {
  env: Record<string, string>;
  /** A file of the tool's, below the home folder. */
  file?: { path: string; text: string };
  /** Gives the tool a task without a person at the terminal. */
  command: string[];
}

export interface Client {
  name: string;
  npm: string;
  setup(place: Place, model: Model, task: string): Setup;
  /** What runs without a person add, so that nothing but dragoman is called. */
  quiet: { env: Record<string, string>; args: string[] };
}

// biome-ignore format: a table
export const models = {
  claude: { id: "claude-sonnet-4.6", package: "@ai-sdk/anthropic", context: 200_000, prompt: 168_000, output: 32_000 },
  gpt: { id: "gpt-5.3-codex", package: "@ai-sdk/openai", context: 400_000, prompt: 272_000, output: 128_000 },
  gemini: { id: "gemini-3.1-pro-preview", package: "@ai-sdk/openai-compatible", context: 200_000, prompt: 136_000, output: 64_000 },
} satisfies Record<string, Model>;

/** For titles and the like: it costs no premium request. */
const small: Model = {
  id: "gpt-5-mini",
  package: "@ai-sdk/openai-compatible",
  context: 264_000,
  prompt: 128_000,
  output: 64_000,
};

const noKey = "unused";

export const claudeCode: Client = {
  name: "Claude Code",
  npm: "@anthropic-ai/claude-code",
  setup: ({ url, key = noKey }, model, task) => ({
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: model.id,
      ANTHROPIC_DEFAULT_OPUS_MODEL: "claude-opus-4.6",
      ANTHROPIC_DEFAULT_SONNET_MODEL: "claude-sonnet-4.6",
      ANTHROPIC_DEFAULT_HAIKU_MODEL: "claude-haiku-4.5",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      ...(model.id.startsWith("claude") ? {} : { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(model.prompt) }),
    },
    command: ["claude", "-p", task, "--allowedTools", "Write"],
  }),
  quiet: { env: { DISABLE_AUTOUPDATER: "1", DISABLE_TELEMETRY: "1", DISABLE_ERROR_REPORTING: "1" }, args: [] },
};

const codexKey = "DRAGOMAN_API_KEY";

export const codex: Client = {
  name: "Codex",
  npm: "@openai/codex",
  setup: ({ url, key }, model, task) => ({
    env: { ...(key !== undefined && { [codexKey]: key }) },
    file: {
      path: ".codex/config.toml",
      text: `model = "${model.id}"
model_context_window = ${model.prompt}
model_provider = "dragoman"

[model_providers.dragoman]
name = "dragoman"
base_url = "${url}/v1"
wire_api = "responses"${key === undefined ? "" : `\nenv_key = "${codexKey}"`}
`,
    },
    command: ["codex", "exec", "--skip-git-repo-check", "--sandbox", "workspace-write", task],
  }),
  quiet: {
    env: {},
    args: ["check_for_update_on_startup", "analytics.enabled", "features.plugins", "features.apps"].flatMap((key) => [
      "-c",
      `${key}=false`,
    ]),
  },
};

/** @param spoken The package for `model`, where it is not the model's own. */
export const opencode = (spoken?: Package): Client => ({
  name: "opencode",
  npm: "opencode-ai",
  setup: ({ url, key = noKey }, model, task) => {
    const listed = [...Object.values(models), small].map((each) =>
      each.id === model.id ? { ...each, package: spoken ?? each.package } : each,
    );
    return {
      env: {},
      file: {
        path: ".config/opencode/opencode.json",
        text: `{
  "$schema": "https://opencode.ai/config.json",
  "model": "dragoman/${model.id}",
  "small_model": "dragoman/${small.id}",
  "provider": {
    "dragoman": {
      "npm": "${usualPackage}",
      "options": { "baseURL": "${url}/v1", "apiKey": "${key}" },
      "models": {
${listed.map((each) => `        "${each.id}": ${onOneLine(describe(each))}`).join(",\n")}
      }
    }
  }
}
`,
      },
      command: ["opencode", "run", task],
    };
  },
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
});

const usualPackage: Package = "@ai-sdk/openai-compatible";

const describe = ({ context, prompt, output, ...model }: Model) => ({
  ...(model.package === usualPackage ? {} : { provider: { npm: model.package } }),
  limit: { context, input: prompt, output },
  modalities: { input: ["text", "image"], output: ["text"] },
  reasoning: true,
});

const onOneLine = (value: object): string =>
  JSON.stringify(value, null, 1)
    .replace(/\n\s*/g, " ")
    .replace(/\[ (.*?) \]/g, "[$1]");

/** What the scripted model of `--demo` understands. */
export const task = "write a file hello.txt with the text Hi there";

/** README's passage. */
export function passage(): string {
  const place = { url: "http://127.0.0.1:4141" };
  const claude = claudeCode.setup(place, models.claude, task);
  const other = claudeCode.setup(place, models.gpt, task);
  const more = Object.entries(other.env).filter(([name, value]) => claude.env[name] !== value);
  const files = [codex.setup(place, models.gpt, task), opencode().setup(place, models.claude, task)] as const;
  return [
    "### Claude Code",
    block("sh", `${exports(Object.entries(claude.env))}\n${shell(claude.command)}`),
    "For a model it does not know, tell it also how many tokens of prompt the model takes, or it reckons with a million:",
    block("sh", exports(more)),
    "### Codex",
    `In \`~/${files[0].file!.path}\`; \`model_context_window\` is the model's \`max_prompt_tokens\`:`,
    block("toml", files[0].file!.text),
    block("sh", shell(files[0].command)),
    `With a client key: \`env_key = "${codexKey}"\` as a last line, and the key in that variable.`,
    "### opencode",
    `In \`~/${files[1].file!.path}\`; each model is spoken to in the dialect it is served in:`,
    block("json", files[1].file!.text),
    block("sh", shell(files[1].command)),
    "### Tools made with an SDK",
    "OpenAI's and Anthropic's SDKs, and most tools made with them, read their address from the environment:",
    block(
      "sh",
      exports([
        ["OPENAI_BASE_URL", `${place.url}/v1`],
        ["OPENAI_API_KEY", noKey],
        ["ANTHROPIC_BASE_URL", place.url],
        ["ANTHROPIC_API_KEY", noKey],
      ]),
    ),
  ].join("\n\n");
}

const block = (language: string, text: string) => `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;
const exports = (entries: [string, string][]) => entries.map(([name, value]) => `export ${name}=${value}`).join("\n");
const shell = (command: string[]) => command.map((word) => (/\s/.test(word) ? `"${word}"` : word)).join(" ");
