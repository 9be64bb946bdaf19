/**
 * Every known client. The admin page, `dragoman connect`, the README and the tests with the real tools all use this list,
 * so the documented settings are the tested ones.
 */
import { mcpPath } from "../api-paths";
import { agents } from "./agents";
import { apps } from "./apps";
import { type Client, type ClientSetup, type Connection, noKey, type Snippet } from "./client";
import { copilots } from "./copilot";
import type { Edit } from "./edit";
import { editors } from "./editors";
import { editSettings, type SettingsFormat } from "./formats";
import { listingAgents } from "./listing-agents";
import type { Surroundings } from "./locate";
import { sdks } from "./sdks";
import { setVariables, shellNames, shells } from "./shells";

export type ClientId = keyof typeof clients;

const { aider, ...others } = agents;
const { pi, ...listing } = listingAgents;

/** In the order in which they are shown. */
const clients = { ...others, ...copilots, ...listing, ...editors, aider, pi, ...apps, ...sdks } satisfies Record<
  string,
  Client
>;

export const clientIds = Object.keys(clients) as ClientId[];

export const isClientId = (text: string): text is ClientId => Object.hasOwn(clients, text);

export const clientOf = (id: ClientId): Client => clients[id];

/** @param clientName As in the history: `claude-cli/2.1.330`. */
export function toolOf(clientName: string): { id: ClientId; name: string; version: string } | undefined {
  const id = clientIds.find((each) => clientOf(each).known.test(clientName));
  return id && { id, name: clientOf(id).name, version: /^[^/]*\/([^\s/]+)/.exec(clientName)?.[1] ?? "" };
}

/** One file of a client, and what is written into it. */
export interface ClientFile {
  /** What its backup is called by. */
  id: string;
  format: SettingsFormat;
  path: string;
  edits: readonly Edit[];
  bookkeeping?: NonNullable<Client["file"]>["bookkeeping"];
  choices?: NonNullable<Client["file"]>["choices"];
}

/** The files of a client, its settings file first, each with those of the edits that belong there. */
export function filesOf(id: ClientId, edits: readonly Edit[], around: Surroundings): ClientFile[] {
  const { file } = clientOf(id);
  if (!file) return [];
  const { format, bookkeeping, choices, locate, variables, servers } = file;
  const isIn = (first: string) => (edit: Edit) => edit.path[0] === first;
  const isVariable = variables ? isIn("env") : () => false;
  const isServer = servers ? isIn("mcpServers") : () => false;
  const own = edits.filter((edit) => !isVariable(edit) && !isServer(edit));
  const files: ClientFile[] = [{ id, format, bookkeeping, choices, path: locate(around), edits: own }];
  if (variables) {
    const inside = edits.filter(isVariable).map(({ path: [, ...path], ...edit }) => ({ ...edit, path }));
    files.push({ id: `${id}.env`, format: "env", path: variables(around), edits: inside });
  }
  if (servers) files.push({ id: `${id}.mcp`, format: "json", path: servers(around), edits: edits.filter(isServer) });
  return files;
}

/** The client's files if they did not exist before, by their paths. */
export const freshFiles = (id: ClientId, { edits }: ClientSetup, around: Surroundings): Snippet[] =>
  filesOf(id, edits, around)
    .filter((file) => file.edits.length > 0)
    .map((file) => ({ name: file.path, text: editSettings(file.format, "", file.edits) }));

/** Everything that a person could copy, one of which is enough: the files, the environment for each shell, code; and what lets the client ask by MCP. */
export function snippetsOf(id: ClientId, place: Connection): Snippet[] {
  const { mcp, ...client } = clientOf(id);
  const setup = client.setUp(place);
  const variables = Object.keys(setup.variables).length === 0 ? [] : shellNames;
  const server = mcp && { path: mcp.path, value: mcp.value(place.url + mcpPath, place.key ?? noKey) };
  const shown = (edits: readonly Edit[], what = "") =>
    freshFiles(id, { ...setup, edits }, { home: "~", env: {}, platform: "linux" }).map(({ name, text }) => ({
      name: name + what,
      text: text.trimEnd(),
    }));
  return [
    ...shown(setup.edits),
    ...(server ? shown([server], ", to ask dragoman by MCP as well") : []),
    ...variables.map((shell) => ({ name: shells[shell].name, shell, text: setVariables(setup.variables, shell) })),
    ...setup.programs,
  ];
}
