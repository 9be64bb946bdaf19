/** GitHub's API as the host of releases, on loopback. */

export const repository = "owner/dragoman";

export type ReleaseHost = ReturnType<typeof startReleaseHost>;

export function startReleaseHost() {
  const seen: string[] = [];
  const agents = new Set<string | null>();
  const server: Bun.Server<undefined> = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    fetch(request): Response {
      const path = new URL(request.url).pathname;
      seen.push(path);
      agents.add(request.headers.get("user-agent"));
      const other = host.instead?.();
      if (other) return other;
      if (path === "/api/releases/latest") return Response.json({ tag_name: "v9.0.0", name: "x", assets: [] });
      return Response.json({ message: "Not Found" }, { status: 404 });
    },
  });
  const host = {
    /** Answers in place of the host. */
    instead: undefined as (() => Response) | undefined,
    /** The paths that were asked for. */
    seen,
    agents,
    source: { api: `${server.url}api`, repository: `https://github.com/${repository}` },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return host;
}
