-- All tables are in the Postgres schema `dragoman`, so that a pooler needs no setting. `_ms` columns are Unix times by the clock
-- of a server; `timestamptz` ones are by the clock of the database, which decides what has expired for all servers.

-- Changes that belong together have one number: the row of a table is locked until its change is committed, so revisions are
-- committed in their order.
CREATE TABLE dragoman.revisions (
  name text PRIMARY KEY,
  revision bigint NOT NULL DEFAULT 0
);
INSERT INTO dragoman.revisions (name) VALUES
  ('config'), ('accounts'), ('account_states'), ('ended_page_sign_ins'), ('sign_ins');

-- Numbers a change and announces it when it is committed. To be called once in each transaction that changes the table.
CREATE FUNCTION dragoman.announce_change(changed text) RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE number bigint;
  BEGIN
    UPDATE dragoman.revisions SET revision = revision + 1 WHERE name = changed RETURNING revision INTO STRICT number;
    PERFORM pg_notify('dragoman', json_build_object('table', changed)::text);
    RETURN number;
  END $$;

-- The key that seals; every server must have it. The secret that signed access tokens before the key was changed is accepted until
-- they have expired.
CREATE TABLE dragoman.seal (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  key_id text NOT NULL,
  token_secret_before bytea,
  token_secret_until timestamptz,
  CHECK ((token_secret_before IS NULL) = (token_secret_until IS NULL))
);

CREATE TABLE dragoman.config (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  sealed_body bytea NOT NULL,
  revision bigint NOT NULL
);

-- Page sign-ins that were ended before their time. Of the cookie only the SHA-256 is kept.
CREATE TABLE dragoman.ended_page_sign_ins (
  sha256 bytea PRIMARY KEY,
  until_ms bigint NOT NULL,
  revision bigint NOT NULL
);
CREATE INDEX ended_page_sign_ins_revision ON dragoman.ended_page_sign_ins (revision);

-- A removed account keeps its row, so that every server learns of the removal by its revision.
-- One row for each login on a host, so it belongs to one member at most; to the owner where `member` is null. `paused` and
-- `place` are of members' accounts; for the owner's, the config has both. An account without a place comes after those with one.
CREATE TABLE dragoman.accounts (
  key text PRIMARY KEY,
  host text NOT NULL,
  login text NOT NULL,
  member text REFERENCES dragoman.members,
  app text NOT NULL,
  mode text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('person', 'app')),
  sign_in text,
  sealed_token bytea,
  paused boolean NOT NULL DEFAULT false,
  place int,
  added_at_ms bigint NOT NULL,
  removed_at_ms bigint,
  revision bigint NOT NULL,
  CHECK (key = host || '/' || lower(login)),
  CHECK ((sealed_token IS NULL) = (removed_at_ms IS NOT NULL))
);
CREATE INDEX accounts_revision ON dragoman.accounts (revision);
CREATE INDEX accounts_member ON dragoman.accounts (member);

-- `arrived` is the transaction that stored a state or a quota, so that servers read what is not announced now and then.
CREATE TABLE dragoman.account_states (
  account text PRIMARY KEY REFERENCES dragoman.accounts ON DELETE CASCADE,
  sign_in text NOT NULL,
  state jsonb,
  quota jsonb,
  server uuid,
  revision bigint NOT NULL,
  arrived bigint
);
CREATE INDEX account_states_revision ON dragoman.account_states (revision);
CREATE INDEX account_states_arrived ON dragoman.account_states (arrived);

-- Copilot tokens that the servers share.
CREATE TABLE dragoman.copilot_tokens (
  account text PRIMARY KEY REFERENCES dragoman.accounts ON DELETE CASCADE,
  sealed_token bytea NOT NULL,
  base_url text NOT NULL,
  fresh_until timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  stated_expires_at_ms bigint
);

-- Sign-ins that wait for a person. The server that began one asks GitHub for its outcome.
CREATE TABLE dragoman.sign_ins (
  sha256 bytea PRIMARY KEY,
  host text NOT NULL,
  app text NOT NULL,
  member text REFERENCES dragoman.members,
  sealed_body bytea NOT NULL,
  state jsonb NOT NULL,
  expires_at timestamptz NOT NULL,
  kept_until timestamptz NOT NULL,
  revision bigint NOT NULL
);
CREATE INDEX sign_ins_revision ON dragoman.sign_ins (revision);

CREATE TABLE dragoman.affinity (
  mark bigint PRIMARY KEY,
  account text NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX affinity_seen_at ON dragoman.affinity (seen_at);

CREATE TABLE dragoman.notices (
  id text PRIMARY KEY,
  is_open boolean NOT NULL DEFAULT false,
  sent_at timestamptz NOT NULL DEFAULT now(),
  tried_at timestamptz NOT NULL DEFAULT now(),
  delivered jsonb NOT NULL DEFAULT '[]'
);

CREATE TABLE dragoman.servers (
  id uuid PRIMARY KEY,
  host text NOT NULL,
  version text NOT NULL,
  leads boolean NOT NULL DEFAULT false,
  started_at timestamptz NOT NULL DEFAULT now(),
  heartbeat_at timestamptz NOT NULL DEFAULT now()
);
