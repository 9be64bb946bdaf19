/** Coding agents for the terminal, with their settings files. */
import { dirname, join } from "node:path";
import { isObject } from "../lib/json";
import { claudeCodeName, codexName, opencodeName } from "./agent-names";
import {
  claudeCodeAliases,
  claudeCodeBeside,
  claudeCodeCaveats,
  codexBeside,
  geminiBeside,
  geminiCaveats,
  isSet,
  modelVariables,
  ofAnother,
  opencodeLists,
} from "./caveats";
import { anthropicId } from "./claude-code-names";
import {
  type Client,
  type Destination,
  destinationsAt,
  known,
  namedIn,
  noKey,
  nothing,
  type Switch,
  windowOf,
  yamlFile,
} from "./client";
import { settingAt, whatever } from "./edit";
import { codexProfile, locations } from "./locate";
import { type ClientModel, dialectOf, withModel } from "./models";

/** Claude Code leaves them off for other hosts than Anthropic's. (Its pages “LLM gateway protocol” and “Environment variables”.) */
const claudeCodeSwitches: readonly Switch[] = [
  {
    path: ["env", "ENABLE_TOOL_SEARCH"],
    value: "true",
    does: "Looks up the tools of MCP servers when they are needed, instead of sending all of them with each request.",
    isOn: (value) => isSet(value) || /^auto/i.test(String(value)),
  },
  {
    path: ["env", "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY"],
    value: "1",
    does: "Lists all of your models in /model, with prices.",
    isOn: isSet,
  },
  {
    path: ["env", "CLAUDE_CODE_GATEWAY_HINT_HEADERS"],
    value: "1",
    does: "Says with each request which prompt and which subagent it belongs to; the history shows it.",
    isOn: isSet,
  },
  {
    path: ["env", "CLAUDE_CODE_AUTO_MODE_SERVER"],
    value: "0",
    does: "Lets auto mode check its actions with requests of its own.",
  },
];

/** The variables that name the model of a family, and how the picker shows it: a substitute would stand there twice. */
function namedDefault(family: string, model: ClientModel): Record<string, string> {
  const isOfFamily = model.id.includes(family.toLowerCase()) || model.name === model.id;
  const substitute = isOfFamily ? [] : [`instead of Claude ${family[0]}${family.slice(1).toLowerCase()}`];
  const description = [...substitute, ...(model.summary ? [model.summary] : [])].join(" · ");
  return {
    [`ANTHROPIC_DEFAULT_${family}_MODEL`]: anthropicId(model.id),
    [`ANTHROPIC_DEFAULT_${family}_MODEL_NAME`]: model.name,
    ...(description && { [`ANTHROPIC_DEFAULT_${family}_MODEL_DESCRIPTION`]: description }),
  };
}

