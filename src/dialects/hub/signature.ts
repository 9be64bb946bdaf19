/**
 * Proofs that must find home. A model's signature can be read by its maker only; to a client of another dialect it is
 * packed into the one string that dialect has for a proof, and when the client sends it back it goes to its maker alone.
 *
 *     dragoman.<dialect>.<base64url of the id, or nothing>.<value>
 */
import { type Dialect, dialects, type Signature } from "./conversation";

const packedPrefix = "dragoman.";

/** The signature as a client of `dialect` gets it: as it is when it is that dialect's own, packed otherwise. */
export function packSignature(signature: Signature, dialect: Dialect): string {
  if (signature.dialect === dialect) return signature.value;
  const id = signature.id === undefined ? "" : Buffer.from(signature.id).toString("base64url");
  return `${packedPrefix}${signature.dialect}.${id}.${signature.value}`;
}

const packedForm = new RegExp(`^dragoman\\.(${dialects.join("|")})\\.([\\w-]*)\\.(.*)$`, "s");

/** Whether a proof is one that we packed: it would mislead an upstream of the client's own dialect. */
export const isPacked = (proof: unknown): boolean => typeof proof === "string" && packedForm.test(proof);

/** The signature a client of `dialect` sent: a packed one is its maker's, any other is taken for the dialect's own. */
export function unpackSignature(text: string, dialect: Dialect, id?: string): Signature {
  const packed = packedForm.exec(text);
  const maker = dialects.find((each) => each === packed?.[1]);
  if (!packed || !maker) return id === undefined ? { dialect, value: text } : { dialect, value: text, id };
  const [, , packedId = "", value = ""] = packed;
  return packedId === ""
    ? { dialect: maker, value }
    : { dialect: maker, value, id: Buffer.from(packedId, "base64url").toString() };
}
