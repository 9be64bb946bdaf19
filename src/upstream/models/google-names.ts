/**
 * Names of Google's models that no account lists. Google's clients ask for some by themselves: Gemini CLI uses
 * `gemini-2.5-flash` and `gemini-2.5-flash-lite` for its own small requests, whatever model the user chose.
 */
import type { Model } from "./model";

/** Google's lines of models, and the listed ones that stand for each, the first line that has one. */
const lines: readonly { asked: RegExp; listed: readonly RegExp[] }[] = [
  { asked: /^gemini-(?:[\d.]+-)?flash-lite\b/, listed: [/^gemini-.*flash-lite/, /^gemini-.*flash/] },
  { asked: /^gemini-(?:[\d.]+-)?flash\b/, listed: [/^gemini-.*flash(?!-lite)/] },
  { asked: /^gemini-(?:[\d.]+-)?pro\b/, listed: [/^gemini-.*pro/] },
];

/**
 * The listed model that stands for Google's name, as an alias: the newest of the same line. Empty if the name is none of
 * Google's, or no such model is listed.
 */
export function googleAliases(name: string, models: readonly Model[]): Record<string, string> {
  const id = newest(name, models);
  return id === undefined ? {} : { [name]: id };
}

function newest(name: string, models: readonly Model[]): string | undefined {
  const listed = models.filter(({ enabled, dialects }) => enabled && dialects.length > 0).map(({ id }) => id);
  for (const pattern of lines.find(({ asked }) => asked.test(name))?.listed ?? []) {
    const [first] = listed.filter((id) => pattern.test(id)).sort((one, other) => versionOf(other) - versionOf(one));
    if (first !== undefined) return first;
  }
}

const versionOf = (id: string): number => Number(/\d+(?:\.\d+)?/.exec(id)?.[0] ?? 0);
