/** What the tests of this room share: a receiver of webhooks. */

export interface Received {
  headers: Record<string, string>;
  body: string;
}

/** @param statuses Its first answers. */
export function startReceiver(...statuses: number[]) {
  const received: Received[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      received.push({ headers: Object.fromEntries(request.headers), body: await request.text() });
      return new Response("", { status: statuses.shift() ?? 204 });
    },
  });
  return { url: `${server.url.origin}/hooks/T0/secret-path`, received, [Symbol.asyncDispose]: () => server.stop(true) };
}

/** The titles of the notices in dragoman's own form. */
export const titlesOf = (received: readonly Received[]) =>
  received.map(({ body }) => (JSON.parse(body) as { title: string }).title);
