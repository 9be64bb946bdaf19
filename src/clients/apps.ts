/** Apps that are set up in their own dialogs, or by the environment they start in: what to enter is printed. */
import { isLoopbackUrl } from "../lib/net/address";
import { type Client, noKey, type Snippet } from "./client";

/** Where to go in an app, and what to enter there. */
function dialog(path: readonly string[], fields: Record<string, string>): Snippet {
  const width = Math.max(...Object.keys(fields).map(({ length }) => length));
  const lines = Object.entries(fields).map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
  return { name: "Settings", text: [path.join(" → "), ...lines].join("\n") };
}

/** What an app without a file and without variables needs. */
const inDialog = (programs: Snippet[]) => ({ edits: [], variables: {}, programs });

/** JetBrains' help, “Use third-party and local models”. */
const jetbrains: Client = {
  name: "JetBrains AI Assistant",
  speaks: "chat",
  dialect: "chat",
  known: /^(?:jetbrains|ktor)/i,
  setUp({ url, key = noKey, models, model = models.claude }) {
    const path = ["Settings", "Tools", "AI Assistant", "Providers & API keys", "Third-party AI providers"];
    return {
      ...inDialog([
        dialog(path, { Provider: "OpenAI-compatible", URL: `${url}/v1`, "API key": key, "Tool calling": "on" }),
      ]),
      model,
      note: `Click Test Connection, then choose ${model.id} in the chat. “Models assignment” sets the models of the other features; ${models.small.id} is enough for the lightweight ones.`,
    };
  },
};

/** LiteLLM's and Pangolin's guides (2026-10): the names of the fields, and that an address with plain HTTP is taken. */
const claudeDesktop: Client = {
  name: "Claude Desktop",
  speaks: "messages",
  dialect: "messages",
  known: /^claude-?desktop/i,
  setUp({ url, key = noKey, models, model = models.claude }) {
    return {
      ...inDialog([
        dialog(["Developer", "Configure Third-Party Inference"], {
          "Inference provider": "Gateway",
          "Gateway base URL": url,
          "Gateway API key": key,
          "Gateway auth scheme": "bearer",
        }),
      ]),
      model,
      note: `The menu is there after Help → Troubleshooting → Enable Developer Mode. The address has no /v1. Apply the changes, let the app start again, and choose ${model.name}: Chat, Cowork and Code go through dragoman then. The app takes only models whose ids look like Claude's.`,
    };
  },
};

/** ngrok's guide “Use a local LLM in Cursor”: the requests come from Cursor's servers, also with one's own key. */
const cursor: Client = {
  name: "Cursor",
  speaks: "chat",
  dialect: "chat",
  known: /^cursor/i,
  setUp({ url, key = noKey, models, model = models.claude }) {
    const reachable = isLoopbackUrl(url) ? "https://YOUR-PUBLIC-ADDRESS" : url;
    return {
      ...inDialog([
        dialog(["Cursor Settings", "Models", "API Keys"], {
          "OpenAI API Key": key,
          "Override OpenAI Base URL": `${reachable}/v1`,
          "Add model": model.id,
        }),
      ]),
      model,
      note: "Cursor sends each request, with your code, through its own servers. They must be able to reach the address, so 127.0.0.1 does not work. An https tunnel gives dragoman a public address: require a client key first (`dragoman key add`), and add the tunnel's host name to `allowedHosts`. The override applies to all OpenAI models of Cursor; Tab completion does not use it.",
    };
  },
};

/** Helicone's and Venice's guides for Xcode: both kinds of provider, and the names of the fields. */
const xcode: Client = {
  name: "Xcode",
  speaks: "chat",
  dialect: "chat",
  known: /^xcode/i,
  setUp({ url, key, models, model = models.claude }) {
    const path = ["Xcode", "Settings", "Intelligence", "Add a Chat Provider"];
    const port = new URL(url).port;
    const local = key === undefined && isLoopbackUrl(url) && port !== "";
    return {
      ...inDialog([
        local
          ? dialog([...path, "Locally Hosted"], { Port: port, Description: "dragoman" })
          : dialog([...path, "Internet Hosted"], {
              URL: url,
              "API Key": key ?? noKey,
              "API Key Header": "x-api-key",
              Description: "dragoman",
            }),
      ]),
      model,
      note: `The address has no /v1. Xcode lists all models; choose ${model.id} in the coding assistant. Some versions of Xcode 26 name the button “Add a Model Provider”.`,
    };
  },
};

/** Open WebUI's documentation, “Environment Variable Configuration”. */
const openWebui: Client = {
  name: "Open WebUI",
  speaks: "chat",
  dialect: "chat",
  known: /^open-?webui/i,
  setUp({ url, key = noKey, models, model = models.claude }) {
    return {
      model,
      edits: [],
      variables: {
        OPENAI_API_BASE_URL: `${url}/v1`,
        OPENAI_API_KEY: key,
        DEFAULT_MODELS: model.id,
        TASK_MODEL_EXTERNAL: models.small.id,
      },
      programs: [],
      command: "open-webui serve",
      note: "Open WebUI reads these variables at its first start only. Later, set them in Admin Panel → Settings → Connections and → Interface. In a container, 127.0.0.1 is the container itself: run it with --network=host, or start dragoman with --host and a client key.",
    };
  },
};

export const apps = {
  "claude-desktop": claudeDesktop,
  jetbrains,
  cursor,
  xcode,
  "open-webui": openWebui,
} satisfies Record<string, Client>;
