/**
 * Scenario: what was changed before any try stays noted; `fixtures/scenes/requests.txt` has tries that are thrown away,
 * which leave nothing of their changes in the row.
 */
import { expect, test } from "bun:test";
import { offerOnly } from "../../support/catalogue";
import { startProxy } from "../../support/proxy";

const claude = "claude-sonnet-4.6";
const gpt = "gpt-5.3-codex";
const message = (content: string) => ({ role: "user", content });

test("what was changed before a model was chosen stays noted when another one serves", async () => {
  await using proxy = await startProxy({ config: { fallbacks: { [gpt]: [claude] } } });
  offerOnly(proxy.demo, { [claude]: ["/v1/messages"], [gpt]: ["/responses"] });
  const { output } = (await (await proxy.post("/v1/responses", { model: gpt, input: "Hello" })).json()) as {
    output: { id: string }[];
  };
  proxy.demo.intercept("/responses", () => new Response("down", { status: 503 }));
  const input = [message("Hello"), { type: "item_reference", id: output[0]!.id }, message("Go on.")];
  expect((await proxy.post("/v1/responses", { model: gpt, input })).status).toBe(200);
  const [row] = proxy.rows();
  expect(row!.upstream_model).toBe(claude);
  expect(JSON.parse(row!.fixups)).toContain("items-restored");
});
