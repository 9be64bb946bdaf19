/**
 * JSON may have one half of a surrogate pair as an escape: clients cut a text within an emoji, and models write halves of their
 * own. Python and Rust read no such JSON. OpenAI's endpoints at Copilot answer "Invalid body: failed to parse JSON value"
 * (microsoft/vscode#335404, 2026-09), Anthropic "no low surrogate in string" (anthropics/claude-code#69927, 2026-06), and the
 * text stays in the conversation.
 */

const [backslash, letterU, letterD] = [0x5c, 0x75, 0x64];
/** As long as the escape that it replaces. */
const unknownCharacter = Buffer.from("\\ufffd");

/** Puts U+FFFD in place of each half of a pair, in the bytes themselves. @param json In UTF-8. @returns Whether it had any. */
export function mendHalves(json: Uint8Array): boolean {
  // Most JSON has no such escape at all. Those of Chinese and the like are many: they are no reason to look at each byte.
  if (!includes(json, "\\u") || !(includes(json, "\\ud") || includes(json, "\\uD"))) return false;
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.length);
  let isMended = false;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== backslash) continue;
    const half = halfAt(bytes, at);
    if (half === undefined) at += 1;
    else if (half === "high" && halfAt(bytes, at + 6) === "low") at += 11;
    else {
      unknownCharacter.copy(bytes, at);
      isMended = true;
      at += 5;
    }
  }
  return isMended;
}

const includes = (bytes: Uint8Array, text: string): boolean => Buffer.prototype.includes.call(bytes, text);

/** The same for JSON in a string. */
export function withoutHalves(json: string): string {
  if (!/\\u[dD][89a-fA-F]/.test(json)) return json;
  const bytes = Buffer.from(json);
  return mendHalves(bytes) ? bytes.toString() : json;
}

/** Which half the escape at this place is, if it is one. */
function halfAt(json: Uint8Array, at: number): "high" | "low" | undefined {
  if (json[at] !== backslash || json[at + 1] !== letterU || (json[at + 2]! | 0x20) !== letterD) return undefined;
  const digit = Number.parseInt(String.fromCharCode(json[at + 3]!), 16);
  return digit >= 0xc ? "low" : digit >= 8 ? "high" : undefined;
}