const claudeCode: Client = {
  name: "Claude Code",
  speaks: "messages",
  dialect: "messages",
  known: claudeCodeName,
  file: {
    format: "json",
    locate: locations["claude-code"],
    choices: [["model"]],
    destinations: ({ env, apiKeyHelper }) => [
      {
        address: settingAt(env, ["ANTHROPIC_BASE_URL"]),
        // A token in the file goes before the command.
        keyAt:
          settingAt(env, ["ANTHROPIC_AUTH_TOKEN"]) !== undefined || !apiKeyHelper
            ? ["env", "ANTHROPIC_AUTH_TOKEN"]
            : undefined,
      },
    ],
    caveats: claudeCodeCaveats,
    beside: claudeCodeBeside,
    model: ({ env, model }) => settingAt(env, ["ANTHROPIC_MODEL"]) ?? model,
    aliases: claudeCodeAliases,
  },
  project: {
    locate: locations["claude-code project"],
    edits: (header, name) => [{ path: ["env", "ANTHROPIC_CUSTOM_HEADERS"], value: `${header}: ${name}` }],
  },
  switches: claudeCodeSwitches,
  asksForKey: true,
  setUp({ url, key = noKey, keyCommand, models, model = models.claude, named, serves, statusline }) {
    const isServed = (name: unknown) => typeof name === "string" && (name === "inherit" || serves?.(name) === true);
    const foreign = !/^claude-/.test(model.id) && windowOf(model) !== undefined;
    const settings = {
      ANTHROPIC_BASE_URL: url,
      ...(keyCommand === undefined ? { ANTHROPIC_AUTH_TOKEN: key } : { CLAUDE_CODE_API_KEY_HELPER_TTL_MS: "1800000" }),
      ...namedDefault("OPUS", models.opus),
      ...namedDefault("SONNET", models.claude),
      ...namedDefault("HAIKU", models.haiku),
      ...namedDefault("FABLE", models.fable),
      ...Object.fromEntries(claudeCodeSwitches.map(({ path, value }) => [path.at(-1), value])),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      ...(foreign && { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(windowOf(model)) }),
    };
    return {
      model,
      edits: [
        // A token in the file goes before the command.
        ...(keyCommand === undefined
          ? []
          : [
              { path: ["apiKeyHelper"], value: keyCommand },
              { path: ["env", "ANTHROPIC_AUTH_TOKEN"], value: undefined },
            ]),
        ...(statusline ? [{ path: ["statusLine"], value: { type: "command", command: statusline } }] : []),
        // The variable would go before every later choice by /model.
        { path: ["env", "ANTHROPIC_MODEL"], value: undefined },
        ...modelVariables.map((name) => ({ path: ["env", name], value: undefined, keeps: isServed })),
        ...Object.entries(settings).map(([name, value]) => ({ path: ["env", name], value })),
        { path: ["model"], value: named ?? anthropicId(model.id) },
      ],
      variables: { ...settings, ANTHROPIC_MODEL: named ?? anthropicId(model.id) },
      programs: [],
      command: "claude",
      note: "The address has no /v1. Claude Code says “Not logged in” if no token is set, so one is set even if dragoman does not require it. For models that Claude Code does not know, CLAUDE_CODE_MAX_CONTEXT_TOKENS sets the prompt limit; without it, Claude Code assumes a million tokens.",
    };
  },
};

const codexSwitches: readonly Switch[] = [
  {
    path: ["features", "api_key_model_discovery"],
    value: true,
    does: "Lists your models in /model with their real limits; without it, Codex warns and sends requests twice as large.",
  },
];

/** Its built-in provider takes the address from a separate key, and the key for it from elsewhere. */
function destinationOfCodex(settings: Record<string, unknown>): Destination {
  const { model_provider = "openai", openai_base_url } = settings;
  const provider = ["model_providers", String(model_provider)];
  const address = settingAt(settings, [...provider, "base_url"]);
  if (address !== undefined) return { address, keyAt: [...provider, "experimental_bearer_token"] };
  return { address: model_provider === "openai" ? openai_base_url : undefined };
}

const codex: Client = {
  name: "Codex",
  speaks: "responses",
  dialect: "responses",
  known: codexName,
  file: {
    format: "toml",
    locate: locations.codex,
    choices: [["model"]],
    destinations: (settings) => [destinationOfCodex(settings)],
    model: ({ model }) => model,
    beside: (_, file) => codexBeside(dirname(file)),
    caveats: (settings, { isHere }) => {
      const { profile, review_model: review } = settings;
      const reviewed =
        typeof review === "string" ? [{ says: `its \`review_model\` is ${review}`, overrides: false }] : [];
      if (typeof profile !== "string") return reviewed;
      const own = settingAt(settings, ["profiles", profile]);
      const says = `\`profile = ${JSON.stringify(profile)}\` in it takes precedence: Codex 0.134 and later does not start with that key`;
      const isOurs = !isObject(own) || isHere(destinationOfCodex({ ...settings, ...own }).address);
      const older = `, and older versions use the provider ${String(settingAt(own, ["model_provider"]))}`;
      return [{ says: isOurs ? says : says + older, overrides: true }, ...reviewed];
    },
  },
  project: {
    locate: locations["codex project"],
    edits: (header, name) => [{ path: ["model_providers", "dragoman", "http_headers", header], value: name }],
    command: (name) => `codex --profile ${codexProfile(name)}`,
  },
  switches: codexSwitches,
  setUp({ url, key = noKey, models, model = models.gpt }) {
    const provider = {
      // By this name Codex lets the server summarize a long conversation, and not the model in words (0.169).
      name: "OpenAI",
      base_url: `${url}/v1`,
      model_catalog_url: `${url}/v1/models`,
      wire_api: "responses",
      supports_websockets: true,
      // Without a token it does not read the list of models.
      experimental_bearer_token: key,
    };
    const window = windowOf(model);
    return {
      ...nothing,
      model,
      edits: [
        { path: ["model"], value: model.id },
        ...(window === undefined ? [] : [{ path: ["model_context_window"], value: window }]),
        { path: ["model_provider"], value: "dragoman" },
        ...codexSwitches.map(({ path, value }) => ({ path, value })),
        { path: ["model_providers", "dragoman"], value: provider },
      ],
      command: "codex",
      note: "The provider is called OpenAI because Codex uses its server's compaction only with a provider of that name; no request goes there. Newer versions ignore OPENAI_BASE_URL. A profile that names another provider takes precedence: `codex --profile work` reads work.config.toml beside this file. Codex 0.134 and later does not start if config.toml has a `profile` key, as older versions wrote it.",
    };
  },
};

