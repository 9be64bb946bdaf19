/** What the stores in Postgres are made of. */
import type { Logger } from "../logger";
import type { Changes } from "./changes";
import type { Postgres } from "./connection";
import type { Seals } from "./seal";

export interface StoreParts {
  postgres: Postgres;
  seals: Seals;
  changes: Changes;
  /** Read at each use: its level is that of the config, which is read later. */
  logger(): Logger;
}

/** Of a server that takes part in the team; a command that ends at once does not. */
export interface ServerParts extends StoreParts {
  /** The id of this server. */
  replica: string;
}
