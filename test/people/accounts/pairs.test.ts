/** Pairs: where one signs in, what an account's quota is and what is refused to an App, from `fixtures/pairs/accounts/`. */
import { generateKeyPairSync } from "node:crypto";
import { quotas } from "../../../src/demo/accounts";
import { startDemo } from "../../../src/demo/demo";
import { zonedTime } from "../../../src/lib/format";
import { Account } from "../../../src/people/accounts/account";
import type { SavedAccount, TemporaryAccount } from "../../../src/people/accounts/account-store";
import { allowedModelHost, hostsFor, signInApp } from "../../../src/people/accounts/hosts";
import { learnFromHeaders, readQuota } from "../../../src/people/accounts/quota";
import { AccountStatus } from "../../../src/people/accounts/status";
import { acme, installApp } from "../../support/github-app";
import { testPairs } from "../../support/pairs";
import { failureOf } from "../../support/refusal";
import { exchangePath, handClock, hostsOf, keptLog, openDemoAccount } from "./bench";

const otherKey = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export({
  type: "pkcs8",
  format: "pem",
});

interface Refused {
  /** What is other than of an App that may do all. */
  facts?: Parameters<typeof installApp>[1];
  /** What is other than of its installation; `another` is the key of another App. */
  installation?: { id?: string; privateKey?: string; repository?: string };
  /** What GitHub answers to the exchange. */
  exchange?: [status: number, body: object];
  /** The token is that of a job of GitHub Actions. */
  isOfJob?: boolean;
}

/** What a person reads, how the account is, and what GitHub was asked. */
async function refusedTo({ facts, installation, exchange, isOfJob }: Refused) {
  const demo = startDemo({ pace: 0 });
  installApp(demo, facts);
  if (exchange) demo.intercept(exchangePath, () => Response.json(exchange[1], { status: exchange[0] }));
  const given = { ...acme.installation, ...installation };
  const privateKey = given.privateKey === "another" ? String(otherKey) : given.privateKey;
  const app: SavedAccount = { login: "acme-corp", host: "github.com", mode: "exchange", addedAt: 1, ...acme };
  const job: TemporaryAccount = { temporary: true, githubToken: "ghs_DEMOjobDEMOjobDEMOjob0001" };
  const known = isOfJob ? job : { ...app, installation: { ...given, privateKey } };
  const account = new Account(known, { hosts: hostsOf(demo), version: "1.2.3", logger: keptLog().logger });
  const { message } = await failureOf(account.copilotToken());
  await demo.stop();
  return { message, state: account.state.name, asked: demo.journal.map(({ path }) => path) };
}

/** What GitHub says of an account of the demo with this quota and plan, and how the account is then. */
async function quotaOf(variant: keyof typeof quotas, plan: string) {
  const demo = startDemo({ pace: 0, now: () => Date.parse("2026-11-21T10:00:00Z") });
  Object.assign(demo.accounts[0]!, { quota: quotas[variant](), plan });
  const { account } = openDemoAccount(demo);
  const { snapshots, at, resetAt, ...quota } = await account.quota();
  await demo.stop();
  return { ...quota, resetAt: new Date(resetAt!).toISOString(), state: account.state.name };
}

testPairs("accounts", {
  /** A zone, and a moment that is told at 10 o'clock in UTC. */
  moment(zone: string, at: string) {
    const before = process.env.TZ;
    process.env.TZ = zone;
    try {
      return zonedTime(Date.parse(at), Date.parse("2026-11-21T10:00:00Z"));
    } finally {
      process.env.TZ = before ?? "Etc/UTC";
    }
  },
  "quota-of": quotaOf,
  "app-refusal": refusedTo,
  /** A host, and what the environment says. */
  hosts: (name: string | null, overrides: Parameters<typeof hostsFor>[1]) => hostsFor(name ?? undefined, overrides),
  /** The host that a token names, and the one of its account. */
  "model-host": (stated: string, host: string) => allowedModelHost(stated, hostsFor(host)),
  app: (choice: string | null, host?: string) => signInApp(choice ?? undefined, host),
  /** What happens in turn, `pass` and `jump` to the clocks: how the account is then, for a model too, and what is logged. */
  status(...steps: [act: string, ...given: unknown[]][]) {
    const [clock, { lines, logger }] = [handClock(), keptLog()];
    const changed = () => void lines.push("told to others");
    const afterCooldown = () => ({ name: "exhausted", until: Date.parse("2026-11-21T10:10:00Z") }) as const;
    const status = new AccountStatus({ id: () => "octo", logger, ...clock, afterCooldown, changed });
    return steps.map(([act, ...given]) => {
      const on = (act in clock ? clock : status) as unknown as Record<string, (...all: unknown[]) => unknown>;
      on[act]!(...given);
      const [state, free, paid] = [status.state, status.stateFor("gpt", false), status.stateFor("gpt")];
      const log = lines.splice(0).map((line) => line.replace(/^\d\S+ /, "").trimEnd());
      const error = state.name === "ready" ? null : status.unusableError();
      return {
        state,
        free: free.name,
        paid: paid.name,
        models: status.limitedModels,
        error,
        off: status.isBackingOff,
        log,
      };
    });
  },
  /** What the quota endpoint says. */
  quota: (answer: object) => readQuota(answer, 7),
  /** A header of a model's answer, or none, and what its endpoint said before: the quota, and what was sent of it. */
  "quota-header"(value: string | null, known?: object) {
    const sent: unknown[] = [];
    const headers = new Headers(value === null ? {} : { "x-quota-snapshot-premium_models": value });
    return [learnFromHeaders(known && readQuota(known, 0), headers, 0, (found) => sent.push(found)), sent];
  },
});
