/** @jsxRuntime automatic @jsxImportSource #jsx */
/** An invitation link, shown this once. */
import type { z } from "zod";
import { dayMs, plural } from "../../../lib/format";
import { isLoopbackUrl } from "../../../lib/net/address";
import type { invitedSchema } from "../../api/members";
import { Moment } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { ShownOnce } from "../../ui/notes";

type Invited = z.output<typeof invitedSchema>;

export function NewInvitation({ invited, now }: { invited: Invited; now: number }): Markup {
  const { name, link, expires_at_ms, is_known } = invited;
  const days = Math.round((expires_at_ms - now) / dayMs);
  return (
    <section class="note good" role="status">
      <h2>{is_known ? `A new link for “${name}”` : `“${name}” is invited`}</h2>
      <p>
        Copy the link now: it is not shown again. It works once, for {plural(days, "day")} (until{" "}
        <Moment at={expires_at_ms} now={now} />
        ). Give it to this person only, because whoever opens it first gets the key.
        {is_known && " It gives a further key; an earlier link that was not used no longer works."}
      </p>
      <ShownOnce id="new-link" text={link} />
      {isLoopbackUrl(link) && (
        <p>
          This is the address of this machine. For somebody elsewhere, replace its beginning by the address at which
          they reach this server, or invite from there.
        </p>
      )}
    </section>
  );
}
