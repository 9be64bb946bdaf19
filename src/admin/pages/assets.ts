/** Stylesheet, scripts and icon of the pages. They are public. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { lazy } from "../../lib/lazy";
import { withSecurityHeaders } from "../ui/page-context";

const folder = join(import.meta.dir, "static");

/**
 * Follows `?` in the addresses of the assets: a hash of all of them, so that servers of one version have the same addresses, and a
 * browser does not reuse those of another version.
 */
export const assetTag = lazy(() => {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const name of readdirSync(folder).sort()) hasher.update(`${name}\n`).update(readFileSync(join(folder, name)));
  return hasher.digest("base64url").slice(0, 12);
});

/** Without its etags the plugin has no timer, which would keep the process from exiting. */
const openAssets = lazy(async () => {
  const { staticPlugin } = await import("@elysiajs/static");
  return staticPlugin({
    assets: folder,
    prefix: "/admin/assets",
    alwaysStatic: true,
    indexHTML: false,
    etag: false,
    headers: { "cache-control": "public, max-age=31536000, immutable" },
  });
});

/** While servers are replaced, a page of one version may ask a server of another: what that one has is not kept. */
export async function answerAsset(request: Request): Promise<Response> {
  const response = withSecurityHeaders(await (await openAssets()).handle(request));
  if (new URL(request.url).search !== `?${assetTag()}`) response.headers.set("cache-control", "no-store");
  return response;
}
