/** Builds every long-lived part once and wires them together. */

import { Drift } from "../books/changes/drift";
import { Losses } from "../books/changes/losses";
import { warningsOf } from "../books/changes/warnings";
import type { History } from "../books/history/history";
import { historyOf } from "../books/history/member-history";
import { InFlight } from "../books/live/in-flight";
import { LiveRequests } from "../books/live/running-requests";
import { SessionPrompts } from "../books/live/session-prompts";
import { Notices } from "../books/notices/notices";
import { openExchangeMetrics } from "../books/observe/exchange-metrics";
import type { Stores, StoresOptions } from "../books/stores";
import { type Environment, secretsOfEnvironment } from "../config/environment";
import { ensurePrivateFolder, removeLeftovers } from "../config/files";
import { MemberConfig } from "../config/scoped-config";
import { secretsIn } from "../config/secrets";
import type { ConfigStore } from "../config/store";
import { BoundedMap } from "../lib/bounded-map";
import type { ProxyError } from "../lib/errors";
import type { Logger } from "../lib/logger";
import { openClientSockets } from "../lib/net/in/client-sockets";
import { countWrongSecrets } from "../lib/net/in/failed-tries";
import { openHeldBodies } from "../lib/net/in/held-bytes";
import type { TrustedProxies } from "../lib/net/in/trusted-proxies";
import type { Account, AccountOptions } from "../people/accounts/account";
import type { TemporaryAccount } from "../people/accounts/account-store";
import { accountsByMember, arranged } from "../people/accounts/active-accounts";
import { OwnAccounts } from "../people/accounts/own-accounts";
import type { SignInSteps } from "../people/accounts/sign-in";
import { SignIns } from "../people/accounts/sign-ins";
import { WaitingRoom } from "../people/accounts/waiting-room";
import { BudgetGuard } from "../people/budgets/guard";
import { type ClientKey, currentClientKeys, type OpenTo } from "../people/keys/client-keys";
import { Membership } from "../people/keys/membership";
import { RecentItems } from "../proxy/recent-items";
import { type Limits, limitsFor, type Services } from "../proxy/scope";
import { AnthropicCounter } from "../proxy/tokens/anthropic-counter";
import { TokenCounts } from "../proxy/tokens/token-counts";
import { openTokenizer, type Tokenizer } from "../proxy/tokens/tokenizer";
import { CacheWatch } from "../proxy/upstream/cache-watch";
import { Auto } from "../proxy/upstream/copilot/auto";
import { openCopilot } from "../proxy/upstream/copilot/copilot";
import { CopilotCounter } from "../proxy/upstream/copilot/copilot-counter";
import { Lessons } from "../proxy/upstream/copilot/lessons";
import { UnsupportedParams } from "../proxy/upstream/copilot/unsupported-params";
import { BilledPrices } from "../proxy/upstream/models/billed-prices";
import { openMemberRouting, openRouting } from "../proxy/upstream/routing";
import { type SearchEngine, searchEngineOf } from "../proxy/upstream/search-engines";
import type { AdminAuth, App, Scope } from "./app";
import { boundScopes } from "./bound-scopes";
import { openLocalStores } from "./local-stores";
import { openAccounts } from "./open-accounts";
import { personOf } from "./person";

export interface AppOptions extends Omit<StoresOptions, "follow"> {
  environment: Environment;
  version: string;
  /** What a person types for it on this machine; `dragoman` by default. */
  command?: string;
  /** It is the first account, and is never saved. */
  temporary?: TemporaryAccount;
  /** An enterprise's own GitHub, for the temporary account. */
  enterpriseHost?: string;
  /** The embedded upstream that stands in for GitHub and Copilot, and its accounts; of a team's demo, those of the stores. */
  demo?: { url: string; accounts?: readonly { login: string; githubToken: string }[] | undefined };
  /** This machine by default. */
  openTo?: OpenTo;
  /** `remote` by default. */
  adminAuth?: AdminAuth;
  trustedProxies?: TrustedProxies;
  /** The files of the data folder by default, with a log as `write` and `logFormat` say. */
  stores?: Stores;
  /** One that counts for other apps of the process too; otherwise its own. */
  tokenizer?: Tokenizer;
  /** Clocks, a random source and a pause for tests. */
  clock?: Pick<AccountOptions, "now" | "monotonic" | "random"> & { sleep?: SignInSteps["sleep"] };
}

