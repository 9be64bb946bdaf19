/** The tables of `members.sql`, whichever database has them, and what is removed from them when it is over. */
import { dayMs, minuteMs } from "../../lib/format";
import { type Statement, sql, type Tables } from "../../lib/sql";
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

/** For so long the page of a link says what became of it. */
const rememberInvitationMs = 30 * dayMs;

/** What is over. Each statement alone, so that one lock holds nothing else up. */
export const overOf = ({ now }: Tables): Statement[] => [
  sql`DELETE FROM dragoman.invitations WHERE expires_at_ms < ${now} - ${rememberInvitationMs}`,
  sql`DELETE FROM dragoman.device_logins WHERE expires_at_ms < ${now} - ${10 * minuteMs}`,
  // A revoked key stays for the history of names; its refresh token is of no use.
  sql`DELETE FROM dragoman.logins WHERE key IN (SELECT sha256 FROM dragoman.keys WHERE revoked_at_ms IS NOT NULL)`,
];
