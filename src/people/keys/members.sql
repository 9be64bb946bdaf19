-- Members and what they enter with, in Postgres and in the file `members.sqlite`, where the prefix `dragoman.` is left out. Times are
-- Unix ms by the clock of the database. Of what is secret only the SHA-256 is kept, in hexadecimal. A name is `folded` to lower case
-- by the program, since SQLite and each locale of Postgres fold other letters.

-- A removed member and a revoked key keep their rows, which count and give no name a second time.
CREATE TABLE dragoman.members (
  id text PRIMARY KEY,
  name text NOT NULL,
  folded text NOT NULL,
  /* the columns of member-fields.ts */,
  created_at_ms bigint NOT NULL,
  removed_at_ms bigint
);
CREATE UNIQUE INDEX members_folded ON dragoman.members (folded) WHERE removed_at_ms IS NULL;

-- Of the random value of a link. An invitation that was withdrawn has expired too.
CREATE TABLE dragoman.invitations (
  sha256 text PRIMARY KEY,
  member text NOT NULL REFERENCES dragoman.members,
  expires_at_ms bigint NOT NULL,
  used_at_ms bigint,
  withdrawn_at_ms bigint
);
CREATE INDEX invitations_member ON dragoman.invitations (member);

-- The keys of members; those of the owner are in the config. `models` is JSON.
CREATE TABLE dragoman.keys (
  sha256 text PRIMARY KEY,
  member text NOT NULL REFERENCES dragoman.members,
  name text NOT NULL,
  folded text NOT NULL,
  models text,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint,
  revoked_at_ms bigint
);
CREATE INDEX keys_member ON dragoman.keys (member);
CREATE UNIQUE INDEX keys_folded ON dragoman.keys (member, folded) WHERE revoked_at_ms IS NULL;

-- Sign-ins from tools that wait for a member to confirm them; `key` is the one with which the member did.
CREATE TABLE dragoman.device_logins (
  device_sha256 text PRIMARY KEY,
  user_code text NOT NULL UNIQUE,
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'approved', 'denied', 'used')),
  tool text NOT NULL,
  network text,
  member text REFERENCES dragoman.members,
  key text,
  began_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  polled_at_ms bigint,
  poll_seconds int NOT NULL DEFAULT 5
);

-- The keys that tools renew, with the refresh token of now and the one before.
CREATE TABLE dragoman.logins (
  key text PRIMARY KEY REFERENCES dragoman.keys,
  refresh_sha256 text NOT NULL UNIQUE,
  previous_sha256 text UNIQUE,
  renewed_at_ms bigint NOT NULL
);
