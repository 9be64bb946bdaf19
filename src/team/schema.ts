/**
 * The schema of the database, and the steps that lead to it. All tables are in the Postgres schema `dragoman`, so that a pooler
 * needs no setting. `_ms` columns are Unix times by the clock of a server; `timestamptz` ones are by the clock of the database,
 * which decides what has expired for all servers.
 */
import type { TransactionSQL } from "bun";
import { ProxyError } from "../errors";
import { columnNames, entryColumns } from "../history/entry";
import type { Postgres } from "./connection";
import { firstRequests, holderSlices, ledgerFunctions } from "./ledger-functions";

/** Tables whose changes all servers follow. A row's `revision` is that of its table when it was last changed. */
export const followedTables = [
  "config",
  "members",
  "keys",
  "accounts",
  "account_states",
  "page_sessions",
  "sign_ins",
] as const;
export type FollowedTable = (typeof followedTables)[number];

interface Step {
  /**
   * The oldest step at which a server still works with the database after this one: servers of two versions run side by side
   * during an upgrade. A step that only adds something is compatible with the one before.
   */
  compatibleWith: number;
  statements: readonly string[];
}

/** Column types of the history. */
const postgresTypes = { TEXT: "text", INTEGER: "bigint", REAL: "double precision", FLAG: "smallint" } as const;

/** `TEXT NOT NULL UNIQUE` → `text NOT NULL`: a partitioned table has its unique index apart. */
const columnType = (type: string): string =>
  type.replace(/^[A-Z]+/, (name) => postgresTypes[name as keyof typeof postgresTypes]).replace(" UNIQUE", "");

const requestColumns = columnNames.map((name) => `${name} ${columnType(entryColumns[name])}`);

/** Of `dragoman.requests`: name and type, without constraints. */
export const requestTypes = columnNames.map(
  (name) => `${name} ${columnType(entryColumns[name]).replace(/ NOT NULL.*/, "")}`,
);

