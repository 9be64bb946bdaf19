/**
 * Scenario: compressed requests, as clients' own HTTP stacks make them: what is in them is served, and what they are
 * not is said.
 */
import { afterAll, describe, expect, test } from "bun:test";
import * as zlib from "node:zlib";
import { startProxy } from "../support/proxy";
import { drawn } from "../support/random";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const limit = 32 * 1024 * 1024;
const chat = JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content: "Grüße, 世界!" }], seed: 1.5 });

const encodings = {
  gzip: (plain: string | Uint8Array) => zlib.gzipSync(plain),
  deflate: (plain: string | Uint8Array) => zlib.deflateSync(plain),
  br: (plain: string | Uint8Array) =>
    zlib.brotliCompressSync(plain, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: (plain: string | Uint8Array) => zlib.zstdCompressSync(plain),
};
const each = Object.entries(encodings);

const send = (body: string | Uint8Array<ArrayBuffer>, encoding: string) =>
  proxy.post("/v1/chat/completions", body, { headers: { "content-encoding": encoding } });

/** As many bytes of JSON. */
const padded = (bytes: number) => Buffer.concat([Buffer.from(chat)], bytes).fill(32, Buffer.byteLength(chat));

async function refusal(response: Response): Promise<[number, string]> {
  const { error } = (await response.json()) as { error: { message: string } };
  return [response.status, error.message];
}

describe.each(each)("%s", (encoding, compress) => {
  test("is served, and goes up plain, as it was before", async () => {
    const response = await send(compress(chat), encoding);
    expect(response.status).toBe(200);
    const { bytes, headers } = proxy.demo.journal.at(-1)!;
    expect([Buffer.from(bytes).toString(), headers["content-encoding"]]).toEqual([chat, undefined]);
  });

  test("in chunks of any size is the same", async () => {
    const whole = compress(chat);
    for (const size of [1, 7, 1000]) {
      let at = 0;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (at >= whole.length) return controller.close();
          controller.enqueue(whole.subarray(at, at + size));
          at += size;
        },
      });
      const headers = { "content-encoding": encoding };
      const response = await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", headers, body });
      expect(response.status).toBe(200);
      expect(Buffer.from(proxy.demo.journal.at(-1)!.bytes).toString()).toBe(chat);
    }
  });

  test("that is none, is cut or holds no JSON is 400", async () => {
    const whole = compress(chat);
    for (const body of [chat, new Uint8Array(0), whole.subarray(0, -4), whole.subarray(0, 10), compress("no JSON")])
      expect((await refusal(await send(Buffer.from(body), encoding)))[0]).toBe(400);
    expect(await refusal(await send(chat, encoding))).toEqual([
      400,
      `The request body is not valid ${encoding}, as its content-encoding says.`,
    ]);
  });
});

test.each(drawn("encodings", each, 4))(
  "%s that unfolds beyond the limit is 413, at the limit it is not",
  async (encoding, compress) => {
    expect((await send(compress(padded(limit)), encoding)).status).toBe(200);
    expect(await refusal(await send(compress(padded(limit + 1)), encoding))).toEqual([
      413,
      "The request body is over 32 MiB.",
    ]);
  },
);

test("several at once and unknown ones are 415, with the known ones named; `identity` is none, and names are any case", async () => {
  for (const encoding of ["compress", "gzip, br", "constructor", "gzip;q=1"]) {
    const response = await send(zlib.gzipSync(chat), encoding);
    expect(response.headers.get("accept-encoding")).toBe("gzip, deflate, br, zstd");
    expect(await refusal(response)).toEqual([
      415,
      expect.stringContaining(`content-encoding ${encoding} cannot be read`),
    ]);
  }
  for (const encoding of ["identity", "", "Identity, "]) expect((await send(chat, encoding)).status).toBe(200);
  for (const encoding of ["GZip", "x-gzip", "identity, gzip"])
    expect((await send(zlib.gzipSync(chat), encoding)).status).toBe(200);
});

test("a frame that asks for a window of 128 MiB is 413 before anything of it is decoded", async () => {
  const params = { [zlib.constants.ZSTD_c_windowLog]: 27, [zlib.constants.ZSTD_c_enableLongDistanceMatching]: 1 };
  const compressor = zlib.createZstdCompress({ params });
  compressor.end(chat.padEnd(1024 * 1024));
  const frame = Buffer.concat(await Array.fromAsync(compressor as AsyncIterable<Buffer>));
  expect((await send(frame, "zstd")).status).toBe(413);
});
