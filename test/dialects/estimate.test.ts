/**
 * Rows: the local count of tokens: every kind of part weighs something, from `fixtures/pairs/tokens/`, pictures by their size, and
 * nothing base64 is encoded.
 */
import { afterAll, expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import type { PieceKind } from "../../src/dialects/prompt-pieces";
import { imageSize, imageTokens } from "../../src/proxy/tokens/image-size";
import type { MeasuredPrompt } from "../../src/proxy/tokens/measured-prompt";
import { portionsOf } from "../../src/proxy/tokens/portions-of";
import { openTokenizer } from "../../src/proxy/tokens/tokenizer";
import { estimateTokens } from "../support/estimate";
import { testPairs } from "../support/pairs";
import { sharedTokenizer } from "../support/tokenizer";

const tokenizer = sharedTokenizer();
afterAll(() => tokenizer.close());

const estimate = (body: object) =>
  estimateTokens(codecs.messages.decodeRequest({ model: "claude-sonnet-4.6", ...body }), tokenizer, 1.15);
const user = (...content: object[]) => ({ messages: [{ role: "user", content }] });
const text = (words: string) => ({ type: "text", text: words });

/** The beginnings of picture files of 300 by 200, each in its own format, with a tail of noise. */
const size = { width: 300, height: 200 };
const noise = Buffer.alloc(5000, 7);
const bytes = (...parts: (Buffer | string | number[])[]) =>
  Buffer.concat([
    ...parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part))),
    noise,
  ]);
const big16 = (value: number) => [value >> 8, value & 255];
const little16 = (value: number) => [value & 255, value >> 8];
const little24 = (value: number) => [value & 255, (value >> 8) & 255, value >> 16];
const png = ({ width, height }: typeof size) =>
  bytes([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13], "IHDR", [0, 0, ...big16(width), 0, 0, ...big16(height)]);
const riff = (chunk: string, ...rest: number[][]) => bytes("RIFF", [0, 0, 0, 0], "WEBP", chunk, [0, 0, 0, 0], ...rest);
const lossless = (size.width - 1) | ((size.height - 1) << 14);
const pictures: Record<string, Buffer> = {
  PNG: png(size),
  GIF: bytes("GIF89a", little16(size.width), little16(size.height)),
  "lossy WebP": riff("VP8 ", [0, 0, 0, 0x9d, 0x01, 0x2a], little16(size.width), little16(size.height)),
  "lossless WebP": riff("VP8L", [0x2f, lossless & 255, (lossless >> 8) & 255, (lossless >> 16) & 255, lossless >>> 24]),
  "extended WebP": riff("VP8X", [0, 0, 0, 0], little24(size.width - 1), little24(size.height - 1)),
  JPEG: bytes(
    [0xff, 0xd8, 0xff, 0xe0, 0, 16],
    "JFIF\0xxxxxxxxx",
    [0xff, 0xe1, ...big16(2000)],
    Buffer.alloc(1998),
    // Another table stands before the frame that tells the size.
    [0xff, 0xc4, 0, 4, 1, 2],
    [0xff, 0xc2, 0, 11, 8, ...big16(size.height), ...big16(size.width)],
  ),
};

test.each(Object.entries(pictures))("the size of a picture is read from a %s", (_, picture) => {
  expect(imageSize(picture)).toEqual(size);
  expect(imageTokens(picture.toString("base64"))).toBe(80);
});

test("the size of a picture that is larger than models see costs no more than the largest they see", () => {
  expect(imageTokens(png({ width: 9000, height: 9000 }).toString("base64"))).toBe(1600);
});

test.each([
  ["a link", undefined],
  ["no picture at all", Buffer.from("hello").toString("base64")],
  ["an empty file", ""],
  ["a WebP that begins otherwise", riff("ICCP").toString("base64")],
  ["a cut PNG", pictures.PNG!.subarray(0, 20).toString("base64")],
  ["a PNG of no width", png({ width: 0, height: 10 }).toString("base64")],
  ["a JPEG without a frame", Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xd9]).toString("base64")],
  ["a JPEG whose segments have no length", Buffer.from([0xff, 0xd8, ...Array(4000).fill(0xff)]).toString("base64")],
])("the size of a picture of %s is unknown: the most is assumed", (_, base64) => {
  expect(imageTokens(base64)).toBe(1600);
});

const long = "Some words that a model has to read. ".repeat(20);

testPairs("tokens", {
  /** A request of Messages; `<<20 x text>>` stands for the text so many times. */
  estimate: (body: object) =>
    estimate(
      JSON.parse(JSON.stringify(body).replace(/<<(\d+) x (.+?)>>/g, (_, times, text) => text.repeat(Number(times)))),
    ),
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
