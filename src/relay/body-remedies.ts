/** What can be changed in a request's body after an upstream refused it, whichever upstream that was. */

import { bodyText } from "../net/in/request-body";
import { skeletonOf } from "../net/json/json-skeleton";
import type { Failure } from "../upstream/copilot/failure";
import { betaIn, withoutParams } from "../upstream/copilot/unsupported-params";
import type { RequestRecord } from "./request-record";
import type { UpstreamCall } from "./upstream-call";

/** A body that is being sent; the remedies change it. */
export interface SentBody {
  body: string | Uint8Array;
  /** Headers of the dialect. */
  headers: Record<string, string> | undefined;
  readonly outgoing: Pick<UpstreamCall, "repaired" | "fitTools" | "withoutBeta">;
  readonly record: RequestRecord;
  /** Patterns of the parameters that this model is known to refuse. */
  readonly unsupported: readonly string[];
  /** Patterns of the parameters that were removed. They are learned when the request then succeeds. */
  readonly removed: string[];
}

export interface Remedy<Sent> {
  when: Failure["remedy"];
  /** Changes what is sent next; false when nothing could be changed, so that the failure is final. */
  apply(current: Sent, failure: Failure): boolean | Promise<boolean>;
  /** How often it may be applied: once, or once for each parameter, as upstreams name one at a time. */
  again: "never" | "for-another-param";
}

export const bodyRemedies: readonly Remedy<SentBody>[] = [
  {
    when: "repair",
    apply(current) {
      if (!current.outgoing.repaired) return false;
      const { repaired } = current.outgoing;
      current.body = withoutPatterns(repaired(), [...current.unsupported, ...current.removed], current.record);
      current.record.addFixup("foreign-items");
      return true;
    },
    again: "never",
  },
  {
    when: "fit-tools",
    apply(current) {
      const fitted = current.outgoing.fitTools?.(bodyText(current.body));
      current.body = fitted ?? current.body;
      return fitted !== undefined;
    },
    again: "never",
  },
  {
    when: "drop-param",
    apply(current, { param }) {
      if (param === undefined) return false;
      const beta = betaIn(param);
      if (beta !== undefined) return dropBeta(current, param, beta);
      const before = current.body;
      current.body = withoutPatterns(before, [param], current.record);
      current.removed.push(param);
      return current.body !== before;
    },
    again: "for-another-param",
  },
];

/** Sends a beta no more, and none of the fields that need it. */
function dropBeta(current: SentBody, param: string, beta: string): boolean {
  const next = current.outgoing.withoutBeta?.(beta);
  if (!next) return false;
  current.body = withoutPatterns(next.body, [...current.unsupported, ...current.removed], current.record);
  current.headers = next.headers;
  current.removed.push(param);
  current.record.addFixup(`refused:${param}`);
  return true;
}

/** How many remedies are tried for one request with one account or provider. */
const maxRemedies = 4;

/**
 * Finds the remedies of one try.
 * @returns The remedy for a failure; undefined where there is none, or where it was applied before.
 */
export function remediesOf<Sent>(all: readonly Remedy<Sent>[]): (failure: Failure) => Remedy<Sent> | undefined {
  let applied: Set<string> | undefined;
  return (failure) => {
    applied ??= new Set();
    const remedy = all.find(({ when }) => when === failure.remedy);
    const cause = remedy?.again === "for-another-param" ? `${remedy.when} ${failure.param}` : failure.remedy;
    if (!remedy || applied.has(cause) || applied.size >= maxRemedies) return undefined;
    applied.add(cause);
    return remedy;
  };
}

/** The very same body when it has none of these parameters. */
export function withoutPatterns(body: string | Uint8Array, patterns: readonly string[], record: RequestRecord) {
  if (patterns.length === 0) return body;
  const skeleton = typeof body === "string" ? undefined : skeletonOf(body);
  const { text, removed } = withoutParams(skeleton?.text ?? bodyText(body), patterns);
  for (const pattern of removed) record.addFixup(`refused:${pattern}`);
  return removed.length === 0 ? body : (skeleton?.fill(text) ?? text);
}
