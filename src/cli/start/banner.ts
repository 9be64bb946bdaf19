/** The lines printed when the server is ready: its address, the accounts it uses, how to try it. At most twenty lines. */

import { databaseName } from "../../config/environment";
import { plural } from "../../lib/format";
import { isLoopbackUrl } from "../../lib/net/address";
import { certificateFiles, warnOfCertificateFault } from "../../lib/net/out/ca-certificates";
import { ignoredProxy, proxyFor, sparedBy } from "../../lib/net/out/proxy";
import type { App } from "../../parts/app";
import { accessFact, asksTokenHere, wholeOf } from "../../parts/facts";
import { hostsFor } from "../../people/accounts/hosts";
import type { Listening } from "../../server";
import { table } from "../layout";
import { shortened } from "../terminal";

/** What the banner is about. */
export interface Started {
  app: App;
  listening: Listening;
  /** Where traces go; undefined if nowhere. */
  collector?: string;
  /** The path of a link for a guest of the demo's team, which is in no log. */
  invitation?: string;
}

/** @param model That of the command to try. */
export function printBanner(started: Started, model: string): string[] {
  const { app, listening } = started;
  return [
    titleOf(started),
    "",
    ...table([...factLines(started), ...invitationLines(started)], { indent: 2, heads: false }),
    "",
    app.allAccounts.length === 0 ? "Then try it:" : "Try it:",
    ...curlFor(listening.url, started, model),
    "",
    `Next, in another terminal: \`${app.command} connect\` sets up your tools, \`${app.command} status\` shows what happens.`,
    "",
  ];
}

/** The banner for a log: a sentence for each line, such as `Address: http://127.0.0.1:4141`. */
export const bannerFacts = (started: Started): string[] => [
  titleOf(started),
  ...factLines(started).map(([name, text]) => (name === "" ? text : `${name}: ${text}`)),
];

function titleOf({ app: { demo, version }, collector }: Started): string {
  if (!demo) return `dragoman ${version}`;
  const nothing = collector === undefined ? "nothing" : "nothing but traces";
  return `dragoman ${version} · DEMO: answers are scripted, no account is used, ${nothing} leaves this machine`;
}

type Fact = [name: string, text: string];

const invitationLines = ({ invitation, listening }: Started): Fact[] =>
  invitation === undefined ? [] : [["Invitation", `${listening.url}${invitation}`]];

function factLines({ app, listening, collector }: Started): Fact[] {
  return [
    ["Address", listening.url],
    ["Accounts", accountsLine(app)],
    ["Access", accessLine(app)],
    ...adminLines(app, listening),
    ...databaseLines(app),
    ["Data", shortened(app.environment.home)],
    ...(collector === undefined ? [] : ([["Traces", `to ${collector}`]] satisfies Fact[])),
    ...(app.demo ? [] : networkLines(app)),
  ];
}

function accountsLine({ accounts, allAccounts, members }: App): string {
  const names = accounts.map(({ id, temporary }) => (temporary ? "a temporary account, for this run only" : id));
  const others = allAccounts.length - accounts.length;
  if (others > 0) return `${names.join(", ") || "none of yours"}; ${plural(others, "account")} of members`;
  if (names.length > 0) return names.join(", ");
  return `none yet: requests are refused until you sign in with \`dragoman auth\`${members ? ", or members sign in" : ""}`;
}

function accessLine(app: App): string {
  const fact = accessFact(app);
  return `${fact.state === "bad" ? "WARNING: " : ""}${wholeOf(fact)}`;
}

function databaseLines({ environment: { databaseUrl }, members }: App): Fact[] {
  if (databaseUrl === undefined) return [];
  const count = members?.list().length ?? 0;
  return [["Database", `${databaseName(databaseUrl)}${count > 0 ? `, with ${plural(count, "member")}` : ""}`]];
}

/** The address of the admin pages, who may open them, and what a reverse proxy needs. */
function adminLines(app: App, { url, exposed }: Listening): Fact[] {
  const { requiresKey, trustedProxies, environment } = app;
  const { adminToken } = environment;
  const line = (more: string): Fact[] => [["Admin", `${url}/admin${more}`]];
  // At any other address, calls from this machine do not come from loopback either.
  const isOpenHere = !asksTokenHere(app) && (!exposed || isLoopbackUrl(url));
  if (!isOpenHere)
    return line(adminToken === undefined ? ", closed: set ADMIN_TOKEN to open it" : ", with ADMIN_TOKEN");
  // Both are set when others are meant to reach the instance.
  if (!requiresKey || adminToken === undefined) return line("");
  const here = line(", without a token on this machine");
  // Whoever named the proxies has thought of them.
  if (trustedProxies) return here;
  return [
    ...here,
    ["", "Behind a reverse proxy or tunnel, start with --admin-auth=always, or its callers have admin access"],
  ];
}

/** The proxy and the certificate files, if there are any. */
function networkLines({ environment }: App): Fact[] {
  const { api } = hostsFor(environment.enterpriseHost, environment);
  const proxy = proxyFor(api);
  const ignored = ignoredProxy(api);
  const spared = ["this machine", ...sparedBy()].join(", ");
  const faults = certificateFiles().filter(({ fault }) => fault);
  const facts: (Fact | undefined)[] = [
    ignored && ["Proxy", `none is used: ${ignored.variable} ${ignored.fault}`],
    proxy?.fault ? ["Proxy", `no call to GitHub can succeed: ${proxy.variable} ${proxy.fault}.`] : undefined,
    proxy && !proxy.fault ? ["Proxy", `${proxy.address} (${proxy.variable}), not for: ${spared}`] : undefined,
    ...faults.map((file): Fact => ["CA file", warnOfCertificateFault(file)]),
  ];
  return facts.filter((fact) => fact !== undefined);
}

function curlFor(url: string, { app }: Started, model: string): string[] {
  return [
    `  curl -N ${url}/v1/chat/completions \\`,
    ...["content-type: application/json", ...(app.requiresKey ? ["x-api-key: <your key>"] : [])].map(
      (header) => `    -H '${header}' \\`,
    ),
    // In two lines, as no terminal breaks a line without breaking a word.
    `    -d '{"model":"${model}","stream":true,`,
    `      "messages":[{"role":"user","content":"Hello! Who are you?"}]}'`,
  ];
}
