/** Names what was probably meant. */
import { nearestName } from "../lib/edit-distance";

/** ` Did you mean \`connect\`?`, or nothing if no name is near. @param before What stands before a name when it is typed. */
export function didYouMean(typed: string, names: readonly string[], before = ""): string {
  const nearest = nearestName(typed, names);
  return nearest === undefined ? "" : ` Did you mean \`${before}${nearest}\`?`;
}
