/** A registry on loopback that keeps what `npm publish` gives it, and serves that alone. */

interface Published {
  name: string;
  versions: Record<string, object>;
  "dist-tags": Record<string, string>;
  _attachments: Record<string, { data: string }>;
}

export class NpmRegistry implements Disposable {
  /** In the order in which they came. */
  readonly names: string[] = [];
  readonly #packages = new Map<string, Published>();
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    maxRequestBodySize: 1e9,
    fetch: (request) => this.#answer(request),
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/`;
  }

  /** Options of npm's that sign it in here. */
  get options(): string[] {
    return [`--registry=${this.url}`, `--${this.url.slice("http:".length)}:_authToken=any`];
  }

  async #answer(request: Request): Promise<Response> {
    const path = decodeURIComponent(new URL(request.url).pathname).slice(1);
    if (request.method === "PUT") {
      const sent = (await request.json()) as Published;
      this.names.push(sent.name);
      this.#packages.set(sent.name, sent);
      return Response.json({ ok: true }, { status: 201 });
    }
    const [name = "", file] = path.split("/-/");
    const { _attachments: files, ...about } = this.#packages.get(name) ?? { _attachments: {} };
    // npm names the file with the scope, and asks for it without.
    const data = Object.entries(files).find(([each]) => file && each.endsWith(file))?.[1].data;
    if (file) return data ? new Response(Buffer.from(data, "base64")) : new Response("", { status: 404 });
    return this.#packages.has(name) ? Response.json(about) : Response.json({ error: "not found" }, { status: 404 });
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }
}
