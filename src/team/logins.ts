/** Sign-ins from tools in Postgres: whichever server is asked. The key of a sign-in is one of the member's keys. */
import { randomBytes } from "node:crypto";
import type { TransactionSQL } from "bun";
import { asProxyError, ProxyError } from "../lib/errors";
import { sha256 } from "../lib/net/in/credentials";
import type { AccessTokens } from "../people/keys/access-tokens";
import {
  type BegunLogin,
  type LoginRefusal,
  type Logins,
  type LoginTokens,
  loginTimes,
  newToken,
  newUserCode,
  type WaitingLogin,
} from "../people/keys/logins";
import { addKey, loginIsOver, revokeKeys } from "./member-changes";
import type { StoreParts } from "./parts";

/** Sign-ins that wait, of everybody and of one network. */
const [maxWaiting, maxOfNetwork] = [2_000, 30];
/** Seconds for which a refresh token that was used is taken once more: the answer may have been lost. */
const graceSeconds = 60;

interface DeviceRow {
  state: "waiting" | "approved" | "denied" | "used";
  tool: string;
  member: string | null;
  key: Uint8Array | null;
  isLate: boolean;
  isFast: boolean;
}

interface LoginRow {
  key: Uint8Array;
  member: string;
  name: string;
  isCurrent: boolean;
  isStale: boolean;
  isGone: boolean;
}

export class TeamLogins implements Logins {
  readonly #parts: StoreParts;
  readonly #tokens: AccessTokens;

  constructor(parts: StoreParts, tokens: AccessTokens) {
    this.#parts = parts;
    this.#tokens = tokens;
  }

  async begin(tool: string, network: string | null): Promise<BegunLogin> {
    const [deviceCode, userCode] = [newToken("drd"), newUserCode()];
    await this.#parts.postgres.transact(async (sql) => {
      // Those that count wait for one another.
      await sql`SELECT pg_advisory_xact_lock(hashtextextended('dragoman device logins', 0))`;
      await sql`DELETE FROM dragoman.device_logins WHERE expires_at < now() - interval '10 minutes'`;
      const [row] = await sql<{ all: number; here: number }[]>`SELECT count(*)::int AS all,
        (count(*) FILTER (WHERE network = ${network}))::int AS here
        FROM dragoman.device_logins WHERE state = 'waiting' AND expires_at > now()`;
      if (row!.all >= maxWaiting || row!.here >= maxOfNetwork) throw tooMany();
      await sql`INSERT INTO dragoman.device_logins (device_sha256, user_code, tool, network, expires_at)
        VALUES (${sha256(deviceCode)}, ${userCode}, ${tool}, ${network}, now() + make_interval(secs => ${loginTimes.code}))`;
    });
    return { deviceCode, userCode, expiresIn: loginTimes.code, interval: loginTimes.interval };
  }

  async waiting(userCode: string): Promise<WaitingLogin | undefined> {
    const [row] = await this.#parts.postgres.ask(
      (sql) => sql<WaitingLogin[]>`SELECT tool, network,
        floor(extract(epoch FROM began_at) * 1000)::float8 AS "beganAt",
        floor(extract(epoch FROM expires_at) * 1000)::float8 AS "expiresAt"
        FROM dragoman.device_logins WHERE user_code = ${userCode} AND state = 'waiting' AND expires_at > now()`,
    );
    return row;
  }

  async decide(userCode: string, approved: { member: string; key: Uint8Array } | undefined): Promise<boolean> {
    const state = approved ? "approved" : "denied";
    const key = approved ? Buffer.from(approved.key) : null;
    const decided = await this.#parts.postgres.ask(
      (
        sql,
      ) => sql`UPDATE dragoman.device_logins SET state = ${state}, member = ${approved?.member ?? null}, key = ${key}
        WHERE user_code = ${userCode} AND state = 'waiting' AND expires_at > now() RETURNING 1`,
    );
    return decided.length > 0;
  }

  async poll(deviceCode: string): Promise<LoginTokens | LoginRefusal> {
    const digest = sha256(deviceCode);
    const polled = await this.#parts.postgres.transact(async (sql): Promise<Issued | LoginRefusal> => {
      const [row] = await sql<DeviceRow[]>`SELECT state, tool, member, key, expires_at <= now() AS "isLate",
        coalesce(polled_at > now() - make_interval(secs => poll_seconds - 1), false) AS "isFast"
        FROM dragoman.device_logins WHERE device_sha256 = ${digest} FOR UPDATE`;
      if (!row || row.state === "used") return "invalid_grant";
      if (row.isLate) return "expired_token";
      if (row.state === "denied") return "access_denied";
      if (row.isFast) {
        await sql`UPDATE dragoman.device_logins SET polled_at = now(), poll_seconds = least(poll_seconds + 5, 60)
          WHERE device_sha256 = ${digest}`;
        return "slow_down";
      }
      await sql`UPDATE dragoman.device_logins SET polled_at = now(),
        state = ${row.state === "approved" ? "used" : row.state} WHERE device_sha256 = ${digest}`;
      return row.state === "approved" ? makeKey(sql, row) : "authorization_pending";
    });
    return typeof polled === "string" ? polled : this.#issue(polled);
  }

  async refresh(refreshToken: string): Promise<LoginTokens | undefined> {
    const digest = sha256(refreshToken);
    const issued = await this.#parts.postgres.transact(async (sql): Promise<Issued | undefined> => {
      const row = await findLogin(sql, digest);
      if (!row || row.isGone) return undefined;
      // It was used before, and somebody has the tokens that were given for it.
      if (!row.isCurrent && row.isStale) {
        await revokeKeys(sql, sql`sha256 = ${Buffer.from(row.key)}`);
        return undefined;
      }
      const next = newToken("drr");
      await sql`UPDATE dragoman.logins SET refresh_sha256 = ${sha256(next)}, previous_sha256 = refresh_sha256, renewed_at = now()
        WHERE key = ${Buffer.from(row.key)}`;
      return { digest: row.key, refreshToken: next, member: row.name };
    });
    await this.#parts.changes.tryCatchUp("keys");
    return issued && this.#issue(issued);
  }

  async end(token: string): Promise<void> {
    const access = this.#tokens.read(token);
    await this.#parts.postgres.transact(async (sql) => {
      const key = access?.digest ?? (await findLogin(sql, sha256(token)))?.key;
      if (key) await revokeKeys(sql, sql`sha256 = ${Buffer.from(key)}`);
    });
    await this.#parts.changes.tryCatchUp("keys");
  }

  async #issue({ digest, refreshToken, member }: Issued): Promise<LoginTokens> {
    await this.#parts.changes.tryCatchUp("keys");
    const accessToken = this.#tokens.make(digest, Date.now() + loginTimes.access * 1_000);
    return { accessToken, refreshToken, expiresIn: loginTimes.access, member };
  }
}

