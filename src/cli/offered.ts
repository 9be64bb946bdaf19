/** The models a set-up can name, as the running server lists them to its clients. */
import { type Choice, chooseModels, isPlain, type Model } from "../clients/models";
import { ProxyError } from "../errors";
import { findModel } from "../upstream/model-name";
import { ask, type RunningServer } from "./server";
import { UsageError } from "./usage-error";

interface Listed {
  id: string;
  display_name: string;
  kind: string;
  preview: boolean;
  premium: boolean;
  premium_units: number | null;
  model_picker_enabled: boolean;
  upstream_endpoints: string[];
  max_context_window_tokens: number | null;
  max_prompt_tokens: number | null;
  max_output_tokens: number | null;
  capabilities: {
    tools: boolean;
    vision: boolean;
    adaptive_thinking: boolean;
    thinking_budget: object | null;
    reasoning_efforts: string[];
  };
}

export interface Offer {
  /** All that can be called, also those that GitHub's own picker hides. */
  offered: readonly Model[];
  choice: Choice;
}

/** @throws ProxyError when none of them can serve an agent. */
export async function modelsOf(server: RunningServer): Promise<Offer> {
  const { data } = (await ask(server, { path: "/v1/models" })) as { data: Listed[] };
  const offered = data.filter((each) => each.kind === "chat" && isPlain(each)).map(asModel);
  const choice = chooseModels(offered);
  if (choice) return { offered, choice };
  throw new ProxyError("upstream", `The server at ${server.url} offers no model that an agent can use.`);
}

function asModel(listed: Listed): Model {
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
    reasoning: adaptive_thinking || thinking_budget !== null || reasoning_efforts.length > 0,
    context: listed.max_context_window_tokens ?? undefined,
    prompt: listed.max_prompt_tokens ?? undefined,
    output: listed.max_output_tokens ?? undefined,
  };
}

/** @throws UsageError with the nearest names. */
export function pick(named: string, offered: readonly Model[]): Model {
  try {
    return findModel(named, offered, {});
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    throw new UsageError(thrown.message.replace("GET /v1/models lists", "`dragoman models` lists"));
  }
}
