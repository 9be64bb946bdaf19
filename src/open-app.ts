/** Builds every long-lived part once and wires them together. */
import { Account, type AccountOptions, type TemporaryAccount } from "./accounts/account";
import type { AccountStore, SavedAccount } from "./accounts/account-store";
import { type ActiveAccounts, accountsByMember, arranged, openActiveAccounts } from "./accounts/active-accounts";
import { type Hosts, hostsFor } from "./accounts/hosts";
import { openMemoryAccountStore, savedDemoAccount } from "./accounts/memory-account-store";
import type { SignInSteps } from "./accounts/sign-in";
import { openSignIns } from "./accounts/sign-ins";
import { WaitingRoom } from "./accounts/waiting-room";
import type { AdminAuth, App, Limits } from "./app";
import { BoundedMap } from "./bounded-map";
import { openBudgetGuard } from "./budgets/guard";
import { type Environment, secretsOfEnvironment } from "./config/environment";
import { ensurePrivateFolder, removeLeftovers } from "./config/files";
import { secretsIn } from "./config/secrets";
import type { ConfigStore } from "./config/store";
import { openTokenizer } from "./dialects/tokenizer";
import type { ProxyError } from "./errors";
import type { History } from "./history/history";
import { openInFlight } from "./history/in-flight";
import { historyOf } from "./history/member-history";
import { runningOf } from "./history/running-requests";
import { currentClientKeys } from "./keys/client-keys";
import { openLocalStores } from "./local-stores";
import { createLogger, type LogFormat, type Logger } from "./logger";
import { openClientSockets } from "./net/in/client-sockets";
import { failedTries } from "./net/in/failed-tries";
import { openHeldBodies } from "./net/in/held-bytes";
import type { TrustedProxies } from "./net/in/trusted-proxies";
import type { CallLimits } from "./net/out/clock";
import { openNotices } from "./notices/notices";
import { openExchangeMetrics } from "./observe/exchange-metrics";
import type { Stores } from "./stores";
import { openCacheWatch } from "./upstream/cache-watch";
import { openDrift } from "./upstream/changes/drift";
import { type Losses, openLosses } from "./upstream/changes/losses";
import { openAuto } from "./upstream/copilot/auto";
import { openCopilot } from "./upstream/copilot/copilot";
import { openCopilotCounter } from "./upstream/copilot/copilot-counter";
import { openUnsupportedParams } from "./upstream/copilot/unsupported-params";
import { openBilledPrices } from "./upstream/models/billed-prices";
import { openMemberScope, openScope, type Scope } from "./upstream/scope";
import { openTokenCounts } from "./upstream/tokens/token-counts";

export interface AppOptions {
  environment: Environment;
  version: string;
  /** A GitHub token that serves as the first account and is never saved. */
  temporaryToken?: string;
  /** An enterprise's own GitHub, for the temporary account. */
  enterpriseHost?: string;
  /** The embedded upstream that stands in for GitHub and Copilot, and its accounts. */
  demo?: { url: string; accounts: readonly { login: string; githubToken: string }[] };
  /** Whether requests are served without a key while there is none. Not where other machines would be served too, unless the owner wants that. */
  allowOpen?: boolean;
  /** `remote` by default. */
  adminAuth?: AdminAuth;
  trustedProxies?: TrustedProxies;
  /** The files of the data folder by default. */
  stores?: Stores;
  /** `text` by default. */
  logFormat?: LogFormat;
  /** Where log lines go, instead of stderr. */
  write?: (line: string) => void;
  /** Clocks, a random source and a pause for tests. */
  clock?: Pick<AccountOptions, "now" | "monotonic" | "random"> & { sleep?: SignInSteps["sleep"] };
}

