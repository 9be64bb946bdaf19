/**
 * A simulated GitHub and Copilot on loopback, with their wire formats, for `start --demo` and for the tests.
 * It deliberately shares no code with the dialects: the same mistake on both sides would be invisible.
 */
import { creditAccounts, type TeamNames, teamAccounts } from "./accounts";
import type { Model } from "./model";
import { listPrices } from "./models";
import { githubRoutes, modelRoutes } from "./routes";
import { listen } from "./server";
import { type DemoOptions, DemoState } from "./state";

export type { DemoOptions, Interceptor, SeenRequest } from "./state";

export class Demo extends DemoState {
  readonly #servers = [
    listen(this, "individual", [...githubRoutes, ...modelRoutes]),
    listen(this, "business", modelRoutes),
  ];

  constructor(options: DemoOptions) {
    super(options);
    const [individual = "", business = ""] = this.#servers.map(({ url }) => url.origin);
    this.urls = { individual, business };
  }

  /** What a model of the list costs that prices tokens. @throws Error if it is not there. */
  pricesOf(id: string): Model["prices"] {
    return listPrices(id);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop(true)));
  }
}

export const startDemo = (options: DemoOptions = {}): Demo => new Demo(options);

/** The one of `dragoman start --demo`. @param team The people of a team, if it is to have one. */
export const openDemo = (team?: TeamNames): Demo =>
  startDemo({ keep: 200, generation: "C", accounts: team ? teamAccounts(team) : creditAccounts() });
