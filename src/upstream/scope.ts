/**
 * What one person's requests may use: the person's accounts, and everything that chooses among them. Nobody else's accounts can
 * be reached from it. The owner has one, and so has each member of a team.
 */
import type { Account } from "../accounts/account";
import { type Breaker, openBreaker } from "../accounts/breaker";
import { Pool } from "../accounts/pool";
import type { Config } from "../config/schema";
import type { ConfigStore } from "../config/store";
import { entryOf } from "../json";
import type { Logger } from "../logger";
import type { CallLimits } from "../net/out/clock";
import type { Drift } from "./changes/drift";
import type { Losses } from "./changes/losses";
import type { Auto } from "./copilot/auto";
import type { Copilot } from "./copilot/copilot";
import { type Catalogue, openCatalogue } from "./models/catalogue";
import { openProviders, type Providers } from "./providers/provider";
import { openProviderModels, type ProviderModels } from "./providers/provider-models";

export interface Scope {
  /** Read it at use. */
  readonly accounts: Account[];
  config: ConfigStore;
  pool: Pool;
  breaker: Breaker;
  catalogue: Catalogue;
  providers: Providers;
  providerModels: ProviderModels;
}

interface ScopeParts {
  auto: Auto;
  config: ConfigStore;
  copilot: Copilot;
  drift: Drift;
  losses: Losses;
  logger: Logger;
  version: string;
  /** Of a call for a model list. */
  limits: CallLimits;
  /** Other servers have these accounts too. */
  isShared: boolean;
  now(): number;
  /** Milliseconds. */
  monotonic(): number;
}

/** @param signInHint What to do while no account is signed in; by default what the owner does. */
export function openScope(parts: ScopeParts, accounts: () => Account[], signInHint?: string): Scope {
  const { auto, config, copilot, drift, losses, logger, version, limits, isShared, now, monotonic } = parts;
  const freeInOrder = () => config.current.freeModelRouting === "in-order";
  const pool = new Pool({ accounts, freeInOrder, isShared, signInHint, now });
  const providers = openProviders(config, version, { now, monotonic });
  return {
    get accounts() {
      return accounts();
    },
    config,
    pool,
    breaker: openBreaker(accounts, now),
    providers,
    providerModels: openProviderModels({ providers, logger, limits, monotonic }),
    catalogue: openCatalogue({
      accounts: () => unpaused(accounts()),
      pool,
      auto,
      copilot,
      logger,
      limits,
      now,
      monotonic,
      unknownField: (name) => drift.note("model field", name, "models"),
      inspect: losses.inspectModels,
    }),
  };
}

const whereToSignIn = "Sign in on the page Accounts of this dragoman: open /admin in a browser and enter your key.";

/** The same for a member: without the owner's providers and keys, which cost the owner. */
export const openMemberScope = (parts: ScopeParts, accounts: () => Account[]): Scope =>
  openScope({ ...parts, config: withoutOwnersKeys(parts.config) }, accounts, whereToSignIn);

function withoutOwnersKeys(config: ConfigStore): ConfigStore {
  let made: { of: Config; current: Config } | undefined;
  return Object.create(config, {
    current: {
      get(): Config {
        const of = config.current;
        if (made?.of !== of) {
          const fallbacks = withoutProvided(of);
          made = { of, current: { ...of, fallbacks, providers: {}, anthropicApiKey: undefined } };
        }
        return made.current;
      },
    },
  });
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

/** Models of paused accounts are not offered, unless all accounts are paused. */
function unpaused(accounts: Account[]): Account[] {
  const others = accounts.filter(({ state }) => state.name !== "paused");
  return others.length === 0 ? accounts : others;
}