/** Released steps never change; new ones are added at the end. */
const steps: readonly Step[] = [
  {
    compatibleWith: 1,
    statements: [
      // What changes together is numbered together: the row of a table is locked until its change is committed, so revisions
      // are committed in their order.
      "CREATE TABLE dragoman.revisions (name text PRIMARY KEY, revision bigint NOT NULL DEFAULT 0)",
      "INSERT INTO dragoman.revisions (name) VALUES ('config'), ('members'), ('keys'), ('accounts'), ('account_states')",
      // Numbers a change and announces it when it is committed. To be called once in each transaction that changes the table.
      `CREATE FUNCTION dragoman.announce_change(changed text) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE number bigint;
        BEGIN
          UPDATE dragoman.revisions SET revision = revision + 1 WHERE name = changed RETURNING revision INTO STRICT number;
          PERFORM pg_notify('dragoman', json_build_object('table', changed, 'revision', number)::text);
          RETURN number;
        END $$`,
      // The key that seals from now on. Every server must have it.
      "CREATE TABLE dragoman.seal (singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton), key_id text NOT NULL)",
      `CREATE TABLE dragoman.config (singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
        sealed_body bytea NOT NULL, seal_key_id text NOT NULL, revision bigint NOT NULL)`,
      // A removed member, key or account keeps its row, so that every server learns of the removal by its revision.
      `CREATE TABLE dragoman.members (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text NOT NULL,
        role text NOT NULL CHECK (role IN ('owner', 'member')), created_at_ms bigint NOT NULL, removed_at_ms bigint,
        revision bigint NOT NULL)`,
      "CREATE UNIQUE INDEX members_name ON dragoman.members (lower(name)) WHERE removed_at_ms IS NULL",
      "CREATE INDEX members_revision ON dragoman.members (revision)",
      // Of an invitation link and of a page session only the SHA-256 of the random value is kept.
      `CREATE TABLE dragoman.invitations (sha256 bytea PRIMARY KEY, member uuid NOT NULL REFERENCES dragoman.members,
        expires_at timestamptz NOT NULL, used_at timestamptz)`,
      `CREATE TABLE dragoman.page_sessions (sha256 bytea PRIMARY KEY, member uuid REFERENCES dragoman.members,
        expires_at timestamptz NOT NULL)`,
      // The keys of members; those of the owner are in the config.
      `CREATE TABLE dragoman.keys (sha256 bytea PRIMARY KEY, member uuid NOT NULL REFERENCES dragoman.members,
        name text NOT NULL, models jsonb, limits jsonb, created_at_ms bigint NOT NULL, expires_at_ms bigint,
        last_used_at_ms bigint, revoked_at_ms bigint, revision bigint NOT NULL)`,
      "CREATE UNIQUE INDEX keys_name ON dragoman.keys (member, lower(name)) WHERE revoked_at_ms IS NULL",
      "CREATE INDEX keys_revision ON dragoman.keys (revision)",
      // One row for each login on a host, so it belongs to one member at most; to the owner where `member` is null.
      `CREATE TABLE dragoman.accounts (key text PRIMARY KEY, host text NOT NULL, login text NOT NULL,
        member uuid REFERENCES dragoman.members, app text NOT NULL, mode text NOT NULL, sign_in text, sealed_token bytea,
        seal_key_id text, added_at_ms bigint NOT NULL, removed_at_ms bigint, revision bigint NOT NULL,
        CHECK (key = host || '/' || lower(login)), CHECK ((sealed_token IS NULL) = (removed_at_ms IS NOT NULL)),
        CHECK ((sealed_token IS NULL) = (seal_key_id IS NULL)))`,
      "CREATE INDEX accounts_revision ON dragoman.accounts (revision)",
      "CREATE INDEX accounts_member ON dragoman.accounts (member)",
      // `epoch` grew with each suspension.
      `CREATE TABLE dragoman.account_states (account text PRIMARY KEY REFERENCES dragoman.accounts ON DELETE CASCADE,
        sign_in text NOT NULL, state jsonb, epoch bigint NOT NULL DEFAULT 0, quota jsonb, replica uuid, revision bigint NOT NULL)`,
      "CREATE INDEX account_states_revision ON dragoman.account_states (revision)",
      `CREATE TABLE dragoman.sessions (account text PRIMARY KEY REFERENCES dragoman.accounts ON DELETE CASCADE,
        sealed_token bytea NOT NULL, seal_key_id text NOT NULL, base_url text NOT NULL, fresh_until timestamptz NOT NULL,
        expires_at timestamptz NOT NULL, stated_expires_at_ms bigint)`,
      `CREATE SEQUENCE dragoman.request_ids`,
      `CREATE TABLE dragoman.requests (id bigint NOT NULL DEFAULT nextval('dragoman.request_ids'), replica uuid,
        ${requestColumns.join(", ")}) PARTITION BY RANGE (started_at_ms)`,
      "CREATE UNIQUE INDEX requests_request_id ON dragoman.requests (request_id, started_at_ms)",
      "CREATE INDEX requests_id ON dragoman.requests (id)",
      "CREATE INDEX requests_started_at_ms ON dragoman.requests (started_at_ms)",
      "CREATE INDEX requests_member ON dragoman.requests (member, id)",
      "CREATE INDEX requests_account_key ON dragoman.requests (account_key, id)",
      "CREATE INDEX requests_key_name ON dragoman.requests (key_name, id)",
      // What requests of a span of time add up to, for each question that was asked. A row that comes late removes what it changes.
      `CREATE TABLE dragoman.statistics (query bytea NOT NULL, from_ms bigint NOT NULL, to_ms bigint NOT NULL,
        groups jsonb NOT NULL, PRIMARY KEY (query, from_ms, to_ms))`,
      "CREATE INDEX statistics_span ON dragoman.statistics (to_ms, from_ms)",
      "INSERT INTO dragoman.revisions (name) VALUES ('late_requests')",
      `CREATE FUNCTION dragoman.forget_statistics(first_ms bigint, last_ms bigint) RETURNS void LANGUAGE sql AS $$
        UPDATE dragoman.revisions SET revision = revision + 1 WHERE name = 'late_requests';
        DELETE FROM dragoman.statistics WHERE from_ms <= last_ms AND to_ms >= first_ms $$`,
      // Amounts in the smallest parts of a unit. `reserved` is the sum of the budget's reservations.
      `CREATE TABLE dragoman.ledger (budget text NOT NULL, session text NOT NULL, start_ms bigint NOT NULL,
        used bigint NOT NULL DEFAULT 0, reserved bigint NOT NULL DEFAULT 0, unknown bigint NOT NULL DEFAULT 0,
        changed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (budget, session, start_ms))`,
      `CREATE TABLE dragoman.reservations (id uuid NOT NULL, budget text NOT NULL, session text NOT NULL,
        start_ms bigint NOT NULL, amount bigint NOT NULL, replica uuid NOT NULL,
        state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'expired', 'settled')),
        is_slice boolean NOT NULL DEFAULT false, changed_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL, PRIMARY KEY (id, budget))`,
      `CREATE INDEX reservations_period ON dragoman.reservations (budget, session, start_ms, expires_at)
        WHERE state = 'running'`,
      "CREATE INDEX reservations_changed_at ON dragoman.reservations (changed_at) WHERE state <> 'running'",
      ...ledgerFunctions,
      `CREATE TABLE dragoman.affinity (mark bigint PRIMARY KEY, account text NOT NULL,
        seen_at timestamptz NOT NULL DEFAULT now())`,
      "CREATE INDEX affinity_seen_at ON dragoman.affinity (seen_at)",
      "CREATE TABLE dragoman.notices (id text PRIMARY KEY, sent_at timestamptz NOT NULL DEFAULT now())",
      `CREATE TABLE dragoman.replicas (id uuid PRIMARY KEY, version text NOT NULL, seal_keys jsonb NOT NULL,
        started_at timestamptz NOT NULL DEFAULT now(), beat_at timestamptz NOT NULL DEFAULT now())`,
    ],
  },
  {
    compatibleWith: 1,
    statements: [
      "INSERT INTO dragoman.revisions (name) VALUES ('page_sessions')",
      // The SHA-256 of a member's key, or what proves that a server began the owner's session. A session that was
      // ended keeps its row until it would have expired, so that every server learns of the end by its revision.
      `ALTER TABLE dragoman.page_sessions ADD COLUMN credential bytea, ADD COLUMN ended_at timestamptz,
        ADD COLUMN revision bigint NOT NULL DEFAULT 0`,
      "CREATE INDEX page_sessions_revision ON dragoman.page_sessions (revision)",
      `CREATE TABLE dragoman.pending_changes (sha256 bytea PRIMARY KEY, sealed_body bytea NOT NULL,
        seal_key_id text NOT NULL, expires_at timestamptz NOT NULL)`,
    ],
  },
  {
    compatibleWith: 1,
    statements: [
      // The transaction that stored a row, so that statistics add only what came since they were asked last. Rows of before have
      // none. The index is made with each new day: making those of all days would hold up the servers for long.
      "ALTER TABLE dragoman.requests ADD COLUMN arrived bigint",
      "ALTER TABLE dragoman.requests ALTER COLUMN arrived SET DEFAULT pg_current_xact_id()::text::bigint",
      "CREATE INDEX requests_arrived ON ONLY dragoman.requests (arrived)",
      // Of a span that is not over: what arrived from this transaction on is missing. Null where nothing is.
      "ALTER TABLE dragoman.statistics ADD COLUMN arrived_before bigint",
    ],
  },
  {
    compatibleWith: 1,
    statements: ["ALTER TABLE dragoman.replicas ADD COLUMN host text, ADD COLUMN leads boolean NOT NULL DEFAULT false"],
  },
  {
    compatibleWith: 1,
    statements: [
      "ALTER TABLE dragoman.members ADD COLUMN models jsonb, ADD COLUMN key_days int CHECK (key_days > 0)",
      // One that was withdrawn has expired too, so that an older server does not accept it.
      "ALTER TABLE dragoman.invitations ADD COLUMN withdrawn_at timestamptz",
      "CREATE INDEX invitations_member ON dragoman.invitations (member)",
    ],
  },
  {
    compatibleWith: 1,
    statements: [
      "INSERT INTO dragoman.revisions (name) VALUES ('sign_ins')",
      // `replica` asks GitHub for the outcome.
      `CREATE TABLE dragoman.sign_ins (sha256 bytea PRIMARY KEY, host text NOT NULL, app text NOT NULL,
        member uuid REFERENCES dragoman.members, sealed_body bytea NOT NULL, seal_key_id text NOT NULL,
        state jsonb NOT NULL, replica uuid NOT NULL, expires_at timestamptz NOT NULL, kept_until timestamptz NOT NULL,
        revision bigint NOT NULL)`,
      "CREATE INDEX sign_ins_revision ON dragoman.sign_ins (revision)",
    ],
  },
  {
    compatibleWith: 1,
    statements: [
      // The transaction that stored a state or a quota, so that servers read what is not announced now and then.
      "ALTER TABLE dragoman.account_states ADD COLUMN arrived bigint",
      "CREATE INDEX account_states_arrived ON dragoman.account_states (arrived)",
    ],
  },
  {
    compatibleWith: 1,
    // Of members' accounts; for the owner's, the config has both. An account without a place comes after those that have one.
    statements: [
      "ALTER TABLE dragoman.accounts ADD COLUMN paused boolean NOT NULL DEFAULT false, ADD COLUMN place int",
    ],
  },
  { compatibleWith: 1, statements: holderSlices },
  { compatibleWith: 1, statements: firstRequests },
  {
    compatibleWith: 1,
    statements: [
      // Questions about statistics that took long: filters without times, and what they are grouped by.
      "CREATE TABLE dragoman.questions (question jsonb PRIMARY KEY, asked_at timestamptz NOT NULL DEFAULT now())",
    ],
  },
  {
    // One from before holds no member to limits of their own, and knows no budget with an amount for each.
    compatibleWith: 9,
    statements: [
      // No version has written or read them.
      "ALTER TABLE dragoman.keys DROP COLUMN limits, DROP COLUMN last_used_at_ms",
      // Nobody reads this, `account_states.epoch` and `requests.replica`, but servers of the version before write them: they can
      // be dropped by a step that is compatible with this one.
      "ALTER TABLE dragoman.members ALTER COLUMN role SET DEFAULT 'member'",
      // The steps that a server knows; null for one of a version before.
      "ALTER TABLE dragoman.replicas ADD COLUMN schema_version int",
    ],
  },
  {
    compatibleWith: 9,
    statements: [
      // After a failover to a standby that lagged, numbers of lost changes are given to others, which have another mark.
      "ALTER TABLE dragoman.revisions ADD COLUMN mark uuid NOT NULL DEFAULT gen_random_uuid()",
      `CREATE OR REPLACE FUNCTION dragoman.announce_change(changed text) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE number bigint; made uuid;
        BEGIN
          UPDATE dragoman.revisions SET revision = revision + 1, mark = gen_random_uuid() WHERE name = changed
            RETURNING revision, mark INTO STRICT number, made;
          PERFORM pg_notify('dragoman', json_build_object('table', changed, 'revision', number, 'mark', made)::text);
          RETURN number;
        END $$`,
      // A server of the version before claims what is sent, so that is not open.
      `ALTER TABLE dragoman.notices ADD COLUMN is_open boolean NOT NULL DEFAULT false,
        ADD COLUMN tried_at timestamptz NOT NULL DEFAULT now(), ADD COLUMN delivered jsonb NOT NULL DEFAULT '[]'`,
    ],
  },
];

