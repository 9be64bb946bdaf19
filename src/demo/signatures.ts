/**
 * The opaque strings of this upstream. An item id differs in every event: the true id, its account and a nonce,
 * encrypted to about 400 characters. Only the upstream knows that two of them are the same.
 */
import { createHmac } from "node:crypto";

export interface Sealed {
  id: string;
  login: string;
}

const size = 306;
const stamp = 0xd3;
const letters = new TextEncoder();
const readable = new TextDecoder();

/** A new form of an id: 416 characters that differ each time. */
export function seal({ id, login }: Sealed): string {
  const plain = letters.encode(`${id}\n${login}\n`);
  const room = new Uint8Array(size + 6);
  const nonce = crypto.getRandomValues(new Uint32Array(1))[0]!;
  new DataView(room.buffer).setUint32(0, nonce);
  room[4] = stamp;
  room[5] = plain.length & 255;
  room.set(plain.subarray(0, 255), 6);
  scramble(room, nonce);
  return Buffer.from(room).toString("base64");
}

/** The content of an opaque string; undefined if this upstream did not make it. */
export function unseal(text: string): Sealed | undefined {
  if (text.length !== 416) return undefined;
  const room = new Uint8Array(Buffer.from(text, "base64"));
  if (room.length !== size + 6) return undefined;
  scramble(room, new DataView(room.buffer).getUint32(0));
  if (room[4] !== stamp) return undefined;
  const [id, login, rest] = readable.decode(room.subarray(6, 6 + room[5]!)).split("\n");
  return id && login && rest === "" ? { id, login } : undefined;
}

/** Encrypts and decrypts: XOR with a key stream that starts at the nonce. */
function scramble(room: Uint8Array, nonce: number): void {
  let state = nonce || 1;
  for (let index = 4; index < room.length; index += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    room[index]! ^= state & 255;
  }
}

const secret = "demo upstream signs its own thoughts";
const mac = (text: string) => createHmac("sha256", secret).update(text).digest("base64url");

/** The signature of a thought. It is valid for every account. */
export function sign(thought: string): string {
  const digest = mac(thought);
  return Buffer.from(`demo.${digest}.${mac(digest)}.${"0".repeat(120)}`).toString("base64");
}

/** Whether the signature is this upstream's and belongs to this thought. For a thought shown as empty, the signature suffices. */
export function proves(signature: string, thought: string): boolean {
  const [name, digest = "", proof] = Buffer.from(signature, "base64").toString("utf8").split(".");
  return name === "demo" && proof === mac(digest) && (thought === "" || digest === mac(thought));
}

/** Encrypted reasoning of a responses item: bound to the item and its account. */
export const encrypt = ({ id, login }: Sealed, thought: string): string =>
  Buffer.from(JSON.stringify({ demo: 1, id, login, digest: mac(`${id}\n${login}`), size: thought.length })).toString(
    "base64",
  );

export function decrypt(text: string): Sealed | undefined {
  try {
    const { id, login, digest } = JSON.parse(Buffer.from(text, "base64").toString("utf8"));
    return digest === mac(`${id}\n${login}`) ? { id, login } : undefined;
  } catch {
    return undefined;
  }
}
