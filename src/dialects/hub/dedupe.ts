/** Tells each name the first time only: a mend that a stream needs in every frame is one mend. */
export function dedupe(tell: (name: string) => void): (name: string) => void {
  const told = new Set<string>();
  return (name) => {
    if (told.has(name)) return;
    told.add(name);
    tell(name);
  };
}