/** @throws ProxyError if the data folder or the config cannot be used. */
export const openApp = (options: AppOptions): App => new RunningApp(options);

/** What all parts are made from. */
class Foundation {
  readonly environment: Environment;
  readonly version: string;
  readonly config: ConfigStore;
  readonly logger: Logger;
  readonly limits: Limits;
  readonly now: () => number;
  protected readonly options: AppOptions;
  protected readonly stores: Stores;
  protected readonly monotonic: () => number;

  constructor(options: AppOptions) {
    const { environment, version, logFormat, write, clock = {} } = options;
    this.options = options;
    this.environment = environment;
    this.version = version;
    this.now = clock.now ?? Date.now;
    this.monotonic = clock.monotonic ?? (() => performance.now());
    const notes: string[] = [];
    ensurePrivateFolder(environment.home, (sentence) => notes.push(sentence));
    removeLeftovers(environment.home);
    this.stores = options.stores ?? openLocalStores(environment, { follow: true, write, logFormat });
    this.config = this.stores.config;
    this.logger = this.stores.logger;
    for (const note of notes) this.logger.warn(note);
    for (const secret of secretsOfEnvironment(environment)) this.logger.conceal(secret);
    for (const secret of secretsIn(this.config.stored)) this.logger.conceal(secret);
    this.limits = limitsFor(environment.upstreamTimeoutMs);
  }

  protected readonly warn = (sentence: string, cause?: unknown): void => this.logger.warn(sentence, cause);
}

/** Members whose lists of models are kept. */
const maxScopes = 10_000;

/** Each part is made once, in the order of these fields, and closed by `close`. */
class RunningApp extends Foundation implements App {
  readonly #stopping = new AbortController();
  draining = false;
  refusing = false;
  readonly stopping = this.#stopping.signal;
  readonly command = this.options.command ?? "dragoman";
  readonly demo = this.options.demo !== undefined;
  readonly adminAuth = this.options.adminAuth ?? "remote";
  readonly openTo = this.options.openTo ?? "this machine";
  exposed = false;
  readonly trustedProxies = this.options.trustedProxies;
  readonly wrongSecrets = countWrongSecrets(this.monotonic);
  /** The demo of one person has none. */
  readonly members = this.options.demo?.accounts ? undefined : this.stores.members;
  readonly logins = this.stores.logins;
  readonly team = this.stores.team;
  readonly membership = undefined;
  readonly owner = this;

