/**
 * Pairs: the local count of tokens, the parts of prompts and what changed in them, from `fixtures/pairs/tokens/`: every kind of
 * part weighs something, pictures by their size, and nothing base64 is encoded.
 */
import { afterAll, expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import type { ClientDialect } from "../../src/dialects/hub/conversation";
import type { PieceKind } from "../../src/dialects/prompt-pieces";
import { readUnmarked } from "../../src/lib/net/json/json-skeleton";
import { endedPrompt } from "../../src/proxy/relay/portions";
import { imageSize, imageTokens } from "../../src/proxy/tokens/image-size";
import { type MeasuredPrompt, measurePrompt } from "../../src/proxy/tokens/measured-prompt";
import { portionsOf } from "../../src/proxy/tokens/portions-of";
import { openTokenizer } from "../../src/proxy/tokens/tokenizer";
import { type CachedTurn, CacheWatch } from "../../src/proxy/upstream/cache-watch";
import { costOf } from "../../src/proxy/upstream/models/price";
import type { Price } from "../../src/proxy/upstream/models/price-list";
import { unfolded } from "../support/blocks";
import { estimateTokens } from "../support/estimate";
import { testPairs } from "../support/pairs";
import { sharedTokenizer } from "../support/tokenizer";

const tokenizer = sharedTokenizer();
afterAll(() => tokenizer.close());

const estimate = (body: object) =>
  estimateTokens(codecs.messages.decodeRequest({ model: "claude-sonnet-4.6", ...body }), tokenizer, 1.15);
const user = (...content: object[]) => ({ messages: [{ role: "user", content }] });
const text = (words: string) => ({ type: "text", text: words });

const long = "Some words that a model has to read. ".repeat(20);

/** `<<20 x text>>` is the text so many times; a string is JSON that has it elsewhere than in its strings. */
const whole = <Of>(value: Of): Of => JSON.parse(unfolded(typeof value === "string" ? value : JSON.stringify(value)));

/** Hexadecimal digits in pairs, `07x5000` for so many, and other words as they stand. */
const bytesIn = (words: string) =>
  Buffer.concat(
    words.split(" ").map((word) => {
      const [, byte = "", times = "1"] = /^((?:[\da-f]{2})+)(?:x(\d+))?$/.exec(word) ?? [];
      return byte ? Buffer.from(byte.repeat(Number(times)), "hex") : Buffer.from(word, "latin1");
    }),
  );

type Turn = Partial<CachedTurn> & {
  dialect?: ClientDialect;
  body: object;
  usage: Parameters<typeof costOf>[1] & { input: number };
  /** Milliseconds since the one before. */
  after?: number;
  isLarge?: boolean;
  facts?: Parameters<typeof costOf>[3];
};

testPairs("tokens", {
  /** A request of Messages. */
  estimate: (body: object) => estimate(whole(body)),
  /** The beginning of a picture's file; nothing of a link. */
  picture: (words?: string) => [
    words !== undefined && imageSize(bytesIn(words)),
    imageTokens(words === undefined ? undefined : bytesIn(words).toString("base64")),
  ],
  /** Turns of a conversation behind a price, what is said of the prompt of each; without one, what its cache missed. */
  prompts(given: Price | null, ...turns: Turn[]) {
    const price = given ?? { premium: true };
    let now = 0;
    const watch = new CacheWatch(() => now);
    return turns.map(whole).map(({ dialect = "messages", body, usage, after = 0, isLarge, facts, ...more }) => {
      now += after;
      const outline = codecs[dialect].outline({ ...body });
      const measured = measurePrompt(outline, new Uint8Array(), isLarge ? readUnmarked : undefined);
      const { input, cachedInput = 0, cacheWrite = 0, cacheWriteHour = 0 } = usage;
      const turn: CachedTurn = {
        ...{ client: "c", model: "m", account: "a", address: "prompt", durationMs: 0, hashes: measured.hashes },
        ...{ input, cached: cachedInput, written: cacheWrite, writtenHour: cacheWriteHour },
        ...more,
      };
      const cost = costOf(price, usage, true, { planUnit: "credits", ...facts });
      const prompt = { address: turn.address, measured };
      const { portions = [], ...said } = endedPrompt(watch, { prompt, usage, price, cost, turn });
      if (!given) return said.miss ?? null;
      const short = portions.map(({ kind, tool, count, ...numbers }) => [
        `${kind} ${tool} ${count}`,
        ...Object.values(numbers),
      ]);
      return { ...said, runs: measured.runs.join(" "), portions: short };
    });
  },
  /** The groups of a prompt and where they stand in it, its usage, prices, and the sizes before. */
  portions(
    { groups, runs, marked }: { groups: [PieceKind, string | null, number][]; runs: number[]; marked?: number },
    usage: Parameters<typeof portionsOf>[1],
    rates: Parameters<typeof portionsOf>[2] | null,
    before?: Record<string, number>,
  ) {
    const all = groups.map(([kind, tool, count]) => ({ kind, tool, count }));
    const prompt = { groups: all, runs, markedRuns: marked ?? 0 } as MeasuredPrompt;
    const found = portionsOf(prompt, usage, rates ?? undefined, before && new Map(Object.entries(before)));
    return {
      portions: found.portions.map(({ kind, tool, count, ...numbers }) => [`${kind} ${tool} ${count}`, numbers]),
      marked: found.marked,
      sizes: Object.fromEntries(found.sizes),
    };
  },
});

test("counts: more than the vocabulary says, because Claude's own makes more of the same words", async () => {
  const words = await tokenizer.count([long]);
  expect(await estimate(user(text(long)))).toBeGreaterThanOrEqual(Math.ceil(words * 1.15));
});

test("counts, words that spell a special token as words", async () => {
  expect(await tokenizer.count(["<|endoftext|>"])).toBeGreaterThan(3);
  expect(await estimate(user(text("<|endoftext|><|im_start|>")))).toBeGreaterThan(8);
});

test("counts: no base64: a megabyte of it is few tokens", async () => {
  const data = Buffer.from(crypto.getRandomValues(new Uint8Array(65_536)))
    .toString("base64")
    .repeat(12);
  await tokenizer.count(["warm"]);
  const counted = await estimate(
    user(
      { type: "image", source: { type: "base64", media_type: "image/png", data } },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data } },
      { type: "new_thing", data },
    ),
  );
  expect(counted).toBeLessThan(30_000);
});

test("counts, an unbroken run nearly as the same text in pieces", async () => {
  const words = "function".repeat(400);
  const whole = await tokenizer.count([words]);
  const broken = await tokenizer.count(Array.from({ length: 400 }, () => "function"));
  expect(Math.abs(whole - broken) / broken).toBeLessThan(0.02);
});

test("counts: several requests at once, each for itself", async () => {
  const counts = await Promise.all(
    Array.from({ length: 35 }, (_, index) => tokenizer.count([" hi".repeat(index + 1)])),
  );
  expect(counts).toEqual(Array.from({ length: 35 }, (_, index) => index + 1));
});

test("a count that cannot be made fails, and the next one is made", async () => {
  const fresh = openTokenizer();
  const cut = fresh.count(["Hello"]);
  fresh.close();
  await expect(cut).rejects.toThrow("closed");
  expect(await fresh.count(["Hello"])).toBe(1);
  fresh.close();
});
