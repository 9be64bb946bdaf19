/** The changes of one operator or constant that can be made to a source file. Strings, comments and types stay. */

export interface Mutant {
  /** Relative to the root. */
  file: string;
  line: number;
  /** The line before and after, such as `if (a < b) → if (a <= b)`. */
  change: string;
  /** The whole changed file. */
  text: string;
}

interface Token {
  text: string;
  start: number;
}

/** By the token what it becomes. Biome's format has a space on both sides of every binary operator. */
const replacements: Record<string, string> = {
  "===": "!==",
  "!==": "===",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "&&": "||",
  "||": "&&",
  "??": "&&",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "+=": "-=",
  "-=": "+=",
  true: "false",
  false: "true",
  min: "max",
  max: "min",
  some: "every",
  every: "some",
};

const pattern = new RegExp(
  [
    String.raw`(?<skipped>//[^\n]*|/\*[^]*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`,
    // A division has a space behind it; the format removes it from a regular expression's beginning nowhere in these rooms.
    String.raw`(?<regex>/(?![*/ \n=])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*)`,
    String.raw`(?<number>\b\d[\d_]*(?:\.\d+)?(?:e\d+)?n?\b)`,
    String.raw`(?<word>[\p{L}_$][\p{L}\p{N}_$]*)`,
    String.raw`(?<operator>===|!==|=>|<=|>=|&&=|\|\|=|\?\?=|&&|\|\||\?\?|\?\.|\.\.\.|\+=|-=|\+\+|--|[-+*/%<>!=&|?:;,.(){}[\]` +
      "`])",
  ].join("|"),
  "gu",
);

/** Only changes that also change the JavaScript that Bun makes of the file: so none of a type, and none that cannot be read. */
export function changesOf(file: string, source: string): Mutant[] {
  const transpiler = new Bun.Transpiler({ loader: file.endsWith("x") ? "tsx" : "ts" });
  const original = transpiler.transformSync(source);
  const isReal = ({ text }: Mutant) => {
    try {
      return transpiler.transformSync(text) !== original;
    } catch {
      return false;
    }
  };
  return [...edits(tokensOf(source), source)].map((edit) => mutantOf(file, source, edit)).filter(isReal);
}

type Edit = { from: number; to: number; by: string }[];

function* edits(tokens: readonly Token[], source: string): Generator<Edit> {
  for (const [at, { text, start }] of tokens.entries()) {
    const end = start + text.length;
    const [before, after] = [source[start - 1]!, source[end]!];
    const isSpaced = /\s/.test(before) && /\s/.test(after);
    const replacement = Object.hasOwn(replacements, text) ? replacements[text] : undefined;
    const isWord = /^[a-z]/.test(text);
    const isMethod = before === "." && after === "(";
    const isConstant = text === "true" || text === "false";
    if (replacement !== undefined && (isWord ? isConstant || isMethod : isSpaced))
      yield [{ from: start, to: end, by: replacement }];
    else if (/^\d/.test(text)) yield [{ from: start, to: end, by: oneMore(text) }];
    else if (text === "!" && after !== "." && after !== ")") yield [{ from: start, to: end, by: "" }];
    else if (text === "if" && tokens[at + 1]?.text === "(") {
      const condition = bracketed(tokens, at + 1);
      // A condition with an operator is changed there.
      if (condition.some(({ text: each }) => each === "!" || Object.hasOwn(replacements, each))) continue;
      yield [{ from: condition[0]!.start + 1, to: condition[0]!.start + 1, by: "!" }];
    }
  }
}

function oneMore(number: string): string {
  const [digits, suffix] = number.replaceAll("_", "").split(/(?=n)/);
  return `${Number(digits) + 1}${suffix ?? ""}`;
}

/** From the bracket at the index to the one that closes it. */
function bracketed(tokens: readonly Token[], open: number): Token[] {
  let depth = 0;
  const length = tokens.slice(open).findIndex(({ text }) => {
    if (text === "(") depth += 1;
    if (text === ")") depth -= 1;
    return depth === 0;
  });
  return tokens.slice(open, open + length + 1);
}

/** The tokens of the code, also of what stands in `${…}` of a template, without the texts of templates. */
function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  /** For each template around the position, how many brackets are open in its `${…}`. */
  const templates: number[] = [];
  let at = 0;
  const skipTemplate = () => {
    for (; at < source.length; at += 1) {
      if (source[at] === "\\") at += 1;
      else if (source[at] === "`") {
        templates.pop();
        at += 1;
        return;
      } else if (source.startsWith("${", at)) {
        at += 2;
        return;
      }
    }
  };
  while (at < source.length) {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (!match) break;
    const [text] = match;
    at = match.index + text.length;
    if (match.groups!.skipped !== undefined || match.groups!.regex !== undefined) continue;
    if (text === "`") {
      templates.push(0);
      skipTemplate();
    } else if (text === "{" && templates.length > 0) templates[templates.length - 1]! += 1;
    else if (text === "}" && templates.length > 0) {
      if (templates.at(-1) === 0) skipTemplate();
      else templates[templates.length - 1]! -= 1;
    }
    if (text !== "`") tokens.push({ text, start: match.index });
  }
  return tokens;
}

function mutantOf(file: string, source: string, edit: Edit): Mutant {
  let text = source;
  for (const { from, to, by } of [...edit].sort((one, other) => other.from - one.from))
    text = text.slice(0, from) + by + text.slice(to);
  const first = edit[0]!.from;
  const line = source.slice(0, first).split("\n").length;
  const lineOf = (all: string) => all.split("\n")[line - 1]!.trim();
  return { file, line, change: `${lineOf(source)} → ${lineOf(text)}`, text };
}
