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

export const embeddingsPaths = { client: "/v1/embeddings", upstream: "/embeddings" } as const;
