/** Rows: requests that ask nothing: refused here, in the client's own words, and never sent. */
import { expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";

const user = { role: "user", content: "Hi" };

const nothing: [path: string, body: object, param: string][] = [
  ["/v1/chat/completions", {}, "messages"],
  ["/v1/chat/completions", { messages: [] }, "messages"],
  ["/v1/chat/completions", { messages: [], functions: [{ name: "f" }] }, "messages"],
  ["/v1/messages", { max_tokens: 9 }, "messages"],
  ["/v1/messages", { max_tokens: 9, messages: [], system: "Be kind." }, "messages"],
  ["/v1/responses", {}, "input"],
  ["/v1/responses", { input: [] }, "input"],
  ["/v1/responses", { input: null, instructions: "Be kind." }, "input"],
];

test.each(["gpt-5-mini", "gpt-5.3-codex", "claude-sonnet-4.6"])(
  "a request of no words to %s is refused, whatever its dialect",
  async (model) => {
    await using proxy = await startProxy();
    for (const [path, body, param] of nothing) {
      const answer = await proxy.post(path, { model, ...body });
      expect([path, body, answer.status]).toEqual([path, body, 400]);
      const told = (await answer.json()) as { type?: string; error: { type: string; message: string; param?: string } };
      expect(told.error).toMatchObject({
        type: "invalid_request_error",
        message: expect.stringContaining(`\`${param}\``),
      });
      if (path === "/v1/messages") expect(told.type).toBe("error");
      else expect(told.error.param).toBe(param);
    }
    expect(proxy.demo.journal.filter(({ method }) => method === "POST")).toEqual([]);
    expect(proxy.rows()).toHaveLength(nothing.length);
  },
);

test("a list of tools without any is left out, with what says how to use them", async () => {
  await using proxy = await startProxy();
  const sent = async (path: string, body: object) => {
    expect(
      (await proxy.post(path, { tools: [], tool_choice: "auto", parallel_tool_calls: true, ...body })).status,
    ).toBe(200);
    const { body: seen } = proxy.demo.journal.findLast(({ method }) => method === "POST")!;
    return { members: Object.keys(seen as object), fixups: JSON.parse(proxy.rows()[0]!.fixups) };
  };
  for (const model of ["gpt-5-mini", "gemini-3.1-pro-preview"]) {
    const { members, fixups } = await sent("/v1/chat/completions", { model, messages: [user] });
    for (const member of ["tools", "tool_choice", "parallel_tool_calls"]) expect(members).not.toContain(member);
    expect(fixups).toContain("empty-tools");
  }
  const codex = await sent("/v1/responses", { model: "gpt-5.3-codex", input: "Hi" });
  expect(codex.members).not.toContain("tools");
  expect(codex.fixups).toContain("empty-tools");
});
