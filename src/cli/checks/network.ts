/** The connection to GitHub: proxy, trusted certificates, each host, and the clock compared with theirs. */

import { asProxyError, type ProxyError } from "../../lib/errors";
import { plural } from "../../lib/format";
import type { CallResponse } from "../../lib/net/out/body";
import { certificateFiles, warnOfCertificateFault } from "../../lib/net/out/ca-certificates";
import { singleLimit } from "../../lib/net/out/clock";
import { probeConnection } from "../../lib/net/out/connectivity-probe";
import { callOut } from "../../lib/net/out/fetch";
import { ignoredProxy, proxyFor, sparedBy } from "../../lib/net/out/proxy";
import { type Hosts, hostsFor } from "../../people/accounts/hosts";
import { savedAccounts } from "./accounts";
import { about, type CheckContext, type Finding } from "./check";

/** Time limits in milliseconds, of one call and of each hop that is probed after it. */
const timeoutMs = 4_000;
const hopTimeoutMs = 1_200;

export function checkProxy({ environment, enterpriseHost, env }: CheckContext): Finding[] {
  const proxy = about("proxy");
  const { api } = hostsFor(enterpriseHost, environment);
  const ignored = ignoredProxy(api, env);
  if (ignored)
    return [
      proxy.warn(
        `GitHub is called directly: ${ignored.variable} ${ignored.fault}.`,
        "If this network needs a proxy, set HTTPS_PROXY to one with http://.",
      ),
    ];
  const found = proxyFor(api, env);
  if (!found) return [proxy.ok("None: GitHub is called directly.")];
  const { variable, address, fault } = found;
  if (fault) return [proxy.fail(`${variable} ${fault}.`, `Fix or unset ${variable}.`)];
  const spared = ["this machine", ...sparedBy(env)].join(", ");
  return [proxy.ok(`${address} (${variable}), not for: ${spared}.`)];
}

export function checkTrust({ env }: CheckContext): Finding[] {
  const trust = about("CA file");
  const files = certificateFiles(env);
  if (files.length === 0) return [trust.ok("None is set: only the usual certificate authorities are trusted.")];
  return files.map((file) =>
    file.fault
      ? trust.fail(warnOfCertificateFault(file), `Fix the file, or set ${file.variable} to another one.`)
      : trust.ok(`${file.variable} adds ${plural(file.count, "certificate")} from ${file.path}.`),
  );
}

interface Answer {
  finding: Finding;
  /** How far this machine's clock is ahead of the host's, in milliseconds. */
  drift?: number;
}

/** Checks every host that the accounts need, in parallel, and the clock. */
export async function checkReach(subject: CheckContext): Promise<Finding[]> {
  const answers = await Promise.all(
    hostsNeeded(subject)
      .flatMap(servicesOf)
      .map((service) => ask(service, subject)),
  );
  const drifts = answers.flatMap(({ drift }) => (drift === undefined ? [] : [drift]));
  return [...answers.map(({ finding }) => finding), judgeClock(drifts)];
}

function hostsNeeded(subject: CheckContext): Hosts[] {
  const { environment, enterpriseHost } = subject;
  const saved = savedAccounts(subject).accounts.map(({ host }) => host);
  const names = new Set(saved.length > 0 ? saved : [enterpriseHost ?? "github.com"]);
  return [...names].map((name) => hostsFor(name, environment));
}

interface Service {
  name: string;
  url: string;
}

const servicesOf = ({ web, api, copilot, copilotOverride }: Hosts): Service[] => [
  { name: "GitHub", url: `${web}/` },
  { name: "GitHub's API", url: `${api}/` },
  { name: "Copilot API", url: `${copilotOverride ?? copilot}/_ping` },
];

async function ask({ name, url }: Service, { version }: CheckContext): Promise<Answer> {
  const { host } = new URL(url);
  const reach = about(name);
  const began = Date.now();
  try {
    const headers = { "user-agent": `dragoman/${version}`, accept: "*/*" };
    const response = await callOut(url, { method: "GET", headers, limits: singleLimit(timeoutMs), who: host });
    const took = Date.now() - began;
    response.body.cancel();
    return { finding: reach.ok(`${host} answers in ${took} ms.`), drift: driftOf(response, began + took / 2) };
  } catch (thrown) {
    const error = asProxyError(thrown);
    // A redirect is an answer too, for example to a sign-in page.
    const answered = error.kind === "upstream" && error.details.code !== "upstream_unreachable";
    if (answered) return { finding: reach.ok(`${host} answers in ${Date.now() - began} ms.`) };
    return { finding: reach.fail(error.message + (await moreOf(error, url)), todoOf(url)) };
  }
}

/** What probing the hops adds: which one does not answer, or who signed the certificate. */
async function moreOf({ kind, message }: ProxyError, url: string): Promise<string> {
  if (kind === "timeout") return ` Step by step: ${(await probeConnection(url, hopTimeoutMs)).message}.`;
  if (!/ certificate/.test(message)) return "";
  const { signer } = await probeConnection(url, hopTimeoutMs);
  return signer ? ` It is signed by "${signer}".` : "";
}

const todoOf = (url: string) =>
  proxyFor(url) ? undefined : "Check the network. If it needs a proxy, set HTTPS_PROXY.";

/** Undefined if the answer has no date. */
function driftOf(response: Pick<CallResponse, "headers">, at: number): number | undefined {
  const serverTime = Date.parse(response.headers.get("date") ?? "");
  // The date has whole seconds only.
  return Number.isNaN(serverTime) ? undefined : at - (serverTime + 500);
}

/** @param drifts Milliseconds ahead, as each host sees it. */
export function judgeClock(drifts: number[]): Finding {
  const clock = about("clock");
  const sorted = drifts.toSorted((one, other) => one - other);
  const drift = sorted[Math.floor(sorted.length / 2)];
  if (drift === undefined) return clock.warn("The clock could not be compared: no host answered.");
  const seconds = Math.round(Math.abs(drift) / 1000);
  const off = seconds < 120 ? plural(seconds, "second") : plural(Math.round(seconds / 60), "minute");
  const summary = `This machine's clock is ${off} ${drift > 0 ? "ahead" : "behind"}`;
  const todo = "Turn on automatic time setting (NTP).";
  if (seconds > 300) return clock.fail(`${summary}: certificates and sign-ins will be rejected.`, todo);
  if (seconds > 60) return clock.warn(`${summary}.`, todo);
  return clock.ok("It agrees with these hosts.");
}
