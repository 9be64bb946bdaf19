/** What each member has used since a time. */

/** Sums of the known values; null when there are requests and no value is known. */
export interface MemberUsage {
  requests: number;
  /** Billionths of an AI credit. */
  nanoCredits: number | null;
  /** Premium requests. */
  premiumUnits: number | null;
  /** When the last of these requests started, Unix ms. */
  lastAt: number;
}
