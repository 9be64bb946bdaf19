/** The model list of each account, cached. One fetch runs per account at a time, however many requests need the list. */

import type { Account } from "../accounts/account";
import { isSuspension } from "../accounts/suspension";
import { dayMs } from "../format";
import type { Logger } from "../logger";
import { picksNone } from "./auto-model";
import type { Model } from "./model";
import { fetchModelList, type ModelListOptions } from "./model-list";

export interface CachedModelList {
  /** Those of the last list, and those of earlier ones that are kept. */
  models: Model[];
  /** When each model was last listed, as a ms timestamp. */
  lastListed: ReadonlyMap<string, number>;
  /** Ids of the enabled models. */
  enabled: ReadonlySet<string>;
  /** By its flags, the account has nothing but Auto: no chat model is picked. */
  isAutoOnly: boolean;
  fetchedAt: number;
}

export interface ModelListCache {
  /** The cached list, however old; undefined if none was fetched yet. */
  get(account: Account): CachedModelList | undefined;
  /**
   * A list for requests. A cached one is returned at once for up to a day; after 10 minutes a new one is fetched in the
   * background. An older one is returned only if a new one cannot be fetched.
   * @throws ProxyError if no list can be fetched and none is cached
   */
  load(account: Account): Promise<CachedModelList>;
  /** A list that is at most 10 s old. @throws ProxyError if it cannot be fetched */
  loadCurrent(account: Account): Promise<CachedModelList>;
  /**
   * A list that is fetched for a name that no list has, because lists differ from call to call: at most one a minute,
   * however many names are missing; undefined if it is not time for one, or it cannot be fetched.
   */
  loadForMissing(account: Account): Promise<CachedModelList | undefined>;
  isFresh(list: CachedModelList): boolean;
  /** Milliseconds. */
  ageOf(list: CachedModelList): number;
  /** Milliseconds since the first of the fetches that are still running; 0 if none is. */
  waitedFor(accounts: readonly Account[]): number;
  /** A new list is fetched at the next use. */
  expire(account: Account): void;
  /** The account was refused this model: it is not kept any longer if the last list lacks it. */
  drop(account: Account, modelId: string): void;
}

export interface ModelListCacheOptions extends ModelListOptions {
  accounts(): Account[];
  logger: Logger;
}

/** Milliseconds. */
const currentFor = 10_000;
const freshFor = 10 * 60_000;
const usableFor = dayMs;
const retryAfter = 30_000;
const missingAgainAfter = 60_000;
/** Lists of one account differ from call to call, and a model that one of them lacks serves (zed, 2026-09). */
const keepAbsentFor = dayMs;

export function openModelListCache(options: ModelListCacheOptions): ModelListCache {
  const { accounts, logger, now } = options;
  const lists = new WeakMap<Account, CachedModelList>();
  /** `since` is a time of the monotonic clock. */
  const fetches = new WeakMap<Account, { list: Promise<CachedModelList>; since: number }>();
  const failures = new WeakMap<Account, { at: number; thrown: unknown }>();
  /** The last fetch for a missing name. Whoever misses another one meanwhile waits for the same list. */
  const extra = new WeakMap<Account, { at: number; list: Promise<CachedModelList | undefined> }>();

  /** If the clock was set back, a list does not become younger. */
  const ageOf = (list: CachedModelList) => Math.abs(now() - list.fetchedAt);

  function fetchOnce(account: Account): Promise<CachedModelList> {
    const running = fetches.get(account);
    if (running) return running.list;
    const list = fetchModelList(account, options)
      .then((models) => keep(account, models))
      .catch((thrown) => {
        failures.set(account, { at: now(), thrown });
        // The change of the account's state is in the log already.
        if (account.state.name !== "failed" && !isSuspension(thrown))
          logger.warn(`The model list of ${account.id} could not be fetched.`, thrown);
        throw thrown;
      })
      .finally(() => fetches.delete(account));
    fetches.set(account, { list, since: performance.now() });
    return list;
  }

  /** Ids of models that the log has named. */
  const warned = new Set<string>();

  function keep(account: Account, models: Model[]): CachedModelList {
    warnOfUnknownBoundaries(models);
    const list = withKept(models, lists.get(account));
    lists.set(account, list);
    return list;
  }

  /** The list, and after it the models of the earlier one that it lacks. */
  function withKept(listed: Model[], earlier: CachedModelList | undefined): CachedModelList {
    const lastListed = new Map(listed.map(({ id }) => [id, now()]));
    const kept: Model[] = [];
    for (const model of earlier?.models ?? []) {
      if (lastListed.has(model.id)) continue;
      // If the clock was set back, the time of keeping begins anew.
      const seenAt = Math.min(earlier?.lastListed.get(model.id) ?? 0, now());
      if (now() - seenAt >= keepAbsentFor) continue;
      lastListed.set(model.id, seenAt);
      kept.push({ ...model, isAbsent: true });
    }
    return listOf([...listed, ...kept], lastListed, now());
  }

  function warnOfUnknownBoundaries(models: Model[]): void {
    const found = models.filter(({ id, price }) => price.isBoundaryUnknown && !warned.has(id)).map(({ id }) => id);
    if (found.length === 0) return;
    for (const id of found) warned.add(id);
    logger.warn(
      `GitHub Copilot lists a dearer price for long prompts of ${found.join(", ")}, but not from where on. Costs are computed with the dearer price, and long prompts are not refused: maxPromptTokens of the config can set where.`,
    );
  }

  return {
    get: (account) => lists.get(account),
    async load(account) {
      const cached = lists.get(account);
      if (cached && ageOf(cached) < freshFor) return cached;
      const failure = failures.get(account);
      if (failure && now() - failure.at < retryAfter) {
        if (cached) return cached;
        // Without the models of this account, requests are served by the others.
        if (accounts().some((other) => lists.has(other))) throw failure.thrown;
      }
      const fetched = fetchOnce(account);
      if (!cached) return fetched;
      const list = fetched.catch(() => cached); // already in the log
      return ageOf(cached) < usableFor ? cached : list;
    },
    async loadCurrent(account) {
      const cached = lists.get(account);
      return cached && ageOf(cached) < currentFor ? cached : fetchOnce(account);
    },
    async loadForMissing(account) {
      const last = extra.get(account);
      if (last && Math.abs(now() - last.at) < missingAgainAfter) return fetches.has(account) ? last.list : undefined;
      const list = fetchOnce(account).catch(() => undefined); // already in the log
      extra.set(account, { at: now(), list });
      return list;
    },
    isFresh: (list) => ageOf(list) < freshFor,
    ageOf,
    waitedFor(of) {
      const since = of.map((account) => fetches.get(account)?.since ?? Infinity);
      return Math.max(0, performance.now() - Math.min(...since));
    },
    drop(account, modelId) {
      const list = lists.get(account);
      if (!list?.models.some(({ id, isAbsent }) => id === modelId && isAbsent)) return;
      const models = list.models.filter(({ id }) => id !== modelId);
      lists.set(account, listOf(models, list.lastListed, list.fetchedAt));
    },
    expire(account) {
      const list = lists.get(account);
      if (list) list.fetchedAt = Math.min(list.fetchedAt, now() - freshFor);
    },
  };
}

const listOf = (models: Model[], lastListed: CachedModelList["lastListed"], fetchedAt: number): CachedModelList => ({
  models,
  lastListed,
  enabled: new Set(models.filter((model) => model.enabled).map(({ id }) => id)),
  isAutoOnly: picksNone(models),
  fetchedAt,
});
