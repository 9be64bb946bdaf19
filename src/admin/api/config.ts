/** Reads and changes the config. Secrets can be set and are never returned. */

import { underBothNames } from "../../config/patch";
import { parseConfig } from "../../config/schema";
import { configKeys, masked, valueAt } from "../../config/secrets";
import { ProxyError } from "../../lib/errors";
import { readJson } from "../../lib/net/in/request-body";
import type { App } from "../../parts/app";
import { withCountedBudgets } from "../../people/budgets/stored-budgets";

/** Bytes. */
const bodyLimit = 1024 * 1024;

/** `GET /api/admin/config`: every key with its value and source, and the revision for a change. */
export async function showConfig({ config }: App): Promise<Response> {
  await config.reload();
  const { stored, revision, waiting, fault } = config;
  const parsed = parseConfig(stored);
  const shown = masked({ ...parsed, anthropicApiKey: parsed.anthropicApiKey ?? null });
  const written = underBothNames(stored);
  const sources = configKeys()
    .filter(({ path }) => path[0] !== "vendorxApiKey")
    .map(({ path }) => [path.join("."), valueAt(written, path) === undefined ? "default" : "stored"]);
  return Response.json(
    { config: shown, sources: Object.fromEntries(sources), revision, waiting, fault: fault ?? null },
    { headers: { etag: `"${revision}"` } },
  );
}

/**
 * `POST /api/admin/config`: the keys to change, each with its new value; null restores the default. Either all of
 * them take effect, or none does.
 */
export async function changeConfig(app: App, request: Request): Promise<Response> {
  const { revision, ...patch } = (await readJson(request, bodyLimit)).body;
  const { config, budgets } = app;
  const counted = await withCountedBudgets(patch, config, budgets, app.now());
  await config.change(counted, { revision: revisionFrom(revision, request.headers) });
  return showConfig(app);
}

/** The expected revision: `revision` in the body, or the `If-Match` header. */
function revisionFrom(member: unknown, headers: Headers): string | undefined {
  if (typeof member === "string") return member;
  if (member !== undefined)
    throw new ProxyError("invalid_request", "revision: expected string.", { param: "revision" });
  const tag = headers.get("if-match");
  return tag === null || tag === "*" ? undefined : tag.replace(/^(?:W\/)?"(.*)"$/, "$1");
}
