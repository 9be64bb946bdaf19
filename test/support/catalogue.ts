/** A model list of our own choosing, over the scripted upstream. */
import type { Demo } from "../../src/demo/demo";

/** Which endpoints a model is listed with; models that are not named are not listed. */
export type Offers = Record<string, ("/chat/completions" | "/responses" | "/v1/messages")[]>;

/**
 * From now on every account's list holds these models alone, each at these endpoints.
 * @param times How many requests for a list; each of ours makes two.
 * @param limits Limits of each model that differ from those of the list.
 */
export function offerOnly(demo: Demo, offers: Offers, times = Number.POSITIVE_INFINITY, limits = {}): void {
  demo.intercept(
    "/models",
    async ({ headers }) => {
      if (headers["x-whole-list"]) return undefined;
      const whole = await fetch(`${demo.url}/models`, { headers: { ...headers, "x-whole-list": "1" } });
      const { data, ...list } = (await whole.json()) as { data: Listed[] };
      const offered = data.flatMap((model) => {
        const { id, capabilities } = model;
        const changed = { ...capabilities, limits: { ...capabilities.limits, ...limits } };
        return offers[id] ? [{ ...model, capabilities: changed, supported_endpoints: offers[id] }] : [];
      });
      return Response.json({ ...list, data: offered });
    },
    times,
  );
}

interface Listed {
  id: string;
  capabilities: { limits: object };
}
