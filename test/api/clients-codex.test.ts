/** What Codex meets, shortened. */
import { expect, test } from "bun:test";
import { startProxy } from "../support/proxy";

const turn = {
  model: "gpt-5.3-codex",
  stream: true,
  store: false,
  input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] }],
};

test("a client without its key reads how to send one: the placeholder is no secret", async () => {
  await using proxy = await startProxy({ config: { auth: { apiKeys: ["key-of-a-client"] } } });
  const answer = await proxy.post("/v1/responses", turn);
  expect(answer.status).toBe(401);
  const { error } = (await answer.json()) as { error: { message: string } };
  expect(error.message).toContain("`x-api-key: <key>`, `x-goog-api-key: <key>` or `Authorization: Bearer <key>`");
});
