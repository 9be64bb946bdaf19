/** The model list of each account, cached, with the models that only an earlier list had. */

import { dayMs } from "../../../lib/format";
import type { Logger } from "../../../lib/logger";
import type { Account } from "../../../people/accounts/account";
import { isSuspension } from "../../../people/accounts/suspension";
import { picksNone } from "../copilot/auto-model";
import { ListCache } from "./list-cache";
import type { Model } from "./model";
import { fetchModelList, type ModelListOptions } from "./model-list";

export interface CachedModelList {
  /** Those of the last list, and those of earlier ones that are kept. */
  models: Model[];
  /** When each model was last listed, by the monotonic clock. */
  lastListed: ReadonlyMap<string, number>;
  /** Ids of the enabled models. */
  enabled: ReadonlySet<string>;
  /** By its flags, no chat model is picked. */
  picksNone: boolean;
}

export interface ModelListCacheOptions extends ModelListOptions {
  accounts(): Account[];
  logger: Logger;
  /** Milliseconds. */
  monotonic(): number;
}

/** Milliseconds. */
const currentFor = 10_000;
const missingAgainAfter = 60_000;
/** Lists of one account differ from call to call, and a model that one of them lacks serves (zed, 2026-09). */
const keepAbsentFor = dayMs;

export class ModelListCache extends ListCache<Account, CachedModelList> {
  readonly #options: ModelListCacheOptions;
  /** The last fetch for a missing name. Whoever misses another one meanwhile waits for the same list. */
  readonly #extra = new WeakMap<Account, { at: number; list: Promise<CachedModelList | undefined> }>();
  /** Ids of models that the log has named. */
  readonly #warned = new Set<string>();

  constructor(options: ModelListCacheOptions) {
    super(options.monotonic);
    this.#options = options;
  }

  /**
   * A list for requests. A cached one is returned at once for up to a day; after 10 minutes a new one is fetched in the
   * background. An older one is returned only if a new one cannot be fetched.
   * @throws ProxyError if no list can be fetched and none is cached
   */
  async load(account: Account): Promise<CachedModelList> {
    const fresh = this.fresh(account);
    if (fresh) return fresh;
    const cached = this.get(account);
    const failure = this.recentFailure(account);
    if (failure) {
      if (cached) return cached;
      // Without the models of this account, requests are served by the others.
      if (this.#options.accounts().some((other) => this.get(other))) throw failure.thrown;
    }
    const fetched = this.#fetch(account);
    if (!cached) return fetched;
    const list = fetched.catch(() => cached); // already in the log
    return this.isUsable(account) ? cached : list;
  }

  /** A list that is at most 10 s old. @throws ProxyError if it cannot be fetched */
  async loadCurrent(account: Account): Promise<CachedModelList> {
    const cached = this.get(account);
    return cached && this.ageOf(account) < currentFor ? cached : this.#fetch(account);
  }

  /**
   * A list that is fetched for a name that no list has, because lists differ from call to call: at most one a minute,
   * however many names are missing; undefined if it is not time for one, or it cannot be fetched.
   */
  async loadForMissing(account: Account): Promise<CachedModelList | undefined> {
    const now = this.#options.monotonic();
    const last = this.#extra.get(account);
    if (last && now - last.at < missingAgainAfter) return this.waitedFor(account) === undefined ? undefined : last.list;
    const list = this.#fetch(account).catch(() => undefined); // already in the log
    this.#extra.set(account, { at: now, list });
    return list;
  }

  /** Milliseconds since the first of the fetches that are still running; 0 if none is. */
  longestWait(accounts: readonly Account[]): number {
    return Math.max(0, ...accounts.map((account) => this.waitedFor(account) ?? 0));
  }

  /** The account was refused this model: it is not kept any longer if the last list lacks it. */
  drop(account: Account, modelId: string): void {
    const list = this.get(account);
    if (!list?.models.some(({ id, isAbsent }) => id === modelId && isAbsent)) return;
    const models = list.models.filter(({ id }) => id !== modelId);
    this.replace(account, listOf(models, list.lastListed));
  }

  #fetch(account: Account): Promise<CachedModelList> {
    return this.fetch(account, () => this.#listNow(account));
  }

  async #listNow(account: Account): Promise<CachedModelList> {
    try {
      const models = await fetchModelList(account, this.#options);
      this.#warnOfUnknownBoundaries(models);
      return this.#withKept(models, this.get(account));
    } catch (thrown) {
      // The change of the account's state is in the log already.
      if (account.state.name !== "failed" && !isSuspension(thrown))
        this.#options.logger.warn(`The model list of ${account.id} could not be fetched.`, thrown);
      throw thrown;
    }
  }

  /** The list, and after it the models of the earlier one that it lacks. */
  #withKept(listed: Model[], earlier: CachedModelList | undefined): CachedModelList {
    const now = this.#options.monotonic();
    const lastListed = new Map(listed.map(({ id }) => [id, now]));
    const kept: Model[] = [];
    for (const model of earlier?.models ?? []) {
      const seenAt = earlier!.lastListed.get(model.id)!;
      if (lastListed.has(model.id) || now - seenAt >= keepAbsentFor) continue;
      lastListed.set(model.id, seenAt);
      kept.push({ ...model, isAbsent: true });
    }
    return listOf([...listed, ...kept], lastListed);
  }

  #warnOfUnknownBoundaries(models: Model[]): void {
    const found = models
      .filter(({ id, price }) => price.isBoundaryUnknown && !this.#warned.has(id))
      .map(({ id }) => id);
    if (found.length === 0) return;
    for (const id of found) this.#warned.add(id);
    this.#options.logger.warn(
      `GitHub Copilot lists a dearer price for long prompts of ${found.join(", ")}, but not from where on. Costs are computed with the dearer price, and long prompts are not refused: maxPromptTokens of the config can set where.`,
    );
  }
}

const listOf = (models: Model[], lastListed: CachedModelList["lastListed"]): CachedModelList => ({
  models,
  lastListed,
  enabled: new Set(models.filter((model) => model.enabled).map(({ id }) => id)),
  picksNone: picksNone(models),
});
