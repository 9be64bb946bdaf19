/** How each client is pointed here: what to type or to write into which file, ready to be copied. */

export interface Snippet {
  /** Of a shell, or of a file. */
  name: string;
  text: string;
}

export interface ClientGuide {
  id: string;
  name: string;
  /** What it speaks to us. */
  dialect: string;
  /** Finds its requests by the name it gives itself. */
  known: RegExp;
  /** Of which one is enough. */
  snippets: Snippet[];
  note?: string;
}

export interface Here {
  /** `http://127.0.0.1:4141`, without a slash at its end. */
  url: string;
  /** What stands where a client key belongs. */
  key: string;
  /** A model of each family, where one is offered. */
  claude: string;
  gpt: string;
  chat: string;
}

export function guides(here: Here): ClientGuide[] {
  const { url, key, claude, gpt, chat } = here;
  return [
    {
      id: "claude-code",
      name: "Claude Code",
      dialect: "messages",
      known: /^claude-(?:cli|code)/i,
      snippets: inShells({ ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: key, ANTHROPIC_MODEL: claude }, "claude"),
      note: "The address comes without /v1. Without any token it says “Not logged in”, so one is set even where none is asked for.",
    },
    {
      id: "codex",
      name: "Codex",
      dialect: "responses",
      known: /^codex/i,
      snippets: [
        {
          name: "~/.codex/config.toml",
          text: [
            `model = "${gpt}"`,
            'model_provider = "dragoman"',
            "",
            "[model_providers.dragoman]",
            'name = "dragoman"',
            `base_url = "${url}/v1"`,
            'wire_api = "responses"',
            'env_key = "DRAGOMAN_KEY"',
          ].join("\n"),
        },
        ...inShells({ DRAGOMAN_KEY: key }, "codex"),
      ],
      note: "Both are needed: the file, and the key in the environment. OPENAI_BASE_URL is not read by newer versions.",
    },
    {
      id: "opencode",
      name: "opencode",
      dialect: "messages, responses, chat",
      known: /^opencode/i,
      snippets: [
        {
          name: "opencode.json",
          text: json({
            provider: {
              "dragoman-claude": {
                npm: "@ai-sdk/anthropic",
                options: { baseURL: `${url}/v1`, apiKey: key },
                models: { [claude]: { reasoning: true } },
              },
              "dragoman-gpt": {
                npm: "@ai-sdk/openai",
                options: { baseURL: `${url}/v1`, apiKey: key },
                models: { [gpt]: { reasoning: true } },
              },
            },
          }),
        },
      ],
    },
    {
      id: "cline",
      name: "Cline",
      dialect: "chat",
      known: /^cline/i,
      snippets: [{ name: "Terminal", text: `cline auth -p openai -k ${key} -m ${chat} -b ${url}/v1` }],
      note: `In the editor: provider “OpenAI Compatible”, base URL ${url}/v1, model ${chat}.`,
    },
    {
      id: "continue",
      name: "Continue",
      dialect: "chat",
      known: /^continue/i,
      snippets: [
        {
          name: "~/.continue/config.yaml",
          text: [
            "models:",
            "  - name: dragoman",
            "    provider: openai",
            `    model: ${chat}`,
            `    apiBase: ${url}/v1`,
            `    apiKey: ${key}`,
            "    roles: [chat, edit, apply]",
            "    capabilities: [tool_use]",
          ].join("\n"),
        },
      ],
    },
    {
      id: "zed",
      name: "Zed",
      dialect: "chat",
      known: /^zed/i,
      snippets: [
        {
          name: "settings.json",
          text: json({
            language_models: {
              openai_compatible: {
                dragoman: {
                  api_url: `${url}/v1`,
                  available_models: [{ name: chat, display_name: chat, max_tokens: 128_000 }],
                },
              },
            },
          }),
        },
      ],
      note: `Zed asks for the key once, in its agent settings: ${key}`,
    },
    {
      id: "pi",
      name: "pi",
      dialect: "chat, responses, messages",
      known: /^pi(?:-|\/|$)/i,
      snippets: [
        {
          name: "~/.pi/agent/models.json",
          text: json({
            providers: {
              dragoman: {
                baseUrl: `${url}/v1`,
                api: "openai-responses",
                apiKey: key,
                models: [{ id: gpt, reasoning: true }],
              },
              "dragoman-claude": {
                baseUrl: url,
                api: "anthropic-messages",
                apiKey: key,
                models: [{ id: claude, reasoning: true }],
              },
            },
          }),
        },
      ],
    },
    {
      id: "openai-sdk",
      name: "OpenAI SDK",
      dialect: "chat, responses, embeddings",
      known: /^(?:Async)?OpenAI/i,
      snippets: [
        ...inShells({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key }),
        {
          name: "Python",
          text: [
            "from openai import OpenAI",
            "",
            `client = OpenAI(base_url="${url}/v1", api_key="${key}")`,
            `reply = client.responses.create(model="${gpt}", input="Hello!")`,
            "print(reply.output_text)",
          ].join("\n"),
        },
        {
          name: "JavaScript",
          text: [
            'import OpenAI from "openai";',
            "",
            `const client = new OpenAI({ baseURL: "${url}/v1", apiKey: "${key}" });`,
            `const reply = await client.responses.create({ model: "${gpt}", input: "Hello!" });`,
            "console.log(reply.output_text);",
          ].join("\n"),
        },
      ],
    },
    {
      id: "anthropic-sdk",
      name: "Anthropic SDK",
      dialect: "messages",
      known: /^(?:Async)?Anthropic/i,
      snippets: [
        ...inShells({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key }),
        {
          name: "Python",
          text: [
            "from anthropic import Anthropic",
            "",
            `client = Anthropic(base_url="${url}", api_key="${key}")`,
            `reply = client.messages.create(model="${claude}", max_tokens=1024,`,
            '    messages=[{"role": "user", "content": "Hello!"}])',
            "print(reply.content[0].text)",
          ].join("\n"),
        },
      ],
    },
    {
      id: "curl",
      name: "curl",
      dialect: "any",
      known: /^curl/i,
      snippets: [
        {
          name: "bash, zsh, fish",
          text: [
            `curl -N ${url}/v1/chat/completions -H 'content-type: application/json' -H 'authorization: Bearer ${key}' \\`,
            `  -d '${JSON.stringify({ model: chat, stream: true, messages: [{ role: "user", content: "Hello!" }] })}'`,
          ].join("\n"),
        },
        {
          name: "PowerShell",
          text: [
            `Invoke-RestMethod ${url}/v1/chat/completions -Method Post -ContentType application/json \``,
            `  -Headers @{ authorization = 'Bearer ${key}' } \``,
            `  -Body '${JSON.stringify({ model: chat, messages: [{ role: "user", content: "Hello!" }] })}'`,
          ].join("\n"),
        },
      ],
    },
  ];
}

/** Variables, and the command they are for, as each shell says it. */
function inShells(variables: Record<string, string>, command?: string): Snippet[] {
  const all = Object.entries(variables);
  const lines = (line: (name: string, value: string) => string) =>
    [...all.map(([name, value]) => line(name, value)), ...(command ? [command] : [])].join("\n");
  return [
    { name: "bash, zsh", text: lines((name, value) => `export ${name}=${value}`) },
    { name: "fish", text: lines((name, value) => `set -gx ${name} ${value}`) },
    { name: "PowerShell", text: lines((name, value) => `$env:${name} = "${value}"`) },
    { name: "cmd", text: lines((name, value) => `set ${name}=${value}`) },
  ];
}

const json = (value: unknown) => JSON.stringify(value, null, 2);
