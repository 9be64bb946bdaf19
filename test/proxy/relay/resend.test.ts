/**
 * Scenario: nothing is sent twice that may have been processed, and what is sent twice is an agent's and in the books.
 */
import { expect, test } from "bun:test";
import { type Front, startFront } from "../../support/front";
import { startProvider } from "../../support/provider";
import { startProxy } from "../../support/proxy";

const hello = [{ role: "user", content: "Hello" }];
const chat = ["/v1/chat/completions", { model: "gpt-5-mini", messages: hello }] as const;
const embedding = ["/v1/embeddings", { model: "text-embedding-3-small", input: "Hello" }] as const;
const message = ["/odd/v1/messages", { model: "m", max_tokens: 9, messages: hello }] as const;

/** The next request to this path breaks; what had come before is forgotten. */
function breakNext(front: Front, path: string): void {
  front.seen.splice(0);
  let broken = false;
  front.breaks = (arrived) => {
    if (broken || arrived.path !== path) return false;
    broken = true;
    return true;
  };
}

const sent = ({ seen }: Front) => seen.map(({ path, headers }) => `${path} ${headers["x-initiator"] ?? ""}`.trim());

const attempts = (row: { attempts: string } | undefined) =>
  (JSON.parse(row?.attempts ?? "[]") as { account: string | null; status?: number; error?: string }[]).map(
    ({ account, status, error }) => [account, status ?? error],
  );

test.each([
  ["a person's turn", chat, ["/chat/completions user", "/chat/completions agent"]],
  ["embeddings", embedding, ["/embeddings agent", "/embeddings agent"]],
] as const)(
  "a request whose connection breaks before a byte of an answer on a kept connection goes out once more, as an agent's, and its row tells both: %s",
  async (_, asks, tries) => {
    await using proxy = await startProxy({ fronted: true });
    expect((await proxy.post(asks[0], asks[1])).status).toBe(200);
    breakNext(proxy.front!, tries[0].split(" ")[0]!);
    expect((await proxy.post(asks[0], asks[1])).status).toBe(200);
    expect(sent(proxy.front!)).toEqual([...tries]);
    const [first, second] = proxy.front!.seen;
    expect(second!.connection).not.toBe(first!.connection);
    expect(attempts(proxy.rows()[0])).toEqual([
      ["octo-demo", "upstream"],
      ["octo-demo", 200],
    ]);
    expect(proxy.rows()[0]).toMatchObject({ http_status: 200, error_type: null });
  },
);

test("a request that breaks on a kept connection to a provider goes out once more, and its row tells both", async () => {
  await using provider = startProvider({ key: "key-of-the-provider", auth: "x-api-key" });
  await using front = await startFront(provider.url);
  const providers = { odd: { type: "anthropic", baseUrl: front.url, apiKey: "key-of-the-provider" } };
  await using proxy = await startProxy({ config: { providers } });
  expect((await proxy.post(...message)).status).toBe(200);
  breakNext(front, "/v1/messages");
  expect((await proxy.post(...message)).status).toBe(200);
  expect(sent(front)).toEqual(["/v1/messages", "/v1/messages"]);
  expect(attempts(proxy.rows()[0])).toEqual([
    [null, "upstream"],
    [null, 200],
  ]);
});

test("a request that breaks on a fresh connection is sent once: whether it was processed nobody knows", async () => {
  await using proxy = await startProxy({ fronted: true });
  const front = proxy.front!;
  expect((await fetch(`${proxy.url}/v1/models`)).status).toBe(200);
  // Each answer is the last of its connection from here on.
  front.keepsConnections = false;
  expect((await proxy.post(...chat)).status).toBe(200);
  breakNext(front, "/chat/completions");
  const response = await proxy.post(...chat);
  expect([response.status, await response.text()]).toEqual([
    502,
    expect.stringContaining("GitHub Copilot broke the connection before its answer was complete."),
  ]);
  expect(sent(front)).toEqual(["/chat/completions user"]);
  expect(attempts(proxy.rows()[0])).toEqual([["octo-demo", "upstream"]]);
});