interface Issued {
  /** Of the key. */
  digest: Uint8Array;
  refreshToken: string;
  member: string;
}

/** The key that the member confirmed, if the key with which they did is still good. */
async function makeKey(sql: TransactionSQL, { tool, member, key }: DeviceRow): Promise<Issued | LoginRefusal> {
  const [known] = await sql<{ name: string }[]>`SELECT name FROM dragoman.members
    WHERE id = ${member} AND removed_at_ms IS NULL`;
  if (!known) return "access_denied";
  // Nothing has this SHA-256: the key can be used by its tokens only.
  const digest = randomBytes(32);
  const refreshToken = newToken("drr");
  const names = await sql<{ name: string }[]>`SELECT lower(name) AS name FROM dragoman.keys
    WHERE member = ${member} AND revoked_at_ms IS NULL`;
  const wanted = { name: freeName(tool, new Set(names.map(({ name }) => name))), models: null, expiresAt: null };
  try {
    await addKey(sql, member!, { ...wanted, by: key!, digest });
  } catch (thrown) {
    if (asProxyError(thrown).kind === "authentication") return "access_denied";
    throw thrown;
  }
  await sql`INSERT INTO dragoman.logins (key, refresh_sha256) VALUES (${digest}, ${sha256(refreshToken)})`;
  return { digest, refreshToken, member: known.name };
}

function freeName(tool: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? tool : `${tool} ${number}`;
    if (!taken.has(name.toLowerCase())) return name;
  }
}

async function findLogin(sql: TransactionSQL, digest: Buffer): Promise<LoginRow | undefined> {
  const [row] = await sql<LoginRow[]>`SELECT logins.key, keys.member, members.name,
      refresh_sha256 = ${digest} AS "isCurrent", renewed_at < now() - make_interval(secs => ${graceSeconds}) AS "isStale",
      revoked_at_ms IS NOT NULL OR removed_at_ms IS NOT NULL OR ${loginIsOver(sql)} AS "isGone"
    FROM dragoman.logins JOIN dragoman.keys ON keys.sha256 = logins.key JOIN dragoman.members ON members.id = keys.member
    WHERE refresh_sha256 = ${digest} OR previous_sha256 = ${digest} FOR UPDATE OF logins`;
  return row;
}

const tooMany = () =>
  new ProxyError("rate_limit", "Too many sign-ins wait for somebody to confirm them. Try again in some minutes.", {
    code: "slow_down",
    headers: { "retry-after": "60" },
  });