const opencodePackages = {
  messages: "@ai-sdk/anthropic",
  responses: "@ai-sdk/openai",
  chat: "@ai-sdk/openai-compatible",
};

function opencodeModel(model: ClientModel): object {
  const dialect = dialectOf(model);
  const limit = known({ context: model.context, input: model.prompt, output: model.output });
  return known({
    provider: dialect === "chat" ? undefined : { npm: opencodePackages[dialect] },
    limit: model.context !== undefined && model.output !== undefined ? limit : undefined,
    modalities: { input: model.vision ? ["text", "image"] : ["text"], output: ["text"] },
    reasoning: model.reasoning,
  });
}

const opencode: Client = {
  name: "opencode",
  speaks: "messages, responses, chat",
  dialect: "chat",
  known: opencodeName,
  file: {
    format: "json",
    locate: locations.opencode,
    destinations: (settings) => destinationsAt(settings, ["provider"], ["options", "baseURL"], ["options", "apiKey"]),
    model: ({ model }) => (typeof model === "string" ? /^dragoman\/(.*)/.exec(model)?.[1] : undefined),
    caveats: (settings, { isHere }) => {
      const { model, small_model: small, provider, agent } = settings;
      const isOurs = (name: string) => isHere(settingAt(provider, [name, "options", "baseURL"]));
      return [
        ...opencodeLists(settings),
        ...ofAnother(model, "model", true, isOurs),
        ...ofAnother(small, "small_model", false, isOurs),
        ...namedIn(agent).flatMap(([name, one]) =>
          ofAnother(settingAt(one, ["model"]), `agent.${String(name)}.model`, false, isOurs),
        ),
      ];
    },
    // It takes its settings from all of them together.
    beside: (_, file) =>
      ["opencode.jsonc", "opencode.json", "config.json"]
        .map((name) => join(dirname(file), name))
        .filter((path) => path !== file)
        .map((path) => ({ path, format: "json", caveats: (settings) => opencodeLists(settings, `in ${path}`) })),
  },
  project: {
    locate: locations["opencode project"],
    edits: (header, name) => [{ path: ["provider", "dragoman", "options", "headers", header], value: name }],
  },
  setUp({ url, key = noKey, models, model = models.claude }) {
    return {
      ...nothing,
      model,
      edits: [
        { path: ["$schema"], value: "https://opencode.ai/config.json", keeps: whatever },
        { path: ["model"], value: `dragoman/${model.id}` },
        { path: ["small_model"], value: `dragoman/${models.small.id}` },
        {
          path: ["provider", "dragoman"],
          value: {
            npm: opencodePackages.chat,
            name: "dragoman",
            options: { baseURL: `${url}/v1`, apiKey: key },
            models: Object.fromEntries(withModel(models.all, model).map((one) => [one.id, opencodeModel(one)])),
          },
        },
      ],
      command: "opencode",
      // Its guide “Migrate from V1” (2.3, November 2026).
      note: "opencode uses each model in its native API dialect. Version 2 reads the same file, and says of `reasoning` that it ignores it. When Copilot has new models, connect again: `dragoman doctor` says when the file lacks some.",
    };
  },
};

const geminiSignIn = "gemini-api-key";

/** Tokens that Gemini CLI assumes as the limit of every model (0.61.0, `tokenLimit`). */
const geminiWindow = 1_048_576;

