/** Anthropic's own token counter, which needs no Copilot account: `POST /v1/messages/count_tokens` of api.anthropic.com. */

/** The only key that it accepts. */
export const anthropicKey = "sk-ant-demo-0000";
/** What it answers every request that it accepts. */
export const countedTokens = 1_234;
/** A key of the first tier may ask so often in a minute, which is longer than a test. */
const perMinute = 100;

const fields = new Set(
  "model messages system tools tool_choice thinking mcp_servers context_management output_config".split(" "),
);

interface Asked {
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

export interface AnthropicCounter extends AsyncDisposable {
  url: string;
  /** All requests, in order. */
  asked: Asked[];
  /** What the next requests get instead. */
  next: (() => Response | Promise<Response>)[];
}

export function startCounter(): AnthropicCounter {
  const asked: Asked[] = [];
  const next: AnthropicCounter["next"] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const headers = Object.fromEntries(request.headers);
      asked.push({ headers, body: (await request.json()) as Asked["body"] });
      return next.shift()?.() ?? answer(asked);
    },
  });
  return { url: server.url.origin, asked, next, [Symbol.asyncDispose]: () => server.stop(true) };
}

function answer(asked: Asked[]): Response {
  const { headers, body } = asked.at(-1)!;
  const odd = Object.keys(body).find((name) => !fields.has(name));
  if (headers["x-api-key"] !== anthropicKey) return refusal(401, "authentication_error", "invalid x-api-key");
  if (!headers["anthropic-version"])
    return refusal(400, "invalid_request_error", "anthropic-version: header is required");
  if (asked.length > perMinute)
    return refusal(429, "rate_limit_error", "This request would exceed your organization's rate limit.");
  if (odd) return refusal(400, "invalid_request_error", `${odd}: Extra inputs are not permitted`);
  return /^claude-[a-z0-9-]+$/.test(String(body.model))
    ? Response.json({ input_tokens: countedTokens })
    : refusal(404, "not_found_error", `model: ${body.model}`);
}

const refusal = (status: number, type: string, message: string) =>
  Response.json(
    { type: "error", error: { type, message } },
    { status, headers: status === 429 ? { "retry-after": "60" } : {} },
  );
