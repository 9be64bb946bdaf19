/** Removes dragoman's settings from a file that was changed after dragoman wrote to it. */

import { isObject } from "../../json";
import { SettingsFault } from "../edit";
import { readSettings, type SettingsFormat } from "../formats";
import { type Ours, type TakenBack, takeBack, type Versions } from "../take-back";
import { mergeTexts } from "./merge";

/**
 * Merges by lines where possible, which keeps every byte; otherwise compares the parsed settings.
 * @param force Compares the parsed settings only, and also removes settings of ours that were changed since.
 * @returns Undefined when the two cannot be told apart.
 */
export function revertEdits(ours: Ours, versions: Versions, force: boolean): TakenBack | undefined {
  const text = force ? undefined : byLines(ours.format, versions);
  return text === undefined ? takeBack(ours, versions, force) : { text };
}

/** @returns Undefined also when theirs would mean something else without ours. */
function byLines(format: SettingsFormat, { before, written, now }: Versions): string | undefined {
  const text = mergeTexts(written, before, now);
  if (text === undefined) return undefined;
  try {
    const said = (each: string) => new Set(leavesOf(readSettings(format, each)));
    const [left, was, is, wrote] = [said(text), said(before), said(now), said(written)];
    const isSound =
      left.isSubsetOf(is.union(was)) &&
      is.difference(wrote).isSubsetOf(left) &&
      left.isDisjointFrom(wrote.difference(was));
    return isSound ? text : undefined;
  } catch (thrown) {
    if (thrown instanceof SettingsFault) return undefined;
    throw thrown;
  }
}

/** Each value with its path; the items of a list have no order. */
function* leavesOf(value: unknown, path = ""): Generator<string> {
  if (isObject(value))
    for (const [name, each] of Object.entries(value)) yield* leavesOf(each, `${path}.${JSON.stringify(name)}`);
  else if (Array.isArray(value)) for (const item of value) yield `${path}[] = ${JSON.stringify(item)}`;
  else yield `${path} = ${JSON.stringify(value)}`;
}
