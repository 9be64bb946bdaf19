/**
 * Names of Google's models that no account lists. Google's clients ask for some by themselves: Gemini CLI uses
 * `gemini-2.5-flash` and `gemini-2.5-flash-lite` for its own small requests, whatever model the user chose.
 */
import type { Model } from "./model";

type Fits = (model: Model) => boolean;

const named =
  (names: RegExp): Fits =>
  ({ id }) =>
    names.test(id);
/** From Gemini 4 on, models are named after stones and elements: only what they cost tells the small ones. */
const small: Fits = ({ light }) => light;

/** Google's lines of models, and what stands for each: the first of these that is listed. */
const lines: readonly { asked: RegExp; listed: readonly Fits[] }[] = [
  { asked: /^gemini-(?:[\d.]+-)?flash-lite\b/, listed: [named(/flash-lite/), named(/flash/), small] },
  { asked: /^gemini-(?:[\d.]+-)?flash\b/, listed: [named(/flash(?!-lite)/), small] },
  { asked: /^gemini-(?:[\d.]+-)?pro\b/, listed: [(model) => !small(model) && !/flash/.test(model.id)] },
];

/**
 * The listed model that stands for Google's name, as an alias: the newest of the same line, and among these the one with the
 * lowest price. Empty if the name is none of
 * Google's, or no such model is listed.
 */
export function googleAliases(name: string, models: readonly Model[]): Record<string, string> {
  const id = newest(name, models);
  return id === undefined ? {} : { [name]: id };
}

function newest(name: string, models: readonly Model[]): string | undefined {
  const { listed = [] } = lines.find(({ asked }) => asked.test(name)) ?? {};
  const offered = models.filter(
    ({ id, enabled, dialects }) => id.startsWith("gemini-") && enabled && dialects.length > 0,
  );
  for (const fits of listed) {
    const [first] = offered.filter(fits).sort(newestFirst);
    if (first !== undefined) return first.id;
  }
}

const newestFirst = (one: Model, other: Model): number =>
  versionOf(other.id) - versionOf(one.id) || priceOf(one) - priceOf(other);

const priceOf = ({ price: { tokens } }: Model): number =>
  tokens ? tokens.input / tokens.per : Number.POSITIVE_INFINITY;

const versionOf = (id: string): number => Number(/\d+(?:\.\d+)?/.exec(id)?.[0] ?? 0);
