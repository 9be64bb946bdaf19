/** Explains why a service could not be reached, and which hop failed: the service itself, or the proxy on the way to it. */
import { codeOf, ProxyError, retryHeaders } from "../../errors";
import { isOutOfFiles } from "../../free-files";
import { certificateFiles, warnOfCertificateFault } from "./ca-certificates";
import { type OutboundProxy, proxyFor } from "./proxy";

/**
 * The error for a call that failed on the network.
 * @param thrown By `fetch`, or while its body was read.
 * @param url Empty where it is not known.
 * @param who For the sentence: `GitHub Copilot`.
 */
export function networkError(thrown: unknown, url: string, who: string): ProxyError {
  const code = codeOf(thrown);
  if (noConnection.test(code) && isOutOfFiles()) return outOfFiles(thrown, who);
  const proxy = url === "" ? undefined : proxyFor(url);
  const sentence = (proxy && viaProxy(thrown, code, proxy, url, who)) ?? directly(code, who, proxy);
  return new ProxyError("upstream", sentence, { cause: thrown, code: "upstream_unreachable" });
}

/** Codes of a connection that was not made. For a name with several addresses Bun says "refused" also where it has no files left. */
const noConnection = /EMFILE|ENFILE|REFUSED|FailedToOpenSocket|ENOTFOUND|EAI_AGAIN/;

/** The fault is this machine's, so no account and no other model is blamed for it. */
const outOfFiles = (thrown: unknown, who: string) =>
  new ProxyError(
    "internal",
    `No connection to ${who} could be opened: this dragoman has as many files and connections open as its limit allows. Try again in a moment; whoever runs it can raise the limit (\`ulimit -n\` before the start, \`LimitNOFILE=\` of a service).`,
    { cause: thrown, code: "out_of_files", status: 503, headers: retryHeaders(2) },
  );

/** @param timeoutMs Milliseconds. */
export function silenceError(url: string, who: string, timeoutMs: number): ProxyError {
  const proxy = proxyFor(url);
  const via = proxy ? ` through ${nameOf(proxy)}: one of the two is silent, and \`dragoman doctor\` says which` : "";
  return new ProxyError("timeout", `${who} did not answer within ${inSeconds(timeoutMs)}${via}.`);
}

/** `0.3 s`, `120 s` */
export const inSeconds = (ms: number): string => `${Number((ms / 1000).toPrecision(3))} s`;

/** The status with which a proxy refused the tunnel; undefined for any other error. */
export function tunnelStatus(thrown: unknown): number | undefined {
  if (codeOf(thrown) !== "ERR_PROXY_TUNNEL") return undefined;
  return typeof (thrown as { status?: unknown }).status === "number" ? (thrown as { status: number }).status : 0;
}

const nameOf = ({ address, variable }: OutboundProxy) => `the proxy ${address} (${variable})`;

/** The error at the proxy or on the way to it; undefined when it happened at the service. */
function viaProxy(thrown: unknown, code: string, proxy: OutboundProxy, url: string, who: string): string | undefined {
  const cannot = `${who} cannot be reached:`;
  if (proxy.fault) return `${cannot} ${proxy.variable} ${proxy.fault}.`;
  const named = nameOf(proxy);
  const status = tunnelStatus(thrown);
  if (status !== undefined) {
    const host = new URL(url).hostname;
    const sentence = tunnelSentences.find(([pattern]) => pattern.test(String(status)))?.[1] ?? noTunnel;
    return `${cannot} ${named} ${sentence({ proxy, host, status, schemes: schemesIn(thrown) })}`;
  }
  const sentence = proxySentences.find(([pattern]) => pattern.test(code))?.[1];
  return sentence && `${cannot} ${sentence(named, proxy)}`;
}

interface Tunnel {
  proxy: OutboundProxy;
  /** The destination of the tunnel. */
  host: string;
  status: number;
  /** The sign-in schemes that the proxy offers: `Basic realm="x", NTLM`. */
  schemes: string;
}

