-- The ledger has what all servers together have used of each budget. Its transactions are functions: one round trip each, so that the
-- row of a busy budget is locked for as short as possible. Rows of the ledger are locked before those of reservations, and in the
-- order of their keys, so that two requests never wait for each other.

-- Amounts are in the smallest parts of a unit. `reserved` is the sum of the period's reservations. `kind`, `member` and `item` say who has the
-- amount, as StoredHolder in budgets/holders.ts; they are empty for an amount that all share.
CREATE TABLE dragoman.ledger (
  budget text NOT NULL,
  kind text NOT NULL,
  member text NOT NULL,
  item text NOT NULL,
  start_ms bigint NOT NULL,
  used bigint NOT NULL DEFAULT 0,
  reserved bigint NOT NULL DEFAULT 0,
  unknown bigint NOT NULL DEFAULT 0,
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (budget, kind, member, item, start_ms)
);
-- For pages that list the holders of a period. An update of an amount changes none of these columns, and so not the index.
CREATE INDEX ledger_period ON dragoman.ledger (budget, start_ms);

CREATE TABLE dragoman.reservations (
  id uuid NOT NULL,
  budget text NOT NULL,
  kind text NOT NULL,
  member text NOT NULL,
  item text NOT NULL,
  start_ms bigint NOT NULL,
  amount bigint NOT NULL,
  server uuid NOT NULL,
  state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'expired', 'settled')),
  changed_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (id, budget)
);
CREATE INDEX reservations_period ON dragoman.reservations (budget, kind, member, item, start_ms, expires_at) WHERE state = 'running';
-- For the removal of those that are over: of a server's, and of all.
CREATE INDEX reservations_server ON dragoman.reservations (server, changed_at) WHERE state <> 'running';
CREATE INDEX reservations_changed_at ON dragoman.reservations (changed_at) WHERE state <> 'running';

-- Frees what requests had reserved that have not ended in time: their server was killed. Returns true if there were any.
CREATE FUNCTION dragoman.expire_reservations(period dragoman.ledger) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE freed bigint;
  BEGIN
    PERFORM 1 FROM dragoman.ledger
      WHERE (budget, kind, member, item, start_ms) = (period.budget, period.kind, period.member, period.item, period.start_ms) FOR UPDATE;
    WITH ended AS (
      UPDATE dragoman.reservations SET amount = 0, state = 'expired', changed_at = now()
        WHERE (budget, kind, member, item, start_ms) = (period.budget, period.kind, period.member, period.item, period.start_ms)
          AND state = 'running' AND expires_at <= now() RETURNING id, budget)
    -- This reads the amounts as they were before the update.
    SELECT sum(amount) INTO freed FROM dragoman.reservations JOIN ended USING (id, budget);
    UPDATE dragoman.ledger SET reserved = reserved - freed
      WHERE (budget, kind, member, item, start_ms) = (period.budget, period.kind, period.member, period.item, period.start_ms) AND freed IS NOT NULL;
    RETURN freed IS NOT NULL;
  END $$;

-- Adds an amount to what a period has reserved, if that much is left. Returns the row then, and a row of nulls otherwise.
CREATE FUNCTION dragoman.reserve_in(period dragoman.ledger, amount bigint, cap bigint, price_known boolean)
  RETURNS dragoman.ledger LANGUAGE plpgsql AS $$
  DECLARE found dragoman.ledger;
  BEGIN
    UPDATE dragoman.ledger SET reserved = reserved + amount, changed_at = now()
      WHERE (budget, kind, member, item, start_ms) = (period.budget, period.kind, period.member, period.item, period.start_ms)
        AND (cap IS NULL OR (price_known AND amount = 0) OR (price_known AND used + reserved + amount <= cap)
          OR (NOT price_known AND used + reserved < cap)) RETURNING * INTO found;
    RETURN found;
  END $$;

-- What a server is told of a period: `place` is that of its entry in the question.
CREATE FUNCTION dragoman.amounts(place int, period dragoman.ledger) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_object('place', place, 'used', period.used, 'reserved', period.reserved, 'unknown', period.unknown) $$;

