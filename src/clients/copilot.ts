/** GitHub's own clients, with dragoman as their model provider. */
import { type Client, each, known, noKey, nothing, windowOf } from "./client";
import { settingAt } from "./edit";
import { locations } from "./locate";
import { type ClientModel, serves, withModel } from "./models";

/** `copilot help providers` (1.0.102): the dialect of each model, and the address that its SDK expects. */
function providerOf(model: ClientModel, url: string): Record<string, string> {
  if (serves(model, "messages")) return { COPILOT_PROVIDER_BASE_URL: url, COPILOT_PROVIDER_TYPE: "anthropic" };
  const openai = { COPILOT_PROVIDER_BASE_URL: `${url}/v1`, COPILOT_PROVIDER_TYPE: "openai" };
  return { ...openai, COPILOT_PROVIDER_WIRE_API: serves(model, "responses") ? "responses" : "completions" };
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

/**
 * A model of the provider “Custom Endpoint” (microsoft/vscode, `customEndpointProvider.ts`). It adds the path of `apiType`
 * to an address that ends in /v1. With `statefulResponses`, it would send only a part of the conversation and refer to the
 * answer before, which no upstream stores.
 */
function vscodeModel(model: ClientModel, url: string): object {
  const dialect = serves(model, "messages") ? "messages" : serves(model, "responses") ? "responses" : undefined;
  return known({
    id: model.id,
    name: model.name,
    url: `${url}/v1`,
    apiType: dialect ?? "chat-completions",
    toolCalling: true,
    vision: model.vision,
    thinking: model.reasoning,
    maxInputTokens: windowOf(model) ?? vscodeLimits.window,
    maxOutputTokens: model.output ?? vscodeLimits.output,
    statefulResponses: dialect === "responses" ? false : undefined,
  });
}

const vscode: Client = {
  name: "VS Code",
  speaks: "messages, responses, chat",
  dialect: "messages",
  known: /^GitHubCopilotChat/i,
  file: {
    format: "json-list",
    locate: locations.vscode,
    addresses: ({ list }) =>
      each(list)
        .flatMap((group) => each(settingAt(group, ["models"])))
        .map((one) => settingAt(one, ["url"])),
  },
  setUp({ url, key = noKey, models, model = models.claude }) {
    return {
      ...nothing,
      model,
      edits: [
        {
          path: ["list", { name: "dragoman" }],
          value: {
            name: "dragoman",
            vendor: "customendpoint",
            apiKey: key,
            models: withModel(models.all, model).map((one) => vscodeModel(one, url)),
          },
        },
      ],
      note: `In the chat of VS Code, choose ${model.name} in the model picker; the models are listed there under “dragoman” without a GitHub sign-in. If they are missing, reload the window. “Chat: Manage Language Models” shows them, too. A profile of VS Code other than the default has a file of its own.`,
    };
  },
};

export const copilots = { "copilot-cli": copilotCli, vscode } satisfies Record<string, Client>;