const tunnelSentences: [RegExp, (tunnel: Tunnel) => string][] = [
  [
    /407/,
    ({ proxy: { variable, host, port, signsIn }, schemes }) => {
      if (schemes !== "" && !/\bbasic\b/i.test(schemes))
        return `wants a sign-in other than by password (status 407: ${schemes.replace(/\s.*/, "")}). Run a helper that signs in to it, such as px or cntlm, and name that one in ${variable}.`;
      if (signsIn) return `did not accept the user name and password in ${variable} (status 407).`;
      return `wants a user name and a password (status 407). Put them into ${variable}, as user:password@${host}:${port}.`;
    },
  ],
  [/403/, ({ host }) => `does not allow ${host} (status 403). Ask whoever runs it to allow that host.`],
  [/50[0234]/, ({ host, status }) => `could not reach ${host} itself (status ${status}).`],
];

const noTunnel = ({ host, status }: Tunnel) => `opened no tunnel to ${host} (status ${status}).`;

function schemesIn(thrown: unknown): string {
  const headers = (thrown as { headers?: unknown }).headers;
  const offered = headers instanceof Headers ? headers.get("proxy-authenticate") : undefined;
  return (offered ?? "").replace(/[^ -~]/g, "").slice(0, 100);
}

const proxySentences: [RegExp, (named: string, proxy: OutboundProxy) => string][] = [
  [
    /ENOTFOUND|EAI_AGAIN/,
    (named) => `the name of ${named} could not be resolved. Is this machine offline, or outside the company's network?`,
  ],
  [/REFUSED|FailedToOpenSocket/i, (named) => `${named} refused the connection. Is it running, and is that its port?`],
  [/UNREACH|ETIMEDOUT/, (named) => `${named} is not reachable from this network.`],
  [
    /EPROTO/,
    (named, { address, variable }) =>
      address.startsWith("https:")
        ? `the TLS handshake failed with ${named} or behind it. If the proxy itself is spoken to without TLS, as most are, write http:// in ${variable}.`
        : `the TLS handshake failed behind ${named}.`,
  ],
  [/RESET|CLOSED|EPIPE/i, (named) => `the connection through ${named} broke before the answer was complete.`],
  [/Malformed/i, (named) => `what came back through ${named} is not HTTP. Is there an HTTP proxy at that port?`],
];

/** The error at the service, or at whatever answers in its place. */
function directly(code: string, who: string, proxy: OutboundProxy | undefined): string {
  const sentence =
    sentences.find(([pattern]) => pattern.test(code))?.[1] ??
    (() => `could not be reached${proxy ? ` through ${nameOf(proxy)}` : ""}.`);
  return `${who} ${sentence(proxy)}`;
}

const sentences: [RegExp, (proxy: OutboundProxy | undefined) => string][] = [
  [/REFUSED|FailedToOpenSocket/i, () => "refused the connection."],
  [/ENOTFOUND|EAI_AGAIN/, () => "cannot be resolved. Is this machine offline?"],
  [/UNREACH|ETIMEDOUT/, () => "is not reachable from this network."],
  [
    /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/,
    (proxy) => `has a TLS certificate${seen(proxy)} that is out of date. Is this machine's clock right?`,
  ],
  [
    /ALTNAME/,
    (proxy) => `has a TLS certificate${seen(proxy)} made out to another name: something else answers in its place.`,
  ],
  [/CERT|SIGNATURE|ISSUER/i, unknownSigner],
  [/EPROTO|TLS|SSL/i, () => "does not speak TLS at that address: is a proxy or a portal in the way?"],
  [/RESET|CLOSED|EPIPE/i, () => "broke the connection before its answer was complete."],
  [/Malformed/i, () => "answered with something that is not HTTP: is something else listening there?"],
];

const seen = (proxy: OutboundProxy | undefined) => (proxy ? `, seen through ${nameOf(proxy)},` : "");

function unknownSigner(proxy: OutboundProxy | undefined): string {
  const [faulty] = certificateFiles().filter(({ fault }) => fault);
  const advice = faulty
    ? warnOfCertificateFault(faulty)
    : "A company's proxy that looks into TLS does that: set NODE_EXTRA_CA_CERTS to a file with the company's root certificate (PEM).";
  return `has a TLS certificate${seen(proxy)} signed by nobody this machine knows. ${advice}`;
}
