/**
 * Only the provider that issued a thinking signature can read it. For a client of another dialect it is packed into that
 * dialect's signature string. When the client sends it back, it is unpacked and goes only to an upstream of its dialect.
 *
 *     dragoman.<dialect>.<id>~<text>~<kind>.<value>
 *
 * Id and text are in base64url; what is missing at the end of the three is left out with its `~`.
 */
import { withoutEnd } from "../../lib/without-end";
import { type ClientDialect, clientDialects, type Signature, type ThinkingPart } from "./conversation";

const packedPrefix = "dragoman.";
const redacted = "redacted";

/** Claude takes its thinking back only as it wrote it: "blocks in the latest assistant message cannot be modified". */
const provesText: ReadonlySet<ClientDialect> = new Set(["messages", "chat"]);

/**
 * The signature for a client of `dialect`: unchanged if it is of that dialect, packed otherwise.
 * @param text The thinking, where the client's dialect or its clients may leave it out.
 */
export function packSignature(signature: Signature, dialect: ClientDialect, text = ""): string {
  if (signature.dialect === dialect) return signature.value;
  const proved = provesText.has(signature.dialect) ? text : "";
  const facts = [encoded(signature.id ?? ""), encoded(proved), signature.redacted ? redacted : ""];
  return `${packedPrefix}${signature.dialect}.${withoutEnd(facts.join("~"), "~")}.${signature.value}`;
}

const packedForm = new RegExp(`^dragoman\\.(${clientDialects.join("|")})\\.([\\w~-]*)\\.(.*)$`, "s");

/** Whether dragoman packed this signature: an upstream of the client's own dialect would refuse it. */
export const isPacked = (proof: unknown): boolean => typeof proof === "string" && packedForm.test(proof);

/** The signature that a client of `dialect` sent; unless it is packed, it is taken to be of that dialect. */
export function unpackSignature(proof: string, dialect: ClientDialect, id?: string): Signature {
  const packed = packedForm.exec(proof);
  const maker = clientDialects.find((dialect) => dialect === packed?.[1]);
  if (!packed || !maker) return id === undefined ? { dialect, value: proof } : { dialect, value: proof, id };
  const [, , facts = "", value = ""] = packed;
  const [packedId = "", text = "", kind] = facts.split("~");
  return {
    dialect: maker,
    value,
    ...(packedId === "" ? {} : { id: decoded(packedId) }),
    ...(kind === redacted ? { redacted: true } : {}),
    ...(text === "" ? {} : { text: decoded(text) }),
  };
}

/** Thinking that came with a signature. @param shown What the client sent of its text. */
export const signedThinking = (
  shown: string,
  signature: Signature,
): Pick<ThinkingPart, "kind" | "text" | "signature"> => ({
  kind: "thinking",
  text: signature.text ?? shown,
  signature,
});

const encoded = (text: string): string => Buffer.from(text).toString("base64url");
const decoded = (text: string): string => Buffer.from(text, "base64url").toString();
