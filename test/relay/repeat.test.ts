/** A passthrough lets like frames pass unread, until something comes between them. */
import { expect, test } from "bun:test";
import { gatherFrames, readSse } from "../../src/net/sse";
import { passthrough } from "../../src/relay/passthrough";
import type { RequestRecord } from "../../src/relay/request-record";
import { readModel } from "../../src/upstream/model";

const named = (event: { type: string; [key: string]: unknown }) =>
  new TextEncoder().encode(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
const words = (sequence_number: number) =>
  named({
    type: "response.output_text.delta",
    sequence_number,
    item_id: "m",
    output_index: 0,
    content_index: 0,
    delta: `word ${sequence_number}`,
  });

test("after a sign of life of our own, the numbers of like frames are still mended", () => {
  const model = readModel({
    id: "gpt",
    vendor: "OpenAI",
    supported_endpoints: ["/responses"],
    capabilities: { type: "chat", limits: {}, supports: { streaming: true } },
  })!;
  const body = { model: "gpt", stream: true, store: false, input: "hi" };
  const text = JSON.stringify(body);
  const incoming = { text, bytes: new TextEncoder().encode(text), body, model: "gpt", stream: true };
  const fixups: string[] = [];
  const record = {
    addFixup: (name: string) => void fixups.push(name),
    addEvent() {},
    conceal: String,
  } as unknown as RequestRecord;
  const target = { model, upstreamModel: model, dialect: "responses", endpoint: "/responses" } as const;
  const call = passthrough({
    incoming,
    dialect: "responses",
    target,
    record,
    options: { webSearch: true },
    clientHeaders: new Headers(),
    conversation: () => undefined,
  });
  const out = gatherFrames();
  const { feed, client } = call.stages(out);
  const source = readSse(feed);

  const response = { id: "r", model: "gpt", status: "in_progress", output: [] };
  source.push(named({ type: "response.created", sequence_number: 0, response }));
  const item = { id: "m", type: "message", role: "assistant", content: [] };
  source.push(named({ type: "response.output_item.added", sequence_number: 1, output_index: 0, item }));
  for (const number of [2, 3, 4]) source.push(words(number));
  client.keepAlive();
  for (const number of [5, 6]) source.push(words(number));

  const sent = Buffer.from(out.take()!).toString();
  const numbers = [...sent.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
  expect(numbers).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(sent).toContain('"delta":"word 6"');
  expect(fixups).toContain("sequence-number");
});
