/** The models of every account, cached: what the upstream lists decides everything, no id is known in advance. */

import type { Account, Session } from "../accounts/account";
import type { Pool } from "../accounts/pool";
import { isSuspension } from "../accounts/suspension";
import { ProxyError } from "../errors";
import { isObject, notJson, parseJson } from "../json";
import type { Logger } from "../logger";
import { readText } from "../net/body";
import type { CallLimits } from "../net/clock";
import type { Copilot } from "./copilot";
import { type Failure, readFailure } from "./failure";
import { type Model, readModel } from "./model";

export interface Catalogue {
  /**
   * The models of all accounts together, each id once, in the upstream's order; enabled where it is for one of them.
   * An account whose list is long in coming is left out for now. For requests: a remembered list serves at once.
   * @throws ProxyError when no account's list could be had and none is remembered.
   */
  models(): Promise<Model[]>;
  /** The same where all lists are fresh; else undefined, and {@link models} has to be awaited. */
  presentModels(): Model[] | undefined;
  /** Sees to it that the account's own list is known. @throws ProxyError when it cannot be had. */
  load(account: Account): Promise<void>;
  /**
   * The same as the upstream lists them now, asked for again after 10 s; one call per account, however many ask.
   * @throws As {@link models}.
   */
  current(): Promise<CurrentModels>;
  /** Whether the account's own list has the model, enabled; an account whose list is not known yet may have it. */
  offers(account: Account, modelId: string): boolean;
  /** Asks for fresh lists at the next use. */
  expire(): void;
}

export interface CurrentModels {
  models: Model[];
  /** The list of one account could not be had now: its last one is here, or none of it. */
  stale: boolean;
  /** Milliseconds since the oldest of the lists came. */
  age: number;
}

/** Milliseconds. */
const currentFor = 10_000;
/** How long somebody who wants the present list waits for it before the last one is given. */
const currentWithin = 10_000;
const freshFor = 10 * 60_000;
const usableFor = 24 * 3600_000;
const retryAfter = 30_000;
/** How long the lists that are there wait for the others: an account that cannot be asked must not hold up the rest. */
const othersTimeoutMs = 3_000;

interface List {
  models: Model[];
  /** Ids of the enabled ones. */
  enabled: ReadonlySet<string>;
  at: number;
}

