/** Reports each name once: a fixup that a stream needs in every frame counts as one fixup. */
export function dedupe(tell: (name: string) => void): (name: string) => void {
  const seen = new Set<string>();
  return (name) => {
    if (seen.has(name)) return;
    seen.add(name);
    tell(name);
  };
}
