/** The tokenizers of the scripted models: one way to take a text apart, and a factor for each family, as real ones differ. */

/** A model's own tokens for one of the plain tokenizer: of texts, and of the definitions of tools, which it sees rewritten. */
export interface Factors {
  texts: number;
  tools: number;
}

const families: [RegExp, Factors][] = [
  // Claude 4.7 and later have a newer tokenizer than earlier ones.
  [/^claude-(?:[a-z]+-)?(?:4[.-][7-9]|5)/, { texts: 1.53, tools: 1.6 }],
  [/^claude-/, { texts: 1.18, tools: 1.3 }],
  [/^gemini-/, { texts: 1.06, tools: 0.9 }],
];

export const factorsOf = (model: string): Factors =>
  families.find(([pattern]) => pattern.test(model))?.[1] ?? { texts: 1, tools: 1 };

/** Four of its units are a token. Of a long text, windows stand for all of it: a demo must answer at once. */
export function sizeOfText(text: string): number {
  if (text.length <= windows * windowLength) return 4 * plainTokens(text, 0, text.length);
  let tokens = 0;
  const step = Math.floor(text.length / windows);
  for (let at = 0; at < windows; at++) tokens += plainTokens(text, at * step, at * step + windowLength);
  return 4 * tokens * (text.length / (windows * windowLength));
}

const windows = 8;
const windowLength = 4096;

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

function plainTokens(text: string, start: number, end: number): number {
  let tokens = 0;
  let run = 0;
  let kind: Kind | undefined;
  for (let at = start; at < end; at++) {
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
