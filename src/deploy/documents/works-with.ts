/**
 * What works with which client, by the last runs of `bun run test:clients`, which writes works-with.json. The table in
 * src/clients/README.md and the line in README.md are made of it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { clientOf, isClientId } from "../../clients/index";

/** What is tried, and how a person reads it. The columns of the table. */
const features = {
  claude: "Claude",
  gpt: "GPT",
  gemini: "Gemini",
  thinking: "thinking",
  images: "images",
  parallel: "parallel tools",
  search: "web search",
  tool_search: "tool search",
  model_list: "model list",
  compaction: "compaction",
  auto_mode: "auto mode",
  resume: "resume",
  cancel: "cancel",
  auto: "`auto`",
  key: "client key",
  undo: "undo",
  told: "limits shown",
} as const;
export type Feature = keyof typeof features;

const families = { claude: "Claude", gpt: "GPT", gemini: "Gemini" } as const;
export type Family = keyof typeof families;
/** Whether it works, or the models with which it does not. */
const found = z.union([z.boolean(), z.array(z.enum(Object.keys(families) as [Family, ...Family[]]))]);
type Found = z.infer<typeof found>;

const file = join(import.meta.dir, "works-with.json");
const shape = z.record(
  z.string(),
  z.object({
    version: z.string(),
    /** `2026-11-23` */
    date: z.string(),
    features: z.partialRecord(z.enum(Object.keys(features) as [Feature, ...Feature[]]), found),
  }),
);
type WorksWith = z.infer<typeof shape>;

const readWorksWith = (): WorksWith => shape.parse(JSON.parse(readFileSync(file, "utf8")));

/** Collects what one run shows. Of several tries of one feature all have to succeed. */
export class Collected {
  readonly #found: WorksWith = {};
  readonly #before = readWorksWith();

  constructor(readonly date: string) {}

  /** @param family If it was tried with each: of those with which it fails. */
  add(id: string, version: string, feature: Feature, isOk: boolean, family?: Family): void {
    this.#found[id] ??= { version, date: this.date, features: {} };
    const { features: own } = this.#found[id];
    const before = own[feature] ?? true;
    own[feature] = isOk ? before : family && before !== false ? [...(before === true ? [] : before), family] : false;
  }

  /** Whether the last run has found the same: what a client does not do is no failure of this run. */
  isNew(id: string, feature: Feature, family: Family | undefined): boolean {
    const known = this.#before[id]?.features[feature];
    return !(Array.isArray(known) && family ? known.includes(family) : known === false);
  }

  /** Writes what this run has found, and keeps the rest. @returns What differs from before, as sentences. */
  write(): string[] {
    const before = readWorksWith();
    const now = Object.entries(this.#found).map(([id, run]) => {
      const kept = before[id]?.version === run.version ? before[id].features : {};
      return [id, { ...run, features: { ...kept, ...run.features } }] as const;
    });
    const after = Object.fromEntries(Object.entries({ ...before, ...Object.fromEntries(now) }).sort());
    // Lists stand in one line, as the formatter wants them.
    const text = JSON.stringify(after, null, 2).replace(/\[[^\]]*\]/g, (list) =>
      list.replace(/\s+/g, " ").replace(/^\[ | \]$/g, (end) => end.trim()),
    );
    writeFileSync(file, `${text}\n`);
    return Object.entries(this.#found).flatMap(([id, { version, features: run }]) =>
      (Object.entries(run) as [Feature, Found][])
        .map(([feature, is]) => ({ feature, was: wordOf(before[id]?.features[feature] ?? is), is: wordOf(is) }))
        .filter(({ was, is }) => was !== is)
        .map(({ feature, was, is }) => `${nameOf(id)} ${version}: ${features[feature]} was ${was}, is ${is}`),
    );
  }
}

const wordOf = (is: Found | undefined): string => {
  if (is === undefined) return "–";
  if (is === true) return "yes";
  const failing = is || [];
  return failing.length === 0 || failing.length === Object.keys(families).length
    ? "**no**"
    : `not ${failing.map((family) => families[family]).join(", ")}`;
};

const nameOf = (id: string) => (isClientId(id) ? clientOf(id).name : id);

/** The table for src/clients/README.md. A dash stands where nothing was tried. */
export function worksWithTable(): string {
  const columns = Object.entries(features) as [Feature, string][];
  const head = ["client", "version", "tried on", ...columns.map(([, title]) => title)];
  const rows = Object.entries(readWorksWith()).map(([id, { version, date, features: own }]) => [
    nameOf(id),
    version,
    date,
    ...columns.map(([feature]) => wordOf(own[feature])),
  ]);
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** One line for README.md. */
export function worksWithLine(): string {
  const all = Object.entries(readWorksWith()).map(([id, { version }]) => `${nameOf(id)} ${version}`);
  return `Tried with the real tools: ${all.join(", ")}. [What works with which](src/clients/README.md#works-with)`;
}
