/** `GET /wait`: answers when a model can be served again, or when the caller has waited for long enough. */
import type { z } from "zod";
import type { Need } from "../accounts/pool";
import type { Scope } from "../app";
import type { KeyedCaller } from "../keys/client-keys";
import { chooseTarget, isAutoTarget, isProvided } from "../relay/target";
import type { waitQuery, waitSchema } from "./schemas";

/**
 * @param model Any model that costs quota, if it is not given.
 * @throws ProxyError `not_found` for an unknown model; why no account can serve if waiting does not help.
 */
export async function waitUntilServed(
  app: Scope,
  request: Request,
  key: KeyedCaller["key"],
  { model: name, seconds }: z.infer<ReturnType<typeof waitQuery>>,
): Promise<z.infer<ReturnType<typeof waitSchema>>> {
  const { pool, catalogue, waitingRoom } = app;
  const target = name === undefined ? undefined : await chooseTarget(app, name, "chat", key);
  const model = target?.model.id;
  // A provider of the owner's has no accounts, and Auto chooses among all models.
  if (target && isProvided(target)) return { model: model!, ready: true, ready_at: null };
  const need: Need =
    target && model !== undefined && !isAutoTarget(target)
      ? { premium: target.model.price.premium, model, capable: (account) => catalogue.offers(account, model) }
      : { premium: true };
  const left = await waitingRoom.look(() => pool.wait(need), seconds * 1_000, request.signal);
  if (left === undefined) throw pool.whyNone(need);
  return {
    model: model ?? null,
    ready: left === 0,
    ready_at: left === 0 ? null : new Date(app.now() + left).toISOString(),
  };
}
