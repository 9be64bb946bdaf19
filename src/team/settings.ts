/**
 * Settings of Postgres on which our statements rely, and which a role, a database or the server may have otherwise. Each connection
 * is opened with them; a pooler may refuse or drop them, so a server looks whether it has them.
 */
import { ProxyError } from "../lib/errors";
import type { Questions } from "./lane";

/** By their names, as `current_setting` tells them. Bun's client brings the encoding and the style of dates. */
export const settings = {
  bytea_output: "hex",
  default_transaction_isolation: "read committed",
  default_transaction_read_only: "off",
  extra_float_digits: "1",
  IntervalStyle: "postgres",
  lock_timeout: "0",
  standard_conforming_strings: "on",
  // Each question has a limit of its own.
  statement_timeout: "0",
  TimeZone: "UTC",
} as const;

/** Other names of UTC: a Postgres of Debian or of the official image has `Etc/UTC`. */
const utc = /^(?:Etc\/)?(?:UTC|UCT|GMT[+-]?0?|Zulu|Universal|Greenwich)$/i;

const isAsOurs = (name: keyof typeof settings, value: string): boolean =>
  value === settings[name] || (name === "TimeZone" && utc.test(value));

/** @returns Those that the connections for questions have otherwise: by their names, as they are. */
export async function otherSettings(postgres: Questions): Promise<Record<string, string>> {
  const names = JSON.stringify(Object.keys(settings));
  const rows = await postgres.ask(
    (sql) => sql<{ name: keyof typeof settings; value: string }[]>`SELECT name, current_setting(name) AS value
      FROM jsonb_array_elements_text(${names}::text::jsonb) AS given(name)`,
  );
  return Object.fromEntries(
    rows.filter(({ name, value }) => !isAsOurs(name, value)).map(({ name, value }) => [name, value]),
  );
}

/** @throws ProxyError if the connections have other settings, with what to do. */
export async function requireSettings(postgres: Questions): Promise<void> {
  const other = await otherSettings(postgres);
  if (Object.keys(other).length === 0) return;
  throw new ProxyError("invalid_request", `${otherSentence(other)} ${otherAdvice(other)}`, {
    code: "database_settings",
  });
}

export const otherSentence = (other: Readonly<Record<string, string>>): string =>
  `Connections to the database have settings with which dragoman cannot work: ${Object.entries(other)
    .map(([name, value]) => `${name} is ${value}`)
    .join(", ")}.`;

export const otherAdvice = (other: Readonly<Record<string, string>>): string =>
  `A pooler does not pass on ours, so set them for the role: ${Object.keys(other)
    .map((name) => `ALTER ROLE … SET ${name} = '${settings[name as keyof typeof settings]}';`)
    .join(" ")}`;