/** @param pool Says why there is none when no account is signed in. */
export function openCatalogue(
  accounts: () => Account[],
  pool: Pick<Pool, "whyNone">,
  copilot: Copilot,
  logger: Logger,
  limits: CallLimits,
  now: () => number = Date.now,
): Catalogue {
  const lists = new WeakMap<Account, List>();
  const loading = new WeakMap<Account, Promise<List>>();
  /** By the clock that never jumps. */
  const loadingSince = new WeakMap<Account, number>();
  const failures = new WeakMap<Account, { at: number; thrown: unknown }>();
  let united: { of: (List | undefined)[]; models: Model[] } = { of: [], models: [] };

  /**
   * The account's list: a fresh one; else a stale one at once while a fresh one is fetched beside; after a day the fetched
   * one, or the old one still where none can be had.
   */
  async function listOf(account: Account): Promise<List> {
    const known = lists.get(account);
    if (known && ageOf(known) < freshFor) return known;
    const failure = failures.get(account);
    if (failure && now() - failure.at < retryAfter) {
      if (known) return known;
      // Its models are missing a while longer, but the others' requests go on.
      if (accounts().some((other) => lists.has(other))) throw failure.thrown;
    }
    const load = loading.get(account) ?? startLoading(account);
    if (known && ageOf(known) < usableFor) {
      load.catch(() => {}); // said in the log where it happened
      return known;
    }
    return known ? load.catch(() => known) : load;
  }

  /** The list as it is now, whatever became of the last try. */
  function currentListOf(account: Account): Promise<List> {
    const known = lists.get(account);
    if (known && ageOf(known) < currentFor) return Promise.resolve(known);
    return loading.get(account) ?? startLoading(account);
  }

  /** A clock that was set back makes no list younger. */
  const ageOf = (list: List) => Math.abs(now() - list.at);

  function startLoading(account: Account): Promise<List> {
    const load = fetchList(account)
      .then((models) => {
        const enabled = new Set(models.filter((model) => model.enabled).map(({ id }) => id));
        const list = { models, enabled, at: now() };
        lists.set(account, list);
        return list;
      })
      .catch((thrown) => {
        failures.set(account, { at: now(), thrown });
        // What the account's own state says already is not said twice.
        if (account.state.name !== "failed" && !isSuspension(thrown))
          logger.warn(`The model list of ${account.id} could not be fetched.`, thrown);
        throw thrown;
      })
      .finally(() => loading.delete(account));
    loading.set(account, load);
    loadingSince.set(account, performance.now());
    return load;
  }

  async function fetchList(account: Account): Promise<Model[]> {
    let session = await account.session();
    let response = await ask(session);
    if (response.status === 401) {
      session = await account.refresh(session);
      response = await ask(session);
    } else if (response.status === 421) {
      session = await account.relearnHost(session);
      response = await ask(session);
    }
    const body = await readText(response, 32 * 1024 * 1024);
    if (!response.ok) throw refusedBy(account, readFailure(response.status, response.headers, body, now()));
    return readList(body);
  }

  /** What the answer says of the account holds for its requests too: it is blocked, or a person must mend its sign-in. */
  function refusedBy(account: Account, { account: state, remedy, error }: Failure): ProxyError {
    if (state?.name === "failed") account.mark(state);
    // Fresh sessions are refused as well.
    else if (remedy === "refresh-session" && error.status === 503)
      account.mark({ name: "failed", reason: error.message });
    return error;
  }

  /** Made anew only when one of the lists is another. */
  function unite(of: (List | undefined)[]): Model[] {
    if (of.length === united.of.length && of.every((list, at) => list === united.of[at])) return united.models;
    const union = new Map<string, Model>();
    for (const list of of)
      for (const model of list?.models ?? [])
        if (!union.has(model.id) || (model.enabled && !union.get(model.id)!.enabled)) union.set(model.id, model);
    united = { of, models: [...union.values()] };
    return united.models;
  }

  const ask = (session: Session) =>
    copilot.call(session, { path: "/models", intent: "model-access", requestId: crypto.randomUUID(), limits });

  return {
    async models() {
      if (accounts().length === 0) throw pool.whyNone();
      const known = accounts().map((account) => lists.get(account));
      if (known.every((list) => list && ageOf(list) < freshFor)) return unite(known);
      const since = accounts().map((account) => (loading.has(account) ? loadingSince.get(account)! : Infinity));
      const waited = Math.max(0, performance.now() - Math.min(...since));
      const results = await settledWithin(accounts().map(listOf), Math.max(0, othersTimeoutMs - waited));
      const models = unite(results.map(({ list }) => list));
      const failure = results.find(({ thrown }) => thrown !== undefined);
      if (models.length === 0 && failure) throw failure.thrown;
      return models;
    },
    presentModels() {
      const asked = accounts();
      const isPresent = (account: Account, at: number) => {
        const list = lists.get(account);
        return list !== undefined && list === united.of[at] && ageOf(list) < freshFor;
      };
      return asked.length > 0 && asked.length === united.of.length && asked.every(isPresent)
        ? united.models
        : undefined;
    },
    async load(account) {
      await listOf(account);
    },
    async current() {
      const asked = accounts();
      if (asked.length === 0) throw pool.whyNone();
      const within = asked.some((account) => lists.has(account)) ? currentWithin : undefined;
      const results = await settledWithin(asked.map(currentListOf), othersTimeoutMs, within);
      const all = asked.map((account, at) => ({ account, ...results[at] }));
      // An account that a person must mend has no models, as long as there is another one.
      const usable = all.filter(({ account, list }) => list || account.state.name !== "failed");
      const counted = usable.length > 0 ? usable : all;
      const used = counted.map(({ account, list }) => list ?? lists.get(account));
      const models = unite(used);
      const failure = all.find(({ thrown }) => thrown !== undefined);
      if (models.length === 0 && failure) throw failure.thrown;
      return {
        models,
        stale: counted.some(({ list }) => !list),
        age: Math.max(...used.map((list) => (list ? ageOf(list) : 0))),
      };
    },
    offers(account, modelId) {
      const known = lists.get(account);
      return known === undefined || known.enabled.has(modelId);
    },
    expire() {
      for (const account of accounts()) {
        const known = lists.get(account);
        if (known) known.at = Math.min(known.at, now() - freshFor);
      }
    },
  };
}

/**
 * What became of each; neither, for those that are still awaited a while after the first list was there.
 * @param within Milliseconds for all of them, where something is known already.
 */
async function settledWithin(
  loads: Promise<List>[],
  timeoutMs: number,
  within?: number,
): Promise<{ list?: List; thrown?: unknown }[]> {
  const results: { list?: List; thrown?: unknown }[] = loads.map(() => ({}));
  let awaited = loads.length;
  let timer: Timer | undefined;
  let limit: Timer | undefined;
  await new Promise<void>((enough) => {
    if (within !== undefined) limit = setTimeout(enough, within);
    const settle = (at: number, result: (typeof results)[number]) => {
      results[at] = result;
      awaited -= 1;
      if (awaited === 0) enough();
      else if (result.list) timer ??= setTimeout(enough, timeoutMs);
    };
    for (const [at, load] of loads.entries())
      load.then(
        (list) => settle(at, { list }),
        (thrown) => settle(at, { thrown }),
      );
  });
  clearTimeout(timer);
  clearTimeout(limit);
  return results;
}

/** @throws ProxyError `upstream` when it is no list. */
function readList(body: string): Model[] {
  const json = parseJson(body);
  if (json === undefined) throw notJson("GitHub Copilot's model list");
  const data = isObject(json) ? json.data : undefined;
  if (!Array.isArray(data)) throw new ProxyError("upstream", "GitHub Copilot's answer holds no model list.");
  const models = new Map<string, Model>();
  // Some ids are listed twice: the first counts.
  for (const item of data.slice(0, 5000)) {
    const model = readModel(item);
    if (model && !models.has(model.id)) models.set(model.id, model);
  }
  return [...models.values()];
}
