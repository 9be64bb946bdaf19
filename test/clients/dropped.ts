/** Stands before a server and breaks a client's first connection when enough has come back over it. */
import { connect, createServer } from "node:net";

/** @param after What has come back by then; matched against all of it. */
export async function startDropping(
  url: string,
  after: RegExp,
): Promise<AsyncDisposable & { url: string; drops: number }> {
  const { hostname, port } = new URL(url);
  const dropping = { url: "", drops: 0, [Symbol.asyncDispose]: () => stop() };
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    let text = "";
    near.pipe(far);
    far.on("data", (data) => {
      near.write(data);
      if (dropping.drops > 0) return;
      text += data.toString("latin1");
      if (!after.test(text)) return;
      dropping.drops++;
      // What was written before is still sent.
      near.end();
      far.destroy();
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroySoon());
    }
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  dropping.url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const stop = () => new Promise<void>((resolve) => void server.close(() => resolve()));
  return dropping;
}
