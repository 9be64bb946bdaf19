/** Anthropic's own token counter, which needs no Copilot account: POST /v1/messages/count_tokens. */

import { readEffects } from "./faults";
import { messages } from "./messages";
import type { Model } from "./model";
import { promptTokens } from "./scripted-replies";
import type { DemoState } from "./state";
import { anthropicInvalid, type Json, plain, string } from "./wire";

/** The only key that it accepts. */
export const anthropicKey = "sk-ant-demo-0000";

/** Requests per minute for a key of the first tier. */
const perMinute = 100;

const counted = new Set(
  "model messages system tools tool_choice thinking mcp_servers context_management output_config".split(" "),
);

export function countTokens(demo: DemoState, headers: Record<string, string>, body: Json): Response {
  if (headers["x-api-key"] === undefined) throw plain(404, "404 page not found");
  if (headers["x-api-key"] !== anthropicKey) throw anthropicInvalid("invalid x-api-key", 401, "authentication_error");
  if (!headers["anthropic-version"]) throw anthropicInvalid("anthropic-version: header is required");
  const ask = messages.read(body);
  const { instead } = readEffects(demo, ask.prompt, "", messages.path);
  if (instead) throw instead;
  const now = demo.now();
  demo.counted = [...demo.counted.filter((at) => now - at < 60_000), now];
  if (demo.counted.length > perMinute) {
    const limited = anthropicInvalid(
      "This request would exceed your organization's rate limit.",
      429,
      "rate_limit_error",
    );
    limited.headers["retry-after"] = "60";
    throw limited;
  }
  refuseOthers(body);
  if (!/^claude-[a-z0-9-]+$/.test(string(body.model)))
    throw anthropicInvalid(`model: ${string(body.model)}`, 404, "not_found_error");
  return Response.json({ input_tokens: promptTokens(ask, ask.model) });
}

/** The same at the model host, which knows the model by its own name. */
export function countForModel({ id }: Model, body: Json): Response {
  refuseOthers(body);
  return Response.json({ input_tokens: promptTokens(messages.read(body), id) });
}

function refuseOthers(body: Json): void {
  const odd = Object.keys(body).find((name) => !counted.has(name));
  if (odd) throw anthropicInvalid(`${odd}: Extra inputs are not permitted`);
}
