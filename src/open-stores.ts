/** Opens the stores that the environment names. */
import type { Environment } from "./config/environment";
import { openLocalStores } from "./local-stores";
import type { Stores } from "./stores";

/**
 * @param follow Whether changes by other servers are followed; a command that ends at once need not.
 * @throws ProxyError if the database cannot be used.
 */
export async function openStores(environment: Environment, { follow }: { follow: boolean }): Promise<Stores> {
  if (environment.databaseUrl === undefined) return openLocalStores(environment);
  // Loaded only here: most starts have no database.
  const { openPostgresStores } = await import("./team/stores");
  return openPostgresStores(environment, { follow });
}