-- Reserves in all periods or in none. `cap` is null for a budget that stops nothing; with `price_known` false the amount is 0 and
-- the price unknown. Returns the amounts of all `periods` with it; or, as `exceeded`, those of one that has too little left.
CREATE FUNCTION dragoman.reserve(reservation uuid, of_server uuid, lifetime_ms bigint, entries jsonb) RETURNS jsonb
  LANGUAGE plpgsql AS $$
  DECLARE entry record; at dragoman.ledger; granted dragoman.ledger; periods jsonb := '[]';
  BEGIN
    FOR entry IN
      SELECT * FROM jsonb_to_recordset(entries)
        AS given(place int, budget text, kind text, member text, item text, start_ms bigint, amount bigint, cap bigint, price_known boolean)
        ORDER BY budget, kind, member, item, start_ms
    LOOP
      at := NULL;
      at.budget := entry.budget;
      at.kind := entry.kind;
      at.member := entry.member;
      at.item := entry.item;
      at.start_ms := entry.start_ms;
      granted := dragoman.reserve_in(at, entry.amount, entry.cap, entry.price_known);
      IF granted.budget IS NULL THEN
        -- The first request of the period has no row yet; or requests that were killed hold what is missing; or another request
        -- has made the row, or freed what was held, a moment ago.
        INSERT INTO dragoman.ledger (budget, kind, member, item, start_ms) VALUES (at.budget, at.kind, at.member, at.item, at.start_ms)
          ON CONFLICT DO NOTHING;
        PERFORM dragoman.expire_reservations(at);
        granted := dragoman.reserve_in(at, entry.amount, entry.cap, entry.price_known);
      END IF;
      IF granted.budget IS NULL THEN
        RAISE SQLSTATE 'DG001' USING MESSAGE = entry.place::text;
      END IF;
      INSERT INTO dragoman.reservations (id, budget, kind, member, item, start_ms, amount, server, expires_at)
        VALUES (reservation, at.budget, at.kind, at.member, at.item, at.start_ms, entry.amount, of_server,
          now() + make_interval(secs => lifetime_ms / 1000.0));
      periods := periods || dragoman.amounts(entry.place, granted);
    END LOOP;
    RETURN jsonb_build_object('periods', periods);
  EXCEPTION WHEN SQLSTATE 'DG001' THEN
    SELECT * INTO granted FROM dragoman.ledger
      WHERE (budget, kind, member, item, start_ms) = (at.budget, at.kind, at.member, at.item, at.start_ms);
    RETURN jsonb_build_object('exceeded', dragoman.amounts(SQLERRM::int, granted));
  END $$;

-- Replaces a reservation by what was used, also after it has expired. May be called again when nobody knows whether the first
-- call arrived.
CREATE FUNCTION dragoman.settle(reservation uuid, of_server uuid, entries jsonb) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE entry record; held dragoman.reservations;
  BEGIN
    FOR entry IN
      SELECT * FROM jsonb_to_recordset(entries)
        AS given(budget text, kind text, member text, item text, start_ms bigint, amount bigint, unknown bigint)
        ORDER BY budget, kind, member, item, start_ms
    LOOP
      INSERT INTO dragoman.ledger (budget, kind, member, item, start_ms) VALUES (entry.budget, entry.kind, entry.member, entry.item, entry.start_ms)
        ON CONFLICT (budget, kind, member, item, start_ms) DO UPDATE SET changed_at = now();
      SELECT * INTO held FROM dragoman.reservations WHERE id = reservation AND budget = entry.budget FOR UPDATE;
      CONTINUE WHEN held.state = 'settled';
      INSERT INTO dragoman.reservations (id, budget, kind, member, item, start_ms, amount, server, state, expires_at)
        VALUES (reservation, entry.budget, entry.kind, entry.member, entry.item, entry.start_ms, 0, of_server, 'settled', now())
        ON CONFLICT (id, budget) DO UPDATE SET amount = 0, state = 'settled', changed_at = now();
      UPDATE dragoman.ledger SET used = used + entry.amount, unknown = ledger.unknown + entry.unknown,
          reserved = reserved - coalesce(held.amount, 0)
        WHERE (budget, kind, member, item, start_ms) = (entry.budget, entry.kind, entry.member, entry.item, entry.start_ms);
    END LOOP;
  END $$;