const geminiCli: Client = {
  name: "Gemini CLI",
  speaks: "gemini",
  dialect: "gemini",
  known: /^GeminiCLI/i,
  file: {
    format: "json",
    locate: locations["gemini-cli"],
    second: { at: "env", format: "env", locate: locations["gemini-cli variables"] },
    choices: [["model", "name"]],
    destinations: ({ env: own }, env) => [
      {
        address: env.GOOGLE_GEMINI_BASE_URL ?? settingAt(own, ["GOOGLE_GEMINI_BASE_URL"]),
        keyAt: env.GEMINI_API_KEY === undefined ? ["env", "GEMINI_API_KEY"] : undefined,
      },
    ],
    model: ({ model }) => {
      const name = settingAt(model, ["name"]);
      // Its own choice among Gemini models.
      return /^auto/.test(String(name)) ? undefined : name;
    },
    caveats: (settings, look) => {
      const type = settingAt(settings, ["security", "auth", "selectedType"]);
      const says = `its \`security.auth.selectedType\` is ${JSON.stringify(type) ?? "not set"}`;
      return [...(type === geminiSignIn ? [] : [{ says, overrides: true }]), ...geminiCaveats(settings, look)];
    },
    beside: (around) => geminiBeside("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "gemini-cli", geminiSignIn, around),
  },
  setUp({ url, key = noKey, models, model = models.gemini ?? models.claude, serves }) {
    const window = windowOf(model);
    const variables = { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key };
    return {
      model,
      edits: [
        ...Object.entries(variables).map(([name, value]) => ({ path: ["env", name], value })),
        // It would go before the name in the settings.
        { path: ["env", "GEMINI_MODEL"], value: undefined, keeps: (name) => serves?.(String(name)) === true },
        { path: ["security", "auth", "selectedType"], value: geminiSignIn },
        { path: ["model", "name"], value: model.id },
        // The conversation is summarized at four fifths of the model's own limit.
        ...(window === undefined || window >= geminiWindow
          ? []
          : [
              {
                path: ["model", "compressionThreshold"],
                value: Math.floor(((window * 0.8) / geminiWindow) * 1000) / 1000,
              },
            ]),
        { path: ["privacy", "usageStatisticsEnabled"], value: false },
      ],
      variables,
      programs: [],
      command: "gemini",
      // Seen of Gemini CLI 0.61, November 2026.
      hint: "Trust the folder when it asks: elsewhere it reads no .env. `gemini -p` cannot ask: set GEMINI_CLI_TRUST_WORKSPACE=true for it.",
      note: "Gemini CLI takes the address and the key from the environment, to which it adds ~/.gemini/.env. It reads one such file only: a .gemini/.env or .env in the project or a folder above it takes precedence, as do variables of the shell. In a folder that is not trusted it reads none and asks for GEMINI_API_KEY: trust the folder when it asks, or set GEMINI_CLI_TRUST_WORKSPACE=true for `gemini -p`. It assumes a million tokens for every model; compressionThreshold makes it summarize in time.",
    };
  },
};

/** aider's “Config with .env” (2026-11): each option is also a key of the file, and a variable whose name begins with AIDER_. */
const aider: Client = {
  name: "aider",
  speaks: "chat",
  dialect: "chat",
  known: /^(?:aider|litellm)/i,
  setUp({ url, key = noKey, models, model = models.claude }) {
    const settings = {
      "openai-api-base": `${url}/v1`,
      "openai-api-key": key,
      model: `openai/${model.id}`,
      "weak-model": `openai/${models.small.id}`,
      "show-model-warnings": false,
    };
    const variables = Object.entries(settings).map(([name, value]) => [
      `AIDER_${name.toUpperCase().replaceAll("-", "_")}`,
      String(value),
    ]);
    return {
      model,
      edits: [],
      variables: Object.fromEntries(variables),
      programs: [yamlFile("~/.aider.conf.yml", settings)],
      command: "aider",
      note: "The variables or the file: one of them is enough. A .aider.conf.yml in the project takes precedence over the one in your home folder. aider does not know the limits of these models and would warn about that at each start, so these warnings are turned off.",
    };
  },
};

export const agents = {
  "claude-code": claudeCode,
  codex,
  opencode,
  "gemini-cli": geminiCli,
  aider,
} satisfies Record<string, Client>;
