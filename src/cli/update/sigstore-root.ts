/** Whom Sigstore trusts: its certificate authorities and logs. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TrustedRoot } from "@sigstore/protobuf-specs";
import { getTrustedRoot } from "@sigstore/tuf";
import seeds from "@sigstore/tuf/seeds.json";

const mirror = "https://tuf-repo-cdn.sigstore.dev";

/** From Sigstore's own repository, which proves its changes with the keys that this build knows; else as this build knows it. */
export async function currentTrust(): Promise<TrustedRoot> {
  const cachePath = mkdtempSync(join(tmpdir(), "dragoman-trust-"));
  try {
    return await getTrustedRoot({ mirrorURL: mirror, cachePath, timeout: 10_000, retry: 1 });
  } catch {
    // It cannot be reached, or has an error: what this build knows is older and as trustworthy.
    return knownTrust();
  } finally {
    rmSync(cachePath, { recursive: true, force: true });
  }
}

export function knownTrust(): TrustedRoot {
  const base64 = seeds[mirror].targets["trusted_root.json"];
  return TrustedRoot.fromJSON(JSON.parse(Buffer.from(base64, "base64").toString()));
}
