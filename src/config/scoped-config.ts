/** What the requests of one person may read of the config. A key that is not listed here is the owner's alone. */
import { entryOf } from "../lib/json";
import type { Config } from "./schema";
import type { ConfigStore } from "./store";

/** None of them is a secret. */
const scopedKeys = [
  "retentionDays",
  "neverOverage",
  "accountAffinity",
  "autoWhenOnly",
  "modelAliases",
  "fallbacks",
  "routes",
  "freeModelRouting",
  "tokenEstimateMultiplier",
  "longestWaitMinutes",
  "maxPromptTokens",
  "useResponsesApiWebSearch",
  "webSearchModel",
  "whenLimited",
  "toolSearch",
  "promptCache",
  "claudeCodeSettings",
] as const satisfies (keyof Config)[];

type ScopedConfig = Pick<Config, (typeof scopedKeys)[number]>;

export interface ScopedConfigStore {
  /** Read it at each use: a change replaces the object. */
  readonly current: ScopedConfig;
}

/** What a member's requests read, who cannot use the owner's providers. */
export class MemberConfig implements ScopedConfigStore {
  readonly #config: Pick<ConfigStore, "current">;
  #made: { of: Config; current: ScopedConfig } | undefined;

  constructor(config: Pick<ConfigStore, "current">) {
    this.#config = config;
  }

  get current(): ScopedConfig {
    const of = this.#config.current;
    if (this.#made?.of !== of) {
      const allowed = Object.fromEntries(scopedKeys.map((key) => [key, of[key]])) as ScopedConfig;
      this.#made = { of, current: { ...allowed, fallbacks: withoutProvided(of) } };
    }
    return this.#made.current;
  }
}

/** The chains without models of providers: an error would name them to a member, who cannot use them. */
function withoutProvided({ fallbacks, modelAliases, providers }: Config): Config["fallbacks"] {
  const isProvided = (name: string): boolean =>
    [name, entryOf(modelAliases, name) ?? ""].some(
      (id) => id.includes("/") && Object.hasOwn(providers, id.split("/")[0]!),
    );
  const chains = Object.entries(fallbacks)
    .filter(([name]) => !isProvided(name))
    .map(([name, models]) => [name, models.filter((each) => !isProvided(each))] as const);
  return Object.fromEntries(chains.filter(([, models]) => models.length > 0));
}
