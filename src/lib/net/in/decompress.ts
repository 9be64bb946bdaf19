/** Compressed bodies of requests (RFC 9110, section 8.4): decoded as a stream, so that reading can stop at a limit. */
import type { Transform } from "node:stream";
import { codeOf, ProxyError, quoted, words } from "../../errors";

/** Loaded with the first compressed body, like Node's streams, so that the start does not wait for them. */
type Zlib = typeof import("node:zlib");

const decoders: Record<string, (zlib: Zlib) => Transform> = {
  gzip: (zlib) => zlib.createGunzip(),
  deflate: (zlib) => zlib.createInflate(),
  br: (zlib) => zlib.createBrotliDecompress(),
  // A frame may request any amount of memory. 2^25 bytes (32 MiB) suffice for the largest body that is accepted.
  zstd: (zlib) => zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: 25 } }),
};

/** For the header `accept-encoding`. */
const supported = Object.keys(decoders).join(", ");

/**
 * The encoding of a body; undefined when it is not compressed.
 * @param header `content-encoding`.
 * @throws ProxyError `unsupported_media` for an unknown encoding, or for several.
 */
export function encodingOf(header: string | null | undefined): string | undefined {
  if (header == null) return undefined;
  const named = header
    .toLowerCase()
    .split(",")
    .map((name) => name.trim().replace(/^x-gzip$/, "gzip"))
    .filter((name) => name !== "" && name !== "identity");
  if (named.length === 0) return undefined;
  const [encoding = ""] = named;
  if (named.length === 1 && Object.hasOwn(decoders, encoding)) return encoding;
  const said = quoted(named.join(", "));
  throw new ProxyError(
    "unsupported_media",
    words`A request body with the content-encoding ${said} cannot be read: send it plain, or in one of ${supported}.`,
    { headers: { "accept-encoding": supported } },
  );
}

/**
 * The decoded bytes of a body.
 * @param pieces Errors that they throw are passed on.
 * @throws ProxyError `invalid_request` when they are not in that encoding or break off, `too_large` when decoding would
 * take too much memory.
 */
export async function* decompress(
  pieces: AsyncIterable<Uint8Array>,
  encoding: string,
): AsyncGenerator<Uint8Array, void> {
  let broken: { thrown: unknown } | undefined;
  const watched = async function* () {
    try {
      yield* pieces;
    } catch (thrown) {
      broken = { thrown };
      throw thrown;
    }
  };
  const [{ pipeline, Readable }, zlib] = await Promise.all([import("node:stream"), import("node:zlib")]);
  const decoder = decoders[encoding]!(zlib);
  // Errors are thrown by the loop below.
  pipeline(Readable.from(watched()), decoder, () => {});
  try {
    for await (const piece of decoder) yield piece as Uint8Array;
  } catch (cause) {
    if (broken) throw broken.thrown;
    if (/windowTooLarge|memory/i.test(codeOf(cause)))
      throw new ProxyError("too_large", `The request body's ${encoding} asks for too much memory to be decoded.`, {
        cause,
      });
    throw new ProxyError(
      "invalid_request",
      `The request body is not valid ${encoding}, as its content-encoding says.`,
      {
        cause,
      },
    );
  }
}
