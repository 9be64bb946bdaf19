/**
 * `thoughtSignature` is base64. A client sends it back with the part that it came with, which is the part after the
 * thought: some clients, such as Gemini CLI, leave out thoughts themselves.
 */
import type { Signature } from "../hub/conversation";
import { isPacked, packSignature, unpackSignature } from "../hub/signature";

/** What Google's documents tell clients to send where no signature is known; Gemini CLI sends the first. */
const placeholders = new Set(["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"]);

/** Undefined for a placeholder. A signature that dragoman did not write is Google's own, which no upstream here can read. */
export function decodeSignature(text: string): Signature | undefined {
  if (text === "" || placeholders.has(text)) return undefined;
  const value = Buffer.from(text, "base64").toString();
  if (placeholders.has(value)) return undefined;
  return isPacked(value) ? unpackSignature(value, "gemini") : { dialect: "gemini", value: text };
}

/** @param text The thinking, which is not shown to every client, nor sent back by all. */
export const encodeSignature = (signature: Signature, text: string): string =>
  signature.dialect === "gemini"
    ? signature.value
    : Buffer.from(packSignature(signature, "gemini", text)).toString("base64");