  readonly losses = new Losses({ logger: this.logger, now: this.now });
  readonly #saved = openAccounts({
    environment: this.environment,
    version: this.version,
    temporary: this.options.temporary,
    enterpriseHost: this.options.enterpriseHost,
    demo: this.options.demo,
    clock: this.options.clock,
    stores: this.stores,
    config: this.config,
    logger: this.logger,
    losses: this.losses,
    suspensionError: (member) => this.forMember(member).pool.suspensionError(),
  });
  readonly accountStore = this.#saved.store;
  readonly #allAccounts = arranged(
    this.#saved.active,
    () => this.config.current.accountOrder,
    this.accountStore.choices,
  );
  readonly #accountsOf = accountsByMember(this.#allAccounts);
  readonly refreshAccounts = this.#saved.active.refresh;
  readonly #clientKeys = currentClientKeys(this.config, this.environment, this.demo);

  readonly copilot = openCopilot(this.config, this.version);
  readonly history = this.stores.openHistory({
    retentionDays: () => this.config.current.retentionDays,
    maxRows: () => this.config.current.maxRows,
    warn: this.warn,
    now: this.now,
    monotonic: this.monotonic,
  });
  readonly budgets = new BudgetGuard({
    config: this.config,
    openLedger: () => this.stores.openLedger({ now: this.now, warn: this.warn }),
    isWaiting: (this.team?.waiting().settlements ?? 0) > 0,
    members: this.members,
    now: this.now,
    warn: this.warn,
  });
  readonly notices = new Notices({
    accounts: this.#allAccounts,
    sent: this.stores.openSentNotices({ now: this.now, warn: this.warn }),
    isLeader: () => this.isLeader,
    members: this.members,
    budgets: this.budgets,
    config: this.config,
    history: this.history,
    logger: this.logger,
    losses: this.losses,
    version: this.version,
    now: this.now,
    warnings: () => warningsOf(this.accounts.flatMap((account) => this.catalogue.listOf(account))),
  });
  readonly billedPrices = new BilledPrices();
  readonly drift = new Drift(this.now, this.monotonic, (model, answer) => this.billedPrices.learn(model, answer));
  readonly auto = new Auto({ copilot: this.copilot, logger: this.logger, now: this.now, monotonic: this.monotonic });
  readonly #routingParts = {
    auto: this.auto,
    config: this.config,
    copilot: this.copilot,
    drift: this.drift,
    losses: this.losses,
    logger: this.logger,
    version: this.version,
    now: this.now,
    monotonic: this.monotonic,
    limits: this.limits.list,
    isShared: this.stores.accountSync !== undefined,
  };
  readonly #routing = openRouting(this.#routingParts, () => this.accounts);
  readonly pool = this.#routing.pool;
  readonly breaker = this.#routing.breaker;
  readonly catalogue = this.#routing.catalogue;
  readonly providers = this.#routing.providers;
  readonly providerModels = this.#routing.providerModels;
  readonly isOurOwn = this.providers.isOurOwn;

  readonly tokenizer = this.options.tokenizer ?? openTokenizer();
  readonly tokenCounts = new TokenCounts({
    config: () => this.config.current,
    tokenizer: this.tokenizer,
    history: this.history,
    logger: this.logger,
    monotonic: this.monotonic,
  });
  readonly signIns = new SignIns({
    hosts: this.#saved.hosts,
    store: this.accountStore,
    kept: this.stores.signIns,
    version: this.version,
    logger: this.logger,
    now: this.now,
    sleep: this.options.clock?.sleep,
    isMember: async (id) => {
      await this.members?.hearAll();
      this.members?.requireHeard();
      return this.members?.find(id) !== undefined;
    },
    saved: this.refreshAccounts,
    account: (key) => this.allAccounts.find((account) => account.key === key),
  });
  readonly ownAccounts = this.#ownAccountsOf(null);
  readonly inFlight = new InFlight();
  readonly waitingRoom = new WaitingRoom();
  readonly live = new LiveRequests(this.inFlight, this.stores.team);
  readonly running = this.live.of();
  readonly pageState = this.stores.openPageState(this.now);
  readonly affinity = this.stores.affinity;
  readonly cacheWatch = new CacheWatch(this.now);
  readonly sessionPrompts = new SessionPrompts(this.now);
  readonly copilotCounter = new CopilotCounter(this.copilot, this.logger, this.monotonic);
  readonly anthropicCounter = new AnthropicCounter(
    this.environment.anthropicApiUrl ?? "https://api.anthropic.com",
    () => this.config.current.anthropicApiKey ?? this.environment.anthropicApiKey,
    this.logger,
  );
  readonly exchangeMetrics = openExchangeMetrics((provider, id) => this.providerModels.isListed(provider, id));
  readonly recentItems = new RecentItems(this.now);
  readonly heldBodies = openHeldBodies();
  readonly sockets = openClientSockets();
  readonly tracing = {};
  readonly lessons = new Lessons(this.now);
  readonly unsupportedParams = new UnsupportedParams(this.now);
  readonly searchEngine = (): SearchEngine | undefined => searchEngineOf(this.config.current);
  readonly #services: Services = {
    version: this.version,
    demo: this.demo,
    logger: this.logger,
    limits: this.limits,
    now: this.now,
    stopping: this.stopping,
    affinity: this.affinity,
    auto: this.auto,
    billedPrices: this.billedPrices,
    budgets: this.budgets,
    cacheWatch: this.cacheWatch,
    copilot: this.copilot,
    copilotCounter: this.copilotCounter,
    drift: this.drift,
    exchangeMetrics: this.exchangeMetrics,
    heldBodies: this.heldBodies,
    inFlight: this.inFlight,
    losses: this.losses,
    recentItems: this.recentItems,
    searchEngine: this.searchEngine,
    sessionPrompts: this.sessionPrompts,
    sockets: this.sockets,
    tokenCounts: this.tokenCounts,
    tracing: this.tracing,
    waitingRoom: this.waitingRoom,
  };
  readonly boundTo = boundScopes(this, this.#services, this.#routingParts);
  readonly #scopes = new BoundedMap<string, Scope>(maxScopes);

  constructor(options: AppOptions) {
    super(options);
    followConfig(this.config, this.logger, this.history);
  }

  get accounts(): Account[] {
    return this.#accountsOf(null);
  }

  get allAccounts(): Account[] {
    return this.#allAccounts();
  }

  get clientKeys(): readonly ClientKey[] {
    return this.#clientKeys();
  }

  get hasKeys(): boolean {
    return this.clientKeys.length > 0 || this.members?.needKeys === true;
  }

  get requiresKey(): boolean {
    return this.openTo === "nobody" || this.hasKeys;
  }

  get isLeader(): boolean {
    return this.stores.isLeader;
  }

  get isolation(): ProxyError | undefined {
    return this.stores.isolation;
  }

  forMember(member: string | null): Scope {
    if (member === null) return this;
    const known = this.#scopes.get(member);
    if (known) return known;
    const made = this.#scopeOf(member);
    this.#scopes.set(member, made);
    return made;
  }

  #scopeOf(member: string): Scope {
    const routing = openMemberRouting(this.#routingParts, () => this.#accountsOf(member));
    return personOf(this.#services, () => this.isolation, routing, {
      owner: undefined,
      membership: this.members && new Membership(this.members, member, this.logins, this.wrongSecrets.userCodes),
      ownAccounts: this.#ownAccountsOf(member),
      config: new MemberConfig(this.config),
      history: historyOf(this.history, member),
      running: this.live.of(member),
      // What somebody had an upstream refuse is not removed from the requests of others.
      unsupportedParams: new UnsupportedParams(this.now),
      lessons: new Lessons(this.now),
      anthropicCounter: undefined,
    });
  }

  #ownAccountsOf(member: string | null): OwnAccounts {
    const { enterpriseHost, oauthApp } = this.environment;
    return new OwnAccounts(member, () => this.#accountsOf(member), {
      ownersAccounts: () => this.accounts,
      store: this.accountStore,
      signIns: this.signIns,
      refresh: this.refreshAccounts,
      config: this.config,
      defaults: { enterpriseHost, oauthApp },
      logger: this.logger,
    });
  }

  drain(): void {
    this.draining = true;
  }

  refuse(): void {
    this.refusing = true;
  }

  close(): void {
    this.#stopping.abort();
    const { config, history, notices, budgets } = this;
    const parts = [config, this.#saved.active, this.signIns, history, notices, budgets];
    for (const part of [...parts, this.tokenizer]) part.close();
  }
}

/** Reports each change of the config, and applies the new limits of the history. */
function followConfig(config: ConfigStore, logger: Logger, history: History): void {
  config.follow({
    changed(members, edited) {
      for (const secret of secretsIn(config.stored)) logger.conceal(secret);
      if (members.length > 0)
        logger.info(`The config ${edited ? "file was edited" : "was changed"}: ${members.join(", ")}.`);
      if (edited && config.waiting.length > 0)
        logger.warn(`${config.waiting.join(", ")} in the config file takes effect at the next start.`);
      if (members.includes("retentionDays") || members.includes("maxRows")) void history.prune();
    },
    refused: (sentence) => logger.error(`${sentence} The previous config stays in effect.`),
    noted: (sentence) => logger.warn(sentence),
  });
}
