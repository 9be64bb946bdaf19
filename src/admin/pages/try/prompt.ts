/** The form of the page Try: a prompt for any model in any dialect, and the same as a command. */
import { z } from "zod";
import { shells } from "../../../clients/shells";
import { type ClientDialect, clientDialects } from "../../../dialects/hub/conversation";
import { samples } from "../../../dialects/samples";
import { parseInput } from "../../../lib/input";

const promptSchema = z.object({
  dialect: z.enum(clientDialects),
  model: z.string().trim().min(1, "choose a model").max(256),
  prompt: z.string().min(1, "enter a prompt").max(500_000),
  system: z.string().max(100_000).default(""),
  max_tokens: z.coerce.number().int().min(1).max(1_000_000),
});
type TriedPrompt = z.output<typeof promptSchema>;

/** @throws ProxyError `invalid_request`. */
export function readPrompt(form: URLSearchParams): TriedPrompt {
  return parseInput(Object.fromEntries(form), promptSchema);
}

/** The request in its dialect. */
export function requestOf({ dialect, model, prompt, system, max_tokens }: TriedPrompt) {
  const { path, headers, body, inAddress } = samples[dialect];
  return {
    path: path(model),
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body({ model, prompt, system, maxTokens: max_tokens })),
    inAddress: inAddress?.(model),
  };
}

/** @param origin Of dragoman, as the browser sees it. @param key What stands for a client key; undefined if none is needed. */
export function curlOf(prompt: TriedPrompt, origin: string, key: string | undefined): string {
  const { path, headers, body } = requestOf(prompt);
  const { word, more } = shells.bash;
  const named = Object.entries({ ...headers, ...(key !== undefined && { [keyHeaders[prompt.dialect]]: key }) });
  return [
    `curl -N ${word(origin + path)} ${named.map(([name, value]) => `-H ${word(`${name}: ${value}`)}`).join(" ")} ${more}`,
    `  --data-raw ${word(body)}`,
  ].join("\n");
}

const keyHeaders: Record<ClientDialect, string> = {
  chat: "x-api-key",
  responses: "x-api-key",
  messages: "x-api-key",
  gemini: "x-goog-api-key",
};
