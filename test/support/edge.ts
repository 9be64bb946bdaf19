/** A reverse proxy before servers of a team, which keeps no browser at one of them, and a browser without script that visits it. */

export interface Edge extends AsyncDisposable {
  url: string;
  /** The addresses of the servers. One that was restarted has another. */
  servers: string[];
  /** Which of them gets the next request; `turns`: each request goes to the next one. */
  to: number | "turns";
  /** Which of them got each request. */
  reached: number[];
}

export function startEdge(servers: string[]): Edge {
  let turn = 0;
  const listener = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    async fetch(request) {
      const at = edge.to === "turns" ? turn++ % servers.length : edge.to;
      edge.reached.push(at);
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      headers.set("x-forwarded-for", "10.0.0.9");
      const body = request.method === "GET" ? undefined : await request.bytes();
      return fetch(servers[at]! + pathname + search, { method: request.method, headers, body, redirect: "manual" });
    },
  });
  const edge: Edge = {
    url: listener.url.origin,
    servers,
    to: "turns",
    reached: [],
    [Symbol.asyncDispose]: () => listener.stop(true),
  };
  return edge;
}

interface Visit {
  status: number;
  text: string;
  /** Where it leads, if it leads elsewhere. */
  location: string | null;
}

export interface Visitor {
  readonly cookie: string;
  get(path: string): Promise<Visit>;
  post(path: string, form?: Record<string, string>): Promise<Visit>;
}

/** Keeps cookies and sends what a browser sends with a page's own forms. Redirects are not followed. */
export function openVisitor({ url }: Edge): Visitor {
  const cookies = new Map<string, string>();
  const cookie = () => [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const send = async (path: string, init: RequestInit & { headers?: Record<string, string> }): Promise<Visit> => {
    const response = await fetch(url + path, {
      ...init,
      redirect: "manual",
      headers: { ...init.headers, cookie: cookie() },
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (/Max-Age=0/.test(line)) cookies.delete(name!);
      else cookies.set(name!, value!);
    }
    return { status: response.status, text: await response.text(), location: response.headers.get("location") };
  };
  return {
    get cookie() {
      return cookie();
    },
    get: (path) => send(path, { headers: { "sec-fetch-site": "same-origin" } }),
    post: (path, form = {}) =>
      send(path, {
        method: "POST",
        body: new URLSearchParams(form),
        headers: { origin: url, "sec-fetch-site": "same-origin" },
      }),
  };
}
