/** Reads the events of running requests, as the admin API and the pages send them. */
import { readSse } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";

// biome-ignore lint/suspicious/noExplicitAny: whatever the feed says
type Said = { event: string; data: any };

/** A reader of the feed and all it has heard. @param url The server's. */
export async function watchFeed(url: string, path = "/api/admin/live", headers: Record<string, string> = {}) {
  const controller = new AbortController();
  const response = await fetch(url + path, { signal: controller.signal, headers });
  const all: Said[] = [];
  let text = "";
  let ended = false;
  const reading = (async () => {
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString();
      all.splice(
        0,
        all.length,
        ...run(readSse, [Buffer.from(text.slice(0, text.lastIndexOf("\n\n") + 2))]).flatMap(({ event, data }) =>
          event && data ? [{ event, data: JSON.parse(data) }] : [],
        ),
      );
    }
    ended = true;
  })().catch(() => {});
  return {
    response,
    /** Of requests. */
    get heard() {
      return all.filter(({ event }) => event !== "accounts");
    },
    /** The accounts, each time that they were told. */
    get accounts() {
      return all.filter(({ event }) => event === "accounts").map(({ data }) => data.accounts);
    },
    about: (id: string) => all.filter(({ data }) => data.request_id === id),
    /** The ids of what runs, by all that was heard. */
    get running(): string[] {
      const ids = new Set<string>();
      for (const { event, data } of all) {
        if (event === "snapshot") ids.clear();
        for (const { request_id } of data.running ?? []) ids.add(request_id);
        if (event === "running") ids.add(data.request_id);
        if (event === "finished") ids.delete(data.request_id);
      }
      return [...ids].sort();
    },
    /** What the last snapshot said of other servers. */
    get elsewhere(): string | undefined {
      return all.findLast(({ event }) => event === "snapshot")?.data.elsewhere;
    },
    get ended() {
      return ended;
    },
    get text() {
      return text;
    },
    leave: () => {
      controller.abort();
      return reading;
    },
  };
}
