/** Makes a value at the first call and returns the same one later. For values that are costly and that few starts need. */
export function lazy<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
