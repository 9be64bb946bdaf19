/** GitHub's own clients, with dragoman as their model provider. */
import { where } from "./caveats";
import { type Client, each, namedIn, noKey, nothing, type Switch, windowOf } from "./client";
import { isNamed, settingAt } from "./edit";
import { locations } from "./locate";
import { type ClientModel, dialectOf, withModel } from "./models";

/** `copilot help providers` (1.0.102): the dialect of each model, and the address that its SDK expects. */
function providerOf(model: ClientModel, url: string): Record<string, string> {
  const dialect = dialectOf(model);
  if (dialect === "messages") return { COPILOT_PROVIDER_BASE_URL: url, COPILOT_PROVIDER_TYPE: "anthropic" };
  const openai = { COPILOT_PROVIDER_BASE_URL: `${url}/v1`, COPILOT_PROVIDER_TYPE: "openai" };
  return { ...openai, COPILOT_PROVIDER_WIRE_API: dialect === "responses" ? dialect : "completions" };
}

const copilotCli: Client = {
  name: "GitHub Copilot CLI",
  speaks: "messages, responses, chat",
  dialect: "messages",
  known: /^copilot-cli/i,
  setUp({ url, key = noKey, models, model = models.claude }) {
    const [window, output] = [windowOf(model), model.output];
    return {
      model,
      edits: [],
      variables: {
        ...providerOf(model, url),
        COPILOT_PROVIDER_BEARER_TOKEN: key,
        COPILOT_MODEL: model.id,
        ...(window !== undefined && { COPILOT_PROVIDER_MAX_PROMPT_TOKENS: String(window) }),
        ...(output !== undefined && { COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: String(output) }),
        // Its own User-Agent is that of the SDK inside it.
        COPILOT_PROVIDER_HEADERS: "User-Agent: copilot-cli",
        COPILOT_OFFLINE: "true",
      },
      programs: [],
      command: "copilot",
      note: "Copilot CLI takes these settings from the environment only. The API dialect depends on the model: to change the model, run this command again with --model. COPILOT_OFFLINE keeps it from calling GitHub; remove it to use its web tools and GitHub's MCP server.",
    };
  },
};

/** Tokens that VS Code is told if a limit is unknown: it requires both. */
const vscodeLimits = { window: 128_000, output: 16_000 };

/** The paths of VS Code's `apiType`s. Versions that know the type only for all models together infer it from the path. */
const vscodePaths = { messages: "/messages", responses: "/responses", "chat-completions": "/chat/completions" };

/**
 * A model of the provider “Custom Endpoint” (microsoft/vscode, `customEndpointProvider.ts`). In the responses dialect, it
 * would send only a part of the conversation and refer to the answer before, which no upstream stores; older versions
 * refrain from that with `zeroDataRetentionEnabled`.
 */
function vscodeModel(model: ClientModel, url: string): object {
  const dialect = dialectOf(model);
  const apiType = dialect === "chat" ? "chat-completions" : dialect;
  return {
    id: model.id,
    name: model.name,
    url: `${url}/v1${vscodePaths[apiType]}`,
    apiType,
    toolCalling: true,
    vision: model.vision,
    thinking: model.reasoning,
    maxInputTokens: windowOf(model) ?? vscodeLimits.window,
    maxOutputTokens: model.output ?? vscodeLimits.output,
    ...(dialect === "responses" && { statefulResponses: false, zeroDataRetentionEnabled: true }),
  };
}

const groupName = "dragoman";

/**
 * Off by default, and needed from VS Code 1.132 on (microsoft/vscode#329545, August 2026; `agentHostStarter.config.contribution.ts`).
 * Older versions do not know it.
 */
const vscodeSwitches: readonly Switch[] = [
  {
    path: ["settings", "chat.agentHost.byokModels.enabled"],
    value: true,
    does: "Offers your models in agent sessions too, and not only in the chat.",
  },
];

function withoutState(group: unknown): unknown {
  const { settings: _, apiKey: __, ...others } = group as Record<string, unknown>;
  return others;
}

const vscode: Client = {
  name: "VS Code",
  speaks: "messages, responses, chat",
  dialect: "messages",
  known: /^GitHubCopilotChat/i,
  file: {
    format: "json-list",
    locate: locations.vscode,
    second: { at: "settings", format: "json", locate: locations["vscode settings"] },
    destinations: ({ list }) =>
      namedIn(list).flatMap(([step, group]) =>
        each(settingAt(group, ["models"])).map((one) => ({
          address: String(settingAt(one, ["url"])).replace(/\/(?:messages|responses|chat\/completions)$/, ""),
          keyAt: ["list", step, "apiKey"],
        })),
      ),
    caveats: ({ settings }) =>
      where(
        settings,
        ["chat.disableAIFeatures"],
        true,
        "`chat.disableAIFeatures` in its settings.json turns its chat off",
      ),
    // It notes what was chosen for a model in `settings`, and may move the key to its own store.
    bookkeeping: ({ list, ...settings }) => ({
      ...settings,
      list: each(list).map((group) => (isNamed(group, { name: groupName }) ? withoutState(group) : group)),
    }),
  },
  switches: vscodeSwitches,
  setUp({ url, key = noKey, models, model = models.claude }) {
    return {
      ...nothing,
      model,
      edits: [
        {
          path: ["list", { name: groupName }],
          value: {
            name: groupName,
            vendor: "customendpoint",
            apiKey: key,
            models: withModel(models.all, model).map((one) => vscodeModel(one, url)),
          },
        },
        ...vscodeSwitches.map(({ path, value }) => ({ path, value })),
      ],
      note: `In the chat of VS Code, choose ${model.name} in the model picker; the models are listed there under “dragoman” without a GitHub sign-in. If they are missing, reload the window. “Chat: Manage Language Models” shows them, too. Agent sessions have them from VS Code 1.132 on, where they run on this machine: a session in WSL or on another machine does not see them. A profile of VS Code other than the default has files of its own.`,
    };
  },
};

export const copilots = { "copilot-cli": copilotCli, vscode } satisfies Record<string, Client>;
