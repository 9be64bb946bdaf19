/** The models a set-up can name: what clients must know of each, and which one a person most likely wants. */

import { upstreamPaths } from "../api-paths";

export interface ClientModel {
  id: string;
  name: string;
  /** Where the upstream serves it natively; any client's dialect reaches it all the same. */
  endpoints: readonly string[];
  /** Costs quota. */
  premium: boolean;
  /** Premium requests of one turn; null or missing where another unit counts, or none is told. */
  units?: number | null;
  preview: boolean;
  /** The model picker of GitHub's own editor offers it. */
  picked: boolean;
  tools: boolean;
  vision: boolean;
  reasoning: boolean;
  /** Tokens; undefined where unknown. */
  context?: number;
  prompt?: number;
  output?: number;
}

export type ClientDialect = keyof typeof upstreamPaths;

export const serves = ({ endpoints }: ClientModel, dialect: ClientDialect): boolean =>
  endpoints.includes(upstreamPaths[dialect]);

export const withModel = (all: readonly ClientModel[], model: ClientModel): readonly ClientModel[] =>
  all.includes(model) ? all : [...all, model];

export interface Choice {
  /** The newest Claude Sonnet. */
  claude: ClientModel;
  opus: ClientModel;
  haiku: ClientModel;
  /** The newest GPT; of one version the one for code. */
  gpt: ClientModel;
  gemini?: ClientModel;
  /** For titles and the like: it costs no quota where there is such a model. */
  small: ClientModel;
  /** All that an agent can use, as the upstream lists them. */
  all: readonly ClientModel[];
}

/** Whether its id can stand in any file and in any shell as it is. */
export const isPlain = ({ id }: { id: string }): boolean => /^[\w.:/-]+$/.test(id);

/** @returns Undefined when no model can serve an agent. What a family lacks, the next best one stands in for. */
export function chooseModels(offered: readonly ClientModel[]): Choice | undefined {
  const served = offered.filter((model) => model.endpoints.length > 0 && isPlain(model));
  const able = preferred(served, ({ tools }) => tools);
  const shown = preferred(able, ({ picked }) => picked);
  const newest = (pattern: RegExp, endpoint?: string) =>
    shown
      .filter(({ id, endpoints }) => pattern.test(id) && (endpoint === undefined || endpoints.includes(endpoint)))
      .toSorted(newestFirst)[0];
  const claudeOf = (family: string) => newest(new RegExp(`^claude-${family}-[\\d.]+$`), upstreamPaths.messages);
  const gpt = newest(/^gpt-[\d.]+(?:-codex)?$/, upstreamPaths.responses) ?? newest(/^gpt-/, upstreamPaths.responses);
  const claude = claudeOf("sonnet") ?? newest(/^claude-/, upstreamPaths.messages);
  const any = claude ?? gpt ?? shown[0];
  if (!any) return undefined;
  const light = (models: readonly ClientModel[]) =>
    models.filter(({ id }) => /mini|flash|haiku|nano/.test(id)).toSorted(newestFirst)[0];
  const free = shown.filter(({ premium }) => !premium);
  const small = light(free) ?? free.toSorted(newestFirst)[0] ?? light(shown) ?? any;
  return {
    claude: claude ?? any,
    opus: claudeOf("opus") ?? claude ?? any,
    haiku: claudeOf("haiku") ?? small,
    gpt: gpt ?? any,
    gemini: newest(/^gemini-/),
    small,
    all: shown,
  };
}

/** Those that have it, or all where none has. */
function preferred(models: readonly ClientModel[], has: (model: ClientModel) => boolean): readonly ClientModel[] {
  const those = models.filter(has);
  return those.length > 0 ? those : models;
}

/** What is finished before what is a preview, then by the numbers in the name, then the one for code. */
function newestFirst(a: ClientModel, b: ClientModel): number {
  const [one, other] = [versionOf(a.id), versionOf(b.id)];
  const digits = Array.from(
    { length: Math.max(one.length, other.length) },
    (_, at) => (other[at] ?? 0) - (one[at] ?? 0),
  );
  return Number(a.preview) - Number(b.preview) || digits.find((each) => each !== 0) || codeFirst(a) - codeFirst(b);
}

const codeFirst = ({ id }: ClientModel) => (id.includes("codex") ? 0 : 1);

/** `gpt-5.3-codex` is 5.3; a date is no version. */
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
  picked: true,
  tools: true,
  vision: false,
  reasoning: false,
};

/** Where no list can be had: a word that a person replaces. */
export const unknownModels: Choice = {
  claude: placeholder,
  opus: placeholder,
  haiku: placeholder,
  gpt: placeholder,
  small: placeholder,
  all: [placeholder],
};
