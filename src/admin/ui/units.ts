/** In which units the cost of requests is shown. */
import type { Totals } from "../../history/history";

/** One that was not used is left out, although a request that was refused here is known to cost nothing in either. */
export function unitsOf({ nano_credits, premium_units }: Pick<Totals, "nano_credits" | "premium_units">): {
  credits: boolean;
  premium: boolean;
} {
  const premium = (premium_units ?? 0) > 0 || (nano_credits === null && premium_units !== null);
  return { credits: (nano_credits ?? 0) > 0 || !premium, premium };
}
