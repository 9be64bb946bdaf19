/** Lets a command work with the stores while no server has to run. */
import type { Environment } from "../config/environment";
import { openStores } from "../storage/open";
import type { Stores } from "../storage/stores";

export async function withStores<T>(environment: Environment, work: (stores: Stores) => Promise<T>): Promise<T> {
  const stores = await openStores(environment, { follow: false });
  try {
    return await work(stores);
  } finally {
    await stores.close();
  }
}
