/**
 * Reads one page of the public internet. Its address is checked before each request, and what a name resolves to as well;
 * the connection goes to exactly the address that was checked, so that a name which resolves differently a moment later
 * leads nowhere else.
 */
import type { IncomingMessage } from "node:http";
import { ProxyError } from "../../errors";
import { isPublicAddress } from "../address";
import { limitBytes } from "../in/byte-limit";
import { decompress, encodingOf } from "../in/decompress";
import { proxyFor } from "./proxy";

/** Where pages may be read; tests name their own servers. */
export interface Reach {
  /** All addresses of a name. @throws If it has none. */
  resolve(host: string): Promise<string[]>;
  permits(address: string, port: number): boolean;
}

/** The public internet, at the ports of HTTP. */
export const publicInternet: Reach = {
  async resolve(host) {
    const { lookup } = process.getBuiltinModule("node:dns/promises");
    return (await lookup(host, { all: true })).map(({ address }) => address);
  },
  permits: (address, port) => (port === 80 || port === 443) && isPublicAddress(address),
};

export interface PublicPage {
  /** After redirects. */
  url: string;
  /** Lower case, without parameters. */
  type: string;
  charset: string | undefined;
  bytes: Uint8Array;
}

interface PageOptions {
  signal: AbortSignal;
  /** Called with the address of each request, before it is made. @throws ProxyError if it must not be asked. */
  check(url: URL): void;
  reach?: Reach;
}

/** Why a page was not read; the codes are those of the messages dialect. */
type PageFailure =
  | "url_not_allowed"
  | "url_not_accessible"
  | "content_too_large"
  | "too_many_requests"
  | "unsupported_content_type";

export class PageError extends ProxyError {
  constructor(
    readonly failure: PageFailure,
    sentence: string,
  ) {
    super("upstream", sentence, { code: failure });
  }
}

const maxBytes = 1024 * 1024;
const maxRedirects = 5;
/** Milliseconds for the page, redirects included. */
const timeoutMs = 20_000;

/** @throws PageError why there is no page; ProxyError of `check`; the signal's reason. */
export async function readPublicPage(address: URL, options: PageOptions): Promise<PublicPage> {
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(timeoutMs)]);
  let url = address;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const answer = await ask(url, options, signal);
    if (!("location" in answer)) return answer;
    const next = URL.parse(answer.location, url.href);
    if (!next) throw new PageError("url_not_accessible", "The page redirects to an address that cannot be read.");
    url = next;
  }
  throw new PageError("url_not_accessible", `The page redirects more than ${maxRedirects} times.`);
}

async function ask(
  url: URL,
  { check, reach = publicInternet }: PageOptions,
  signal: AbortSignal,
): Promise<PublicPage | { location: string }> {
  check(url);
  const pinned = await checkedAddress(url, reach);
  try {
    const response = await request(url, pinned, signal);
    return await readAnswer(url, response);
  } catch (thrown) {
    if (thrown instanceof ProxyError) throw thrown;
    if (signal.aborted) throw new PageError("url_not_accessible", "The page did not answer in time.");
    throw new PageError("url_not_accessible", "The page could not be reached.");
  }
}

/**
 * The address to connect to. One that is not permitted among a name's addresses refuses the name: which of them is used
 * must not be left to chance.
 */
async function checkedAddress(url: URL, reach: Reach): Promise<string | undefined> {
  const isHttp = url.protocol === "http:" || url.protocol === "https:";
  if (!isHttp || url.username !== "" || url.password !== "")
    throw new PageError("url_not_allowed", "Only http and https addresses without a password are read.");
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const isAddress = process.getBuiltinModule("node:net").isIP(host) !== 0;
  const addresses = isAddress ? [host] : await resolved(host, url, reach);
  if (!addresses.every((one) => reach.permits(one, port)))
    throw new PageError(
      "url_not_allowed",
      "The address is not on the public internet, or its port is not one of HTTP.",
    );
  return addresses[0];
}

