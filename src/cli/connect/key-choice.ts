/** Which client key a tool's settings get. */
import type { ClientSetup } from "../../clients/client";
import { settingAt } from "../../clients/edit";
import type { ClientId } from "../../clients/index";
import { clientStatus, presentSettings } from "../../clients/status";
import { ProxyError } from "../../lib/errors";
import { isObject } from "../../lib/json";
import type { KeyList } from "../../people/keys/key-list";
import type { KeyStore } from "../key-store";
import { acceptedKey, type KnownKey, noAcceptedKey, type RunningServer } from "../running-server";
import { say } from "../terminal";
import { UsageError } from "../usage-error";
import { createKeyFor, person } from "./tools";

export interface KeyChoice {
  /** Undefined if the server needs none. */
  key?: string;
  /** The name of the key, if it was created for this tool. */
  created?: string;
}

/** A key that no text has, to find out where a tool's key is written. */
const mark = "\u0000key";

type SetUp = (key: string) => Pick<ClientSetup, "edits">;

/** Where in its files `connect` writes a tool's key. */
export const keyPlaces = (setUp: SetUp) =>
  setUp(mark).edits.flatMap(({ path, value }) => pathsOf(value).map((inner) => [...path, ...inner]));

/** The keys that a tool's files have where `connect` writes one; undefined if it writes none. */
export function presentKeys(id: ClientId, setUp: SetUp): string[] | undefined {
  const places = keyPlaces(setUp);
  if (places.length === 0) return undefined;
  const settings = presentSettings(id, person());
  const found = places.map((path) => settingAt(settings, path));
  return [...new Set(found.filter((value) => typeof value === "string"))];
}

/** Where the mark is in a value. */
function pathsOf(value: unknown): string[][] {
  if (value === mark) return [[]];
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => pathsOf(inner).map((path) => [name, ...path]));
}

/**
 * The key that was given, the one that the file has if the server accepts it, or a new one named after the tool. A server
 * whose only key is DRAGOMAN_API_KEY keeps it: a new key would replace it, and the other tools would be refused.
 * @param present The keys that the tool's files have; undefined: none is written there.
 * @throws ProxyError if the given key is refused, or if that of the environment is not known here
 * @throws UsageError for a server elsewhere, at which the sign-in of this machine makes no keys
 */
export async function keyToWrite(
  id: ClientId,
  server: RunningServer,
  store: KeyStore,
  given: string | undefined,
  present: readonly string[] | undefined,
): Promise<KeyChoice> {
  if (present === undefined) return keyToPrint(id, server, store, given, false);
  if (given !== undefined) return { key: await acceptedOf(given, server, store) };
  const list = await listed(store);
  if (!(list?.required ?? !(await store.accepts(undefined)))) return {};
  for (const key of present) if (await store.accepts(key)) return { key };
  if (server.isElsewhere) throw new UsageError(`${whereToMake(server)}, and run this again with --key <the key>.`);
  if (list === undefined || list.from_environment) {
    const known = await knownKey(server);
    if (!known) throw noAcceptedKey(server);
    return { key: known.value };
  }
  const { name, key } = await createKeyFor(id, store);
  return { key, created: name };
}

/**
 * The key that was given, or a known one; otherwise a placeholder, with what to do about it.
 * @param canWrite Whether `connect --write` would write a key.
 */
export async function keyToPrint(
  id: ClientId,
  server: RunningServer,
  store: KeyStore,
  given: string | undefined,
  canWrite: boolean,
): Promise<KeyChoice> {
  if (given !== undefined) return { key: await acceptedOf(given, server, store) };
  if (await store.accepts(undefined)) return {};
  if (server.isElsewhere) {
    say(`${whereToMake(server)}, to be used in place of ${keyPlaceholder} below.`, "");
    return { key: keyPlaceholder };
  }
  const known = await knownKey(server);
  if (known) return { key: known.value };
  say(
    "The server asks for a client key, and stores only hashes of its keys.",
    ...(canWrite ? [`\`dragoman connect ${id} --write\` makes one, and writes it.`] : []),
    `${store.changer("add", id)} makes one to be used in place of ${keyPlaceholder} below.`,
    "",
  );
  return { key: keyPlaceholder };
}

/**
 * The key that was given, one that is known here, or the one in the tool's own file; undefined if the server needs none.
 * @throws ProxyError if none of them is accepted
 */
export async function keyToRun(
  id: ClientId,
  server: RunningServer,
  store: KeyStore,
  given: string | undefined,
): Promise<string | undefined> {
  if (given !== undefined) return acceptedOf(given, server, store);
  if (await store.accepts(undefined)) return undefined;
  const known = await knownKey(server);
  if (known) return known.value;
  const { keys = [] } = clientStatus(id, { ...person(), url: server.url });
  for (const { value } of keys) if (await store.accepts(value)) return value;
  throw new ProxyError(
    "authentication",
    `The server asks for a client key, and none is known here: give one with --key. ${store.changer("add", id)} makes one.`,
  );
}

/** A key of the config or the environment that the server accepts. Says so if a restart will replace it. */
async function knownKey(server: RunningServer): Promise<KnownKey | undefined> {
  const known = await acceptedKey(server);
  if (known?.from === "DRAGOMAN_API_KEY" && server.keys.some(({ from }) => from === "config.json"))
    say(
      "The server still accepts the key of DRAGOMAN_API_KEY. The key in config.json takes effect at the next start: restart the server, then run this command again.",
      "",
    );
  return known;
}

/** In place of a key that is not known here. */
export const keyPlaceholder = "YOUR_CLIENT_KEY";

/** A token of an hour makes nothing that lasts. */
const whereToMake = ({ url }: RunningServer) =>
  `This tool needs a key of its own, which the sign-in of this machine may not make. Make one on ${url}/admin/keys`;

async function acceptedOf(given: string, server: RunningServer, store: KeyStore): Promise<string> {
  if (await store.accepts(given)) return given;
  throw new ProxyError("authentication", `The server at ${server.url} does not accept the key of --key.`);
}

/** Undefined if the server wants an admin token that is not set here. */
const listed = (store: KeyStore): Promise<KeyList | undefined> =>
  store.list().catch((thrown) => {
    if (thrown instanceof ProxyError) return undefined;
    throw thrown;
  });
