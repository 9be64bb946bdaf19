/** Compressed request bodies (RFC 9110, section 8.4): decoded as they come, so that none unfolds further than it is wanted. */
import type { Transform } from "node:stream";
import { codeOf, ProxyError } from "../errors";

/** Loaded when the first compressed body comes, as Node's streams are: a start does not wait for them. */
type Zlib = typeof import("node:zlib");

const decoders: Record<string, (zlib: Zlib) => Transform> = {
  gzip: (zlib) => zlib.createGunzip(),
  deflate: (zlib) => zlib.createInflate(),
  br: (zlib) => zlib.createBrotliDecompress(),
  // A frame may ask for memory as it likes: no more than 2^25 bytes (32 MiB), the most a body that is taken has a use for.
  zstd: (zlib) => zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: 25 } }),
};

/** As an `accept-encoding` lists them. */
const known = Object.keys(decoders).join(", ");

/**
 * The encoding that a body is in; undefined when it is plain.
 * @throws ProxyError `unsupported_media` for one that is not known, or for several.
 */
export function encodingOf(headers: Headers): string | undefined {
  const named = (headers.get("content-encoding") ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim().replace(/^x-gzip$/, "gzip"))
    .filter((name) => name !== "" && name !== "identity");
  if (named.length === 0) return undefined;
  const [encoding = ""] = named;
  if (named.length === 1 && Object.hasOwn(decoders, encoding)) return encoding;
  throw new ProxyError(
    "unsupported_media",
    `A request body with the content-encoding ${named.join(", ").slice(0, 60)} cannot be read: send it plain, or in one of ${known}.`,
    { headers: { "accept-encoding": known } },
  );
}

/**
 * The plain bytes of a body, as far as somebody reads them.
 * @param pieces What is thrown by them is thrown on.
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
  // Whatever ends it is thrown by the reading below.
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
