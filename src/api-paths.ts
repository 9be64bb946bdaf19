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

/** For orchestrators and monitors: answered while running requests end, too. */
export const probePaths = { live: "/health/live", ready: "/health/ready" } as const;

export const embeddingsPaths = { client: "/v1/embeddings", upstream: "/embeddings" } as const;
