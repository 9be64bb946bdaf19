/** README's generated passages: each stands between `<!-- name -->` and `<!-- /name -->`. Run directly, rewrites them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { adminRoutes } from "../../src/admin/api/routes";
import { routes } from "../../src/api/routes";
import { commandLine } from "../../src/cli/commands";
import { variables } from "../../src/config/environment";
import { configSchema } from "../../src/config/schema";
import { passage as clientsPassage } from "../clients/clients";
import { fidelityTable } from "./fidelity";

export const readmePath = join(import.meta.dir, "../../README.md");
const editorExample = join(import.meta.dir, "../ship/editor.mjs");

const table = (head: string[], rows: string[][]) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.map(cellText).join(" | ")} |`).join("\n");
const cellText = (cell: string) => cell.replaceAll("|", "\\|");
const code = (text: string) => `\`${text}\``;

export const passages: Record<string, () => string> = {
  clients: clientsPassage,
  fidelity: fidelityTable,
  editor: () => `\`\`\`js\n${readFileSync(editorExample, "utf8")}\`\`\``,
  endpoints: () =>
    table(
      ["endpoint", "what it gives"],
      [...routes, ...adminRoutes].map(({ method, path, about }) => [code(`${method} ${path}`), about]),
    ),
  commands: () =>
    table(
      ["command", "what it does"],
      commandLine([], "").commands.flatMap(({ rawName, description, options }) => [
        [code(`dragoman ${rawName}`), `${description}.`],
        ...options.map((option) => [`· ${code(option.rawName)}`, `${option.description}${defaultOf(option)}.`]),
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
    table(["key", "default", "meaning"], configRows("", z.toJSONSchema(configSchema, { io: "input" }) as Schema)),
};

const defaultOf = ({ config }: { config: { default?: unknown } }) =>
  config.default === undefined ? "" : ` (${code(String(config.default))} unless told)`;

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
  `${description}${restart ? " Edited in the file, it counts from the next start." : ""}`,
];

/** The text with each passage as the code says it now. */
export function refresh(text: string): string {
  let fresh = text;
  for (const [name, write] of Object.entries(passages))
    fresh = fresh.replace(
      new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`),
      (_, open: string, close: string) => `${open}${write()}\n${close}`,
    );
  return fresh;
}

if (import.meta.main) {
  const file = Bun.file(readmePath);
  await Bun.write(file, refresh(await file.text()));
}
