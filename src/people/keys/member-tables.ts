/** The tables of `members.sql`, whichever database has them, and what is removed from them when it is over. */
import { ProxyError } from "../../lib/errors";
import { dayMs, minuteMs } from "../../lib/format";
import { type Statement, sql, type Tables, words } from "../../lib/sql";
import { memberFieldNames, memberFields } from "./member-fields";
import tables from "./members.sql" with { type: "text" };

/** The definition of the column of each field that the owner sets of a member. */
export const memberColumnTypes = new Map(
  memberFieldNames.map((name) => [name, `${name} ${memberFields[name].column}`]),
);

/** The statements that make the tables. */
export const memberTables = tables.replace(
  "/* the columns of member-fields.ts */",
  [...memberColumnTypes.values()].join(", "),
);

/** In the order in which rows refer to earlier ones. */
const names = ["members", "invitations", "keys", "device_logins", "logins"];
const rowsAtOnce = 500;

/**
 * Copies all rows, in one transaction. What is there already is not added twice.
 * @returns How many members there are.
 * @throws ProxyError `conflict` if there is another member of the same name
 */
export async function copyMembers(from: Tables, to: Tables): Promise<number> {
  const tables = new Map<string, Record<string, unknown>[]>();
  for (const name of names) tables.set(name, await from.ask(sql`SELECT * FROM ${words(`dragoman.${name}`)}`));
  await to.transact(async (inside) => {
    for (const [name, rows] of tables) {
      await insertRows(inside, name, rows);
      if (name === "members") await requireSame(inside, rows as unknown as CopiedMember[]);
    }
  });
  return tables.get("members")!.filter(({ removed_at_ms }) => removed_at_ms === null).length;
}

interface CopiedMember {
  id: string;
  name: string;
}

async function insertRows(tables: Tables, name: string, rows: readonly Record<string, unknown>[]): Promise<void> {
  for (let from = 0; from < rows.length; from += rowsAtOnce) {
    const columns = Object.keys(rows[0]!);
    const values = rows
      .slice(from, from + rowsAtOnce)
      .map((row) => sql`(${columns.map((column) => sql`${row[column]}`).reduce(commaBetween)})`);
    await tables.ask(sql`INSERT INTO ${words(`dragoman.${name} (${columns})`)} VALUES ${values.reduce(commaBetween)}
      ON CONFLICT DO NOTHING`);
  }
}

const commaBetween = (one: Statement, other: Statement) => sql`${one}, ${other}`;

async function requireSame(tables: Tables, members: readonly CopiedMember[]): Promise<void> {
  const known = new Set((await tables.ask<{ id: string }>(sql`SELECT id FROM dragoman.members`)).map(({ id }) => id));
  const other = members.find(({ id }) => !known.has(id));
  if (other)
    throw new ProxyError(
      "conflict",
      `The database has another member ${other.name}. Remove one of the two, here or there, and run this again.`,
      { code: "member_exists" },
    );
}

/** For so long the page of a link says what became of it. */
const rememberInvitationMs = 30 * dayMs;

/** What is over. Each statement alone, so that one lock holds nothing else up. */
export const overOf = ({ now }: Tables): Statement[] => [
  sql`DELETE FROM dragoman.invitations WHERE expires_at_ms < ${now} - ${rememberInvitationMs}`,
  sql`DELETE FROM dragoman.device_logins WHERE expires_at_ms < ${now} - ${10 * minuteMs}`,
  // A revoked key stays for the history of names; its refresh token is of no use.
  sql`DELETE FROM dragoman.logins WHERE key IN (SELECT sha256 FROM dragoman.keys WHERE revoked_at_ms IS NOT NULL)`,
];
