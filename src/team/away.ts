/** Explains the errors of Postgres, and of the connection to it, to whoever asked. */
import { codeOf, ProxyError } from "../lib/errors";

/** No answer came within the time that a question may take. */
export class SlowDatabase extends Error {
  readonly code = "ERR_POSTGRES_CONNECTION_TIMEOUT";
}

/** It answers, and has too much to do for this question. */
export class BusyDatabase extends Error {
  readonly code = "ERR_POSTGRES_BUSY";
}

/** The question was not sent, because the database does not answer others either. */
export class NotAsked extends Error {
  readonly code = "ERR_POSTGRES_CONNECTION_CLOSED";
}

interface AwayRow {
  /** Postgres' own code, from the appendix "Error Codes" of its manual. */
  state?: RegExp;
  /** The code of Bun's client or of the system. */
  code?: RegExp;
  /** In the message, where the code alone does not tell. */
  words?: RegExp;
  /** What is wrong, after "The database cannot be used now: ". */
  reason: string;
  /** It answers, so other questions may succeed. */
  answers?: true;
  /** What to do, where waiting does not help. */
  remedy?: string;
}

const remedy = "Correct DRAGOMAN_DATABASE_URL, or what the database knows of it.";

/** Errors that say that there is no database to ask. The first row that fits an error explains it. */
const awayRows: readonly AwayRow[] = [
  { state: /^28/, reason: "it refuses this server's user or password", remedy },
  { state: /^3D000/, reason: "it has no database of this name", remedy },
  { state: /^53100/, reason: "its disk is full", answers: true },
  { state: /^53300/, reason: "it has no connection left for this server" },
  { state: /^53/, reason: "it lacks memory or another resource", answers: true },
  { state: /^58/, reason: "its system has an error", answers: true },
  { state: /^25006/, reason: "it is a standby, which can only be read", answers: true },
  { state: /^57P/, reason: "it is starting or stopping" },
  {
    // PgBouncer has this state for whatever it says.
    state: /^08P01/,
    words: /startup parameter/,
    reason: "a pooler before it refuses the settings that a connection is opened with",
    remedy: "Behind a pooler, set DRAGOMAN_DATABASE_DIRECT_URL to an address of Postgres itself.",
  },
  { state: /^08/, reason: "it cannot be reached" },
  { code: /^ERR_POSTGRES_CONNECTION_TIMEOUT/, reason: "it does not answer" },
  { code: /^ERR_POSTGRES_BUSY/, reason: "it has too much to do", answers: true },
  { code: /^ERR_POSTGRES_TLS|^(?:ERR_TLS_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/, reason: "its TLS fails" },
  {
    code: /^ERR_POSTGRES_(?:CONNECTION|IDLE_TIMEOUT|LIFETIME|INVALID_MESSAGE|UNEXPECTED_MESSAGE|SASL)/,
    reason: "it cannot be reached",
  },
  { code: /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/, reason: "it cannot be reached" },
];

function rowOf(thrown: unknown): AwayRow | undefined {
  const [state, code] = [sqlState(thrown), codeOf(thrown)];
  const message = thrown instanceof Error ? thrown.message : "";
  return awayRows.find(
    (row) =>
      (state === undefined ? row.code?.test(code) : row.state?.test(state)) && (row.words?.test(message) ?? true),
  );
}

/** Whether an error says that the database cannot be asked now: there is none, or it has too much to do. */
export function isAwayError(thrown: unknown): boolean {
  return thrown instanceof ProxyError ? isAnnounced(thrown) : rowOf(thrown) !== undefined;
}

const isAnnounced = ({ details: { code } }: ProxyError) => code === "database_away" || code === "database_busy";

/** Whether the way to the database is what fails: another question would fail too. */
export const isUnreachable = (thrown: unknown): boolean => {
  const row = rowOf(thrown);
  return row !== undefined && !row.answers;
};

/** Whether the database refuses what is to be written, and would again: by what a value is, and not by how the database is. */
export const isRefused = (thrown: unknown): boolean => /^(?:22|23|54)/.test(sqlState(thrown) ?? "");

/** Whether the database may have made the change although no answer came. @param thrown An error of `databaseAway`. */
export const mayBeDone = (thrown: unknown): boolean =>
  thrown instanceof ProxyError && isAnnounced(thrown) && isUnanswered(thrown.details.cause);

/** Whether the database may have made the change. @param cause The error that `databaseAway` was made of. */
export function isUnanswered(cause: unknown): boolean {
  if (cause instanceof NotAsked || sqlState(cause) !== undefined) return false;
  return (
    cause instanceof SlowDatabase || cause instanceof BusyDatabase || /CLOSED|RESET|EPIPE|ETIMEDOUT/.test(codeOf(cause))
  );
}

/** Postgres' own code of an error, such as `23505`; undefined if the error is not the server's. */
export function sqlState(thrown: unknown): string | undefined {
  const state = thrown instanceof Error && "errno" in thrown ? thrown.errno : undefined;
  return typeof state === "string" && /^[0-9A-Z]{5}$/.test(state) ? state : undefined;
}

/** @param isChange Whether something was to be changed. */
export function databaseAway(cause: unknown, isChange: boolean): ProxyError {
  const advice = isUnanswered(cause) ? advices.unknown : advices.unchanged;
  return awayError(cause, isChange ? advice : advices.read);
}

const advices = {
  read: "Try again when it is back.",
  unchanged: "Therefore nothing was changed. Try again when it is back.",
  unknown: "Whether the change was made is not known: look when it is back, before you try again.",
};

function awayError(cause: unknown, advice: string): ProxyError {
  const origin = cause instanceof NotAsked ? cause.cause : cause;
  const row = rowOf(origin);
  const reason = row?.reason ?? "it cannot be reached";
  const todo = row?.remedy === undefined ? advice : advice.replace(advices.read, row.remedy);
  return new ProxyError("unable", `The database cannot be used now: ${reason}. ${todo}`, {
    code: origin instanceof BusyDatabase ? "database_busy" : "database_away",
    status: 503,
    headers: { "retry-after": "5" },
    cause,
  });
}

/** @param so What it means for the person if the database is away: a sentence. */
export async function orAway<T>(work: Promise<T>, so: string): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    if (!isAwayError(thrown)) throw thrown;
    throw awayError(thrown instanceof ProxyError ? thrown.details.cause : thrown, `${so} ${advices.read}`);
  }
}
