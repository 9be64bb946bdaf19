/** The opaque strings of this upstream. An item id differs in every event: a nonce, the true id and its account. */
import { createHmac } from "node:crypto";
import { randomId } from "./wire";

interface Sealed {
  id: string;
  login: string;
}

const length = 416;

/** A new form of an id: 416 characters that differ each time. */
export const seal = ({ id, login }: Sealed): string =>
  Buffer.from(`${randomId("", 12)}\n${id}\n${login}\n`.padEnd((length / 4) * 3)).toString("base64");

/** The content of an opaque string; undefined if this upstream did not make it. */
export function unseal(text: string): Sealed | undefined {
  if (text.length !== length) return undefined;
  const [nonce = "", id, login, rest] = Buffer.from(text, "base64").toString().split("\n");
  return nonce.length === 12 && id && login && rest?.trim() === "" ? { id, login } : undefined;
}

const secret = "demo upstream signs its own thoughts";
const mac = (text: string) => createHmac("sha256", secret).update(text).digest("base64url");

type Kind = "thinking" | "redacted_thinking";

/**
 * The signature of a thought.
 * @param shown What the client gets of the thought.
 * @param login The account that it is bound to; missing where it is valid for every account. No two such signatures are the same.
 */
export function sign(thought: string, shown = thought, kind: Kind = "thinking", login?: string): string {
  const digest = mac(`${kind} ${shown}`);
  const nonce = randomId("", 12);
  const binding = login === undefined ? "0".repeat(120) : `${nonce}.${mac(`${nonce} ${login}`)}`;
  return Buffer.from(`demo.${digest}.${mac(digest)}.${binding}`).toString("base64");
}

/** Whether the signature is this upstream's and this account's, and whether it belongs to what was shown of a thought. */
export function proof(
  signature: string,
  shown: string,
  login: string,
  kind: Kind = "thinking",
): "valid" | "changed" | "invalid" | "bound" {
  const [name, digest = "", seal, nonce, owner] = Buffer.from(signature, "base64").toString("utf8").split(".");
  if (name !== "demo" || seal !== mac(digest)) return "invalid";
  if (owner !== undefined && owner !== mac(`${nonce} ${login}`)) return "bound";
  if (digest === mac(`${kind} ${shown}`)) return "valid";
  return kind === "thinking" && digest === mac("redacted_thinking ") ? "invalid" : "changed";
}

/** Encrypted reasoning of a responses item: bound to the item and its account, as long as the thought. */
export const encrypt = (sealed: Sealed, thought: string): string => seal(sealed) + "A".repeat(thought.length);

export const decrypt = (text: string): Sealed | undefined => unseal(text.slice(0, length));
