/**
 * What works with which client, by the last runs of `bun run test:clients`, which writes works-with.json. The table in
 * src/clients/README.md and the line in README.md are made of it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { clientOf, isClientId } from "../../src/clients/index";

/** What is tried, and how a person reads it. The columns of the table. */
export const features = {
  claude: "Claude",
  gpt: "GPT",
  gemini: "Gemini",
  parallel: "parallel tools",
  search: "web search",
  tool_search: "tool search",
  model_list: "model list",
  compaction: "compaction",
  auto_mode: "auto mode",
  auto: "`auto`",
  key: "client key",
  undo: "undo",
  told: "limits shown",
} as const;
export type Feature = keyof typeof features;

const file = join(import.meta.dir, "works-with.json");
const shape = z.record(
  z.string(),
  z.object({
    version: z.string(),
    /** `2026-11-23` */
    date: z.string(),
    features: z.partialRecord(z.enum(Object.keys(features) as [Feature, ...Feature[]]), z.boolean()),
  }),
);
export type WorksWith = z.infer<typeof shape>;

export const readWorksWith = (): WorksWith => shape.parse(JSON.parse(readFileSync(file, "utf8")));

/** Collects what one run shows. Of several tries of one feature all have to succeed. */
export class Collected {
  readonly #found: WorksWith = {};

  constructor(readonly date: string) {}

  add(id: string, version: string, feature: Feature, isOk: boolean): void {
    this.#found[id] ??= { version, date: this.date, features: {} };
    const { features: own } = this.#found[id];
    own[feature] = (own[feature] ?? true) && isOk;
  }

  /** Writes the clients of this run, and keeps the others. @returns What differs from before, as sentences. */
  write(): string[] {
    const before = readWorksWith();
    const after = Object.fromEntries(Object.entries({ ...before, ...this.#found }).sort());
    writeFileSync(file, `${JSON.stringify(after, null, 2)}\n`);
    return Object.entries(this.#found).flatMap(([id, { version, features: now }]) =>
      Object.entries(now)
        .filter(([feature, isOk]) => (before[id]?.features[feature as Feature] ?? isOk) !== isOk)
        .map(
          ([feature, isOk]) =>
            `${nameOf(id)} ${version}: ${features[feature as Feature]} ${isOk ? "works now" : "does not work any more"}`,
        ),
    );
  }
}

const nameOf = (id: string) => (isClientId(id) ? clientOf(id).name : id);

/** The table for src/clients/README.md. A dash stands where nothing was tried. */
export function worksWithTable(): string {
  const columns = Object.entries(features) as [Feature, string][];
  const head = ["client", "version", "tried on", ...columns.map(([, title]) => title)];
  const rows = Object.entries(readWorksWith()).map(([id, { version, date, features: own }]) => [
    nameOf(id),
    version,
    date,
    ...columns.map(([feature]) => (own[feature] === undefined ? "–" : own[feature] ? "yes" : "**no**")),
  ]);
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** One line for README.md. */
export function worksWithLine(): string {
  const all = Object.entries(readWorksWith()).map(([id, { version }]) => `${nameOf(id)} ${version}`);
  return `Tried with the real tools: ${all.join(", ")}. [What works with which](src/clients/README.md#works-with)`;
}
