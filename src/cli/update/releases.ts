/** The releases of the project, as GitHub's API has them. */
import { z } from "zod";
import type { Environment } from "../../config/environment";
import { ProxyError } from "../../lib/errors";
import { parseJson } from "../../lib/json";
import { lazy } from "../../lib/lazy";
import { readText } from "../../lib/net/out/body";
import { singleLimit } from "../../lib/net/out/clock";
import { callOut } from "../../lib/net/out/fetch";
import { buildStamp } from "../build-stamp";

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

const releaseSchema = lazy(() => z.object({ tag_name: z.string().regex(/^v\d+\.\d+\.\d+$/) }));

/** @param version Ours, for the user agent. @returns The newest version: `1.2.3`. @throws ProxyError */
export async function latestRelease({ api }: ReleaseSource, version: string): Promise<string> {
  const who = "The host of the releases";
  const headers = { "user-agent": `dragoman/${version}`, accept: "application/json" };
  const limits = singleLimit(10_000);
  const response = await callOut(`${api}/releases/latest`, { method: "GET", headers, limits, who });
  if (!response.ok) {
    response.body.cancel();
    throw new ProxyError("upstream", faults[response.status] ?? `${who} answered with status ${response.status}.`);
  }
  const read = releaseSchema().safeParse(parseJson(await readText(response, 16 * 1024 * 1024)));
  if (!read.success) throw new ProxyError("upstream", "The answer about the newest release is not valid.");
  return read.data.tag_name.slice(1);
}

const faults: Record<number, string> = {
  403: "GitHub's API accepts no more calls from this address for now. Try again in an hour.",
  404: "The host of the releases has none.",
  429: "GitHub's API accepts no more calls from this address for now. Try again later.",
};
