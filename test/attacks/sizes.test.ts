/** Sizes and numbers of strangers are bounded where they come in. */
import { describe, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";

describe("a model's name", () => {
  const messages = [{ role: "user", content: "Hello" }];
  const requests = (model: string): [string, object][] => [
    ["/v1/chat/completions", { model, messages }],
    ["/v1/responses", { model, input: "Hello" }],
    ["/v1/messages", { model, max_tokens: 9, messages }],
    ["/v1/messages/count_tokens", { model, messages }],
    ["/v1/embeddings", { model, input: "Hello" }],
    [`/v1beta/models/${encodeURIComponent(model)}:generateContent`, { contents: [{ parts: [{ text: "Hello" }] }] }],
  ];

  test("of more than 512 characters is refused in every dialect, and stands in no row and no metric", async () => {
    await using proxy = await startProxy();
    for (const name of [`://${"a:".repeat(400)}`, `p/${"x".repeat(511)}`])
      for (const [path, body] of requests(name)) {
        const response = await proxy.post(path, body);
        expect([path, response.status, await response.text()]).toEqual([
          path,
          400,
          expect.stringContaining("no model's name has more than 512"),
        ]);
      }
    expect(proxy.rows().map((row) => row.client_model)).toEqual(Array.from({ length: 10 }, () => null));
    expect(proxy.lines.join("")).not.toContain("a:a:a");
    expect(await (await fetch(`${proxy.url}/metrics`)).text()).not.toContain("xxxx");
  });

  test("of 512 characters is looked for", async () => {
    await using proxy = await startProxy();
    const response = await proxy.post("/v1/chat/completions", { model: "x".repeat(512), messages });
    expect(response.status).toBe(404);
  });
});
