/** Copilot tokens that servers share through Postgres: one is exchanged once for all of them. */
import { aboutCopilotToken } from "../lib/seals";
import { renewBefore, type SharedSignIn } from "../people/accounts/account-sync";
import type { FreshToken, Unavailable } from "../people/accounts/copilot-token";
import { isAwayError } from "./away";
import type { StoreParts } from "./parts";
import { holdSealKey } from "./seal-key";

/** Milliseconds that another server's exchange is waited for. After that each makes its own: several valid tokens do no harm. */
const waitMs = 2_000;
/** The first and the longest pause between two looks, ms. */
const [firstPause, longestPause] = [20, 200];

/**
 * One exchange for all servers: who locks the account's row makes it, the others wait for its result. The lock ends by itself, as a
 * server may be killed. Without the database each server makes its own.
 */
export async function sharedToken(
  parts: StoreParts,
  account: SharedSignIn,
  refused: string | undefined,
  exchange: () => Promise<FreshToken | Unavailable>,
): Promise<FreshToken | Unavailable> {
  const found = await tokenOrLock(parts, account, refused);
  if (found !== "locked" && found !== "alone") return found;
  try {
    const fresh = await exchange();
    // Also the one that this server made alone: if GitHub refused it, an older one would be found in its place, and be refused too.
    if ("token" in fresh && fresh.token.mode === "exchange") await storeToken(parts, account, fresh);
    return fresh;
  } finally {
    if (found === "locked") await unlock(parts, account);
  }
}

/** @returns What another server has stored; `locked` if this one makes the exchange for all, `alone` if it does for itself. */
async function tokenOrLock(
  parts: StoreParts,
  account: SharedSignIn,
  refused: string | undefined,
): Promise<FreshToken | "locked" | "alone"> {
  const deadline = performance.now() + waitMs;
  let isLocked = false;
  try {
    for (let pause = firstPause; performance.now() < deadline; pause = Math.min(pause * 2, longestPause)) {
      const stored = await readToken(parts, account, refused);
      // Another server may have stored it just before it released the lock.
      if (stored && isLocked) await unlock(parts, account);
      if (stored || isLocked) return stored ?? "locked";
      isLocked = await tryLock(parts, account);
      if (!isLocked) await Bun.sleep(pause);
    }
  } catch (thrown) {
    if (!isAwayError(thrown)) parts.logger.error(`The Copilot token of ${account.key} could not be shared.`, thrown);
  }
  if (isLocked) await unlock(parts, account);
  return "alone";
}

/** @returns False while another server exchanges, and for an account that was removed or signed in anew. */
async function tryLock({ postgres }: StoreParts, { key, signIn }: SharedSignIn): Promise<boolean> {
  const locked = await postgres.requests.ask(
    (sql) => sql`INSERT INTO dragoman.copilot_tokens AS old (account, exchanging_until)
      SELECT key, now() + make_interval(secs => ${waitMs / 1_000}) FROM dragoman.accounts
        WHERE key = ${key} AND sign_in = ${signIn}
      ON CONFLICT (account) DO UPDATE SET exchanging_until = excluded.exchanging_until
        WHERE coalesce(old.exchanging_until < now(), true) RETURNING 1`,
  );
  return locked.length > 0;
}

async function unlock({ postgres, logger }: StoreParts, { key }: SharedSignIn): Promise<void> {
  try {
    await postgres.requests.ask(
      (sql) => sql`UPDATE dragoman.copilot_tokens SET exchanging_until = NULL WHERE account = ${key}`,
    );
  } catch (thrown) {
    // It ends by itself.
    if (!isAwayError(thrown)) logger.error(`The lock of ${key} could not be released.`, thrown);
  }
}

interface TokenRow {
  sealed_token: Uint8Array;
  base_url: string;
  fresh_for: number;
  lifetime: number;
  stated_expires_at_ms: number | null;
}

async function readToken(
  { postgres, seals, logger }: StoreParts,
  { key, signIn }: SharedSignIn,
  refused: string | undefined,
): Promise<FreshToken | undefined> {
  // Times are by the clock of the database, as those of servers may differ.
  const [row] = await postgres.requests.ask(
    (sql) => sql<TokenRow[]>`SELECT copilot_tokens.sealed_token, base_url,
      (extract(epoch FROM fresh_until - now()) * 1000)::float8 AS fresh_for,
      (extract(epoch FROM expires_at - now()) * 1000)::float8 AS lifetime,
      stated_expires_at_ms::float8 AS stated_expires_at_ms FROM dragoman.copilot_tokens
      JOIN dragoman.accounts ON key = account AND sign_in = ${signIn} WHERE account = ${key} AND copilot_tokens.sealed_token IS NOT NULL`,
  );
  if (!row || row.fresh_for <= renewBefore) return undefined;
  let bearer: string;
  try {
    bearer = seals.open(row.sealed_token, aboutCopilotToken(key));
  } catch (thrown) {
    // A new one takes its place.
    logger.error(`The Copilot token of ${key} in the database cannot be used.`, thrown);
    return undefined;
  }
  if (bearer === refused) return undefined;
  const expiresAt = row.stated_expires_at_ms ?? undefined;
  return {
    token: { bearer, baseUrl: row.base_url, mode: "exchange", expiresAt },
    freshFor: row.fresh_for,
    lifetime: row.lifetime,
  };
}

/** A token that cannot be stored serves this server alone. */
async function storeToken(parts: StoreParts, account: SharedSignIn, fresh: FreshToken): Promise<void> {
  const { postgres, seals, logger } = parts;
  const { token, freshFor, lifetime } = fresh;
  try {
    await postgres.requests.transact(async (sql) => {
      await holdSealKey(sql, seals);
      const sealed = seals.seal(token.bearer, aboutCopilotToken(account.key));
      await sql`INSERT INTO dragoman.copilot_tokens
          (account, sealed_token, base_url, fresh_until, expires_at, stated_expires_at_ms)
        SELECT key, ${sealed}::bytea, ${token.baseUrl}::text,
          now() + make_interval(secs => ${freshFor / 1_000}), now() + make_interval(secs => ${lifetime / 1_000}),
          ${token.expiresAt ?? null}::bigint
          -- Unless the account was removed or signed in anew meanwhile.
          FROM dragoman.accounts WHERE key = ${account.key} AND sign_in = ${account.signIn}
        ON CONFLICT (account) DO UPDATE SET sealed_token = excluded.sealed_token, base_url = excluded.base_url, fresh_until = excluded.fresh_until, expires_at = excluded.expires_at,
          stated_expires_at_ms = excluded.stated_expires_at_ms`;
    });
  } catch (thrown) {
    if (!isAwayError(thrown)) logger.error(`The Copilot token of ${account.key} could not be stored.`, thrown);
  }
}
