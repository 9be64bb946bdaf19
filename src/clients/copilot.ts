/** GitHub's own clients, with dragoman as their model provider. */
import { type Client, noKey, windowOf } from "./client";
import { type ClientModel, serves } from "./models";

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

export const copilots = { "copilot-cli": copilotCli } satisfies Record<string, Client>;
