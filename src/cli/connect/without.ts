/** A settings file as others have changed it since we wrote into it, without what is ours. */

import { SettingsFault } from "../../clients/edit";
import { type Format, readSettings } from "../../clients/formats";
import { isObject } from "../../json";
import { mergeTexts } from "./merge";

export interface Versions {
  /** What stood there before us; empty when there was no file. */
  before: string;
  written: string;
  now: string;
}

/** @returns Undefined when the two cannot be told apart, or theirs would mean something else without ours. */
export function withoutOurs(format: Format, { before, written, now }: Versions): string | undefined {
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
