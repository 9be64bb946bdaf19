/** Well-known providers: one of these names needs no type, and no address unless the provider is elsewhere. */

interface Preset {
  type: "messages" | "chat" | "responses";
  baseUrl: string;
  maxTokens?: "max_tokens";
  thinking?: "reasoning" | "reasoning_content";
}

/** The addresses and fields are those of each provider's own documentation. */
export const presets: Readonly<Record<string, Preset>> = {
  // On this machine.
  ollama: { type: "chat", baseUrl: "http://127.0.0.1:11434/v1", maxTokens: "max_tokens", thinking: "reasoning" },
  lmstudio: { type: "chat", baseUrl: "http://127.0.0.1:1234/v1", maxTokens: "max_tokens" },
  llamacpp: { type: "chat", baseUrl: "http://127.0.0.1:8080/v1", maxTokens: "max_tokens" },
  vllm: { type: "chat", baseUrl: "http://127.0.0.1:8000/v1" },
  // Services.
  anthropic: { type: "messages", baseUrl: "https://api.anthropic.com" },
  openai: { type: "responses", baseUrl: "https://api.openai.com/v1" },
  openrouter: { type: "chat", baseUrl: "https://openrouter.ai/api/v1", thinking: "reasoning" },
  deepseek: {
    type: "chat",
    baseUrl: "https://api.deepseek.com/v1",
    maxTokens: "max_tokens",
    thinking: "reasoning_content",
  },
  gemini: { type: "chat", baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai" },
  groq: { type: "chat", baseUrl: "https://api.groq.com/openai/v1" },
  mistral: { type: "chat", baseUrl: "https://api.mistral.ai/v1", maxTokens: "max_tokens" },
  xai: { type: "chat", baseUrl: "https://api.x.ai/v1" },
  together: { type: "chat", baseUrl: "https://api.together.xyz/v1", maxTokens: "max_tokens" },
  cerebras: { type: "chat", baseUrl: "https://api.cerebras.ai/v1" },
};

/** What a provider without a type has by its name; nothing if it has a type. */
export function presetOf(name: string, { type }: { type?: unknown }): Partial<Preset> {
  return type === undefined && Object.hasOwn(presets, name) ? presets[name]! : {};
}
