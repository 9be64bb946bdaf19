/** What has changed between two texts, as `diff -u` shows it. */

/** Lines that are shown around a change. */
const around = 3;

export interface Line {
  /** In both, in the first alone, in the second alone. */
  mark: " " | "-" | "+";
  text: string;
}

/** The changed lines with some around them; nothing for two equal texts. */
export function unifiedDiff(before: string, after: string, name: string): string[] {
  const lines = compareLines(split(before), split(after));
  const near = (at: number) => lines.slice(Math.max(0, at - around), at + around + 1).some(({ mark }) => mark !== " ");
  const shown: string[] = [];
  let [old, fresh, open] = [1, 1, false];
  for (const [at, { mark, text }] of lines.entries()) {
    if (near(at)) {
      if (!open) shown.push(header(lines.slice(at), old, fresh));
      shown.push(mark + text);
    }
    open = near(at);
    if (mark !== "+") old++;
    if (mark !== "-") fresh++;
  }
  return shown.length === 0 ? [] : [`--- ${before === "" ? "(no file)" : name}`, `+++ ${name}`, ...shown];
}

function header(lines: Line[], old: number, fresh: number): string {
  let [removed, added, quiet] = [0, 0, 0];
  for (const { mark } of lines) {
    quiet = mark === " " ? quiet + 1 : 0;
    if (quiet > 2 * around) break;
    if (mark !== "+") removed++;
    if (mark !== "-") added++;
  }
  const tail = Math.max(0, quiet - around - (quiet > 2 * around ? 1 : 0));
  const range = (start: number, count: number) => `${count === 0 ? start - 1 : start},${count}`;
  return `@@ -${range(old, removed - tail)} +${range(fresh, added - tail)} @@`;
}

const split = (text: string) => (text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/));

/** Beyond so many pairs of lines, what differs is shown as replaced whole. */
const maxPairs = 4_000_000;

/** Every line of both texts, in order. */
export function compareLines(before: readonly string[], after: readonly string[]): Line[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const same = (texts: readonly string[]): Line[] => texts.map((text) => ({ mark: " ", text }));
  return [
    ...same(before.slice(0, start)),
    ...compareMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...same(before.slice(before.length - end)),
  ];
}

/** By the longest common subsequence. */
function compareMiddle(before: readonly string[], after: readonly string[]): Line[] {
  const removed = (text: string): Line => ({ mark: "-", text });
  const added = (text: string): Line => ({ mark: "+", text });
  if (before.length * after.length > maxPairs) return [...before.map(removed), ...after.map(added)];
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        before[i] === after[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const common = i < before.length && j < after.length && before[i] === after[j];
    if (common) {
      lines.push({ mark: " ", text: before[i]! });
      i++;
      j++;
    } else if (j >= after.length || (i < before.length && lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!))
      lines.push(removed(before[i++]!));
    else lines.push(added(after[j++]!));
  }
  return lines;
}
