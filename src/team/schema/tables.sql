-- All tables are in the Postgres schema `dragoman`, so that a pooler needs no setting. `_ms` columns are Unix times by the clock
-- of a server; `timestamptz` ones are by the clock of the database, which decides what has expired for all servers.

-- Each change of a table that servers have in memory gives it another stamp: see stamps.ts.
CREATE TABLE dragoman.stamps (
  name text PRIMARY KEY,
  stamp uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO dragoman.stamps (name) VALUES ('config'), ('members'), ('accounts'), ('sign_ins');
CREATE FUNCTION dragoman.stamp() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE dragoman.stamps SET stamp = gen_random_uuid() WHERE name = TG_TABLE_NAME;
    RETURN NULL;
  END $$;
CREATE TRIGGER stamp AFTER INSERT ON dragoman.members EXECUTE FUNCTION dragoman.stamp();

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
  revision uuid NOT NULL DEFAULT gen_random_uuid()
);
CREATE TRIGGER stamp AFTER INSERT OR UPDATE OR DELETE ON dragoman.config EXECUTE FUNCTION dragoman.stamp();

-- Page sign-ins that were ended before their time. Of the cookie only the SHA-256 is kept.
CREATE TABLE dragoman.ended_page_sign_ins (
  sha256 bytea PRIMARY KEY,
  until_ms bigint NOT NULL
);

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
  sign_in text NOT NULL,
  sealed_token bytea NOT NULL,
  paused boolean NOT NULL DEFAULT false,
  place int,
  added_at_ms bigint NOT NULL,
  CHECK (key = host || '/' || lower(login))
);
CREATE TRIGGER stamp AFTER INSERT OR UPDATE OR DELETE ON dragoman.accounts EXECUTE FUNCTION dragoman.stamp();
CREATE INDEX accounts_member ON dragoman.accounts (member);

-- `arrived` is the transaction that stored a state or a quota: servers read what has arrived since, and tell by its author what is
-- their own.
CREATE TABLE dragoman.account_states (
  account text PRIMARY KEY REFERENCES dragoman.accounts ON DELETE CASCADE,
  sign_in text NOT NULL,
  state jsonb,
  quota jsonb,
  state_by uuid,
  quota_by uuid,
  arrived bigint NOT NULL
);
CREATE INDEX account_states_arrived ON dragoman.account_states (arrived);

-- Copilot tokens that the servers share. While one of them exchanges, the others wait: until `exchanging_until` at most.
CREATE TABLE dragoman.copilot_tokens (
  account text PRIMARY KEY REFERENCES dragoman.accounts ON DELETE CASCADE,
  sealed_token bytea,
  base_url text,
  fresh_until timestamptz,
  expires_at timestamptz,
  stated_expires_at_ms bigint,
  exchanging_until timestamptz
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
  kept_until timestamptz NOT NULL
);
CREATE TRIGGER stamp AFTER INSERT OR UPDATE OR DELETE ON dragoman.sign_ins EXECUTE FUNCTION dragoman.stamp();

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
