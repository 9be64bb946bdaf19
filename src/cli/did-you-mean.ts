/** Finds the name that was probably meant. */
import { editDistance } from "../edit-distance";

/** ` Did you mean \`connect\`?`, or nothing if no name is near. @param before What stands before a name when it is typed. */
export function didYouMean(typed: string, names: readonly string[], before = ""): string {
  // A name is meant if at most a third of the letters, rounded up, are wrong, or its rest is missing.
  const [nearest] = [...new Set(names)]
    .map((name) => ({ name, distance: name.startsWith(typed) ? 1 : editDistance(typed.slice(0, 50), name) }))
    .filter(({ name, distance }) => distance <= Math.ceil(Math.max(name.length, typed.length) / 3))
    .sort((one, other) => one.distance - other.distance);
  return nearest ? ` Did you mean \`${before}${nearest.name}\`?` : "";
}
