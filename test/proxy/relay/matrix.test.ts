/**
 * Rows: every client's own package with every upstream dialect: the same conversations, full and streamed, over real
 * HTTP.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { codecs } from "../../../src/dialects/codecs";
import { clientDialects } from "../../../src/dialects/hub/conversation";
import { offerOnly } from "../../support/catalogue";
import { type Answer, type Client, clients, refusalOf } from "../../support/clients";
import { dialectAt, tap, usageFor } from "../../support/log-capture";
import { startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";
import { grammars } from "../../support/read-reply";
import { type End, scenarios, stopWord } from "../../support/scenarios";

/** One model for each upstream dialect; chat is spoken in two manners. */
const upstreams = [
  ["chat (Gemini)", "gemini-3.1-pro-preview", "/chat/completions"],
  ["chat (Claude)", "claude-opus-4.6", "/chat/completions"],
  ["chat (GPT)", "gpt-5-mini", "/chat/completions"],
  ["responses (GPT)", "gpt-5.3-codex", "/responses"],
  ["messages (Claude)", "claude-sonnet-4.6", "/v1/messages"],
] as const;

const [account] = demoAccounts();
const proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
const upstream = tap(proxy.demo);
offerOnly(proxy.demo, Object.fromEntries(upstreams.map(([, model, endpoint]) => [model, [endpoint]])));
afterAll(() => proxy[Symbol.asyncDispose]());

describe.each([...clientDialects])("a client of %s", (dialect) => {
  let client: Client;
  beforeAll(() => {
    client = clients[dialect](proxy.url);
  });

  describe.each(upstreams)("and an upstream of %s", (_, model, endpoint) => {
    test.each(drawn(`${dialect} ${model}`, scenarios, 5))("%s", async (_name, play) => {
      // OpenAI's models show their thinking as a summary to who asks for one, which chat has no word for.
      const showsThinking = !model.startsWith("gpt-") || (endpoint === "/responses" && dialect !== "chat");
      const answers: Record<"full" | "stream", Answer[]> = { full: [], stream: [] };
      for (const mode of ["full", "stream"] as const) {
        const stream = mode === "stream";
        await play({
          client: dialect,
          upstream: dialectAt[endpoint]!,
          showsThinking,
          async ask(question, end) {
            const answer = await client[mode](question, model);
            answers[mode].push(answer);
            await look(client, answer, { model, endpoint, stream, end });
            return answer;
          },
          refused: (question) => refusalOf(client[mode](question, model)),
          seen: upstream.seen,
          dropped: () => JSON.parse(proxy.rows(1)[0]!.dropped),
        });
      }
      const meanings = (given: Answer[]) => given.map((answer) => meaning(answer, showsThinking));
      expect(meanings(answers.stream)).toEqual(meanings(answers.full));
    });
  });
});

interface Circumstances {
  model: string;
  endpoint: string;
  stream: boolean;
  end: End;
}

/** What holds for every answer, whoever asked and whoever answered. */
async function look(client: Client, answer: Answer, { model, endpoint, stream, end }: Circumstances): Promise<void> {
  const { dialect } = client;
  const spoken = dialectAt[endpoint]!;
  if (stream) grammars[dialect](client.frames(), codecs[dialect].decodeRequest(client.sent()));
  expect(upstream.seen().path).toBe(endpoint);
  const told = await upstream.told();
  expect(answer.model).toBe(model);
  expect(stopWord(dialect, end, spoken)).toContain(answer.stop);
  expect(answer.usage).toMatchObject(usageFor(dialect, told));
  const { usage } = told;
  expect(proxy.rows(1)[0]).toMatchObject({
    client_dialect: dialect,
    upstream_dialect: spoken,
    upstream_endpoint: endpoint,
    client_model: model,
    stream: stream ? 1 : 0,
    http_status: 200,
    error_type: null,
    input_tokens: usage.input,
    cached_tokens: usage.cached,
    cache_write_tokens: usage.written ?? null,
    output_tokens: usage.output,
    reasoning_tokens: usage.reasoning ?? null,
    stop_reason: told.stop,
  });
}

/** What an answer says, without the ids that differ each time. */
const meaning = ({ text, refusal, thinking, calls, stop, usage }: Answer, showsThinking: boolean) => ({
  text,
  refusal,
  ...(showsThinking && { thinking }),
  calls: calls.map(({ name, input }) => ({ name, input })),
  stop,
  // Words that only a stream shows come back in the next request, and are counted.
  ...(showsThinking && { usage: numbersIn(usage) }),
});

/** The tokens, without what the upstream's cache had of them: the second of two requests finds the first. */
function numbersIn(usage: object): object {
  const numbers: Record<string, number> = {};
  for (const [name, value] of Object.entries(usage)) {
    const field = name.replace(/^cache_(read|creation)_/, "");
    // Google's own number of them; in the other dialects they are among the input or in an object of their own.
    if (name === "cachedContentTokenCount") continue;
    if (typeof value === "number") numbers[field] = (numbers[field] ?? 0) + value;
  }
  return numbers;
}
