/** The size limit of a request body that is read piece by piece. */

/** @param max Bytes. @throws What `tooLarge` returns, as soon as there are more. */
export async function* limitBytes(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  max: number,
  tooLarge: () => Error,
): AsyncGenerator<Uint8Array, void> {
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > max) throw tooLarge();
    yield piece;
  }
}
