/** The stores in Postgres, for any number of servers. */
import { existsSync } from "node:fs";
import { version } from "../../package.json";
import type { Entry } from "../books/history/entry";
import type { HistoryOptions } from "../books/history/history";
import { openMemoryPageState } from "../books/memory-page-state";
import type { PageState, Stores, StoresOptions } from "../books/stores";
import type { Environment } from "../config/environment";
import { inHome } from "../config/home-names";
import type { ConfigStore } from "../config/store";
import { ProxyError } from "../lib/errors";
import { dayMs, plural } from "../lib/format";
import { createLogger, type Logger } from "../lib/logger";
import { Seals } from "../lib/seals";
import type { AccountStore } from "../people/accounts/account-store";
import { openMemorySignIns, type SignInStore } from "../people/accounts/sign-in-store";
import type { LedgerOptions } from "../people/budgets/ledger";
import { AccessTokens } from "../people/keys/access-tokens";
import type { Logins } from "../people/keys/logins";
import type { Members } from "../people/keys/members";
import { PageSignIns } from "../people/keys/page-sign-ins";
import { StoredLogins } from "../people/keys/stored-logins";
import type { Team } from "../people/keys/team";
import { TeamAccountSync } from "./account-sync";
import { TeamAccounts } from "./accounts";
import { TeamAffinity } from "./affinity";
import { isAwayError } from "./away";
import { TeamConfig } from "./config";
import { Postgres } from "./connection";
import { type DiskQueues, openDiskQueues } from "./disk-queue";
import { endedPageSignIns } from "./ended-page-sign-ins";
import { TeamHistory } from "./history";
import { TeamLedger } from "./ledger";
import type { Settlement } from "./ledger-queries";
import { openMembers } from "./members";
import type { StoreParts } from "./parts";
import { requireOwnConnection } from "./pooler";
import { PostgresTables } from "./postgres-tables";
import { migrate } from "./schema";
import { agreeOnKey } from "./seal-key";
import { postgresSentNotices } from "./sent-notices";
import { OwnServer } from "./server";
import { requireSettings } from "./settings";
import { TeamSignIns } from "./sign-ins";
import { Stamps } from "./stamps";

/** Milliseconds that a server which starts waits for the database. */
const startTimeoutMs = 30_000;
/** Milliseconds that requests are served without the database. */
const defaultGraceMs = 30_000;
/** Milliseconds that queued rows may take at the end. */
const finishMs = 5_000;
/** Milliseconds for which a form can be submitted, whichever server is asked. */
const formTokenMs = dayMs;

/**
 * Connects, leads the database to this version's schema, and reads config and accounts.
 * @throws ProxyError if the database cannot be reached or used, or if its secrets are sealed with another key.
 */
export async function openPostgresStores(environment: Environment, options: StoresOptions): Promise<PostgresStores> {
  let config: ConfigStore | undefined;
  const level = () => (options.follow && config?.current.logLevel) || "warn";
  const logger = createLogger(level, options.write, options.logFormat);
  const read = (opened: ConfigStore) => {
    config = opened;
  };
  const deadline = performance.now() + (options.follow ? startTimeoutMs : 0);
  // The database and the server may be started together, and the servers before may still have the connections.
  for (let tries = 1; ; tries += 1)
    try {
      return await tryOpening(environment, options.follow, logger, read);
    } catch (thrown) {
      if (!isAwayError(thrown) || performance.now() > deadline) throw thrown;
      if (tries === 1) logger.warn(`Waiting for the database, for ${startTimeoutMs / 1_000} s at most.`, thrown);
      await Bun.sleep(500);
    }
}

