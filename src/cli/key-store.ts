/** The client keys of the running server, or of the stored config if none is running. */
import type { Environment } from "../config/environment";
import { clientKeysOf, findClientKey, isFromEnvironment } from "../people/keys/client-keys";
import { createdKeySchema, type KeyList, keyList, keyListSchema, servedWithoutKeys } from "../people/keys/key-list";
import { createKey, type NewKey, revokeKey } from "../people/keys/stored-keys";
import { ask, isAccepted, type RunningServer, readAs, send } from "./running-server";
import { withConfig } from "./with-stores";

export interface KeyStore {
  list(): Promise<KeyList>;
  /** @returns The key. */
  create(wanted: NewKey): Promise<string>;
  revoke(name: string): Promise<void>;
  /** Whether a client with this key is served; without one, whether clients need none. */
  accepts(key: string | undefined): Promise<boolean>;
  /** What makes or removes a key here, to begin a sentence with: the commands know the real config of this machine only. */
  changer(how: "add" | "rm", name: string): string;
}

export const keyStoreOf = (environment: Environment, server: RunningServer | undefined): KeyStore =>
  server ? keysOfServer(server) : storedKeys(environment);

const keysOfServer = (server: RunningServer): KeyStore => ({
  list: async () => readAs(keyListSchema, await ask(server, "/api/admin/keys"), server),
  create: async (wanted) => readAs(createdKeySchema, await send(server, "/api/admin/keys", wanted), server).key,
  async revoke(name) {
    await send(server, "/api/admin/keys/:name/revoke", {}, { params: { name } });
  },
  accepts: (key) => isAccepted(server.url, key),
  changer: (how, name) =>
    server.demo || server.isElsewhere ? `The page ${server.url}/admin/keys` : command(how, name),
});

const command = (how: "add" | "rm", name: string) =>
  how === "add" ? `\`dragoman key add ${name}\`` : `\`dragoman key rm ${name}\``;

function storedKeys(environment: Environment): KeyStore {
  const { clientKey } = environment;
  const read = () =>
    withConfig(environment, async (config, { members }) => {
      const stored = config.current.auth.apiKeys;
      const keys = clientKeysOf(stored, clientKey);
      const servedWithout = servedWithoutKeys({ config, environment, members, openTo: "this machine" });
      const required = keys.length > 0 || members?.needKeys === true;
      return { keys, required, servedWithout, fromEnvironment: isFromEnvironment(stored, clientKey) };
    });
  return {
    async list() {
      const { keys, ...how } = await read();
      return keyList(keys, { now: Date.now(), ...how });
    },
    create: (wanted) => withConfig(environment, (config) => createKey(config, wanted)),
    revoke: (name) => withConfig(environment, (config) => revokeKey(config, name)),
    async accepts(key) {
      const { keys, required } = await read();
      return !required || (key !== undefined && findClientKey([key], keys) !== undefined);
    },
    changer: command,
  };
}
