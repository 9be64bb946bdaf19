/** Texts as an agent reads them, always the same ones: what tests say of token counts must not change with our own files. */

const words =
  "request response stream upstream account model token client server config history error message dialect header session retry limit event frame value path name text tool call reply usage count quota budget cache prompt".split(
    " ",
  );
/** Always the same chance. */
let seed = 11;
const pick = (count: number) => {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
  return Math.floor((seed / 2_147_483_648) * count);
};
const word = () => words[pick(words.length)]!;
const upper = (text: string) => text[0]!.toUpperCase() + text.slice(1);
const kinds = [
  () => `The ${word()} of a ${word()} is sent before the ${word()}, unless the ${word()} has ${word()}s of its own.\n`,
  () => `  const ${word()}${upper(word())} = await ${word()}.${word()}(${word()}, { ${word()}: ${pick(9_000)} });\n`,
  () => `  if (${word()}.${word()} !== undefined && !${word()}.has("${word()}")) return ${word()};\n`,
  () => `{"${word()}":{"${word()}_${word()}":"${word()} ${word()}","${word()}":[${pick(99)},${pick(99_999)}]}}\n`,
  () => `| \`${word()}\` | ${word()} of the ${word()}, ${pick(100)} % | [${word()}](${word()}/${word()}.md) |\n`,
];
/** What an agent reads: each piece mostly of one kind, prose, code, JSON or tables. */
export const pieces = Array.from({ length: 120 }, (_, at) =>
  Array.from({ length: 40 + pick(60) }, () => kinds[pick(4) ? at % kinds.length : pick(kinds.length)]!()).join(""),
);
export const chinese = "代理服务器把一种接口翻译成另一种接口，并记录每一次请求的大小。".repeat(12);
