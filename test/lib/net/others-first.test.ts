/** Rows: long work that lets what has arrived come first. */
import { expect, test } from "bun:test";
import { othersFirst } from "../../../src/lib/net/others-first";

test("what has arrived at a connection is handled before work that lets others come first goes on", async () => {
  const order: string[] = [];
  const opened = Promise.withResolvers<void>();
  const socket = { open: () => opened.resolve(), data: () => void order.push("others") };
  using server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket });
  const client = await Bun.connect({ hostname: "127.0.0.1", port: server.port, socket: { data() {} } });
  await opened.promise;
  for (let time = 0; time < 20; time++) {
    // A timer's turn is one of those in which Bun has already looked for what has arrived.
    await Bun.sleep(1);
    order.length = 0;
    client.write("x");
    await othersFirst();
    order.push("work");
    expect(order).toEqual(["others", "work"]);
  }
  client.end();
});
