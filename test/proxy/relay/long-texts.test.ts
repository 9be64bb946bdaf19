/**
 * Property: large requests whose long texts stay in their bytes: upstream they are what they would be, had everything
 * been parsed.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { requests as ideas } from "../../../src/deploy/documents/request-ideas";
import { codecs } from "../../../src/dialects/codecs";
import {
  type ClientDialect,
  clientDialects,
  type Dialect,
  dialects,
  type JsonObject,
} from "../../../src/dialects/hub/conversation";
import { longTexts } from "../../../src/dialects/long-texts";
import { ProxyError } from "../../../src/lib/errors";
import { isObject, parseWithSource } from "../../../src/lib/json";
import { bodyText, inOnePiece } from "../../../src/lib/net/in/request-body";
import { editedTo } from "../../../src/lib/net/json/json-edit";
import { preferredAccountOf } from "../../../src/proxy/relay/affinity-keys";
import { type Incoming, readIncoming } from "../../../src/proxy/relay/incoming";
import { passthrough } from "../../../src/proxy/relay/passthrough";
import { translation } from "../../../src/proxy/relay/translation";
import type { Model } from "../../../src/proxy/upstream/models/model";
import { Comparison } from "../../support/differential";
import { exchangeOf } from "../../support/exchange";
import { ableModel } from "../../support/facts";
import { openChance, triesOf } from "../../support/random";
import { fixtures, hasFixture, jsonAt } from "../../support/streams";

// ── Bodies ──

const greeting: Record<ClientDialect, JsonObject> = {
  chat: { messages: [{ role: "user", content: "Hello." }] },
  responses: { input: [{ role: "user", content: [{ type: "input_text", text: "Hello." }] }] },
  messages: { max_tokens: 1000, messages: [{ role: "user", content: "Hello." }] },
  gemini: { contents: [{ role: "user", parts: [{ text: "Hello." }] }] },
};

/** Files of each kind, and a block that is nowhere expected. */
const documents = [
  { type: "document", source: { type: "base64", media_type: "text/plain", data: "SGVsbG8=" } },
  { type: "document", source: { type: "text", media_type: "text/plain", data: "Hello." }, title: "A title" },
  { type: "document", source: { type: "content", content: [{ type: "text", text: "Hello." }] } },
  { type: "redacted_thinking", data: "cHJvb2Y=" },
  // A result of a call that is gone is written out, so that its texts stand in JSON within a string.
  { type: "tool_result", tool_use_id: "gone", content: [{ type: "odd", text: "Hello." }] },
].map((block): [string, JsonObject] => [
  JSON.stringify(block),
  {
    model: "some-model",
    max_tokens: 100,
    messages: [
      { role: "user", content: [block] },
      { role: "assistant", content: [block] },
      { role: "user", content: "Go on." },
    ],
  },
]);

/** Every request of the fixtures, and every idea that the dialect has a word for. */
function bodiesOf(dialect: ClientDialect): [name: string, body: JsonObject][] {
  const folders = readdirSync(fixtures);
  const own = folders.filter((folder) => folder.startsWith(`${dialect}-`) && hasFixture(folder, "request.json"));
  const shared = folders.filter((folder) => hasFixture(folder, `${dialect}.request.json`));
  return [
    ...own.map((folder): [string, JsonObject] => [folder, jsonAt(folder, "request.json")]),
    ...shared.map((folder): [string, JsonObject] => [join(folder, dialect), jsonAt(folder, `${dialect}.request.json`)]),
    ...(dialect === "messages" ? documents : []),
    ...ideas.flatMap(({ name, said: { [dialect]: said } }) =>
      dialects.flatMap((upstream): [string, JsonObject][] => {
        const members = typeof said === "function" ? said(upstream) : upstream === dialect ? said : undefined;
        return members ? [[name, { model: "some-model", ...greeting[dialect], ...members }]] : [];
      }),
    ),
  ];
}

