/** Where each dialect is served: our paths for clients, and GitHub Copilot's for us. */

export const clientPaths = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
} as const;

/** Under the host of an account. Only the messages path carries a version. */
export const upstreamPaths = {
  chat: "/chat/completions",
  responses: "/responses",
  messages: "/v1/messages",
} as const satisfies Record<keyof typeof clientPaths, string>;

/** Continues with a model and a method: `/gemini-2.5-pro:generateContent`. No upstream has it. */
export const geminiPath = "/v1beta/models";

/** Where Google's packages from version 3 on expect the same. OpenAI's and Anthropic's list of models has this path too. */
export const modelsPath = "/v1/models";

/** For orchestrators and monitors: answered while running requests end, too. */
export const probePaths = { live: "/health/live", ready: "/health/ready" } as const;

export const metricsPath = "/metrics";

export const embeddingsPaths = { client: "/v1/embeddings", upstream: "/embeddings" } as const;

/** Where tools sign in as members, by Anthropic's gateway protocol. */
export const gatewayPaths = {
  discovery: "/.well-known/oauth-authorization-server",
  device: "/oauth/device_authorization",
  token: "/oauth/token",
  revoke: "/oauth/revoke",
  settings: "/managed/settings",
  usage: "/api/oauth/usage",
} as const;

/** Where clients of that protocol send their telemetry. */
export const telemetryPaths = { metrics: "/v1/metrics", logs: "/v1/logs", traces: "/v1/traces" } as const;
