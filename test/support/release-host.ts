/** GitHub as the host of releases: its API, its files behind a redirect, and attestations by a Sigstore of our own. */
import { createHash } from "node:crypto";
import { startSigstore } from "./sigstore";

export const repository = "owner/dragoman";

export type ReleaseHost = Awaited<ReturnType<typeof startReleaseHost>>;

/** @param version Of the release. */
export async function startReleaseHost(version = "9.0.0") {
  const sigstore = await startSigstore();
  const files = new Map<string, string>();
  const attestations = new Map<string, unknown[]>();
  const seen: string[] = [];
  const agents = new Set<string | null>();
  const host = {
    version,
    /** Where files really are; a path of this host. */
    moved: (path: string) => path,
    /** Answers in place of the host. */
    instead: undefined as ((path: string) => Response | undefined) | undefined,
    files,
    attestations,
    seen,
    agents,
    trustedRoot: sigstore.trustedRoot,
    attest: sigstore.attest,
    source: { api: "", repository: `https://github.com/${repository}` },
    /** Adds an executable, its checksum and its attestation. @returns Its checksum. */
    async publish(name: string, content: string, more: Partial<Parameters<typeof sigstore.attest>[0]> = {}) {
      const sha256 = createHash("sha256").update(content).digest("hex");
      files.set(name, content);
      files.set("SHA256SUMS", `${files.get("SHA256SUMS") ?? ""}${sha256}  ${name}\n`);
      const bundle = await sigstore.attest({ name, sha256, repository, ref: `refs/tags/v${host.version}`, ...more });
      attestations.set(sha256, [bundle]);
      return sha256;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  const server: Bun.Server<undefined> = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    error: () => new Response("", { status: 500 }),
    fetch(request): Response {
      const path = new URL(request.url).pathname;
      seen.push(path);
      agents.add(request.headers.get("user-agent"));
      const other = host.instead?.(path);
      if (other) return other;
      const [, kind, name = ""] =
        /^\/(latest|file|moved|attestation)s?\/?(.*)$/.exec(
          path
            .replace(/^\/api\/releases\/latest$/, "/latest")
            .replace(/^\/api\/attestations\/sha256:/, "/attestation/"),
        ) ?? [];
      if (kind === "latest") {
        const assets = [...files.keys()].map((file) => ({
          name: file,
          browser_download_url: `${server.url}file/${file}`,
        }));
        return Response.json({ tag_name: `v${host.version}`, assets });
      }
      if (kind === "file")
        return new Response(null, { status: 302, headers: { location: host.moved(`/moved/${name}`) } });
      if (kind === "moved" && files.has(name)) return new Response(files.get(name));
      if (kind === "attestation" && attestations.has(name))
        return Response.json({ attestations: attestations.get(name)!.map((bundle) => ({ bundle, repository_id: 1 })) });
      return Response.json({ message: "Not Found" }, { status: 404 });
    },
  });
  host.source.api = `${server.url}api`;
  return host;
}