/** Ways to make a text long. The rules and codecs would look for each of these in it. */
const ways: readonly ((text: string) => string)[] = [
  (text) => text + " and so on, in many words ß 語 😀".repeat(120),
  (text) => text + '\n\t"quoted" \\ and \u2028 more'.repeat(160),
  (text) => text + "iVBORw0KGgoAAAANSUhEUg_-".repeat(160),
  () => " ".repeat(3000),
  () => `${"\n".repeat(400)}words${" ".repeat(3000)}`,
  (text) => " ".repeat(3000) + text,
  (text) => `<system-reminder>${`${text} `.repeat(600)}</system-reminder>`,
  (text) => `<system-reminder>${"own words ".repeat(400)}</system-reminder>\n${text}`,
  (text) => `dragoman.chat..${text}${"proof".repeat(600)}`,
  (text) => `${text}${"proof".repeat(600)}@vertex`,
  // Escaped, the beginning is longer than what stays of it in the skeleton.
  (text) => `data:image/png;x=${"\u0001".repeat(60)};base64,${text}${"iVBORw0KGgo".repeat(300)}`,
  (text) => `data:application/pdf;${"name=x;".repeat(60)}base64,${text}${"JVBERi0xLjQK".repeat(300)}`,
  () => `data:text/plain;base64,${"SGVsbG8s".repeat(400)}`,
  () => `data:application/pdf;base64,${"JVBERi0xLjQK".repeat(300)}`,
  (text) => `SGVsbG8s${text}`.padEnd(3000, "SGVsbG8s"),
  (text) => `x-anthropic-billing-header: ${text}${"; cc_version=1".repeat(200)}`,
];

/**
 * A copy in which some strings are long: each with a chance that depends on what its name says.
 * @param usual The way in which most of them are made long.
 */
function stretched(body: JsonObject, usual: number, next: () => number): JsonObject {
  const visit = (value: unknown, key: string): unknown => {
    if (typeof value === "string") {
      // A request with a long model's name is refused before anything else is read.
      if (key === "model") return value;
      const chance = /^(?:role|type|media_type|mimeType|mode)$/.test(key) ? 0.01 : /id$|^name$/.test(key) ? 0.05 : 0.6;
      if (next() >= chance) return value;
      return ways[next() < 0.8 ? usual : Math.floor(next() * ways.length)]!(value);
    }
    if (Array.isArray(value)) return value.map((item) => visit(item, key));
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, visit(member, name)]));
  };
  // The body has the size from which on there is a skeleton.
  return { ...(visit(body, "") as JsonObject), metadata: { filler: "filler ".repeat(10_000) } };
}

// ── What becomes of one ──

const model = (vendor: string, changes: Partial<Model["supports"]> = {}): Model => {
  const able = ableModel("able", vendor);
  return { ...able, supports: { ...able.supports, ...changes } } as Model;
};
const unable = { structuredOutputs: false, vision: false, adaptiveThinking: false, efforts: [] };
const models: Record<Dialect, Model[]> = {
  chat: [model("OpenAI"), model("Anthropic"), model("Google", unable)],
  responses: [model("OpenAI"), model("OpenAI", unable)],
  messages: [model("Anthropic"), model("Anthropic", unable)],
};

const requestFor = (bytes: Uint8Array<ArrayBuffer>) => new Request("http://localhost", { method: "POST", body: bytes });

interface Outcome {
  refused?: string;
  body?: string;
  repaired?: string;
  headers?: unknown;
  facts?: unknown;
  affinity?: unknown;
  notes?: unknown;
}

