/** Sign-ins from tools, in tables: whichever server is asked. The key of a sign-in is one of the member's keys. */
import { asProxyError, ProxyError } from "../../lib/errors";
import { sha256 } from "../../lib/net/in/credentials";
import { asNumber, sql, type Tables } from "../../lib/sql";
import type { AccessTokens } from "./access-tokens";
import {
  type BegunLogin,
  type LoginRefusal,
  type Logins,
  type LoginTokens,
  loginTimes,
  newToken,
  newUserCode,
  type WaitingLogin,
} from "./logins";
import { addKey, loginIsOver, revokeKeys } from "./member-changes";
import type { StoredMembers } from "./stored-members";

/** Sign-ins that wait, of everybody and of one network. */
const [maxWaiting, maxOfNetwork] = [2_000, 30];
/** Milliseconds for which a refresh token that was used is taken once more: the answer may have been lost. */
const graceMs = 60_000;

/** Conditions are 1 or 0. */
interface DeviceRow {
  state: "waiting" | "approved" | "denied" | "used";
  tool: string;
  member: string | null;
  key: string | null;
  late: number;
  fast: number;
}

interface LoginRow {
  key: string;
  member: string;
  name: string;
  current: number;
  stale: number;
  gone: number;
}

const oneIf = (condition: ReturnType<typeof sql>) => sql`CASE WHEN ${condition} THEN 1 ELSE 0 END`;
const digestOf = (secret: string) => sha256(secret).toString("hex");

export class StoredLogins implements Logins {
  readonly #tables: Tables;
  readonly #tokens: AccessTokens;
  readonly #members: Pick<StoredMembers, "forget">;

  /** @param members Is told of changed keys. */
  constructor(tables: Tables, tokens: AccessTokens, members: Pick<StoredMembers, "forget">) {
    this.#tables = tables;
    this.#tokens = tokens;
    this.#members = members;
  }

  async begin(tool: string, network: string | null): Promise<BegunLogin> {
    const [deviceCode, userCode] = [newToken("drd"), newUserCode()];
    await this.#tables.transact(async (tables) => {
      const { now } = tables;
      // Those that count wait for one another.
      await tables.lock("device logins");
      await tables.ask(sql`DELETE FROM dragoman.device_logins WHERE expires_at_ms < ${now} - 600000`);
      const [row] = await tables.ask<{
        everybody: number;
        here: number;
      }>(sql`SELECT ${asNumber("count(*)")} AS everybody,
        CAST(count(*) FILTER (WHERE network = ${network}) AS double precision) AS here
        FROM dragoman.device_logins WHERE state = 'waiting' AND expires_at_ms > ${now}`);
      if (row!.everybody >= maxWaiting || row!.here >= maxOfNetwork) throw tooMany();
      await tables.ask(sql`INSERT INTO dragoman.device_logins
          (device_sha256, user_code, tool, network, began_at_ms, expires_at_ms)
        VALUES (${digestOf(deviceCode)}, ${userCode}, ${tool}, ${network}, ${now}, ${now} + ${loginTimes.code * 1_000})`);
    });
    return { deviceCode, userCode, expiresIn: loginTimes.code, interval: loginTimes.interval };
  }

  async waiting(userCode: string): Promise<WaitingLogin | undefined> {
    const [row] = await this.#tables.ask<
      Omit<WaitingLogin, "beganAt" | "expiresAt"> & { began: number; until: number }
    >(
      sql`SELECT tool, network, ${asNumber("began_at_ms")} AS began, ${asNumber("expires_at_ms")} AS until
        FROM dragoman.device_logins
        WHERE user_code = ${userCode} AND state = 'waiting' AND expires_at_ms > ${this.#tables.now}`,
    );
    return row && { tool: row.tool, network: row.network, beganAt: row.began, expiresAt: row.until };
  }

  async decide(userCode: string, approved: { member: string; key: Uint8Array } | undefined): Promise<boolean> {
    const decided = await this.#tables.ask(sql`UPDATE dragoman.device_logins
      SET state = ${approved ? "approved" : "denied"}, member = ${approved?.member}, key = ${approved?.key.toHex()}
      WHERE user_code = ${userCode} AND state = 'waiting' AND expires_at_ms > ${this.#tables.now} RETURNING 1 AS one`);
    return decided.length > 0;
  }

  async poll(deviceCode: string): Promise<LoginTokens | LoginRefusal> {
    const digest = digestOf(deviceCode);
    const polled = await this.#tables.transact(async (tables): Promise<Issued | LoginRefusal> => {
      const { now } = tables;
      const [row] =
        await tables.ask<DeviceRow>(sql`SELECT state, tool, member, key, ${oneIf(sql`expires_at_ms <= ${now}`)} AS late,
          ${oneIf(sql`polled_at_ms > ${now} - (poll_seconds - 1) * 1000`)} AS fast
        FROM dragoman.device_logins WHERE device_sha256 = ${digest} ${tables.forUpdate}`);
      if (!row || row.state === "used") return "invalid_grant";
      if (row.late) return "expired_token";
      if (row.state === "denied") return "access_denied";
      if (row.fast) {
        await tables.ask(sql`UPDATE dragoman.device_logins SET polled_at_ms = ${now},
            poll_seconds = CASE WHEN poll_seconds > 55 THEN 60 ELSE poll_seconds + 5 END
          WHERE device_sha256 = ${digest}`);
        return "slow_down";
      }
      await tables.ask(sql`UPDATE dragoman.device_logins SET polled_at_ms = ${now},
        state = ${row.state === "approved" ? "used" : row.state} WHERE device_sha256 = ${digest}`);
      return row.state === "approved" ? makeKey(tables, row) : "authorization_pending";
    });
    return typeof polled === "string" ? polled : this.#issue(polled);
  }

  async refresh(refreshToken: string): Promise<LoginTokens | undefined> {
    const digest = digestOf(refreshToken);
    const issued = await this.#tables.transact(async (tables): Promise<Issued | undefined> => {
      const row = await findLogin(tables, digest);
      if (!row || row.gone) return undefined;
      // It was used before, and somebody has the tokens that were given for it.
      if (!row.current && row.stale) {
        await revokeKeys(tables, sql`sha256 = ${row.key}`);
        return undefined;
      }
      const next = newToken("drr");
      await tables.ask(sql`UPDATE dragoman.logins
        SET previous_sha256 = refresh_sha256, refresh_sha256 = ${digestOf(next)}, renewed_at_ms = ${tables.now}
        WHERE key = ${row.key}`);
      return { digest: row.key, refreshToken: next, member: row.name };
    });
    if (!issued) this.#members.forget();
    return issued && this.#issue(issued);
  }

  async end(token: string): Promise<void> {
    const access = this.#tokens.read(token);
    await this.#tables.transact(async (tables) => {
      const key = access?.digest.toString("hex") ?? (await findLogin(tables, digestOf(token)))?.key;
      if (key) await revokeKeys(tables, sql`sha256 = ${key}`);
    });
    this.#members.forget();
  }

  #issue({ digest, refreshToken, member }: Issued): LoginTokens {
    this.#members.forget();
    const accessToken = this.#tokens.make(Buffer.from(digest, "hex"), Date.now() + loginTimes.access * 1_000);
    return { accessToken, refreshToken, expiresIn: loginTimes.access, member };
  }
}

