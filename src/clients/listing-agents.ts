/** Agents for the terminal whose files list models, each with the API dialect in which it is asked. */
import { dirname } from "node:path";
import { qwenCodeName } from "./agent-names";
import { codexBeside, geminiBeside, geminiCaveats } from "./caveats";
import { type Client, destinationsAt, each, known, noKey, nothing, windowOf } from "./client";
import { type Edit, settingAt, whatever } from "./edit";
import { locations } from "./locate";
import { type ClientModel, dialectOf, serves, withModel } from "./models";

/**
 * A provider for each dialect, as pi and as crush.json call its type (schema.json of charmbracelet/crush). The SDKs for Anthropic
 * add /v1 themselves.
 */
const providers = [
  { id: "dragoman", dialect: "responses", pi: "openai-responses", crush: "openai", path: "/v1" },
  { id: "dragoman-claude", dialect: "messages", pi: "anthropic-messages", crush: "anthropic", path: "" },
  { id: "dragoman-chat", dialect: "chat", pi: "openai-completions", crush: "openai-compat", path: "/v1" },
] as const;

const providerOf = (model: ClientModel) => providers.find(({ dialect }) => dialect === dialectOf(model))!;

const pi: Client = {
  name: "pi",
  speaks: "chat, responses, messages",
  dialect: "responses",
  known: /^pi(?:-|\/|$)/i,
  file: {
    format: "json",
    locate: locations.pi,
    destinations: (settings) => destinationsAt(settings, ["providers"], ["baseUrl"], ["apiKey"]),
  },
  setUp({ url, key = noKey, models, model = models.claude }) {
    const listed = providers.map((provider) => ({
      ...provider,
      models: withModel(models.all, model).filter((one) => providerOf(one) === provider),
    }));
    return {
      ...nothing,
      model,
      edits: listed
        .filter((provider) => provider.models.length > 0)
        .map(({ id, pi: api, path, models: own }) => ({
          path: ["providers", id],
          value: {
            baseUrl: url + path,
            api,
            apiKey: key,
            models: own.map((one) =>
              known({
                id: one.id,
                name: one.name,
                reasoning: one.reasoning,
                input: one.vision ? ["text", "image"] : ["text"],
                contextWindow: windowOf(one),
                maxTokens: one.output,
              }),
            ),
          },
        })),
      command: `pi --provider ${providerOf(model).id} --model ${model.id}`,
    };
  },
};

/** Tokens that crush is told if a limit is unknown: it requires both. */
const crushLimits = { window: 128_000, output: 16_000 };

const crushModel = (model: ClientModel) => ({
  id: model.id,
  name: model.name,
  cost_per_1m_in: 0,
  cost_per_1m_out: 0,
  cost_per_1m_in_cached: 0,
  cost_per_1m_out_cached: 0,
  context_window: windowOf(model) ?? crushLimits.window,
  default_max_tokens: model.output ?? crushLimits.output,
  can_reason: model.reasoning,
  supports_attachments: model.vision,
});

const crush: Client = {
  name: "Crush",
  speaks: "messages, responses, chat",
  dialect: "messages",
  known: /^(?:charm-)?crush/i,
  file: {
    format: "json",
    locate: locations.crush,
    destinations: (settings) => destinationsAt(settings, ["providers"], ["base_url"], ["api_key"]),
    model: ({ models }) =>
      /^dragoman(?:-|$)/.test(String(settingAt(models, ["large", "provider"])))
        ? settingAt(models, ["large", "model"])
        : undefined,
    caveats: ({ models, providers }, { isHere }) =>
      (["large", "small"] as const).flatMap((size) => {
        const named = settingAt(models, [size, "provider"]);
        if (typeof named !== "string" || isHere(settingAt(providers, [named, "base_url"]))) return [];
        return [{ says: `its ${size} model belongs to another provider, ${named}`, overrides: size === "large" }];
      }),
  },
  setUp({ url, key = noKey, models, model = models.claude }) {
    const listed = providers.map(({ id, dialect, crush: type, path }): Edit => {
      const own = withModel(withModel(models.all, models.small), model).filter((one) => dialectOf(one) === dialect);
      const value = {
        name: id,
        type,
        base_url: url + path,
        api_key: key,
        discover_models: false,
        models: own.map(crushModel),
      };
      return { path: ["providers", id], value: own.length > 0 ? value : undefined };
    });
    const chosen = (one: ClientModel) => ({ provider: providerOf(one).id, model: one.id });
    return {
      ...nothing,
      model,
      edits: [
        { path: ["$schema"], value: "https://charm.land/crush.json", keeps: whatever },
        { path: ["models", "large"], value: chosen(model) },
        { path: ["models", "small"], value: chosen(models.small) },
        ...listed,
      ],
      command: "crush",
      note: "A model that was chosen inside Crush is kept in ~/.local/share/crush/crush.json and takes precedence, as do crush.json and crushrc in the project. A crushrc beside this file is read too. A key that contains $ is expanded as in a shell.",
    };
  },
};

