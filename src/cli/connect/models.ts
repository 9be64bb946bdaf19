/** The models a set-up can name, as the running server lists them to its clients. */
import { z } from "zod";
import { type Choice, type ClientModel, chooseModels, isPlain } from "../../clients/models";
import { ProxyError } from "../../errors";
import { findModel } from "../../upstream/model-name";
import { ask, type RunningServer, readAs } from "../running-server";
import { UsageError } from "../usage-error";

const tokens = z.number().nullable();

const listed = z.object({
  id: z.string(),
  display_name: z.string(),
  kind: z.string(),
  preview: z.boolean(),
  premium: z.boolean(),
  premium_units: z.number().nullable(),
  model_picker_enabled: z.boolean(),
  upstream_endpoints: z.array(z.string()),
  max_context_window_tokens: tokens,
  max_prompt_tokens: tokens,
  max_output_tokens: tokens,
  capabilities: z.object({
    tools: z.boolean(),
    vision: z.boolean(),
    adaptive_thinking: z.boolean(),
    thinking_budget: z.unknown(),
    reasoning_efforts: z.array(z.string()),
  }),
});
type Listed = z.infer<typeof listed>;

export interface Offer {
  /** All that can be called, also those that GitHub's own picker hides. */
  offered: readonly ClientModel[];
  choice: Choice;
}

/** @throws ProxyError when none of them can serve an agent. */
export async function modelsOf(server: RunningServer): Promise<Offer> {
  const { data } = readAs(z.object({ data: z.array(listed) }), await ask(server, { path: "/v1/models" }), server);
  const offered = data.filter((each) => each.kind === "chat" && isPlain(each)).map(asModel);
  const choice = chooseModels(offered);
  if (choice) return { offered, choice };
  throw new ProxyError("upstream", `The server at ${server.url} offers no model that an agent can use.`);
}

function asModel(listed: Listed): ClientModel {
  const { adaptive_thinking, thinking_budget, reasoning_efforts, tools, vision } = listed.capabilities;
  return {
    id: listed.id,
    name: listed.display_name,
    endpoints: listed.upstream_endpoints,
    premium: listed.premium,
    units: listed.premium_units,
    preview: listed.preview,
    picked: listed.model_picker_enabled,
    tools,
    vision,
    reasoning: adaptive_thinking || thinking_budget != null || reasoning_efforts.length > 0,
    context: listed.max_context_window_tokens ?? undefined,
    prompt: listed.max_prompt_tokens ?? undefined,
    output: listed.max_output_tokens ?? undefined,
  };
}

/** @throws UsageError with the nearest names. */
export function pick(named: string, offered: readonly ClientModel[]): ClientModel {
  try {
    return findModel(named, offered, {});
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    throw new UsageError(thrown.message.replace("GET /v1/models lists", "`dragoman models` lists"));
  }
}
