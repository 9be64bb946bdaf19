-- The history: a partition for each day, made when its first row comes.
CREATE SEQUENCE dragoman.request_ids;
-- `arrived` is the transaction that stored a row, so that statistics add only what came since they were asked last.
CREATE TABLE dragoman.requests (
  id bigint NOT NULL DEFAULT nextval('dragoman.request_ids'),
  arrived bigint DEFAULT pg_current_xact_id()::text::bigint,
  /* the columns of history/entry.ts */
) PARTITION BY RANGE (started_at_ms);
CREATE UNIQUE INDEX requests_request_id ON dragoman.requests (request_id, started_at_ms);
CREATE INDEX requests_id ON dragoman.requests (id);
CREATE INDEX requests_started_at_ms ON dragoman.requests (started_at_ms);
CREATE INDEX requests_member ON dragoman.requests (member, id);
CREATE INDEX requests_account_key ON dragoman.requests (account_key, id);
CREATE INDEX requests_key_name ON dragoman.requests (key_name, id);
CREATE INDEX requests_arrived ON dragoman.requests (arrived);

-- What requests of a span of time add up to, for each question that was asked. Of a span that is not over, what arrived from
-- `arrived_before` on is missing; it is null where nothing is. A row that comes late removes what it changes.
CREATE TABLE dragoman.statistics (
  query bytea NOT NULL,
  from_ms bigint NOT NULL,
  to_ms bigint NOT NULL,
  groups jsonb NOT NULL,
  arrived_before bigint,
  PRIMARY KEY (query, from_ms, to_ms)
);
CREATE INDEX statistics_span ON dragoman.statistics (to_ms, from_ms);

CREATE FUNCTION dragoman.forget_statistics(first_ms bigint, last_ms bigint) RETURNS void LANGUAGE sql AS $$
  UPDATE dragoman.revisions SET revision = revision + 1 WHERE name = 'late_requests';
  DELETE FROM dragoman.statistics WHERE from_ms <= last_ms AND to_ms >= first_ms $$;

-- Questions about statistics that took long: filters without times, and what they are grouped by.
CREATE TABLE dragoman.questions (
  question jsonb PRIMARY KEY,
  asked_at timestamptz NOT NULL DEFAULT now()
);
