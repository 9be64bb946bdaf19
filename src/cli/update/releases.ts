/** The releases of the project, as GitHub's API has them. */
import { z } from "zod";
import type { Environment } from "../../config/environment";
import { ProxyError } from "../../errors";
import { parseJson } from "../../json";
import { lazy } from "../../lazy";
import { isLoopbackUrl } from "../../net/address";
import { type CallResponse, readText } from "../../net/out/body";
import { type CallLimits, singleLimit } from "../../net/out/clock";
import { callOut } from "../../net/out/fetch";
import { buildStamp } from "../build-stamp";

export interface Release {
  /** `v1.2.3` */
  tag: string;
  version: string;
  /** The addresses of its files, by name. */
  files: ReadonlyMap<string, string>;
}

/** Where releases are looked up, and who makes them. */
export interface ReleaseSource {
  /** The address of the repository in GitHub's API. */
  api: string;
  /** `https://github.com/owner/name` */
  repository: string;
}

/** Undefined for a build that is not from a release: it does not know where releases are. */
export function releaseSource(
  { releasesUrl }: Pick<Environment, "releasesUrl">,
  repository = buildStamp.repository,
): ReleaseSource | undefined {
  const [, name] = /^https:\/\/github\.com\/([\w.-]+\/[\w.-]+)$/.exec(repository ?? "") ?? [];
  if (repository === undefined || name === undefined) return undefined;
  return { api: releasesUrl ?? `https://api.github.com/repos/${name}`, repository };
}

const releaseSchema = lazy(() =>
  z.object({
    tag_name: z.string().regex(/^v\d+\.\d+\.\d+$/),
    assets: z.array(z.object({ name: z.string().max(200), browser_download_url: z.url() })).max(200),
  }),
);

/** @param version Ours, for the user agent. @throws ProxyError */
export async function latestRelease({ api }: ReleaseSource, version: string): Promise<Release> {
  const answer = await askJson(`${api}/releases/latest`, version, 10_000);
  const read = releaseSchema().safeParse(answer);
  if (!read.success) throw new ProxyError("upstream", "The answer about the newest release is not valid.");
  const { tag_name: tag, assets } = read.data;
  return {
    tag,
    version: tag.slice(1),
    files: new Map(assets.map(({ name, browser_download_url }) => [name, browser_download_url])),
  };
}

const attestationsSchema = lazy(() => z.object({ attestations: z.array(z.object({ bundle: z.unknown() })).max(100) }));

/** The bundles that are about a file. @param sha256 In hexadecimal. @throws ProxyError */
export async function attestationsOf({ api }: ReleaseSource, sha256: string, version: string): Promise<unknown[]> {
  const read = attestationsSchema().safeParse(await askJson(`${api}/attestations/sha256:${sha256}`, version, 30_000));
  return read.success ? read.data.attestations.map(({ bundle }) => bundle) : [];
}

async function askJson(url: string, version: string, timeoutMs: number): Promise<unknown> {
  const response = await getFollowing(url, version, singleLimit(timeoutMs));
  return parseJson(await readText(response, 16 * 1024 * 1024));
}

const maxRedirects = 5;

/**
 * GET, also where that leads elsewhere: the files of a release are on another host. Only https is followed, or http within
 * this machine.
 * @throws ProxyError
 */
export async function getFollowing(url: string, version: string, limits: CallLimits): Promise<CallResponse> {
  const who = "The host of the releases";
  const headers = { "user-agent": `dragoman/${version}`, accept: "application/json, application/octet-stream;q=0.9" };
  let address = url;
  for (let left = maxRedirects; left >= 0; left -= 1) {
    if (!address.startsWith("https://") && !(isLoopbackUrl(address) && isLoopbackUrl(url)))
      throw new ProxyError("upstream", `${who} leads to an address without https.`);
    const response = await callOut(address, { method: "GET", headers, limits, who, returnsRedirects: true });
    if (response.ok) return response;
    response.body.cancel();
    const location = response.status < 400 ? response.headers.get("location") : null;
    if (location === null || !URL.canParse(location, address))
      throw new ProxyError("upstream", faults[response.status] ?? `${who} answered with status ${response.status}.`);
    address = new URL(location, address).href;
  }
  throw new ProxyError("upstream", `${who} redirects in a circle.`);
}

const faults: Record<number, string> = {
  403: "GitHub's API accepts no more calls from this address for now. Try again in an hour.",
  404: "The host of the releases does not have this.",
  429: "GitHub's API accepts no more calls from this address for now. Try again later.",
};
