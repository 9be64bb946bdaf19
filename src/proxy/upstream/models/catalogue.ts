/** The models of all accounts. No model id is known in advance: the lists of the upstream decide. */

import { isSameList } from "../../../dialects/hub/lists";
import { settledInTime } from "../../../lib/net/time-limit";
import type { Account } from "../../../people/accounts/account";
import type { Pool } from "../../../people/accounts/pool";
import type { Auto } from "../copilot/auto";
import { autoModels, hasOnlyAuto, isAutoName, mayHaveOnlyAuto } from "../copilot/auto-model";
import { DeniedModels } from "./denied-models";
import type { Model } from "./model";
import { type CachedModelList, ModelListCache, type ModelListCacheOptions } from "./model-list-cache";

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

export class Catalogue {
  /** The models that accounts were refused though they are listed. */
  readonly denials: DeniedModels;
  readonly #cache: ModelListCache;
  #union: { of: List[]; models: Model[]; revision?: number } = { of: [], models: [] };

  constructor(private readonly options: CatalogueOptions) {
    this.denials = new DeniedModels(options);
    this.#cache = new ModelListCache(options);
  }

  /**
   * The models of all accounts: each id once, in the upstream's order, enabled if one account has it enabled. For
   * requests: cached lists are used, and an account whose list takes long is left out for now.
   * @throws ProxyError if no account's list can be fetched and none is cached
   */
  async models(): Promise<Model[]> {
    const present = this.presentModels();
    if (present) return present;
    const all = this.#signedIn();
    const others = Math.max(0, othersTimeoutMs - this.#cache.longestWait(all));
    const results = await settledInTime(
      all.map((account) => this.#cache.load(account)),
      { others },
    );
    const models = this.#unionOf(results.map(listIn));
    if (models.length === 0) throwFirst(results);
    return models;
  }

  /**
   * The same as {@link models} for a name that they lack, after one more look at the upstream; undefined if there was no
   * other look within the last minute to take, or none succeeded.
   */
  async modelsForMissing(): Promise<Model[] | undefined> {
    const results = await settledInTime(
      this.options.accounts().map((account) => this.#cache.loadForMissing(account)),
      { others: othersTimeoutMs, total: othersTimeoutMs },
    );
    const isNew = results.some((result) => result?.status === "fulfilled" && result.value !== undefined);
    return isNew ? this.knownModels() : undefined;
  }

  /** The models of the last lists, however old those are; none as long as there is no list. */
  knownModels(): Model[] {
    return this.#unionOf(this.options.accounts().map((account) => this.#cache.get(account)));
  }

  /** The result of {@link models} if all lists are fresh; undefined if it has to be awaited. */
  presentModels(): Model[] | undefined {
    const lists: List[] = [];
    for (const account of this.options.accounts()) {
      const list = this.#cache.fresh(account);
      if (list === undefined) return undefined;
      lists.push(list);
    }
    return lists.length === 0 ? undefined : this.#unionOf(lists);
  }

  /** Loads the list of one account, unless it is cached. @throws ProxyError if it cannot be fetched */
  async load(account: Account): Promise<void> {
    await this.#cache.load(account);
  }

  /** The same as {@link models}, at most 10 s old. @throws as {@link models} */
  async current(): Promise<CurrentModels> {
    const all = this.#signedIn();
    const total = all.some((account) => this.#cache.get(account)) ? currentTimeoutMs : undefined;
    const results = await settledInTime(
      all.map((account) => this.#cache.loadCurrent(account)),
      { others: othersTimeoutMs, total },
    );
    const loaded = all.map((account, at) => ({ account, list: listIn(results[at]) }));
    // A failed account has no models, unless all accounts have failed.
    const usable = loaded.filter(({ account, list }) => list || account.state.name !== "failed");
    const counted = usable.length > 0 ? usable : loaded;
    const models = this.#unionOf(counted.map(({ account, list }) => list ?? this.#cache.get(account)));
    if (models.length === 0) throwFirst(results);
    const listed = counted.filter(({ account }) => this.#cache.get(account));
    return {
      models,
      stale: counted.some(({ list }) => !list),
      age: Math.max(0, ...listed.map(({ account }) => this.#cache.ageOf(account))),
    };
  }

  /**
   * Whether the account has the model enabled; true as long as its list is unknown. An account that was refused the model
   * is passed over only while another one offers it: a refusal costs nothing, and says why.
   */
  offers(account: Account, modelId: string): boolean {
    if (isAutoName(modelId)) return this.#offersAuto(account);
    if (!this.#lists(account, modelId)) return false;
    return !this.denials.isDenied(account, modelId) || !this.#isOfferedBesides(account, modelId);
  }

  #isOfferedBesides(account: Account, modelId: string): boolean {
    const others = this.options.accounts().filter((other) => other !== account);
    return others.some((other) => this.#lists(other, modelId) && !this.denials.isDenied(other, modelId));
  }

  /** Whether the account's list has the model enabled; true as long as it is unknown. */
  #lists(account: Account, modelId: string): boolean {
    return this.#cache.get(account)?.enabled.has(modelId) ?? true;
  }

  /** The account was refused the model: if its last list lacks it, it is not kept any longer. */
  drop(account: Account, modelId: string): void {
    this.#cache.drop(account, modelId);
  }

  /** What the account lists; nothing as long as its list is unknown. */
  listOf(account: Account): readonly Model[] {
    return this.#cache.get(account)?.models ?? [];
  }

  /** Whether the account has nothing but Auto, so that named models are refused; false as long as its list is unknown. */
  isAutoOnly(account: Account): boolean {
    return hasOnlyAuto(account, this.#signsOf(account));
  }

  /** Whether the account may have nothing but Auto, for what costs nothing where it has more. */
  mayBeAutoOnly(account: Account): boolean {
    return mayHaveOnlyAuto(account, this.#signsOf(account));
  }

  #signsOf(account: Account) {
    const picksNone = this.#cache.get(account)?.picksNone ?? false;
    return { picksNone, refusesNames: this.denials.refusesNames(account) };
  }

  /** As far as it is known without sending a prompt. */
  #offersAuto(account: Account): boolean {
    const hasDiscounts = () => this.listOf(account).some(({ autoDiscount }) => autoDiscount !== undefined);
    return this.options.auto?.worksFor(account) ?? (this.mayBeAutoOnly(account) || hasDiscounts());
  }

  /** Made again only if one of the lists has changed, or what is known of Auto. */
  #unionOf(of: List[]): Model[] {
    const { accounts, auto } = this.options;
    const isSame = isSameList(of, this.#union.of) && this.#union.revision === auto?.revision;
    if (!isSame) {
      const models = unite(of);
      if (accounts().some((account) => this.#offersAuto(account))) models.push(...autoModels(models));
      this.#union = { of, models, revision: auto?.revision };
    }
    return this.#union.models;
  }

  #signedIn(): Account[] {
    const all = this.options.accounts();
    if (all.length === 0) throw this.options.pool.whyNone();
    return all;
  }
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
