/**
 * The generated passages of the documents: each stands between `<!-- name -->` and `<!-- /name -->` in one document.
 * `bun run docs` rewrites them all.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { adminEndpoints } from "../../admin/api/plugin";
import { metricRows } from "../../books/observe/metrics";
import { callOf, usageOf } from "../../cli/command";
import { commands } from "../../cli/commands";
import { variables } from "../../config/environment";
import { configSchema } from "../../config/schema";
import { roadColumns, roads } from "../../people/accounts/roads";
import { clientEndpoints } from "../../routes/clients";
import { rowsOfAnswers, rowsOfSteps, rowsOfTroubles } from "./after-table";
import { clientSettings, clientsTable } from "./client-settings";
import { fidelityTable } from "./fidelity";
import { marksSentBack } from "./own-marks";
import { worksWithLine, worksWithTable } from "./works-with";

const root = join(import.meta.dir, "../../..");

/** Every document, by its path from the root. */
export const documents = ["*.md", "{.github,src,test}/**/*.md"]
  .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root, dot: true })])
  .sort();

export const textOfDocument = (document: string) => readFileSync(join(root, document), "utf8");

const example = (name: string) => `\`\`\`js\n${readFileSync(join(import.meta.dir, "..", name), "utf8")}\`\`\``;

const table = (head: string[], rows: string[][]) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.map(cellText).join(" | ")} |`).join("\n");
const cellText = (cell: string) => cell.replaceAll("|", "\\|");
const code = (text: string) => `\`${text}\``;

export const passages: Record<string, () => string> = {
  clients: clientsTable,
  "client-settings": clientSettings,
  "works-with": worksWithTable,
  "works-with-line": worksWithLine,
  fidelity: fidelityTable,
  "own-marks": () =>
    table(
      ["what", "where clients find it", "read again by", "sent back", "made by somebody else, or with another account"],
      marksSentBack.map(({ name, members, reader, sentBack, foreign }) => [
        name,
        members,
        reader.split(", ").map(code).join(", "),
        sentBack,
        foreign,
      ]),
    ),
  "after-answers": () => table(["GitHub Copilot answers", "what follows"], rowsOfAnswers()),
  "after-troubles": () => table(["what came of a try", "what follows"], rowsOfTroubles()),
  "after-steps": () => table(["step", "meaning"], rowsOfSteps()),
  editor: () => example("editor.mjs"),
  events: () => example("events.mjs"),
  endpoints: () => endpointTable(clientEndpoints()),
  "admin-endpoints": () => endpointTable(adminEndpoints()),
  commands: () =>
    table(
      ["command", "what it does"],
      commands.flatMap((command) => [
        [code(`dragoman ${callOf(command)}`), `${command.about}.`],
        ...Object.entries(command.options).map(([name, option]) => [
          `· ${code(usageOf(name, option))}`,
          `${option.about}${option.usual === undefined ? "" : ` (default ${code(option.usual)})`}.`,
        ]),
      ]),
    ),
  environment: () =>
    table(
      ["variable", "also read as", "meaning"],
      Object.values(variables).map(({ names: [name, ...others], description }) => [
        code(name),
        others.map(code).join(", "),
        description,
      ]),
    ),
  config: () =>
    table(["key", "default", "meaning"], configRows("", z.toJSONSchema(configSchema(), { io: "input" }) as Schema)),
  roads: () =>
    table(
      Object.values(roadColumns),
      roads.map(({ how, ...road }) => [road.name, code(how), ...Object.values(road).slice(1)]),
    ),
  metrics: () =>
    table(
      ["metric", "kind", "meaning"],
      metricRows.map(({ name, kind, help }) => [code(name), kind, help]),
    ),
};

const endpointTable = (rows: readonly { method: string; path: string; about: string }[]) =>
  table(
    ["endpoint", "what it does"],
    rows.map(({ method, path, about }) => [code(`${method} ${path}`), about]),
  );

interface Schema {
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  default?: unknown;
  description?: string;
  restart?: boolean;
}

function configRows(prefix: string, { properties = {} }: Schema): string[][] {
  return Object.entries(properties).flatMap(([key, schema]) => {
    const inside = schema.properties ? configRows(`${prefix}${key}.`, schema) : [configRow(prefix + key, schema)];
    const { additionalProperties: each } = schema;
    return typeof each === "object" && each.properties
      ? [...inside, ...configRows(`${prefix}${key}.<name>.`, each)]
      : inside;
  });
}

const configRow = (path: string, { default: unless, description, restart }: Schema) => [
  code(path),
  unless === undefined ? "" : code(JSON.stringify(unless)),
  `${description}${restart ? " If you edit the file, restart to apply it." : ""}`,
];

/** The text with each of its passages as the code has it now. */
export function refresh(text: string): string {
  return text.replace(
    /(<!-- ([\w-]+) -->\n)[\s\S]*?(<!-- \/\2 -->)/g,
    (_, open: string, name: string, close: string) => {
      const write = passages[name];
      if (!write) throw new Error(`No passage is called ${name}.`);
      return `${open}${write()}\n${close}`;
    },
  );
}

if (import.meta.main)
  for (const document of documents) {
    const text = textOfDocument(document);
    const fresh = refresh(text);
    if (fresh !== text) writeFileSync(join(root, document), fresh);
  }
