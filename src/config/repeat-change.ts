/** Changes that depend on what the config holds now, such as adding to a list. */
import { ProxyError } from "../lib/errors";
import type { Stored } from "./patch";
import type { ConfigStore } from "./store";

const maxAttempts = 10;

/**
 * Changes the config by a patch that is made from its present content. Another change at the same moment means another try.
 * @param patchFor Called with the config as it is now; throws to refuse the change.
 * @throws ProxyError as `ConfigStore.change`
 */
export async function repeatChange(
  config: ConfigStore,
  patchFor: (config: Pick<ConfigStore, "current" | "stored">) => Stored,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    await config.reload();
    const { revision } = config;
    const patch = patchFor(config);
    try {
      return await config.change(patch, { revision });
    } catch (thrown) {
      const isStale = thrown instanceof ProxyError && thrown.kind === "conflict" && config.fault === undefined;
      if (!isStale || attempt === maxAttempts) throw thrown;
    }
  }
}
