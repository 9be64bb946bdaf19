/** Pairs: who caused a client's request, and what an upstream is sent for it, from `fixtures/pairs/relay/`. */
import { afterAll } from "bun:test";
import type { JsonObject } from "../../../src/dialects/hub/conversation";
import { changes, testPairs } from "../../support/pairs";
import { type RunningProxy, startProxy } from "../../support/proxy";

const proxy = await startProxy();
/** Its upstream is as strict as it became in 2026. */
const strict = await startProxy({ demo: { generation: "C" } });
afterAll(async () => {
  for (const each of [proxy, strict]) await each[Symbol.asyncDispose]();
});

testPairs("relay", {
  /** By the row, and by each header. */
  async initiator(path: string, body: JsonObject, headers?: Record<string, string>) {
    const { calls, row } = await ask(proxy, path, body, headers);
    const told = calls.flatMap(({ headers }) => headers["x-initiator"] ?? []);
    const sees = calls.some(({ headers }) => headers["copilot-vision-request"] === "true");
    return { initiator: row.initiator, reason: row.initiator_reason, told: [...new Set(told)], ...(sees && { sees }) };
  },
  sent: (path: string, body: JsonObject, headers?: Record<string, string>) => sent(proxy, path, body, headers),
  "sent-strictly": (path: string, body: JsonObject, headers?: Record<string, string>) =>
    sent(strict, path, body, headers),
  /** Models, and what each of them is sent for the same request, by a proxy that has learnt nothing yet. */
  async taken(path: string, models: string[], body: JsonObject, headers?: Record<string, string>) {
    await using fresh = await startProxy();
    const outcomes: JsonObject = {};
    for (const model of models) outcomes[model] = await sent(fresh, path, { model, ...body }, headers);
    return outcomes;
  },
});

async function ask({ post, demo, rows }: RunningProxy, path: string, body: JsonObject, headers = {}) {
  const before = demo.journal.length;
  const response = await post(path, body, { headers });
  const text = await response.text();
  const calls = demo.journal.slice(before).filter(({ method }) => method === "POST");
  const row = rows().find((each) => each.path === path.split(":")[0] || each.parent_id === null)!;
  return { status: response.status, text, calls, row };
}

/** The last of the requests that went up: of the same endpoint only the members that are not the client's. */
async function sent(of: RunningProxy, path: string, body: JsonObject, headers?: Record<string, string>) {
  const { status, text, calls, row } = await ask(of, path, body, headers);
  const last = calls.at(-1);
  if (!last || status !== 200)
    return { status, error: JSON.parse(text).error, calls: calls.map((call) => call.status) };
  const [fixups, dropped] = [row.fixups, row.dropped].map((list): string[] => JSON.parse(list ?? "[]"));
  return {
    ...(calls.length !== 1 && { calls: calls.map((call) => call.status) }),
    ...(path.endsWith(last.path) ? { changes: changes(body, last.body as object) } : { [last.path]: last.body }),
    said: saidIn(JSON.parse(text)),
    betas: last.headers["anthropic-beta"],
    ...(fixups!.length > 0 && { fixups }),
    ...(dropped!.length > 0 && { dropped }),
  };
}

interface Reply {
  content?: { type: string; thinking?: string }[];
  output?: { type: string; name?: string; namespace?: string }[];
  choices?: { finish_reason: string }[];
}

/** The kinds of blocks or items that a client got, and how its choices ended. */
const saidIn = ({ content, output, choices }: Reply) =>
  content?.map(({ type, thinking }) => (type === "thinking" && thinking === "" ? "unseen thinking" : type)) ??
  output?.map(({ type, name, namespace }) => [type, namespace, name].filter(Boolean).join(" ")) ??
  choices?.map(({ finish_reason }) => finish_reason);
