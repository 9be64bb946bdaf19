/** Scenario: long prompts over real connections: what arrives upstream, and what is seen of them elsewhere. */
import { afterAll, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { type Dialect, dialects } from "../../../src/dialects/hub/conversation";
import { longTexts } from "../../../src/dialects/long-texts";
import { readIncoming } from "../../../src/proxy/relay/incoming";
import { offerOnly } from "../../support/catalogue";
import { exchangeOf } from "../../support/exchange";
import { startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";

const models = {
  chat: ["gpt-5-mini", "/chat/completions"],
  responses: ["gpt-5.3-codex", "/responses"],
  messages: ["claude-sonnet-4.6", "/v1/messages"],
} as const;
const paths = { chat: "/v1/chat/completions", responses: "/v1/responses", messages: "/v1/messages" };
const combinations = dialects.flatMap((client) => dialects.map((upstream) => [client, upstream] as const));
const upstreamPaths = /^\/(chat\/completions|responses|v1\/messages)$/;

const [account] = demoAccounts();
const proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
offerOnly(proxy.demo, Object.fromEntries(Object.values(models).map(([model, endpoint]) => [model, [endpoint]])));
afterAll(() => proxy[Symbol.asyncDispose]());

/** In the middle of each long text. */
const secret = "marzipan wombats juggle";
const long = `Say hello. ${"many words ß 😀 ".repeat(4000)}${secret}${' and "quoted" ones\n'.repeat(1000)}`;

function request(client: Dialect, upstream: Dialect, stream: boolean, more: object = {}): object {
  const [model] = models[upstream];
  const turns = [
    { role: "user", content: long },
    { role: "assistant", content: "Hello." },
    { role: "user", content: "Say hello again." },
  ];
  return {
    chat: { model, stream, messages: turns, ...more },
    responses: { model, stream, instructions: long, input: turns, ...more },
    messages: { model, stream, system: long, max_tokens: 1000, messages: turns, ...more },
  }[client];
}

const lastSent = () => proxy.demo.journal.findLast(({ path }) => upstreamPaths.test(path))!;

test.each(drawn("words", combinations, 2))(
  "from %s to %s, the upstream gets every word and the client no mark",
  async (client, upstream) => {
    for (const stream of [false, true]) {
      const response = await proxy.post(paths[client], request(client, upstream, stream));
      const answer = await response.text();
      expect(response.status, answer.slice(0, 300)).toBe(200);
      const sent = Buffer.from(lastSent().bytes).toString();
      expect(sent).toContain(JSON.stringify(long).slice(1, -1));
      expect(`${sent} ${answer}`).not.toContain("u0010");
    }
  },
);

test.each(drawn("refusals", combinations, 2))(
  "from %s to %s, a refusal that repeats the prompt leaves none of it in the row",
  async (client, upstream) => {
    proxy.demo.intercept(upstreamPaths, () =>
      Response.json({ error: { message: `We do not like "${secret}" here.`, code: "disliked" } }, { status: 400 }),
    );
    const response = await proxy.post(paths[client], request(client, upstream, false));
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(secret);
    const { error_message } = proxy.rows()[0]!;
    expect(error_message).toBe("GitHub Copilot answered with status 400 (disliked).");
  },
);

test("a broken escape, a control character or half a character in the middle of a long text is refused here", async () => {
  const body = JSON.stringify(request("chat", "chat", false));
  const middle = body.indexOf(secret);
  const before = proxy.demo.journal.length;
  for (const odd of ["\\x41", "\\u12g4", "\n", "\u0000", '"']) {
    const broken = body.slice(0, middle) + odd + body.slice(middle);
    const response = await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", body: broken });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("not valid JSON");
  }
  const bytes = Buffer.from(body);
  bytes[middle] = 0xc3;
  const response = await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", body: bytes });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("not valid UTF-8");
  expect(proxy.demo.journal.length).toBe(before);
});

test("a parameter that the upstream refuses is taken out, and every other byte stays", async () => {
  proxy.demo.intercept(upstreamPaths, () =>
    Response.json(
      { error: { message: "Unknown parameter: 'x_new'.", code: "unknown_parameter", param: "x_new" } },
      { status: 400 },
    ),
  );
  const more = { stream_options: { include_usage: true } };
  const plain = JSON.stringify(request("chat", "chat", false, more));
  for (const _ of ["refused", "remembered"]) {
    const body = JSON.stringify(request("chat", "chat", false, { ...more, x_new: long }));
    const response = await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", body });
    expect(response.status, await response.text()).toBe(200);
    expect(Buffer.from(lastSent().bytes).toString()).toBe(plain);
    expect(JSON.parse(proxy.rows()[0]!.fixups)).toContain("refused:x_new");
  }
});

test("the tokens of a long text are counted", async () => {
  const content = "One word after another. ".repeat(5000);
  const counts = await Promise.all(
    [content, content + content].map(async (text) => {
      const response = await proxy.post("/v1/messages/count_tokens", {
        model: "claude-sonnet-4.6",
        messages: [{ role: "user", content: text }],
      });
      return ((await response.json()) as { input_tokens: number }).input_tokens;
    }),
  );
  expect(counts[0]).toBeGreaterThan(20_000);
  expect(counts[1]! / counts[0]!).toBeCloseTo(2, 1);
});

test("a prompt that was sent is let go, unless the request may need it again", async () => {
  const body = JSON.stringify(request("chat", "chat", true));
  for (const isKept of [false, true]) {
    const post = new Request("http://localhost", { method: "POST", body });
    const { exchange } = exchangeOf(await readIncoming(post, longTexts.chat), "chat");
    if (isKept) exchange.keep();
    const { prompt } = exchange;
    exchange.sent();
    if (isKept) expect(exchange.incoming.bytes).toHaveLength(Buffer.byteLength(body));
    else expect(() => exchange.incoming).toThrow("was let go");
    // What counts the prompt has it until it is done.
    expect(prompt.conversation()?.turns).toHaveLength(3);
  }
});
