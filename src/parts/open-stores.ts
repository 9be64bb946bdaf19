/** Opens the stores that the environment names. */

import type { Stores, StoresOptions } from "../books/stores";
import type { Environment } from "../config/environment";
import { openLocalStores } from "./local-stores";

/** @throws ProxyError if the database cannot be used. */
export async function openStores(environment: Environment, options: StoresOptions): Promise<Stores> {
  if (environment.databaseUrl === undefined) return openLocalStores(environment, options);
  // Loaded only here: most starts have no database.
  const { openPostgresStores } = await import("../team/stores");
  return openPostgresStores(environment, options);
}
