/** Lets a command work with the stores while no server has to run. */

import type { Stores } from "../books/stores";
import type { Environment } from "../config/environment";
import { ensurePrivateFolder } from "../config/files";
import type { ConfigStore } from "../config/store";
import { openStores } from "../parts/open-stores";
import { say } from "./terminal";

/** Closes the data folder to others first, as a server does. @throws ProxyError as {@link ensurePrivateFolder} */
export async function withStores<T>(environment: Environment, work: (stores: Stores) => Promise<T>): Promise<T> {
  ensurePrivateFolder(environment.home, say);
  const stores = await openStores(environment, { follow: false });
  try {
    return await work(stores);
  } finally {
    await stores.close();
  }
}

/** The same with the stored config. */
export const withConfig = <T>(
  environment: Environment,
  work: (config: ConfigStore, stores: Stores) => Promise<T>,
): Promise<T> => withStores(environment, (stores) => work(stores.config, stores));
