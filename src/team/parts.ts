/** The parts that the stores in Postgres share. */
import type { Logger } from "../lib/logger";
import type { Seals } from "../lib/seals";
import type { Postgres } from "./connection";
import type { Stamps } from "./stamps";

export interface StoreParts {
  postgres: Postgres;
  seals: Seals;
  stamps: Stamps;
  /** Its level is that of the config, as soon as that is read. */
  logger: Logger;
}

/** The parts of a server that takes part in the team. A command that ends at once does not. */
export interface ServerParts extends StoreParts {
  /** The id of this server. */
  server: string;
}
