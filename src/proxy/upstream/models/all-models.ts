/** The models of GitHub Copilot and of all providers together, for the lists. */
import { ProxyError } from "../../../lib/errors";
import type { ProviderModels } from "../providers/provider-models";
import type { Catalogue, CurrentModels } from "./catalogue";

interface Sources {
  catalogue: Pick<Catalogue, "current" | "models">;
  providerModels: Pick<ProviderModels, "all">;
}

/**
 * Copilot's models first. Providers serve also while no account can: then their models are the list.
 * @param copilot Which of Copilot's lists: at most 10 s old, or as requests use it.
 * @throws ProxyError if Copilot's list cannot be fetched, none is cached, and there is no provider's model.
 */
export async function allModels(
  { catalogue, providerModels }: Sources,
  copilot: "current" | "cached",
): Promise<CurrentModels> {
  const [own, provided] = await Promise.allSettled([
    copilot === "current"
      ? catalogue.current()
      : catalogue.models().then((models): CurrentModels => ({ models, stale: false, age: 0 })),
    providerModels.all(),
  ]);
  if (provided.status === "rejected") throw provided.reason;
  const { models, stale } = provided.value;
  if (own.status === "fulfilled")
    return models.length === 0 && !stale
      ? own.value
      : { ...own.value, models: [...own.value.models, ...models], stale: own.value.stale || stale };
  const isSignedOut = own.reason instanceof ProxyError && own.reason.details.code === "no_account";
  if (models.length === 0) throw own.reason;
  return { models, stale: stale || !isSignedOut, age: 0 };
}