/** @throws ProxyError if the data folder or the config cannot be used. */
export function openApp(options: AppOptions): App {
  const { environment, version, demo, adminAuth = "remote", allowOpen = true, logFormat, write, clock = {} } = options;
  const { now = Date.now, monotonic = () => performance.now() } = clock;
  const notes: string[] = [];
  ensurePrivateFolder(environment.home, (sentence) => notes.push(sentence));
  removeLeftovers(environment.home);
  const stores = options.stores ?? openLocalStores(environment);
  const config = stores.openConfig();
  const logger = createLogger(() => config.current.logLevel, write, logFormat);
  for (const note of notes) logger.warn(note);

  for (const secret of secretsOfEnvironment(environment)) logger.conceal(secret);
  for (const secret of secretsIn(config.stored)) logger.conceal(secret);

  const limits = limitsFor(environment.upstreamTimeoutMs);
  const losses = openLosses({ logger, now });
  const opened = openAccounts(options, {
    ...{ stores, config, logger, losses },
    suspensionError: (member) => app.forMember(member).pool.suspensionError(),
  });
  const { store: accountStore, active: activeAccounts, hosts } = opened;
  const allAccounts = arranged(activeAccounts, () => config.current.accountOrder, accountStore.choices);
  const accountsOf = accountsByMember(allAccounts);
  const accounts = () => accountsOf(null);
  const clientKeys = currentClientKeys(config, environment);

  const stopping = new AbortController();
  let [draining, refusing] = [false, false];
  const copilot = openCopilot(config, version);
  const warn = (sentence: string, cause?: unknown) => logger.warn(sentence, cause);
  const history = stores.openHistory({
    retentionDays: () => config.current.retentionDays,
    maxRows: () => config.current.maxRows,
    warn,
  });
  const budgets = openBudgetGuard({
    config,
    openLedger: () => stores.openLedger({ now, warn }),
    isWaiting: (stores.team?.waiting().settlements ?? 0) > 0,
    members: stores.members,
    now,
    warn,
  });
  const sent = stores.openSentNotices({ now, warn });
  const isLeader = () => stores.isLeader;
  const notices = openNotices({
    accounts: allAccounts,
    members: stores.members,
    ...{ budgets, config, history, logger, losses, sent, isLeader, version, now },
  });
  const billedPrices = openBilledPrices();
  const drift = openDrift(now, monotonic, billedPrices.learn);
  const isShared = stores.accountSync !== undefined;
  const auto = openAuto({ copilot, logger, now, monotonic });
  const scopeParts = {
    auto,
    config,
    copilot,
    drift,
    losses,
    logger,
    version,
    limits: listLimits(limits),
    isShared,
    now,
    monotonic,
  };
  const owner = openScope(scopeParts, accounts);
  const memberApps = new BoundedMap<string, App>(maxMemberApps);
  const tokenizer = openTokenizer();
  const tokenCounts = openTokenCounts({
    config: () => config.current,
    tokenizer,
    path: environment.tokenFactorsFile,
    logger,
    now,
    monotonic,
  });
  const signIns = openSignIns({
    hosts,
    version,
    store: accountStore,
    kept: stores.openSignIns(),
    logger,
    now,
    sleep: clock.sleep,
    saved: activeAccounts.refresh,
    account: (key) => allAccounts().find((account) => account.key === key),
  });
  followConfig(config, logger, history);
  const inFlight = openInFlight();
  const app: App = {
    version,
    demo: demo !== undefined,
    environment,
    config,
    get clientKeys() {
      return clientKeys();
    },
    get hasKeys() {
      return clientKeys().length > 0 || stores.members?.needKeys === true;
    },
    get requiresKey() {
      return !allowOpen || app.hasKeys;
    },
    members: stores.members,
    team: stores.team,
    get isLeader() {
      return stores.isLeader;
    },
    forMember(member) {
      if (member === null) return app;
      const known = memberApps.get(member);
      if (known) return known;
      const scope = openMemberScope(scopeParts, () => accountsOf(member));
      const made = appOf(app, member, scope);
      memberApps.set(member, made);
      return made;
    },
    adminAuth,
    allowOpen,
    trustedProxies: options.trustedProxies,
    logger,
    tokenTries: failedTries(monotonic),
    get accounts() {
      return accounts();
    },
    get allAccounts() {
      return allAccounts();
    },
    accountStore,
    refreshAccounts: activeAccounts.refresh,
    signIns,
    pageState: stores.openPageState(now),
    pool: owner.pool,
    affinity: stores.openAffinity(),
    cacheWatch: openCacheWatch(now),
    breaker: owner.breaker,
    copilot,
    auto,
    providers: owner.providers,
    providerModels: owner.providerModels,
    catalogue: owner.catalogue,
    drift,
    billedPrices,
    losses,
    budgets,
    notices,
    history,
    inFlight,
    waitingRoom: new WaitingRoom({ shared: stores.openLines?.(), now, warn }),
    heldBodies: openHeldBodies(),
    running: stores.openRunning(inFlight),
    exchangeMetrics: openExchangeMetrics(owner.providerModels.isListed),
    tracing: {},
    sockets: openClientSockets(),
    tokenizer,
    tokenCounts,
    copilotCounter: openCopilotCounter(copilot, logger, monotonic),
    unsupportedParams: openUnsupportedParams(now),
    limits,
    get isolation() {
      return stores.isolation;
    },
    now,
    get draining() {
      return draining;
    },
    drain() {
      draining = true;
    },
    get refusing() {
      return refusing;
    },
    refuse() {
      refusing = true;
    },
    stopping: stopping.signal,
    close() {
      stopping.abort();
      copilot.close();
      config.close();
      activeAccounts.close();
      signIns.close();
      history.close();
      notices.close();
      budgets.close();
      tokenCounts.close();
      tokenizer.close();
    },
  };
  return app;
}

