/** Executables of macOS: where their parts are, whether their signature fits, and one of their own where it does not. */

export type Signature = "ad-hoc" | "signed" | "broken";

const superBlob = 0xfade_0cc0;
const codeDirectory = 0xfade_0c02;
/** Bytes of a page, as a power of two. */
const pageBits = 12;

interface Parts {
  /** Offsets of the load commands, and of what they point to. */
  linkEdit: number;
  text: number;
  signing?: number;
}

function partsOf(view: DataView): Parts {
  const parts: Parts = { linkEdit: 0, text: 0 };
  let command = 32;
  for (let left = view.getUint32(16, true); left > 0; left--) {
    const kind = view.getUint32(command, true);
    if (kind === 0x1d) parts.signing = command;
    if (kind === 0x19 && nameAt(view, command + 8) === "__LINKEDIT") parts.linkEdit = command;
    if (kind === 0x19 && nameAt(view, command + 8) === "__TEXT") parts.text = command;
    command += view.getUint32(command + 4, true);
  }
  return parts;
}

const nameAt = (view: DataView, at: number) =>
  new TextDecoder().decode(new Uint8Array(view.buffer, view.byteOffset + at, 16)).replace(/\0.*/s, "");

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const hashOf = (bytes: Uint8Array) => Bun.SHA256.hash(bytes) as Uint8Array;

/** @returns `ad-hoc`: its own hashes, signed by nobody; `broken`: they are of other bytes; undefined where there is none. */
export function signatureOf(bytes: Uint8Array): Signature | undefined {
  const view = viewOf(bytes);
  const { signing } = partsOf(view);
  if (signing === undefined) return undefined;
  const at = view.getUint32(signing + 8, true);
  if (at + view.getUint32(signing + 12, true) !== bytes.length || view.getUint32(at) !== superBlob) return "broken";
  for (let blob = 0; blob < view.getUint32(at + 8); blob++) {
    const directory = at + view.getUint32(at + 16 + blob * 8);
    if (view.getUint32(directory) !== codeDirectory) continue;
    const hashes = directory + view.getUint32(directory + 16);
    const [pages, end] = [view.getUint32(directory + 28), view.getUint32(directory + 32)];
    const page = 2 ** view.getUint8(directory + 39);
    // What follows the last page that was hashed would be nobody's.
    if (end !== at || pages !== Math.ceil(end / page)) return "broken";
    for (let each = 0; each < pages; each++) {
      const hash = hashOf(bytes.subarray(each * page, Math.min((each + 1) * page, end)));
      if (hash.toHex() !== bytes.subarray(hashes + each * 32, hashes + each * 32 + 32).toHex()) return "broken";
    }
    return view.getUint32(directory + 12) & 2 ? "ad-hoc" : "signed";
  }
  return "broken";
}

/**
 * The executable with an ad-hoc signature in place of the one it has. Bun puts the program into its own signed executable
 * and signs it anew for arm64 alone; for x64 Bun's signature stays behind, whose hashes are of other bytes.
 * @throws Error when there is no signature to replace.
 */
export function signAdHoc(executable: Uint8Array, name: string): Uint8Array {
  const { linkEdit, text, signing } = partsOf(viewOf(executable));
  if (signing === undefined || linkEdit === 0) throw new Error("There is no signature to replace.");
  const end = viewOf(executable).getUint32(signing + 8, true);
  const identifier = new TextEncoder().encode(`${name}\0`);
  const page = 2 ** pageBits;
  const pages = Math.ceil(end / page);
  const hashes = 88 + identifier.length;
  const length = hashes + pages * 32;
  const size = 20 + length;

  const signed = new Uint8Array(end + size);
  signed.set(executable.subarray(0, end));
  const view = viewOf(signed);
  view.setUint32(signing + 12, size, true);
  const linked = end + size - Number(view.getBigUint64(linkEdit + 40, true));
  view.setBigUint64(linkEdit + 48, BigInt(linked), true);
  view.setBigUint64(linkEdit + 32, BigInt(Math.ceil(linked / page) * page), true);

  // Numbers of a signature are big-endian.
  const put = (at: number, ...words: number[]) => {
    for (const [index, word] of words.entries()) view.setUint32(at + index * 4, word);
  };
  put(end, superBlob, size, 1, 0, 20);
  const directory = end + 20;
  const [version, adHoc, sha256] = [0x2_0400, 0x2_0002, 2];
  put(directory, codeDirectory, length, version, adHoc, hashes, 88, 0, pages, end);
  put(directory + 36, (32 << 24) | (sha256 << 16) | pageBits);
  view.setBigUint64(directory + 72, view.getBigUint64(text + 48, true));
  view.setBigUint64(directory + 80, 1n); // the main program
  signed.set(identifier, directory + 88);
  for (let each = 0; each < pages; each++)
    signed.set(hashOf(signed.subarray(each * page, Math.min((each + 1) * page, end))), directory + hashes + each * 32);
  return signed;
}
