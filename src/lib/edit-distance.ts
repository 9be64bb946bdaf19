/** How alike two names are, and which one was probably meant. */

/** How many letters have to be added, removed or replaced to get from one text to the other (Levenshtein), one row at a time. */
export function editDistance(a: string, b: string): number {
  const row = new Uint16Array(b.length + 1).map((_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    let diagonal = i - 1;
    row[0] = i;
    for (let j = 1; j <= b.length; j++) {
      const replaced = diagonal + (a.charCodeAt(i - 1) === b.charCodeAt(j - 1) ? 0 : 1);
      diagonal = row[j]!;
      row[j] = Math.min(diagonal + 1, row[j - 1]! + 1, replaced);
    }
  }
  return row[b.length]!;
}

/** A name is meant if at most a third of the letters, rounded up, are wrong, or its rest is missing. */
export function nearestName(typed: string, names: readonly string[]): string | undefined {
  const [nearest] = [...new Set(names)]
    .map((name) => ({ name, distance: name.startsWith(typed) ? 1 : editDistance(typed.slice(0, 50), name) }))
    .filter(({ name, distance }) => distance <= Math.ceil(Math.max(name.length, typed.length) / 3))
    .sort((one, other) => one.distance - other.distance);
  return nearest?.name;
}
