/**
 * Every known client. The admin page, `dragoman connect`, the README and the tests with the real tools all use this list,
 * so the documented settings are the tested ones.
 */
import { agents } from "./agents";
import { apps } from "./apps";
import type { Client, ClientSetup, Connection, Snippet } from "./client";
import { copilots } from "./copilot";
import { editors } from "./editors";
import { editSettings } from "./formats";
import { listingAgents } from "./listing-agents";
import { sdks } from "./sdks";
import { setVariables, shellNames, shells } from "./shells";

export type ClientId = keyof typeof clients;

const { aider, ...others } = agents;
const { pi, ...listing } = listingAgents;

/** In the order in which they are shown. */
export const clients = { ...others, ...copilots, ...listing, ...editors, aider, pi, ...apps, ...sdks } satisfies Record<
  string,
  Client
>;

export const clientIds = Object.keys(clients) as ClientId[];

export const isClientId = (text: string): text is ClientId => Object.hasOwn(clients, text);

export const clientOf = (id: ClientId): Client => clients[id];

/** The client's file if it did not exist before. */
export const freshFile = ({ file }: Client, { edits }: ClientSetup): string =>
  file ? editSettings(file.format, "", edits) : "";

/** Everything that a person could copy, one of which is enough: the file, the environment for each shell, code. */
export function snippetsOf(client: Client, place: Connection): Snippet[] {
  const setup = client.setUp(place);
  const { file } = client;
  const variables = Object.keys(setup.variables).length === 0 ? [] : shellNames;
  return [
    ...(file
      ? [{ name: file.locate({ home: "~", env: {}, platform: "linux" }), text: freshFile(client, setup).trimEnd() }]
      : []),
    ...variables.map((shell) => ({ name: shells[shell].name, shell, text: setVariables(setup.variables, shell) })),
    ...setup.programs,
  ];
}
