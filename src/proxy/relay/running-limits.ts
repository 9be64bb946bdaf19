/** How many requests a server runs at a time. */

import type { InFlight } from "../../books/live/in-flight";
import { ProxyError } from "../../lib/errors";

/** 2,000 requests run well at the same time. 1,000 more may wait; beyond that they would only fill memory. */
const maxInFlight = 3000;
/** How many one member may run, so that nobody keeps all others out. */
const maxInFlightOfMember = 300;

/**
 * @param member The id; null for the owner.
 * @throws ProxyError 503 when too many requests run already, 429 when too many of the member's do.
 */
export function requireRoomFor(member: string | null, inFlight: Pick<InFlight, "count" | "countOf">): void {
  if (inFlight.count >= maxInFlight) throw overloaded();
  if (member !== null && inFlight.countOf(member) >= maxInFlightOfMember) throw tooManyOfMember();
}

const overloaded = () =>
  new ProxyError("no_account", `${maxInFlight} requests are running already; try again in a moment.`, {
    code: "overloaded",
    headers: { "retry-after": "1" },
  });

const tooManyOfMember = () =>
  new ProxyError(
    "rate_limit",
    `${maxInFlightOfMember} of your requests are running at this server already, and more are not allowed; try again when one has ended.`,
    { code: "too_many_running", headers: { "retry-after": "1" } },
  );