/** The number of steps that this version knows. */
export const schemaVersion = steps.length;

/** Oldest supported. */
const minServerVersion = 150_000;

/**
 * Leads the database to this version's schema, unless it is newer and still works with this version. Of several servers one
 * does it while the others wait.
 * @throws ProxyError if the database is too new or Postgres too old.
 */
export async function migrate(postgres: Postgres): Promise<void> {
  await postgres.transact(async (sql) => {
    await requireServer(sql);
    await sql`SELECT pg_advisory_xact_lock(hashtextextended('dragoman migrate', 0))`;
    await sql.unsafe("CREATE SCHEMA IF NOT EXISTS dragoman");
    await sql.unsafe(`CREATE TABLE IF NOT EXISTS dragoman.schema (singleton boolean PRIMARY KEY DEFAULT true
      CHECK (singleton), version int NOT NULL, compatible_with int NOT NULL)`);
    const [row] = await sql<VersionRow[]>`SELECT version, compatible_with FROM dragoman.schema`;
    requireCompatible(row);
    for (const { statements } of steps.slice(row?.version ?? 0))
      for (const statement of statements) await sql.unsafe(statement);
    await addColumns(sql);
    const compatibleWith = steps.at(-1)!.compatibleWith;
    if ((row?.version ?? 0) < schemaVersion)
      await sql`INSERT INTO dragoman.schema (version, compatible_with) VALUES (${schemaVersion}, ${compatibleWith})
        ON CONFLICT (singleton) DO UPDATE SET version = ${schemaVersion}, compatible_with = ${compatibleWith}`;
  }, migrateTimeoutMs);
}

