/** A short code in letters that can be read from across the desk. */

/** Each letter, and its five rows of five dots as digits of base 32. */
const font = new Map(
  "Aehvhh Buhuhu Cfgggf Duhhhu Evgugv Fvgugg Gfgjhf Hhhvhh Iv444v J711he Khisih Lggggv Mhrlhh Nhpljh Oehhhe Puhugg Qehlid Ruhuih Sfge1u Tv4444 Uhhhhe Vhhaa4 Whhlrh Xha4ah Yha444 Zv248v 0ejlpe 14c44e 2u1egv 3u1e1u 4iiv22 5vgu1u 6eguhe 7v1244 8ehehe 9ehf1e -00e00"
    .split(" ")
    .map((entry) => [entry[0]!, [...entry.slice(1)].map((row) => Number.parseInt(row, 32))] as const),
);

/** Three lines, two rows of dots in each; undefined when there is a letter we cannot draw, or no room. */
export function large(text: string, columns: number): string[] | undefined {
  const letters = [...text.toUpperCase()].map((letter) => font.get(letter));
  if (letters.length * 6 > columns || !letters.every((rows) => rows !== undefined)) return undefined;
  return [0, 2, 4].map((row) => letters.map((rows) => strip(rows[row]!, rows[row + 1] ?? 0)).join(" "));
}

const strip = (upper: number, lower: number) =>
  [16, 8, 4, 2, 1].map((dot) => " ▀▄█"[(upper & dot ? 1 : 0) + (lower & dot ? 2 : 0)]).join("");
