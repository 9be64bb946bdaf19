/** Scenario: the header that names the model which served. */
import { expect, test } from "bun:test";
import { startProxy } from "../../support/proxy";

test("an answer names the model that served wherever the client asked by another name", async () => {
  await using proxy = await startProxy({ config: { modelAliases: { mine: "gpt-5-mini" } } });
  const servedFor = async (path: string, model: string, stream = false) => {
    const answer = await proxy.post(path, {
      ...{ model, stream, max_tokens: 100 },
      messages: [{ role: "user", content: "Hello" }],
    });
    await answer.text();
    return [answer.status, answer.headers.get("x-dragoman-model")];
  };
  const [chat, messages] = ["/v1/chat/completions", "/v1/messages"];
  for (const stream of [false, true]) {
    expect(await servedFor(chat, "mine", stream)).toEqual([200, "gpt-5-mini"]);
    expect(await servedFor(messages, "claude-sonnet-4-6", stream)).toEqual([200, "claude-sonnet-4.6"]);
    expect(await servedFor(messages, "gpt-5-mini:claude", stream)).toEqual([200, "gpt-5-mini"]);
    expect(await servedFor(chat, "gpt-5-mini", stream)).toEqual([200, null]);
  }
});