async function tryOpening(
  environment: Environment,
  follow: boolean,
  logger: Logger,
  configRead: (config: ConfigStore) => void,
): Promise<PostgresStores> {
  const { databaseUrl: url, databaseDirectUrl: directUrl } = environment;
  const seals = sealsOf(environment);
  let server: OwnServer | undefined;
  const postgres = new Postgres({ url: url!, directUrl, lostDirect: () => server?.lostLock() });
  const stamps = new Stamps(postgres, logger);
  const parts: StoreParts = { postgres, seals, stamps, logger };
  try {
    if (follow) await requireOwnConnection(postgres);
    await requireSettings(postgres);
    await migrate(postgres);
    const tokenSecrets = await agreeOnKey(postgres, seals);
    const config = await TeamConfig.open(parts);
    configRead(config);
    const accounts = await TeamAccounts.open(parts);
    const tokens = new AccessTokens(tokenSecrets);
    const members = await openMembers(parts, tokens);
    const opened = { config, accounts, members };
    if (!follow) return new PostgresStores(environment, parts, opened, undefined);
    server = await OwnServer.join({ ...parts, version });
    const { id } = server;
    const joined: Joined = {
      server,
      logins: new StoredLogins(new PostgresTables(postgres), tokens, members),
      accountSync: await TeamAccountSync.open({ ...parts, server: id }),
      signIns: await TeamSignIns.open(parts),
    };
    stamps.start();
    warnOfFolder(environment, opened, logger);
    return new PostgresStores(environment, parts, opened, joined);
  } catch (thrown) {
    stamps.close();
    await server?.close();
    await postgres.close();
    throw thrown;
  }
}

type Opened = Pick<PostgresStores, "config" | "accounts" | "members">;

/** What only a server has: a command that ends at once takes no part in the team. */
interface Joined {
  server: OwnServer;
  logins: StoredLogins;
  accountSync: TeamAccountSync;
  signIns: TeamSignIns;
}

/** The stores, and what commands need beside them. */
export class PostgresStores implements Stores {
  readonly postgres: Postgres;
  readonly seals: Seals;
  readonly logger: Logger;
  readonly config: ConfigStore;
  readonly accounts: AccountStore;
  readonly members: Members;
  /** Those of members. */
  readonly tables: PostgresTables;
  readonly logins: Logins | undefined;
  readonly signIns: SignInStore;
  readonly affinity: TeamAffinity;
  readonly accountSync: TeamAccountSync | undefined;
  readonly team: Team;
  readonly #environment: Environment;
  readonly #parts: StoreParts;
  readonly #joined: Joined | undefined;
  readonly #serverId: string;
  readonly #graceMs: number;
  #queues: DiskQueues | undefined;
  #history: TeamHistory | undefined;
  #ledger: TeamLedger | undefined;

