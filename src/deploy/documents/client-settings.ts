/** What the documents show of each client's settings, and the example models that stand in them. */
import type { Client } from "../../clients/client";
import { type ClientId, clientIds, clientOf, freshFiles } from "../../clients/index";
import { type ClientModel, chooseModels } from "../../clients/models";
import { setVariables } from "../../clients/shells";
import { upstreamPaths } from "../../lib/api-paths";
import { exampleModels } from "../../proxy/upstream/models/known-models";

const example = (
  id: string,
  name: string,
  dialects: (keyof typeof upstreamPaths)[],
  [context, prompt, output]: [number, number, number],
): ClientModel => ({
  id,
  name,
  endpoints: dialects.map((dialect) => upstreamPaths[dialect]),
  premium: true,
  summary: `1 premium request · ${prompt / 1000}K prompt`,
  preview: false,
  light: /-(?:luna|haiku)/.test(id),
  picked: true,
  tools: true,
  vision: true,
  reasoning: true,
  context,
  prompt,
  output,
});

// biome-ignore format: a table
export const models = {
  claude: example(exampleModels.claude, "Claude Sonnet 5.5", ["messages", "chat"], [1_000_000, 872_000, 128_000]),
  gpt: example(exampleModels.gpt, "GPT-6.1 Sol", ["responses"], [400_000, 272_000, 128_000]),
  gemini: example(exampleModels.gemini, "Gemini 4 Argon", ["chat"], [1_000_000, 936_000, 64_000]),
  small: example(exampleModels.small, "GPT-6 Luna", ["responses"], [1_050_000, 922_000, 128_000]),
  opus: example(exampleModels.opus, "Claude Opus 5.5", ["messages"], [1_000_000, 872_000, 128_000]),
  haiku: example(exampleModels.haiku, "Claude Haiku 5.5", ["messages"], [1_000_000, 872_000, 128_000]),
} satisfies Record<string, ClientModel>;

/** The settings of each client, for src/clients/README.md. */
export function clientSettings(): string {
  return clientIds.map((id) => section(id, clientOf(id))).join("\n\n");
}

/** Which command connects each client and which one starts it, for README.md. */
export function clientsTable(): string {
  const place = { url: "http://127.0.0.1:4141", models: chooseModels(Object.values(models))! };
  const all = clientIds.map((id) => ({ id, client: clientOf(id), ...clientOf(id).setUp(place) }));
  const isOwnRow = ({ command, client }: (typeof all)[number]) => command !== undefined || client.file !== undefined;
  const [started, others] = [all.filter(isOwnRow), all.filter((each) => !isOwnRow(each))];
  const rows = started.map(({ id, client, command }) => {
    const connect = client.file ? `dragoman connect ${id} --write` : `dragoman connect ${id}`;
    const before = client.file ? "" : "copy the printed lines; ";
    return `| ${client.name} | \`${connect}\` | ${before}${command ? `\`${command}\`` : client.name} |`;
  });
  const names = others.map(({ client }) => client.name).join(", ");
  const ids = others.map(({ id }) => `\`${id}\``).join(", ");
  const rest = `| ${names} | \`dragoman connect <name>\`: ${ids} | enter the printed settings |`;
  return ["| tool | connect it | then run |", "| --- | --- | --- |", ...rows, rest].join("\n");
}

/** Whose file is shown; the others' would be as long again. */
const shownWhole = new Set<ClientId>(["claude-code", "codex", "opencode"]);

function section(id: ClientId, client: Client): string {
  const choice = chooseModels(Object.values(models))!;
  const setup = client.setUp({ url: "http://127.0.0.1:4141", models: choice });
  const { file } = client;
  const title = `### ${client.name}`;
  const note = setup.note ? [setup.note] : [];
  if (!file) {
    const [program] = setup.programs;
    const lines = setVariables(setup.variables, "bash");
    const printed = program?.name.startsWith("~/") ? [`In \`${program.name}\`:`, block("yaml", program.text)] : [];
    const shown = lines === "" ? block(program?.shell ? "sh" : "text", program!.text) : block("sh", lines);
    return [
      title,
      block("sh", `dragoman connect ${id}    # prints this, with your address and key:`),
      ...(printed.length > 0 ? printed : [shown]),
      ...note,
    ].join("\n\n");
  }
  const commands = [`dragoman connect ${id} --write    # --undo restores the file`, setup.command].join("\n");
  const place = `\`${file.locate({ home: "~", env: {}, platform: "linux" })}\``;
  const files = freshFiles(id, setup, { home: "~", env: {}, platform: "linux" });
  const settings = shownWhole.has(id)
    ? [`In ${place}:`, block(file.format, files[0]!.text)]
    : [`The settings are in ${place}. \`dragoman connect ${id}\` prints them.`];
  const switches = client.switches?.map(({ path, does }) => `- \`${path.at(-1)}\`: ${does}`) ?? [];
  return [title, block("sh", commands), ...settings, ...[switches.join("\n")].filter(Boolean), ...note].join("\n\n");
}

const block = (language: string, text: string) => `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;
