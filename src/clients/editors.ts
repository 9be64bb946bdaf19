/** Editors and agents in editors, with their settings files. */
import { isObject } from "../lib/json";
import { where } from "./caveats";
import { type Client, type Connection, each, known, noKey, nothing, windowOf, yamlFile } from "./client";
import { settingAt, whatever } from "./edit";
import { locations } from "./locate";
import { type ClientModel, serves, withModel } from "./models";

const cline: Client = {
  name: "Cline",
  speaks: "chat",
  dialect: "chat",
  known: /^cline/i,
  file: {
    format: "json",
    locate: locations.cline,
    destinations(settings) {
      const own = ["providers", String(settings.lastUsedProvider), "settings"];
      return [{ address: settingAt(settings, [...own, "baseUrl"]), keyAt: [...own, "apiKey"] }];
    },
    model: ({ providers }) => settingAt(providers, ["openai-compatible", "settings", "model"]),
    bookkeeping: ({ modes, ...settings }) => {
      const mine = settingAt(settings, ["providers", "openai-compatible"]);
      if (isObject(mine)) delete mine.updatedAt;
      return each(modes).length > 0 ? { modes, ...settings } : settings;
    },
  },
  setUp({ url, key = noKey, models, model = models.claude }) {
    return {
      ...nothing,
      model,
      edits: [
        { path: ["version"], value: 1, keeps: whatever },
        { path: ["lastUsedProvider"], value: "openai-compatible" },
        {
          path: ["providers", "openai-compatible"],
          value: {
            settings: known({
              provider: "openai-compatible",
              apiKey: key,
              model: model.id,
              baseUrl: `${url}/v1`,
              contextWindow: windowOf(model),
              maxTokens: model.output,
            }),
            updatedAt: "2026-01-01T00:00:00.000Z",
            tokenSource: "manual",
          },
        },
      ],
      command: "cline",
      note: `In the editor: provider “OpenAI Compatible”, base URL ${url}/v1, model ${model.id}.`,
    };
  },
};

function continueModel(name: string, model: ClientModel, { url, key = noKey }: Connection) {
  return known({
    name,
    provider: serves(model, "messages") ? "anthropic" : "openai",
    model: model.id,
    apiBase: `${url}/v1`,
    apiKey: key,
    roles: ["chat", "edit", "apply"],
    capabilities: model.vision ? ["tool_use", "image_input"] : ["tool_use"],
    defaultCompletionOptions:
      windowOf(model) === undefined ? undefined : known({ contextLength: windowOf(model), maxTokens: model.output }),
  });
}

const continueDev: Client = {
  name: "Continue",
  speaks: "messages, responses, chat",
  dialect: "chat",
  known: /^continue/i,
  setUp(place) {
    const { models, model = models.claude } = place;
    const settings = {
      name: "Local Config",
      version: "0.0.1",
      schema: "v1",
      models: [continueModel("dragoman", model, place), continueModel("dragoman small", models.small, place)],
    };
    return {
      ...nothing,
      model,
      edits: [],
      programs: [yamlFile("~/.continue/config.yaml", settings)],
      command: "cn",
      note: "If the file is there already, add the two models to its list `models`, the one that `cn` is to use first. CONTINUE_GLOBAL_DIR names another folder than ~/.continue. With this file, Continue no longer reads a config.json beside it: move over what you have there first. In the editor, the models appear in the list as “dragoman” and “dragoman small”.",
    };
  },
};

const zedModels = ["default_model", "inline_assistant_model", "commit_message_model", "thread_summary_model"] as const;

const zed: Client = {
  name: "Zed",
  speaks: "chat",
  dialect: "chat",
  known: /^zed/i,
  file: {
    format: "json",
    locate: locations.zed,
    destinations: ({ language_models: providers }) =>
      [...each(providers), ...each(settingAt(providers, ["openai_compatible"]))].map((one) => ({
        address: settingAt(one, ["api_url"]),
      })),
    model: ({ agent }) =>
      settingAt(agent, ["default_model", "provider"]) === "dragoman"
        ? settingAt(agent, ["default_model", "model"])
        : undefined,
    caveats: (settings, { isHere, url }) => {
      const { agent, language_models: providers, proxy } = settings;
      const models = zedModels.flatMap((name) => {
        const named = settingAt(agent, [name, "provider"]);
        const own = settingAt(providers, ["openai_compatible", String(named)]) ?? settingAt(providers, [String(named)]);
        if (typeof named !== "string" || isHere(settingAt(own, ["api_url"]))) return [];
        const overrides = name === "default_model";
        return [{ says: `its agent's \`${name}\` belongs to another provider, ${named}`, overrides }];
      });
      return [
        ...where(settings, ["disable_ai"], true, "its `disable_ai` turns the agent off"),
        ...where(settings, ["agent", "enabled"], false, "its `agent.enabled` turns the agent off"),
        ...(proxy ? [{ says: `its \`proxy\` may send requests for ${url} to a proxy`, overrides: false }] : []),
        ...models,
      ];
    },
  },
  setUp({ url, key = noKey, models, model = models.claude }) {
    return {
      ...nothing,
      model,
      edits: [
        {
          path: ["language_models", "openai_compatible", "dragoman"],
          value: {
            api_url: `${url}/v1`,
            available_models: withModel(models.all, model).map((one) =>
              known({
                name: one.id,
                display_name: one.name,
                max_tokens: windowOf(one) ?? 128_000,
                max_output_tokens: one.output,
                capabilities: { tools: true, images: one.vision, parallel_tool_calls: true, prompt_cache_key: false },
              }),
            ),
          },
        },
        { path: ["agent", "default_model"], value: { provider: "dragoman", model: model.id } },
      ],
      variables: { DRAGOMAN_API_KEY: key },
      command: "zed",
      note: "Zed does not keep the key in its settings file: start it with DRAGOMAN_API_KEY set, or enter the key once in its agent settings. If dragoman requires no key, any value works.",
    };
  },
};

export const editors = { cline, continue: continueDev, zed } satisfies Record<string, Client>;