  constructor(environment: Environment, parts: StoreParts, opened: Opened, joined: Joined | undefined) {
    this.#environment = environment;
    this.#parts = parts;
    this.#joined = joined;
    this.#serverId = joined?.server.id ?? crypto.randomUUID();
    this.#graceMs = environment.databaseGraceMs ?? defaultGraceMs;
    this.postgres = parts.postgres;
    this.seals = parts.seals;
    this.logger = parts.logger;
    this.config = opened.config;
    this.accounts = opened.accounts;
    this.members = opened.members;
    this.tables = new PostgresTables(parts.postgres);
    this.logins = joined?.logins;
    this.signIns = joined?.signIns ?? openMemorySignIns();
    this.affinity = new TeamAffinity(parts.postgres, this.#warn);
    this.accountSync = joined?.accountSync;
    const sizeOf = (name: "request" | "settlement") => this.#queues?.queue(name).size ?? 0;
    this.team = {
      get servers() {
        return parts.postgres.isAway ? undefined : joined?.server.servers;
      },
      get isDatabaseAway() {
        return parts.postgres.isAway;
      },
      get silence() {
        return parts.postgres.silence;
      },
      waiting: () => ({ requests: sizeOf("request"), settlements: sizeOf("settlement") }),
    };
  }

  openHistory(options: HistoryOptions): TeamHistory {
    // A limit that nobody has set would keep a team's history of a day.
    const maxRows = () => (this.config.stored.maxRows === undefined ? Number.POSITIVE_INFINITY : options.maxRows());
    const openQueue = () => this.#diskQueues().queue<Entry>("request");
    const isLeader = () => this.isLeader;
    this.#history = new TeamHistory({ ...options, maxRows, postgres: this.postgres, openQueue, isLeader });
    return this.#history;
  }

  openLedger(options: LedgerOptions): TeamLedger {
    const common = { server: this.#serverId, postgres: this.postgres };
    const openQueue = () => this.#diskQueues().queue<Settlement[]>("settlement");
    this.#ledger = new TeamLedger({ ...options, ...common, openQueue });
    return this.#ledger;
  }

  openSentNotices() {
    return postgresSentNotices(this.postgres);
  }

  openPageState(now: () => number): PageState {
    if (!this.#joined) return openMemoryPageState(now);
    const ended = endedPageSignIns(this.postgres);
    const { adminToken } = this.#environment;
    const { seals, members: keys } = this;
    const [secret, server] = [seals.derived("page sign-ins"), this.#serverId];
    return {
      signIns: new PageSignIns({ secret, server, now, adminToken, ended, keys }),
      changeKey: seals.derived("config changes"),
      formSecret: { secret: seals.derived("form tokens"), lifetimeMs: formTokenMs },
    };
  }

  get isolation(): ProxyError | undefined {
    const { isAway, silence } = this.postgres;
    return isAway && silence > this.#graceMs ? isolated(this.#graceMs) : undefined;
  }

  get isLeader(): boolean {
    return this.#joined?.server.isLeader ?? false;
  }

  async close(): Promise<void> {
    const written = Promise.all([
      this.#joined?.signIns.leave(),
      this.#history?.finish(),
      this.#ledger?.finish(),
      this.affinity.flush(),
      this.accountSync?.flush(),
    ]);
    await Promise.race([written, Bun.sleep(finishMs)]);
    for (const part of [this.#queues, this.affinity, this.accountSync, this.#parts.stamps]) part?.close();
    await this.#joined?.server.close();
    await this.postgres.close();
  }

  readonly #warn = (sentence: string): void => this.logger.warn(sentence);

  /** What waits on this machine's disk for the database. */
  #diskQueues(): DiskQueues {
    this.#queues ??= openDiskQueues(inHome(this.#environment.home, "waiting"), this.#warn);
    return this.#queues;
  }
}

const isolated = (graceMs: number) =>
  new ProxyError(
    "unable",
    `The database has been away for more than ${plural(graceMs / 1_000, "second")}, so this server does not know whether your key is still valid. Try again when it is back.`,
    { code: "database_away", status: 503, headers: { "retry-after": "5" } },
  );

function sealsOf({ sealKey }: Environment): Seals {
  if (sealKey) return new Seals(sealKey);
  throw new ProxyError(
    "invalid_request",
    "DRAGOMAN_DATABASE_URL needs a key that seals the tokens in the database: set DRAGOMAN_SEAL_KEY to 32 random bytes as base64, such as `openssl rand -base64 32` prints, and keep it apart from the database.",
    { code: "seal_key_missing" },
  );
}

/** Somebody who sets DRAGOMAN_DATABASE_URL may expect what is in the data folder. */
function warnOfFolder(
  { home, configFile, accountsFolder }: Environment,
  { config, accounts, members }: Opened,
  logger: Logger,
): void {
  const unused = [
    ...(existsSync(inHome(home, "members")) && !members.needKeys ? ["the members"] : []),
    ...(existsSync(configFile) && Object.keys(config.stored).length === 0 ? ["config.json"] : []),
    ...(existsSync(accountsFolder) && accounts.load().length === 0 ? ["the accounts"] : []),
  ];
  if (unused.length > 0)
    logger.warn(
      `With a database, ${unused.join(" and ")} of the data folder ${unused.length > 1 ? "are" : "is"} not used. \`dragoman database copy\` copies what is there.`,
    );
}