/** Members whose lists of models are kept. */
const maxMemberApps = 10_000;

/** The app with another person's scope. What else it has is inherited. */
function appOf(app: App, member: string, scope: Scope): App {
  const environment = { ...app.environment, anthropicApiKey: undefined };
  return Object.create(app, {
    ...Object.getOwnPropertyDescriptors(scope),
    environment: { value: environment },
    history: { value: historyOf(app.history, member) },
    running: { value: runningOf(app.running, member) },
    // What somebody had an upstream refuse is not removed from the requests of others.
    unsupportedParams: { value: openUnsupportedParams(app.now) },
  });
}

interface AccountParts extends Pick<AccountOptions, "logger"> {
  /** The error for every request of a person while one of the person's accounts is suspended. */
  suspensionError(member: string | null): ProxyError | undefined;
  stores: Stores;
  config: ConfigStore;
  losses: Losses;
}

/** The temporary account, if there is one, and the saved ones; in the demo, its own. */
function openAccounts(
  { environment, version, temporaryToken, enterpriseHost, demo, clock }: AppOptions,
  { stores, config, logger, losses, suspensionError }: AccountParts,
): { store: AccountStore; active: ActiveAccounts; hosts(name?: string): Hosts } {
  const hosts = (name?: string): Hosts =>
    demo
      ? { ...hostsFor(name, { githubUrl: demo.url, githubApiUrl: demo.url }), copilot: demo.url }
      : hostsFor(name, environment);
  const store = demo ? openMemoryAccountStore(demo.accounts.map(savedDemoAccount)) : stores.openAccounts(logger);
  const sync = stores.accountSync;
  const optionsAt = new Map<string | undefined, AccountOptions>();
  const open = (saved: SavedAccount | TemporaryAccount, host?: string) => {
    const options = optionsAt.get(host) ?? {
      ...{ ...clock, hosts: hosts(host), version, logger, suspensionError, sync },
      timeoutMs: environment.upstreamTimeoutMs,
      neverOverage: () => config.current.neverOverage,
      inspect: losses.inspect,
      paused: (key: string, member: string | null) =>
        member === null ? config.current.pausedAccounts.includes(key) : (store.choices?.isPaused(key) ?? false),
    };
    optionsAt.set(host, options);
    return new Account(saved, options);
  };
  const active = openActiveAccounts({
    store,
    temporary: temporaryToken ? open({ temporary: true, githubToken: temporaryToken }, enterpriseHost) : undefined,
    open: (saved) => open(saved, saved.host),
    logger,
    sync,
  });
  return { store, active, hosts };
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
  });
}

/** Limits of a call for a model list, which never takes long. */
const listLimits = ({ streamHeaders, idle }: Limits): CallLimits => ({
  headers: Math.min(streamHeaders, 30_000),
  idle: Math.min(idle, 30_000),
  total: 60_000,
});

/** @param upstreamSilence The owner's limit for a silent upstream; undefined if none is set. */
function limitsFor(upstreamSilence: number | undefined): Limits {
  return {
    streamHeaders: upstreamSilence ?? 120_000,
    fullHeaders: upstreamSilence ?? 600_000,
    keepAlive: 15_000,
    verdict: 30_000,
    idle: upstreamSilence ?? 300_000,
    total: 3_600_000,
    socketAge: 3_600_000,
    connectionIdle: 60_000,
  };
}
