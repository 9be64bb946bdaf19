/** Rows: a try that is thrown away leaves nothing of its changes in the row; what was changed before any try stays. */
import { expect, test } from "bun:test";
import { offerOnly } from "../../support/catalogue";
import { eventStream } from "../../support/event-stream";
import { type ProxyOptions, type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";

const claude = "claude-sonnet-4.6";
const gpt = "gpt-5.3-codex";
const messages = [{ role: "user", content: "Hello" }];
const toClaude = { model: claude, max_tokens: 100, messages };
const refusal = (status: number, error: object) => () => Response.json({ error }, { status });
const noQuota = refusal(402, { message: "You have no quota", code: "quota_exceeded" });
const noEffort = refusal(400, {
  code: "invalid_reasoning_effort",
  message: `output_config.effort "high" is not supported by model ${claude}; supported values: [low medium]`,
});
const error = '{"type":"error","error":{"type":"rate_limit_error","message":"Later."}}';
const broken = () => eventStream(`event: fun\ndata: {"type":"fun"}\n\nevent: error\ndata: ${error}\n\n`);
const limited = () =>
  Response.json(
    { error: { code: "rate_limited", message: "Later." } },
    { status: 429, headers: { "retry-after": "60" } },
  );

async function start(options: ProxyOptions, answers: (() => Response)[] = []): Promise<RunningProxy> {
  const proxy = await startProxy(options);
  offerOnly(proxy.demo, { [claude]: ["/v1/messages"], [gpt]: ["/responses"] });
  proxy.demo.intercept("/v1/messages", () => answers.shift()?.(), Number.POSITIVE_INFINITY);
  return proxy;
}

const notes = (proxy: RunningProxy): string[] => {
  const [row] = proxy.rows();
  return [...JSON.parse(row!.fixups), ...JSON.parse(row!.dropped).map((name: string) => `dropped ${name}`)];
};

const cases: { what: string; answers: (() => Response)[]; body: object; noted: string[] }[] = [
  {
    what: "an account that then refused the mended request",
    answers: [noEffort, noQuota],
    body: { ...toClaude, output_config: { effort: "high" } },
    noted: ["copilot-fields", "model-name"],
  },
  {
    what: "a reply that turned out to be an error",
    answers: [broken],
    body: { ...toClaude, stream: true },
    noted: ["copilot-fields", "model-name"],
  },
];

test.each(cases)("nothing is noted of $what", async ({ answers, body, noted }) => {
  await using proxy = await start({ accounts: ["octo-demo", "plus-demo"] }, answers);
  const response = await proxy.post("/v1/messages", body);
  expect({ status: response.status, text: await response.text() }).toMatchObject({ status: 200 });
  expect(answers).toEqual([]);
  expect(notes(proxy).sort()).toEqual(noted);
});

test("nothing is noted of a request that was mended before it waited", async () => {
  await using proxy = await start({ config: { whenLimited: "wait" } }, [noEffort, limited]);
  const answer = proxy.post("/v1/messages", { ...toClaude, output_config: { effort: "high" } });
  await until(() => proxy.app.waitingRoom.count === 1, "the request waits");
  proxy.app.accounts[0]!.setState({ name: "ready" });
  expect((await answer).status).toBe(200);
  expect(notes(proxy)).not.toContain("effort");
});

test("what was changed before a model was chosen stays noted when another one serves", async () => {
  await using proxy = await start({ config: { fallbacks: { [gpt]: [claude] } } });
  const { output } = (await (await proxy.post("/v1/responses", { model: gpt, input: "Hello" })).json()) as {
    output: { id: string }[];
  };
  proxy.demo.intercept("/responses", () => new Response("down", { status: 503 }));
  const reference = { type: "item_reference", id: output[0]!.id };
  const input = [...messages, reference, { role: "user", content: "Go on." }];
  expect((await proxy.post("/v1/responses", { model: gpt, input })).status).toBe(200);
  expect(proxy.rows()[0]!.upstream_model).toBe(claude);
  expect(notes(proxy)).toContain("items-restored");
});
