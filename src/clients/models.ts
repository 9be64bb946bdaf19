/** The models for a set-up: the facts that clients need, and the best choice for each family. */

import { upstreamPaths } from "../lib/api-paths";
import type { ListedPrice } from "../lib/format";

export interface ClientModel {
  id: string;
  name: string;
  /** The upstream's native endpoints. The model can be used in every client dialect. */
  endpoints: readonly string[];
  /** Costs quota. */
  premium: boolean;
  /** Premium requests of one turn; null or missing if the model is billed in another unit, or the price is unknown. */
  units?: number | null;
  /** AI credits per `per` tokens; null or missing if the model is billed in another unit, or the price is unknown. */
  tokens?: ListedPrice["tokens"];
  preview: boolean;
  /** Meant for small tasks. */
  light: boolean;
  /** GitHub's word for what it costs: `low`, `medium`, `high`, `very_high`; undefined if it says none. */
  priceCategory?: string;
  /** Its price and its prompt limit in a few words. */
  summary?: string;
  /** The model picker of GitHub's own editor offers it. */
  picked: boolean;
  tools: boolean;
  vision: boolean;
  reasoning: boolean;
  /** Tokens; undefined if unknown. */
  context?: number;
  prompt?: number;
  output?: number;
}

/** The dialect of a tool. No upstream speaks gemini. */
export type ToolDialect = keyof typeof upstreamPaths | "gemini";

export const serves = ({ endpoints }: ClientModel, dialect: keyof typeof upstreamPaths): boolean =>
  endpoints.includes(upstreamPaths[dialect]);

/** The most faithful dialect of a model: messages keeps Claude's signatures, then responses. */
export const dialectOf = (model: ClientModel): keyof typeof upstreamPaths =>
  serves(model, "messages") ? "messages" : serves(model, "responses") ? "responses" : "chat";

export const withModel = (all: readonly ClientModel[], model: ClientModel): readonly ClientModel[] =>
  all.includes(model) ? all : [...all, model];

export interface Choice {
  /** The newest Claude Sonnet. */
  claude: ClientModel;
  opus: ClientModel;
  haiku: ClientModel;
  /** The newest Claude Fable, or the Opus: not every plan has one. */
  fable: ClientModel;
  /** The newest GPT that is not for small tasks; among equal versions, one that is not dear. */
  gpt: ClientModel;
  /** The newest Gemini, as the GPT. */
  gemini?: ClientModel;
  /** For small tasks such as titles: a model that uses no quota, if there is one. */
  small: ClientModel;
  /** All models that an agent can use, in the upstream's order; those of other providers last. */
  all: readonly ClientModel[];
}

/** The same choice with a short list: only the models that it names. */
export const withoutOthers = (choice: Choice): Choice => {
  const { all: _, ...chosen } = choice;
  const named = new Set<ClientModel | undefined>(Object.values(chosen));
  return { ...choice, all: choice.all.filter((model) => named.has(model)) };
};

/** Whether the id needs no quoting in any file or shell. */
export const isPlain = ({ id }: { id: string }): boolean => /^[\w.:/-]+$/.test(id);

/** @returns Undefined if no model can serve an agent. For a missing family, the next best model is chosen. */
export function chooseModels(offered: readonly ClientModel[]): Choice | undefined {
  const served = offered.filter((model) => model.endpoints.length > 0 && isPlain(model));
  const able = preferred(
    preferred(served, (model) => !isProvided(model)),
    ({ tools }) => tools,
  );
  const shown = preferred(able, ({ picked }) => picked);
  const newest = (pattern: RegExp, endpoint?: string) =>
    shown
      .filter(({ id, endpoints }) => pattern.test(id) && (endpoint === undefined || endpoints.includes(endpoint)))
      .toSorted(newestFirst)[0];
  const claudeOf = (family: string) => newest(new RegExp(`^claude-${family}-[\\d.]+$`), upstreamPaths.messages);
  const gpts = shown.filter((model) => model.id.startsWith("gpt-") && serves(model, "responses"));
  const geminis = shown.filter(({ id }) => id.startsWith("gemini-"));
  const strong = (models: readonly ClientModel[]) =>
    preferred(models, (model) => !model.light).toSorted(newestFirst)[0];
  const gpt = strong(gpts);
  const claude = claudeOf("sonnet") ?? newest(/^claude-/, upstreamPaths.messages);
  const any = claude ?? gpt ?? shown[0];
  if (!any) return undefined;
  const light = (models: readonly ClientModel[]) => models.filter((model) => model.light).toSorted(newestFirst)[0];
  const free = shown.filter(({ premium }) => !premium);
  const opus = claudeOf("opus") ?? claude ?? any;
  const small = light(free) ?? free.toSorted(newestFirst)[0] ?? light(shown) ?? claudeOf("haiku") ?? any;
  return {
    claude: claude ?? any,
    opus,
    haiku: claudeOf("haiku") ?? small,
    fable: claudeOf("fable") ?? opus,
    gpt: gpt ?? any,
    gemini: strong(geminis),
    small,
    all: [...shown, ...served.filter((model) => isProvided(model) && model.picked && !shown.includes(model))],
  };
}

/** A model of another provider, which is chosen by itself only if there are no others; its id begins with the provider's name. */
const isProvided = ({ id }: ClientModel): boolean => id.includes("/");

/** The models with a property, or all models if none has it. */
function preferred(models: readonly ClientModel[], has: (model: ClientModel) => boolean): readonly ClientModel[] {
  const those = models.filter(has);
  return those.length > 0 ? those : models;
}

/** Finished models before previews, then by version, then dear models last, then by price, then the shortest id. */
function newestFirst(a: ClientModel, b: ClientModel): number {
  const [one, other] = [versionOf(a.id), versionOf(b.id)];
  const digits = Array.from(
    { length: Math.max(one.length, other.length) },
    (_, at) => (other[at] ?? 0) - (one[at] ?? 0),
  );
  return (
    Number(a.preview) - Number(b.preview) ||
    digits.find((each) => each !== 0) ||
    dearLast(a) - dearLast(b) ||
    cheaperFirst(a, b) ||
    a.id.length - b.id.length
  );
}

/** GitHub's words for a dear model; the second one was seen in 2026-07. */
const dearWords: readonly (string | undefined)[] = ["high", "very_high"];

const dearLast = ({ priceCategory }: ClientModel) => dearWords.indexOf(priceCategory) + 1;

/** Where both prices are known. */
function cheaperFirst({ tokens: one }: ClientModel, { tokens: other }: ClientModel): number {
  if (!one || !other || one.input === null || other.input === null) return 0;
  return one.input / one.per - other.input / other.per;
}

/** `gpt-5.3-codex` is 5.3; a date is not a version. */
function versionOf(id: string): number[] {
  const undated = id.replace(/-\d{4}-\d{2}-\d{2}$|-\d{8}$/, "");
  return /\d+(?:\.\d+)*/.exec(undated)?.[0].split(".").map(Number) ?? [];
}

const placeholder: ClientModel = {
  id: "MODEL",
  name: "MODEL",
  endpoints: [],
  premium: true,
  preview: false,
  light: false,
  picked: true,
  tools: true,
  vision: false,
  reasoning: false,
};

/** Placeholder if no list is available. */
export const unknownModels: Choice = {
  claude: placeholder,
  opus: placeholder,
  haiku: placeholder,
  fable: placeholder,
  gpt: placeholder,
  small: placeholder,
  all: [placeholder],
};
