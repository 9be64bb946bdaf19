/** The tokens of an image, by its width and height, which are read from the beginning of the file. */

/** The maximum, because larger images are scaled down; also used if the size cannot be read. */
const maxTokens = 1600;
const pixelsPerToken = 750;

/** @param base64 The first 64 KiB of the image's data; undefined for an image that is given as a URL. */
export function imageTokens(base64: string | undefined): number {
  const size = base64 === undefined ? undefined : imageSize(Buffer.from(base64, "base64"));
  if (!size) return maxTokens;
  return Math.min(maxTokens, Math.ceil((size.width * size.height) / pixelsPerToken));
}

interface Size {
  width: number;
  height: number;
}

/** @param bytes The beginning of a PNG, GIF, WebP or JPEG file. */
export function imageSize(bytes: Buffer): Size | undefined {
  for (const read of [readPng, readGif, readWebp, readJpeg]) {
    const size = read(bytes);
    if (size && size.width > 0 && size.height > 0) return size;
  }
  return undefined;
}

function readPng(bytes: Buffer): Size | undefined {
  if (bytes.length < 24 || bytes.readUInt32BE(0) !== 0x89504e47) return undefined;
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

function readGif(bytes: Buffer): Size | undefined {
  if (bytes.length < 10 || bytes.toString("latin1", 0, 4) !== "GIF8") return undefined;
  return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
}

function readWebp(bytes: Buffer): Size | undefined {
  if (bytes.length < 30 || bytes.toString("latin1", 8, 12) !== "WEBP") return undefined;
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return undefined;
  }
}

/** Segments follow each other until the one that starts a frame, which holds the size. */
function readJpeg(bytes: Buffer): Size | undefined {
  if (bytes[0] !== 0xff || bytes[1] !== 0xd8) return undefined;
  for (let at = 2; at + 9 < bytes.length && bytes[at] === 0xff; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes[at + 1]!;
    const startsFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (startsFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
  }
  return undefined;
}
