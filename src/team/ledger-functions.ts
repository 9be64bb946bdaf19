/**
 * The ledger's transactions as functions of the database: one round trip each, so that the row of a busy budget is locked for as
 * short as possible. The rows of the ledger are locked before those of reservations, and in the order of their keys, so that two
 * requests never wait for each other.
 */

/** Identifies a row of the ledger. */
const period = "budget text, session text, start_ms bigint";
const isOf = (row: string) => `(budget, session, start_ms) = (${row}.budget, ${row}.session, ${row}.start_ms)`;

const tryAgain = {
  first: `IF FOUND OR dragoman.expire_reservations(at) THEN
            granted := dragoman.reserve_in(at, entry.amount, entry.cap, entry.price_known);
          END IF;`,
  // Another request may have made the row, or freed what was held, a moment ago.
  always: `PERFORM dragoman.expire_reservations(at);
          granted := dragoman.reserve_in(at, entry.amount, entry.cap, entry.price_known);`,
};

/** @param again What is done after the row of the period was made. */
const reserveFunction = (again: string) =>
  `CREATE OR REPLACE FUNCTION dragoman.reserve(reservation uuid, of_replica uuid, lifetime_ms bigint, entries jsonb) RETURNS int
  LANGUAGE plpgsql AS $$
  DECLARE entry record; at dragoman.ledger; granted boolean;
  BEGIN
    FOR entry IN
      SELECT * FROM jsonb_to_recordset(entries)
        AS given(place int, ${period}, amount bigint, cap bigint, price_known boolean)
        ORDER BY budget, session, start_ms
    LOOP
      at := NULL;
      at.budget := entry.budget;
      at.session := entry.session;
      at.start_ms := entry.start_ms;
      granted := dragoman.reserve_in(at, entry.amount, entry.cap, entry.price_known);
      IF NOT granted THEN
        -- The first request of the period has no row yet; or requests that were killed hold what is missing.
        INSERT INTO dragoman.ledger (budget, session, start_ms) VALUES (at.budget, at.session, at.start_ms)
          ON CONFLICT DO NOTHING;
        ${again}
      END IF;
      IF NOT granted THEN
        RAISE SQLSTATE 'DG001' USING MESSAGE = entry.place::text;
      END IF;
      INSERT INTO dragoman.reservations (id, budget, session, start_ms, amount, replica, expires_at)
        VALUES (reservation, at.budget, at.session, at.start_ms, entry.amount, of_replica,
          now() + make_interval(secs => lifetime_ms / 1000.0));
    END LOOP;
    RETURN NULL;
  EXCEPTION WHEN SQLSTATE 'DG001' THEN
    RETURN SQLERRM::int;
  END $$`;

/** As it was released first: a step never changes. `holderSlices` replaces it, and is what every database has. */
const replacedTakeSlice = `CREATE FUNCTION dragoman.take_slice(of_replica uuid, lifetime_ms bigint, of_budget text, of_session text, of_start bigint,
      cap bigint, share double precision, at_least bigint) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE at dragoman.ledger; held dragoman.reservations; own bigint := 0; spare bigint; taken bigint := 0;
    BEGIN
      SELECT * INTO held FROM dragoman.reservations WHERE id = of_replica AND budget = of_budget;
      IF held.state = 'running' AND (held.session, held.start_ms) <> (of_session, of_start) THEN
        -- Of the period before.
        PERFORM dragoman.take_slice(of_replica, lifetime_ms, of_budget, held.session, held.start_ms, 0, 0, 0);
      END IF;
      SELECT * INTO at FROM dragoman.ledger
        WHERE (budget, session, start_ms) = (of_budget, of_session, of_start) FOR UPDATE;
      IF NOT FOUND THEN
        RETURN 0;
      END IF;
      SELECT * INTO held FROM dragoman.reservations WHERE id = of_replica AND budget = of_budget FOR UPDATE;
      IF held.state = 'running' THEN
        own := held.amount;
      END IF;
      spare := cap - at.used - (at.reserved - own);
      IF share > 0 AND spare >= greatest(at_least, 1) THEN
        taken := least(spare, greatest(floor(spare * share)::bigint, at_least, 1));
      END IF;
      IF taken = 0 AND own = 0 THEN
        RETURN 0;
      END IF;
      INSERT INTO dragoman.reservations (id, budget, session, start_ms, amount, replica, state, is_slice, expires_at)
        VALUES (of_replica, of_budget, of_session, of_start, taken, of_replica,
          CASE WHEN taken > 0 THEN 'running' ELSE 'settled' END, true,
          now() + make_interval(secs => lifetime_ms / 1000.0))
        ON CONFLICT (id, budget) DO UPDATE SET session = excluded.session, start_ms = excluded.start_ms,
          amount = excluded.amount, state = excluded.state, expires_at = excluded.expires_at, changed_at = now();
      UPDATE dragoman.ledger SET reserved = reserved - own + taken WHERE ${isOf("at")};
      RETURN taken;
    END $$`;

