/** Scenario: who asked, as the upstream is told and the history shows: a person, or the client by itself. */
import { afterAll, expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

/** Who asked by the row and by the header, and why by the row. */
async function told(path: string, body: object, headers: Record<string, string> = {}) {
  const before = proxy.demo.journal.length;
  await (await proxy.post(path, body, { headers })).arrayBuffer();
  const { initiator, initiator_reason: reason } = proxy.rows()[0]!;
  const sent = proxy.demo.journal.slice(before).filter((call) => call.headers["x-initiator"] !== undefined);
  expect(sent.map((call) => call.headers["x-initiator"])).toEqual(sent.map(() => initiator!));
  expect(sent.length).toBeGreaterThan(0);
  return { initiator, reason };
}

const byMessages = (content: unknown, headers?: Record<string, string>) =>
  told(
    "/v1/messages",
    {
      model: "claude-sonnet-4.6",
      max_tokens: 9,
      messages: [
        { role: "user", content: "a" },
        { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "f", input: {} }] },
        { role: "user", content },
      ],
    },
    headers,
  );

const text = (words: string) => ({ type: "text", text: words });
const result = { type: "tool_result", tool_use_id: "toolu_1", content: "done" };
const reminder = "<system-reminder>\nCareful.\n</system-reminder>";

test("a long text of the client's own is read to its end, where a person may have written", async () => {
  const long = `<system-reminder>\n${"Careful. ".repeat(3000)}\n</system-reminder>\n`;
  expect((await byMessages([result, text(long), text(`\n${long}${reminder}`)])).initiator).toBe("agent");
  expect((await byMessages([result, text(`${long}Hello`)])).initiator).toBe("user");
  expect((await byMessages([result, text(`Tool loaded.${"\n[id:abc]".repeat(900)}`)])).initiator).toBe("agent");
  expect((await byMessages([result, text("Hello ".repeat(3000))])).initiator).toBe("user");
  expect((await byMessages([result, text(`${"\n".repeat(9000)}Hello`)])).initiator).toBe("user");
  expect((await byMessages(`${" ".repeat(9000)}${reminder}`)).initiator).toBe("agent");
});
