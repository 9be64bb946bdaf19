/** How many tokens a model counts in a text: one way to take it apart, of which a family of models makes its own number. */

type Kind = "letter" | "digit" | "blank" | "sign" | "ideograph" | "other";

/** How many tokens a run of characters of one kind is. */
const tokensOfRun: Record<Kind, (length: number) => number> = {
  // A short word is one token with the blank before it.
  letter: (length) => (length <= 7 ? 0.92 : length / 4),
  digit: (length) => Math.ceil(length / 3),
  blank: (length) => (length === 1 ? 0 : 1 + Math.floor(length / 64)),
  sign: (length) => Math.ceil(length / 3) * 0.85,
  // A run without end is no text.
  ideograph: (length) => length * (length <= 64 ? 0.75 : 0.25),
  other: (length) => length / 2.5,
};

export function plainTokens(text: string): number {
  let tokens = 0;
  let run = 0;
  let kind: Kind | undefined;
  for (let at = 0; at < text.length; at++) {
    const next = kindOf(text.charCodeAt(at));
    if (next !== kind) {
      if (kind) tokens += tokensOfRun[kind](run);
      [kind, run] = [next, 0];
    }
    run++;
  }
  return kind ? tokens + tokensOfRun[kind](run) : tokens;
}

function kindOf(code: number): Kind {
  if ((code >= 97 && code <= 122) || (code >= 65 && code <= 90)) return "letter";
  if (code >= 48 && code <= 57) return "digit";
  if (code === 32 || (code >= 9 && code <= 13)) return "blank";
  if (code < 128) return "sign";
  return code >= 0x2e80 && code <= 0xd7ff ? "ideograph" : "other";
}
