-- The history: a partition for each day, made when its first row comes.
CREATE SEQUENCE dragoman.request_ids;
CREATE TABLE dragoman.requests (
  id bigint NOT NULL DEFAULT nextval('dragoman.request_ids'),
  /* the columns of history/entry.ts */
) PARTITION BY RANGE (started_at_ms);
CREATE UNIQUE INDEX requests_request_id ON dragoman.requests (request_id, started_at_ms);
CREATE INDEX requests_id ON dragoman.requests (id);
CREATE INDEX requests_started_at_ms ON dragoman.requests (started_at_ms);
CREATE INDEX requests_member ON dragoman.requests (member, id);
CREATE INDEX requests_account_key ON dragoman.requests (account_key, id);
CREATE INDEX requests_key_name ON dragoman.requests (key_name, id);

-- What the requests of an hour, and of a day, add up to: see books/history/rollup.ts. Only periods of the second table have all cells.
CREATE TABLE dragoman.rollup (
  /* the columns of history/rollup.ts */
);
CREATE INDEX rollup_period ON dragoman.rollup (length, view, hour);
CREATE INDEX rollup_member ON dragoman.rollup (member, length, view, hour) WHERE member IS NOT NULL;
CREATE TABLE dragoman.rollup_periods (
  length smallint NOT NULL,
  hour bigint NOT NULL,
  PRIMARY KEY (length, hour)
);

-- What prompts were made of, by day: see books/history/portions.ts.
/* the table of history/portions.ts */;

-- Called with the times of rows that may belong to periods which were added up: these are added up again. The lock waits for a
-- server that is adding up, and that server waits for rows which are being stored, so that none is left out.
CREATE FUNCTION dragoman.forget_periods(first_ms bigint, last_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('dragoman rollup', 0));
  DELETE FROM dragoman.rollup_periods
    WHERE hour BETWEEN first_ms / (length * 3600000) * length AND last_ms / (length * 3600000) * length;
END $$;

-- How models count tokens, learnt from the requests: see proxy/tokens/token-ratio.ts.
CREATE TABLE dragoman.token_ratios (
  model text PRIMARY KEY,
  ratio double precision NOT NULL,
  requests integer NOT NULL,
  learnt_at timestamptz NOT NULL DEFAULT now()
);