/** Those of the first step. Of `reserve`, `firstRequests` is what every database has. */
export const ledgerFunctions = [
  // Frees what requests had reserved that have not ended in time: their server was killed. True if there were any.
  `CREATE FUNCTION dragoman.expire_reservations(period dragoman.ledger) RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE freed bigint;
    BEGIN
      PERFORM 1 FROM dragoman.ledger WHERE ${isOf("period")} FOR UPDATE;
      WITH ended AS (
        UPDATE dragoman.reservations SET amount = 0, state = 'expired', changed_at = now()
          WHERE ${isOf("period")} AND state = 'running' AND expires_at <= now() RETURNING id, budget)
      -- This reads the amounts as they were before the update.
      SELECT sum(amount) INTO freed FROM dragoman.reservations JOIN ended USING (id, budget);
      UPDATE dragoman.ledger SET reserved = reserved - freed WHERE ${isOf("period")} AND freed IS NOT NULL;
      RETURN freed IS NOT NULL;
    END $$`,
  // Adds an amount to what a period has reserved, if that much is left.
  `CREATE FUNCTION dragoman.reserve_in(period dragoman.ledger, amount bigint, cap bigint, price_known boolean)
    RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE dragoman.ledger SET reserved = reserved + amount, changed_at = now()
        WHERE ${isOf("period")} AND (cap IS NULL OR (price_known AND amount = 0)
          OR (price_known AND used + reserved + amount <= cap) OR (NOT price_known AND used + reserved < cap));
      RETURN FOUND;
    END $$`,
  // Reserves in all periods or in none. \`cap\` is null for a budget that stops nothing; with \`price_known\` false the amount is 0 and
  // the price unknown. Returns null, or the place of a period that has too little left.
  reserveFunction(tryAgain.first),
  // Replaces a reservation by what was used, also after it has expired. May be called again when nobody knows whether the first
  // call arrived.
  `CREATE FUNCTION dragoman.settle(reservation uuid, of_replica uuid, entries jsonb) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE entry record; held dragoman.reservations;
    BEGIN
      FOR entry IN
        SELECT * FROM jsonb_to_recordset(entries) AS given(${period}, amount bigint, unknown bigint)
          ORDER BY budget, session, start_ms
      LOOP
        INSERT INTO dragoman.ledger (budget, session, start_ms) VALUES (entry.budget, entry.session, entry.start_ms)
          ON CONFLICT (budget, session, start_ms) DO UPDATE SET changed_at = now();
        SELECT * INTO held FROM dragoman.reservations WHERE id = reservation AND budget = entry.budget FOR UPDATE;
        CONTINUE WHEN held.state = 'settled';
        INSERT INTO dragoman.reservations (id, budget, session, start_ms, amount, replica, state, expires_at)
          VALUES (reservation, entry.budget, entry.session, entry.start_ms, 0, of_replica, 'settled', now())
          ON CONFLICT (id, budget) DO UPDATE SET amount = 0, state = 'settled', changed_at = now();
        UPDATE dragoman.ledger SET used = used + entry.amount, unknown = ledger.unknown + entry.unknown,
            reserved = reserved - coalesce(held.amount, 0)
          WHERE ${isOf("entry")};
      END LOOP;
    END $$`,
  replacedTakeSlice,
];

/**
 * What a server holds of a period so that it can go on without the database: `share` of what is left, at least `at_least`, or
 * nothing. A slice is a reservation: that of an amount that all share has the server's id; that of a member, key or account has an
 * id made of both. Returns the amount of the new slice, which replaces the one before.
 */
export const holderSlices = [
  `CREATE OR REPLACE FUNCTION dragoman.take_slice(of_replica uuid, lifetime_ms bigint, of_budget text, of_session text,
      of_start bigint, cap bigint, share double precision, at_least bigint) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE at dragoman.ledger; held dragoman.reservations; own bigint := 0; spare bigint; taken bigint := 0;
      slice uuid := CASE of_session WHEN '' THEN of_replica ELSE md5(of_replica::text || of_session)::uuid END;
    BEGIN
      SELECT * INTO held FROM dragoman.reservations WHERE id = slice AND budget = of_budget;
      IF held.state = 'running' AND held.start_ms <> of_start THEN
        -- Of the period before.
        PERFORM dragoman.take_slice(of_replica, lifetime_ms, of_budget, of_session, held.start_ms, 0, 0, 0);
      END IF;
      SELECT * INTO at FROM dragoman.ledger
        WHERE (budget, session, start_ms) = (of_budget, of_session, of_start) FOR UPDATE;
      IF NOT FOUND THEN
        RETURN 0;
      END IF;
      SELECT * INTO held FROM dragoman.reservations WHERE id = slice AND budget = of_budget FOR UPDATE;
      IF held.state = 'running' THEN
        own := held.amount;
      END IF;
      spare := cap - at.used - (at.reserved - own);
      IF share > 0 AND spare >= greatest(at_least, 1) THEN
        taken := least(spare, greatest(floor(spare * share)::bigint, at_least, 1));
      END IF;
      IF taken = 0 AND own = 0 THEN
        RETURN 0;
      END IF;
      INSERT INTO dragoman.reservations (id, budget, session, start_ms, amount, replica, state, is_slice, expires_at)
        VALUES (slice, of_budget, of_session, of_start, taken, of_replica,
          CASE WHEN taken > 0 THEN 'running' ELSE 'settled' END, true,
          now() + make_interval(secs => lifetime_ms / 1000.0))
        ON CONFLICT (id, budget) DO UPDATE SET session = excluded.session, start_ms = excluded.start_ms,
          amount = excluded.amount, state = excluded.state, expires_at = excluded.expires_at, changed_at = now();
      UPDATE dragoman.ledger SET reserved = reserved - own + taken WHERE ${isOf("at")};
      RETURN taken;
    END $$`,
  // The holders of a period, for the pages. An update of an amount changes none of these columns, and so not the index.
  "CREATE INDEX ledger_period ON dragoman.ledger (budget, start_ms)",
];

/** `dragoman.reserve` as every database has it. As released first, it refused those that came at once in a new period, but for one. */
export const firstRequests = [reserveFunction(tryAgain.always)];
