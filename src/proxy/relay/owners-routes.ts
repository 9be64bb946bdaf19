/** The owner's routes: another model for requests of a kind that the client itself declares. Nothing is guessed. */
import { entryOf } from "../../lib/json";
import type { RequestScope } from "../scope";
import type { Exchange } from "./exchange";
import { type ChatTarget, presentTarget } from "./target";

/**
 * The model of the route for what the client says that the request is for. Undefined without a route, and where its model cannot
 * be used now or by the client's key: the client's own model serves then.
 */
export function routedTarget(parts: RequestScope, { book, dialect, facts, key }: Exchange): ChatTarget | undefined {
  const { routes } = parts.config.current;
  const { agentType } = book.hints;
  const names = facts.kind === undefined ? [] : [`${facts.kind}:${agentType}`, facts.kind];
  for (const name of names) {
    const model = entryOf(routes, name);
    if (model === undefined) continue;
    const target = presentOrNone(parts, model, dialect, key);
    return target && { ...target, route: name };
  }
}

function presentOrNone(...asked: Parameters<typeof presentTarget>): ChatTarget | undefined {
  try {
    return presentTarget(...asked);
  } catch {
    // The key may not use the model, or it is no chat model: `doctor` says so.
    return undefined;
  }
}
