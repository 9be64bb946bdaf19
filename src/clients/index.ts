/**
 * Every known client. The admin page, `dragoman connect`, the README and the tests with the real tools all use this list,
 * so the documented settings are the tested ones.
 */
import { agents } from "./agents";
import { apps } from "./apps";
import type { Client, ClientSetup, Connection, Snippet } from "./client";
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
  const { format, bookkeeping, choices, locate, second } = file;
  const own = { id, format, bookkeeping, choices, path: locate(around) };
  if (!second) return [{ ...own, edits }];
  const isInside = ({ path }: Edit) => path[0] === second.at;
  const inside = edits.filter(isInside).map(({ path: [, ...path], ...edit }) => ({ ...edit, path }));
  return [
    { ...own, edits: edits.filter((edit) => !isInside(edit)) },
    { id: `${id}.${second.at}`, format: second.format, path: second.locate(around), edits: inside },
  ];
}

/** The client's files if they did not exist before, by their paths. */
export const freshFiles = (id: ClientId, { edits }: ClientSetup, around: Surroundings): Snippet[] =>
  filesOf(id, edits, around)
    .filter((file) => file.edits.length > 0)
    .map((file) => ({ name: file.path, text: editSettings(file.format, "", file.edits) }));

/** Everything that a person could copy, one of which is enough: the files, the environment for each shell, code. */
export function snippetsOf(id: ClientId, place: Connection): Snippet[] {
  const setup = clientOf(id).setUp(place);
  const variables = Object.keys(setup.variables).length === 0 ? [] : shellNames;
  return [
    ...freshFiles(id, setup, { home: "~", env: {}, platform: "linux" }).map(({ name, text }) => ({
      name,
      text: text.trimEnd(),
    })),
    ...variables.map((shell) => ({ name: shells[shell].name, shell, text: setVariables(setup.variables, shell) })),
    ...setup.programs,
  ];
}