interface VersionRow {
  version: number;
  compatible_with: number;
}

/** Milliseconds. Other servers wait as long. */
const migrateTimeoutMs = 10 * 60_000;

async function requireServer(sql: TransactionSQL): Promise<void> {
  const [row] = await sql<{ server_version_num: string }[]>`SHOW server_version_num`;
  if (Number(row!.server_version_num) < minServerVersion)
    throw new ProxyError(
      "invalid_request",
      `dragoman needs Postgres 15 or newer; this one is ${Math.floor(Number(row!.server_version_num) / 10_000)}.`,
    );
}

function requireCompatible(row: VersionRow | undefined): void {
  if (row === undefined || row.compatible_with <= schemaVersion) return;
  throw new ProxyError(
    "invalid_request",
    `The database was changed by a newer dragoman (schema ${row.version}), which this version does not understand (schema ${schemaVersion}). Update dragoman.`,
    { code: "schema_too_new" },
  );
}

/** A column that the history has since a later version. */
async function addColumns(sql: TransactionSQL): Promise<void> {
  const present = await sql<{ column_name: string }[]>`SELECT column_name FROM information_schema.columns
    WHERE table_schema = 'dragoman' AND table_name = 'requests'`;
  const names = new Set(present.map(({ column_name }) => column_name));
  for (const name of columnNames)
    if (!names.has(name))
      await sql.unsafe(`ALTER TABLE dragoman.requests ADD COLUMN ${name} ${columnType(entryColumns[name])}`);
}