/** Everything that leaves of the request: upstream, to the history, to the choice of the account. */
function outcomeOf(
  incoming: Incoming,
  client: ClientDialect,
  upstream: Dialect,
  model: Model,
  isPassedOn = client === upstream,
): Outcome {
  const { exchange, recorded } = exchangeOf(incoming, client);
  const notes = () => [...recorded.fixups, ...recorded.dropped.map((name) => `dropped ${name}`)];
  const target = { model, upstreamModel: model, dialect: upstream, endpoint: "/" };
  const options = { webSearch: false };
  const keys: string[] = [];
  const affinity = {
    accountFor(given: Iterable<string>) {
      keys.push(...given);
      return undefined;
    },
  };
  try {
    codecs[client].checkRequest(incoming.body);
    preferredAccountOf({ accounts: [], affinity } as unknown as Parameters<typeof preferredAccountOf>[0], exchange, {
      session: exchange.session,
    });
    const call = isPassedOn ? passthrough(exchange, target, options) : translation(exchange, target, options);
    const sent = bodyText(inOnePiece(call.body));
    const json = parseWithSource(sent) as JsonObject;
    return {
      body: sent,
      repaired: editedTo(
        sent,
        json,
        codecs[upstream].remedies.repair(json, () => true),
      ),
      headers: call.headers,
      facts: exchange.facts,
      affinity: keys,
      notes: notes(),
    };
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    return { refused: JSON.stringify([thrown.message, thrown.details]), notes: notes() };
  }
}

/** Where they first differ, by member: whole prompts would be no message. */
const differences = (one: Outcome, other: Outcome): string[] =>
  (["refused", "body", "repaired", "headers", "facts", "affinity", "notes"] as const).flatMap((key) => {
    if (one[key] === other[key]) return [];
    const [a, b] = [one[key], other[key]].map((value) => JSON.stringify(value) ?? "");
    if (a === b) return [];
    const at = Math.max(
      50,
      a!.split("").findIndex((sign, index) => sign !== b![index]),
    );
    return [`${key} at ${at}: ${a!.slice(at - 50, at + 50)} instead of ${b!.slice(at - 50, at + 50)}`];
  });

/** As clients in other languages write it: other escapes for the same characters. */
const respelt = (text: string) =>
  text
    .replaceAll("/", "\\/")
    .replace(/[\u0080-\uffff]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);

const turns = triesOf(4, 3);

describe.each([...clientDialects])("a large request of %s", (client) => {
  const bodies = bodiesOf(client);

  test.each([...dialects])("goes to %s as if it had been parsed whole", async (upstream) => {
    let count = 0;
    let marked = 0;
    let refused = 0;
    const comparison = new Comparison();
    for (const [name, body] of bodies)
      for (let turn = 0; turn < turns; turn++) {
        const usual = count % ways.length;
        const target = models[upstream][++count % models[upstream].length]!;
        const sent = JSON.stringify(stretched(body, usual, openChance(`${upstream} ${count}`).next));
        const bytes = new TextEncoder().encode(sent);
        const incoming = await readIncoming(requestFor(bytes), longTexts[client]);
        expect(incoming.skeleton, name).toBeDefined();
        if (JSON.stringify(incoming.body).includes("u0010")) marked++;
        // Where dragoman runs a tool, a request is translated into its own dialect.
        for (const isPassedOn of client === upstream ? [true, false] : [false]) {
          const plain = outcomeOf(await readIncoming(requestFor(bytes)), client, upstream, target, isPassedOn);
          if (plain.refused !== undefined) refused++;
          const outcome = outcomeOf(incoming, client, upstream, target, isPassedOn);
          comparison.same(`${name}, ${usual}`, differences(outcome, plain), []);
        }
      }
    expect(refused).toBeLessThan(count / 2);
    expect(marked).toBeGreaterThan(count / 3);
    comparison.expectAtLeast(bodies.length * turns);
  });

  test.each([...dialects])("goes to %s with the same meaning, however its characters are spelt", async (upstream) => {
    for (const [at, [name, body]] of bodies.entries()) {
      const bytes = new TextEncoder().encode(
        respelt(JSON.stringify(stretched(body, at % ways.length, openChance(`${upstream} ${at}`).next))),
      );
      const [outcome, plain] = [longTexts[client], undefined].map(async (places) => {
        const incoming = await readIncoming(requestFor(bytes), places);
        const { body, repaired, ...others } = outcomeOf(incoming, client, upstream, models[upstream][0]!);
        const respelt = (json?: string) => json && JSON.stringify(JSON.parse(json));
        return { ...others, body: respelt(body), repaired: respelt(repaired) };
      });
      expect(differences(await outcome!, await plain!), name).toEqual([]);
    }
  });
});
