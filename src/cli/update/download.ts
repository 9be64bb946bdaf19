/** A file of a release: downloaded, and compared with the release's list of checksums. */
import { closeSync, openSync, writeSync } from "node:fs";
import { ProxyError } from "../../errors";
import { minuteMs } from "../../format";
import { piecesOf, readText } from "../../net/out/body";
import type { CallLimits } from "../../net/out/clock";
import { getFollowing, type Release } from "./releases";

const limits: CallLimits = { headers: minuteMs, idle: minuteMs, total: 60 * minuteMs };
/** Bytes; an executable has 130 MB. */
const maxBytes = 500 * 1024 * 1024;
const sumsFile = "SHA256SUMS";

/**
 * Writes the file with this name to `path`, which must not exist.
 * @param version Ours, for the user agent.
 * @param progress Called with the number of bytes so far.
 * @returns The SHA-256 of the file in hexadecimal, which is the one of the release's list.
 * @throws ProxyError; the file may be there and must not be used
 */
export async function download(
  release: Release,
  name: string,
  path: string,
  version: string,
  progress: (bytes: number) => void = () => {},
): Promise<string> {
  const url = release.files.get(name);
  if (url === undefined) throw new ProxyError("not_found", `The release ${release.tag} has no file ${name}.`);
  const expected = await checksumOf(release, name, version);
  const response = await getFollowing(url, version, limits);
  const hasher = new Bun.CryptoHasher("sha256");
  let bytes = 0;
  const file = openSync(path, "wx", 0o700);
  try {
    for await (const piece of piecesOf(response.body, maxBytes)) {
      hasher.update(piece);
      writeSync(file, piece);
      bytes += piece.length;
      progress(bytes);
    }
  } finally {
    closeSync(file);
  }
  const found = hasher.digest("hex");
  if (found === expected) return found;
  throw new ProxyError(
    "upstream",
    `The checksum of ${name} is wrong: the download is broken, or the file was replaced. Nothing was changed.`,
  );
}

async function checksumOf(release: Release, name: string, version: string): Promise<string> {
  const url = release.files.get(sumsFile);
  const text = url && (await readText(await getFollowing(url, version, limits), 1024 * 1024));
  const line = text?.split("\n").find((each) => each.slice(66).trim() === name);
  const [sum] = /^[0-9a-f]{64}(?= )/.exec(line ?? "") ?? [];
  if (sum !== undefined) return sum;
  throw new ProxyError("upstream", `The release ${release.tag} has no checksum for ${name}. Nothing was changed.`);
}
