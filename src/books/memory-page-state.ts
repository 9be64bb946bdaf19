/** The pages' state of one process, in memory. */
import { memoryEndedPageSignIns, type PageSignInKeys, PageSignIns } from "../people/keys/page-sign-ins";
import type { PageState } from "./stores";

/** It is gone at the next start. @param keys The members'. */
export function openMemoryPageState(now: () => number, adminToken?: string, keys?: PageSignInKeys): PageState {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  return {
    signIns: new PageSignIns({ secret, server: "alone", now, adminToken, ended: memoryEndedPageSignIns(), keys }),
    changeKey: secret,
    formSecret: { secret, lifetimeMs: Number.POSITIVE_INFINITY },
  };
}
