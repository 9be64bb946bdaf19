/** The models of all accounts. No model id is known in advance: the lists of the upstream decide. */
import type { Account } from "../../accounts/account";
import type { Pool } from "../../accounts/pool";
import { settledInTime } from "../../net/time-limit";
import type { Auto } from "../copilot/auto";
import { autoId, autoModel, hasOnlyAuto } from "../copilot/auto-model";
import { DeniedModels } from "./denied-models";
import type { Model } from "./model";
import { type CachedModelList, ModelListCache, type ModelListCacheOptions } from "./model-list-cache";

export interface Catalogue {
  /**
   * The models of all accounts: each id once, in the upstream's order, enabled if one account has it enabled. For
   * requests: cached lists are used, and an account whose list takes long is left out for now.
   * @throws ProxyError if no account's list can be fetched and none is cached
   */
  models(): Promise<Model[]>;
  /**
   * The same as {@link models} for a name that they lack, after one more look at the upstream; undefined if there was no
   * other look within the last minute to take, or none succeeded.
   */
  modelsForMissing(): Promise<Model[] | undefined>;
  /** The result of {@link models} if all lists are fresh; undefined if it has to be awaited. */
  presentModels(): Model[] | undefined;
  /** Loads the list of one account, unless it is cached. @throws ProxyError if it cannot be fetched */
  load(account: Account): Promise<void>;
  /** The same as {@link models}, at most 10 s old. @throws as {@link models} */
  current(): Promise<CurrentModels>;
  /**
   * Whether the account has the model enabled; true as long as its list is unknown. An account that was refused the model
   * is passed over only while another one offers it: a refusal costs nothing, and says why.
   */
  offers(account: Account, modelId: string): boolean;
  /** The models that accounts were refused though they are listed. */
  denials: DeniedModels;
  /** The account was refused the model: if its last list lacks it, it is not kept any longer. */
  drop(account: Account, modelId: string): void;
  /** What the account lists; nothing as long as its list is unknown. */
  listOf(account: Account): readonly Model[];
  /** Whether the account has nothing but Auto, so that named models are refused; false as long as its list is unknown. */
  isAutoOnly(account: Account): boolean;
}

export interface CurrentModels {
  models: Model[];
  /** The list of at least one account could not be fetched now: its cached list is used, if there is one. */
  stale: boolean;
  /** Age of the oldest list in milliseconds. */
  age: number;
}

interface CatalogueOptions extends ModelListCacheOptions {
  /** For the error if no account is signed in. */
  pool: Pick<Pool, "whyNone">;
  /** What was found out by asking for Auto; else only the lists tell who has it. */
  auto?: Pick<Auto, "revision" | "worksFor">;
}

/** Milliseconds until {@link Catalogue.current} uses the cached lists. */
const currentTimeoutMs = 10_000;
/** Milliseconds that the other lists get after the first one: an account that cannot be asked must not delay the rest. */
const othersTimeoutMs = 3_000;

type List = CachedModelList | undefined;

