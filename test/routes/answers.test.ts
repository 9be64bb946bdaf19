/** Scenario: what answers have in common, and the paths that need no model. */
import { afterAll, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const hello = { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] };

test("an answer carries an id of ours, which is the row's, whatever id was sent", async () => {
  for (const sent of ["<script>", "a".repeat(10_000)]) {
    const response = await proxy.post("/v1/chat/completions", hello, { headers: { "x-request-id": sent } });
    const id = response.headers.get("x-request-id")!;
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(proxy.rows()[0]!.request_id).toBe(id);
  }
});
