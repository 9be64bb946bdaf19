/**
 * The person's accounts, and everything that chooses among them. Nobody else's accounts can be reached from it. The owner has
 * one, and so has each member of a team.
 */

import type { Drift } from "../../books/changes/drift";
import type { Losses } from "../../books/changes/losses";
import type { Config } from "../../config/schema";
import type { Logger } from "../../lib/logger";
import type { CallLimits } from "../../lib/net/out/clock";
import type { Account } from "../../people/accounts/account";
import { type Breaker, openBreaker } from "../../people/accounts/breaker";
import { Pool } from "../../people/accounts/pool";
import type { Auto } from "./copilot/auto";
import type { Copilot } from "./copilot/copilot";
import { Catalogue } from "./models/catalogue";
import { openProviders, type Providers } from "./providers/provider";
import { ProviderModels } from "./providers/provider-models";

export interface Routing {
  /** Read it at use. */
  readonly accounts: Account[];
  pool: Pool;
  breaker: Breaker;
  catalogue: Catalogue;
  providers: Providers;
  providerModels: ProviderModels;
}

export interface RoutingParts {
  auto: Auto;
  config: { readonly current: Pick<Config, "freeModelRouting" | "providers"> };
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

/**
 * @param signInHint What to do while no account is signed in; by default what the owner does.
 * @param watched As in `Pool`.
 */
export function openRouting(
  parts: RoutingParts,
  accounts: () => Account[],
  signInHint?: string,
  watched?: () => Account[],
): Routing {
  const { auto, config, copilot, drift, losses, logger, version, limits, isShared, now, monotonic } = parts;
  const freeInOrder = () => config.current.freeModelRouting === "in-order";
  const pool = new Pool({ accounts, freeInOrder, isShared, signInHint, watched, now });
  const providers = openProviders(config, version, { now, monotonic });
  return {
    get accounts() {
      return accounts();
    },
    pool,
    breaker: openBreaker(accounts, now),
    providers,
    providerModels: new ProviderModels({ providers, logger, limits, monotonic }),
    catalogue: new Catalogue({
      accounts: () => unpaused(accounts()),
      pool,
      auto,
      copilot,
      logger,
      limits,
      now,
      monotonic,
      unknownField: (name) => drift.note("model field", name, "models"),
      inspect: (account, items) => losses.inspectModels(account, items),
    }),
  };
}

const whereToSignIn = "Sign in on the page Accounts of this dragoman: open /admin in a browser and enter your key.";

/** The same for whoever has none of the owner's providers: a member, or a request that is bound to accounts. */
export function openMemberRouting(
  parts: RoutingParts,
  accounts: () => Account[],
  signInHint = whereToSignIn,
  watched?: () => Account[],
): Routing {
  const config = {
    get current() {
      return { freeModelRouting: parts.config.current.freeModelRouting, providers: {} };
    },
  };
  return openRouting({ ...parts, config }, accounts, signInHint, watched);
}

const isUnpaused = (account: Account): boolean => !account.isPaused;

/** Models of paused accounts are not offered, unless all accounts are paused. */
function unpaused(accounts: Account[]): Account[] {
  if (accounts.every(isUnpaused)) return accounts;
  const others = accounts.filter(isUnpaused);
  return others.length === 0 ? accounts : others;
}