/** Provider types of Qwen Code (its documentation, “Model Providers”). It knows no responses dialect. */
const qwenTypeOf = (model: ClientModel) => (serves(model, "messages") ? "anthropic" : "openai");

const qwen: Client = {
  name: "Qwen Code",
  speaks: "messages, chat",
  dialect: "chat",
  known: qwenCodeName,
  file: {
    format: "json",
    locate: locations["qwen-code"],
    choices: [
      ["model", "name"],
      ["security", "auth", "selectedType"],
    ],
    destinations: ({ modelProviders }) =>
      each(modelProviders)
        .flatMap(each)
        .map((one) => {
          const name = settingAt(one, ["envKey"]);
          return { address: settingAt(one, ["baseUrl"]), keyAt: typeof name === "string" ? ["env", name] : undefined };
        }),
    model: ({ model }) => settingAt(model, ["name"]),
    beside: (around, file) => [
      ...geminiBeside("QWEN_CODE_SYSTEM_SETTINGS_PATH", "qwen-code", "", around),
      ...codexBeside(dirname(file)),
    ],
    caveats: (settings, look) => {
      const { model, modelProviders, security } = settings;
      const [type, name] = [settingAt(security, ["auth", "selectedType"]), settingAt(model, ["name"])];
      const chosen = each(settingAt(modelProviders, [String(type)])).find((one) => settingAt(one, ["id"]) === name);
      const isChosen = typeof type === "string" && typeof name === "string";
      const says = isChosen
        ? `its \`model.name\` is ${name} of another provider, ${type}`
        : "its `model.name` and `security.auth.selectedType` choose no model";
      const isOurs = look.isHere(settingAt(chosen, ["baseUrl"]));
      return [...(isOurs ? [] : [{ says, overrides: true }]), ...geminiCaveats(settings, look)];
    },
    // It notes the version of its format at the first run.
    bookkeeping: ({ $version: _, ...settings }) => settings,
  },
  setUp({ url, key = noKey, models, model = models.claude }) {
    const listed = withModel(models.all, model).map((one): Edit => {
      const type = qwenTypeOf(one);
      const name = `${one.id} (dragoman)`;
      const generationConfig = known({
        contextWindowSize: windowOf(one),
        samplingParams: type === "anthropic" && one.output !== undefined ? { max_tokens: one.output } : undefined,
        // It would call itself claude-cli, and would be answered like that.
        customHeaders: type === "anthropic" ? { "User-Agent": "QwenCode" } : undefined,
      });
      const baseUrl = type === "anthropic" ? url : `${url}/v1`;
      return {
        path: ["modelProviders", type, { name }],
        value: { name, id: one.id, baseUrl, envKey: "DRAGOMAN_API_KEY", generationConfig },
      };
    });
    return {
      ...nothing,
      model,
      edits: [
        { path: ["env", "DRAGOMAN_API_KEY"], value: key },
        { path: ["security", "auth", "selectedType"], value: qwenTypeOf(model) },
        { path: ["model", "name"], value: model.id },
        ...listed,
        { path: ["privacy", "usageStatisticsEnabled"], value: false },
      ],
      command: "qwen",
      note: "/model lists the other models. Variables of the shell take precedence over `env` in the file: another DRAGOMAN_API_KEY there would be used instead. If another provider of the same type lists the same model before these, Qwen Code uses that one.",
    };
  },
};

export const listingAgents = { crush, "qwen-code": qwen, pi } satisfies Record<string, Client>;