interface Issued {
  /** Of the key, in hexadecimal. */
  digest: string;
  refreshToken: string;
  member: string;
}

/** The key that the member confirmed, if the key with which they did is still good. */
async function makeKey(tables: Tables, { tool, member, key }: DeviceRow): Promise<Issued | LoginRefusal> {
  const [known] = await tables.ask<{ name: string }>(sql`SELECT name FROM dragoman.members
    WHERE id = ${member} AND removed_at_ms IS NULL`);
  if (!known) return "access_denied";
  // Nothing has this SHA-256: the key can be used by its tokens only.
  const digest = crypto.getRandomValues(Buffer.alloc(32)).toString("hex");
  const refreshToken = newToken("drr");
  const names = await tables.ask<{ folded: string }>(sql`SELECT folded FROM dragoman.keys
    WHERE member = ${member} AND revoked_at_ms IS NULL`);
  const wanted = { name: freeName(tool, new Set(names.map(({ folded }) => folded))), models: null, expiresAt: null };
  try {
    await addKey(tables, member!, { ...wanted, by: Buffer.from(key!, "hex"), digest });
  } catch (thrown) {
    if (asProxyError(thrown).kind === "authentication") return "access_denied";
    throw thrown;
  }
  await tables.ask(sql`INSERT INTO dragoman.logins (key, refresh_sha256, renewed_at_ms)
    VALUES (${digest}, ${digestOf(refreshToken)}, ${tables.now})`);
  return { digest, refreshToken, member: known.name };
}

function freeName(tool: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? tool : `${tool} ${number}`;
    if (!taken.has(name.toLowerCase())) return name;
  }
}

/** Another poll with the same token waits for the end of the transaction. */
async function findLogin(tables: Tables, digest: string): Promise<LoginRow | undefined> {
  const { now } = tables;
  await tables.ask(sql`SELECT key FROM dragoman.logins
    WHERE refresh_sha256 = ${digest} OR previous_sha256 = ${digest} ${tables.forUpdate}`);
  const [row] = await tables.ask<LoginRow>(sql`SELECT logins.key, keys.member, members.name,
      ${oneIf(sql`refresh_sha256 = ${digest}`)} AS current, ${oneIf(sql`renewed_at_ms < ${now} - ${graceMs}`)} AS stale,
      ${oneIf(sql`revoked_at_ms IS NOT NULL OR removed_at_ms IS NOT NULL OR ${loginIsOver(tables)}`)} AS gone
    FROM dragoman.logins JOIN dragoman.keys ON keys.sha256 = logins.key JOIN dragoman.members ON members.id = keys.member
    WHERE refresh_sha256 = ${digest} OR previous_sha256 = ${digest}`);
  return row;
}

const tooMany = () =>
  new ProxyError("rate_limit", "Too many sign-ins wait for somebody to confirm them. Try again in some minutes.", {
    code: "slow_down",
    headers: { "retry-after": "60" },
  });
