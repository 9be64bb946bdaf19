/**
 * Only the provider that issued a thinking signature can read it. For a client of another dialect it is packed into that
 * dialect's signature string. When the client sends it back, it is unpacked and goes only to an upstream of its dialect.
 *
 *     dragoman.<dialect>.<base64url of the id, or nothing>.<value>
 */
import { type ClientDialect, clientDialects, type Signature } from "./conversation";

const packedPrefix = "dragoman.";

/** The signature for a client of `dialect`: unchanged if it is of that dialect, packed otherwise. */
export function packSignature(signature: Signature, dialect: ClientDialect): string {
  if (signature.dialect === dialect) return signature.value;
  const id = signature.id === undefined ? "" : Buffer.from(signature.id).toString("base64url");
  return `${packedPrefix}${signature.dialect}.${id}.${signature.value}`;
}

const packedForm = new RegExp(`^dragoman\\.(${clientDialects.join("|")})\\.([\\w-]*)\\.(.*)$`, "s");

/** Whether dragoman packed this signature: an upstream of the client's own dialect would refuse it. */
export const isPacked = (proof: unknown): boolean => typeof proof === "string" && packedForm.test(proof);

/** The signature that a client of `dialect` sent; unless it is packed, it is taken to be of that dialect. */
export function unpackSignature(text: string, dialect: ClientDialect, id?: string): Signature {
  const packed = packedForm.exec(text);
  const maker = clientDialects.find((dialect) => dialect === packed?.[1]);
  if (!packed || !maker) return id === undefined ? { dialect, value: text } : { dialect, value: text, id };
  const [, , packedId = "", value = ""] = packed;
  return packedId === ""
    ? { dialect: maker, value }
    : { dialect: maker, value, id: Buffer.from(packedId, "base64url").toString() };
}
