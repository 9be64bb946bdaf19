/** A model list of our own choosing, over the scripted upstream. */
import type { Demo } from "../../src/upstream/demo/demo";

/** Which endpoints a model is listed with; models that are not named are not listed. */
export type Offers = Record<string, ("/chat/completions" | "/responses" | "/v1/messages")[]>;

/** From now on every account's list holds these models alone, each at these endpoints. */
export function offerOnly(demo: Demo, offers: Offers): void {
  demo.intercept(
    "/models",
    async ({ headers }) => {
      if (headers["x-whole-list"]) return undefined;
      const whole = await fetch(`${demo.url}/models`, { headers: { ...headers, "x-whole-list": "1" } });
      const { data, ...list } = (await whole.json()) as { data: { id: string }[] };
      const offered = data.flatMap((model) =>
        offers[model.id] ? [{ ...model, supported_endpoints: offers[model.id] }] : [],
      );
      return Response.json({ ...list, data: offered });
    },
    Number.POSITIVE_INFINITY,
  );
}
