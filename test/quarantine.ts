/**
 * The only pardon for a failing test. `test/run.ts` prints what it pardons. An entry is a debt: it names a test that is
 * known to fail now and then, why, and since when; it goes when the reason is found.
 */
interface Quarantined {
  file: string;
  /** The whole name, groups included, as `test/run.ts` prints it. */
  name: string;
  /** What is known of the cause. */
  reason: string;
  /** Since when, such as `2026-11-23`. */
  since: string;
}

/** A test holds this. */
export const mostQuarantined = 10;

export const quarantine: readonly Quarantined[] = [];
