/** Pairs: where one signs in, and what an account's quota is by an answer of GitHub, from `fixtures/pairs/accounts/`. */
import { allowedModelHost, hostsFor, signInApp } from "../../../src/people/accounts/hosts";
import { learnFromHeaders, readQuota } from "../../../src/people/accounts/quota";
import { testPairs } from "../../support/pairs";

testPairs("accounts", {
  /** A host, and what the environment says. */
  hosts: (name: string | null, overrides: Parameters<typeof hostsFor>[1]) => hostsFor(name ?? undefined, overrides),
  /** The host that a token names, and the one of its account. */
  "model-host": (stated: string, host: string) => allowedModelHost(stated, hostsFor(host)),
  app: (choice: string | null) => signInApp(choice ?? undefined),
  /** What the quota endpoint says. */
  quota: (answer: object) => readQuota(answer, 7),
  /** A header of a model's answer, or none: the quota, and what was sent of it. */
  "quota-header"(value: string | null) {
    const sent: unknown[] = [];
    const headers = new Headers(value === null ? {} : { "x-quota-snapshot-premium_models": value });
    return [learnFromHeaders(undefined, headers, 0, (found) => sent.push(found)), sent];
  },
});