export function openCatalogue({ pool, auto, ...options }: CatalogueOptions): Catalogue {
  const { accounts } = options;
  const cache = new ModelListCache(options);
  const denials = new DeniedModels(options);
  const lists = (account: Account, modelId: string) => cache.get(account)?.enabled.has(modelId) ?? true;
  const mayServe = (account: Account, modelId: string) =>
    lists(account, modelId) && !denials.isDenied(account, modelId);
  let union: { of: List[]; models: Model[]; revision?: number } = { of: [], models: [] };

  /** Made again only if one of the lists has changed, or what is known of Auto. */
  function unionOf(of: List[]): Model[] {
    const isChanged = of.length !== union.of.length || of.some((list, at) => list !== union.of[at]);
    if (isChanged || union.revision !== auto?.revision) {
      const models = unite(of);
      if (accounts().some(offersAuto)) models.push(autoModel(models));
      union = { of, models, revision: auto?.revision };
    }
    return union.models;
  }

  const listsOf = (all: Account[]): List[] => all.map((account) => cache.get(account));

  const isAutoOnly = (account: Account) => hasOnlyAuto(account, cache.get(account)?.isAutoOnly ?? false);

  /** As far as it is known without sending a prompt. */
  const offersAuto = (account: Account) =>
    auto?.worksFor(account) ??
    (isAutoOnly(account) || cache.get(account)?.models.some(({ autoDiscount }) => autoDiscount !== undefined) === true);

  function signedIn(): Account[] {
    const all = accounts();
    if (all.length === 0) throw pool.whyNone();
    return all;
  }

  return {
    async models() {
      const all = signedIn();
      if (all.every((account) => cache.isFresh(account))) return unionOf(listsOf(all));
      const others = Math.max(0, othersTimeoutMs - cache.waitedFor(all));
      const results = await settledInTime(
        all.map((account) => cache.load(account)),
        { others },
      );
      const models = unionOf(results.map(listIn));
      if (models.length === 0) throwFirst(results);
      return models;
    },
    async modelsForMissing() {
      const results = await settledInTime(
        accounts().map((account) => cache.loadForMissing(account)),
        { others: othersTimeoutMs, total: othersTimeoutMs },
      );
      const isNew = results.some((result) => result?.status === "fulfilled" && result.value !== undefined);
      return isNew ? unionOf(listsOf(accounts())) : undefined;
    },
    presentModels() {
      const all = accounts();
      const isPresent = (account: Account, at: number) => {
        const list = cache.get(account);
        return list !== undefined && list === union.of[at] && cache.isFresh(account);
      };
      if (all.length === 0 || all.length !== union.of.length || !all.every(isPresent)) return undefined;
      return unionOf(union.of);
    },
    async load(account) {
      await cache.load(account);
    },
    async current() {
      const all = signedIn();
      const total = all.some((account) => cache.get(account)) ? currentTimeoutMs : undefined;
      const results = await settledInTime(
        all.map((account) => cache.loadCurrent(account)),
        { others: othersTimeoutMs, total },
      );
      const loaded = all.map((account, at) => ({ account, list: listIn(results[at]) }));
      // A failed account has no models, unless all accounts have failed.
      const usable = loaded.filter(({ account, list }) => list || account.state.name !== "failed");
      const counted = usable.length > 0 ? usable : loaded;
      const lists = counted.map(({ account, list }) => list ?? cache.get(account));
      const models = unionOf(lists);
      if (models.length === 0) throwFirst(results);
      return {
        models,
        stale: counted.some(({ list }) => !list),
        age: Math.max(...counted.map(({ account }) => cache.ageOf(account))),
      };
    },
    offers: (account, modelId) =>
      modelId === autoId
        ? offersAuto(account)
        : mayServe(account, modelId) ||
          (lists(account, modelId) && !accounts().some((other) => other !== account && mayServe(other, modelId))),
    denials,
    drop: (account, modelId) => cache.drop(account, modelId),
    listOf: (account) => cache.get(account)?.models ?? [],
    isAutoOnly,
  };
}

function unite(lists: List[]): Model[] {
  const union = new Map<string, Model>();
  for (const list of lists)
    for (const model of list?.models ?? []) if (isBetter(model, union.get(model.id))) union.set(model.id, model);
  return [...union.values()];
}

/** An enabled model counts before one that is not, and one that is listed now before one that was. */
function isBetter(model: Model, known: Model | undefined): boolean {
  if (!known || model.enabled !== known.enabled) return !known || model.enabled;
  return known.isAbsent === true && !model.isAbsent;
}

type Settled = PromiseSettledResult<CachedModelList> | undefined;

const listIn = (result: Settled): List => (result?.status === "fulfilled" ? result.value : undefined);

function throwFirst(results: Settled[]): void {
  for (const result of results) if (result?.status === "rejected") throw result.reason;
}
