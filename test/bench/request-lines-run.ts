/** Serves the requests whose lines `request-lines.ts` counts: no test of its own, but Bun counts lines in tests only. */
import { expect, test } from "bun:test";
import { startProxy } from "../support/proxy";
import { clientPath, type Dialect, requestBody } from "./dialects";

const { dialect, stream, count } = JSON.parse(process.env.ASKED!) as {
  dialect: Dialect;
  stream: boolean;
  count: number;
};
/** Each speaks this dialect with the demo's upstream. */
const models: Record<Dialect, string> = { chat: "gpt-4o", responses: "gpt-5-mini", messages: "claude-sonnet-4.5" };

test("the requests are served", async () => {
  await using proxy = await startProxy();
  await (await fetch(`${proxy.url}/v1/models`)).text();
  for (let sent = 0; sent < count; sent++) {
    const answer = await proxy.post(clientPath[dialect], requestBody(dialect, models[dialect], stream));
    await answer.text();
    expect(answer.status).toBe(200);
  }
  expect(proxy.rows()).toHaveLength(count);
}, 60_000);