/** Behind a proxy, names of the internet may be known to the proxy only: it then resolves them, and decides. */
async function resolved(host: string, url: URL, reach: Reach): Promise<string[]> {
  try {
    const addresses = await reach.resolve(host);
    if (addresses.length > 0) return addresses;
  } catch {
    // It has no address here, which the next line says.
  }
  const isProxied =
    proxyFor(url.href) !== undefined &&
    !/^localhost$|\.(?:localhost|local|internal|lan|home\.arpa)$|^[^.]+$/i.test(host);
  if (isProxied) return [];
  throw new PageError("url_not_accessible", "The name of the page's server is not known.");
}

interface Answer {
  status: number;
  header(name: string): string | undefined;
  body: AsyncIterable<Uint8Array>;
  cancel(): void;
}

const headers = { accept: "text/html, text/plain, text/*;q=0.9, */*;q=0.1", "accept-encoding": "identity" };

function request(url: URL, pinned: string | undefined, signal: AbortSignal): Promise<Answer> {
  return proxyFor(url.href) ? throughProxy(url, signal) : direct(url, pinned, signal);
}

async function throughProxy(url: URL, signal: AbortSignal): Promise<Answer> {
  const response = await fetch(url, { headers, signal, redirect: "manual", decompress: false });
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    body: (response.body ?? new Blob().stream()) as unknown as AsyncIterable<Uint8Array>,
    cancel: () => void response.body?.cancel().catch(() => {}),
  };
}

function direct(url: URL, pinned: string | undefined, signal: AbortSignal): Promise<Answer> {
  const library = process.getBuiltinModule(url.protocol === "https:" ? "node:https" : "node:http");
  const family = process.getBuiltinModule("node:net").isIP(pinned ?? "");
  return new Promise((resolve, reject) => {
    const call = library.get(
      url,
      {
        headers,
        signal,
        agent: false,
        // The name was resolved and checked: it is not resolved again.
        lookup: (_host, _options, done) => done(null, [{ address: pinned ?? "", family }]),
      },
      (response: IncomingMessage) =>
        resolve({
          status: response.statusCode ?? 0,
          header(name) {
            const value = response.headers[name];
            return Array.isArray(value) ? value[0] : value;
          },
          body: response,
          cancel: () => void response.destroy(),
        }),
    );
    call.on("error", reject);
  });
}

async function readAnswer(url: URL, answer: Answer): Promise<PublicPage | { location: string }> {
  const { status } = answer;
  const location = status >= 300 && status < 400 ? answer.header("location") : undefined;
  if (location !== undefined || status < 200 || status > 299) {
    answer.cancel();
    if (location !== undefined) return { location };
    throw new PageError(
      status === 429 ? "too_many_requests" : "url_not_accessible",
      `The page answered with status ${status}.`,
    );
  }
  const bytes = await readPlain(answer);
  const [type = "", ...parameters] = (answer.header("content-type") ?? "").toLowerCase().split(";");
  const charset = parameters.map((text) => /^\s*charset="?([^"\s]+)/.exec(text)?.[1]).find((name) => name);
  return { url: url.href, type: type.trim(), charset, bytes };
}

/** The page's bytes. Some servers compress what nobody asked them to, and some files lie there compressed. */
async function readPlain(answer: Answer): Promise<Uint8Array> {
  const tooLarge = () => new PageError("content_too_large", "The page has more than 1 MB.");
  try {
    const encoding = encodingOf(answer.header("content-encoding"));
    const sent = limitBytes(answer.body, maxBytes, tooLarge);
    const plain = encoding === undefined ? sent : limitBytes(decompress(sent, encoding), maxBytes, tooLarge);
    return Buffer.concat(await Array.fromAsync(plain));
  } catch (thrown) {
    answer.cancel();
    if (!(thrown instanceof ProxyError) || thrown instanceof PageError) throw thrown;
    throw new PageError("unsupported_content_type", "The page is compressed in a way that cannot be read.");
  }
}
