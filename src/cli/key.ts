/** `dragoman key add`, `ls` and `rm`: through the running server, or in the stored config if none is running. */
import { z } from "zod";
import type { Environment } from "../config/environment";
import { ago, utcDay } from "../format";
import { clientKeysOf } from "../keys/client-keys";
import {
  type KeyItem,
  type KeyList,
  keyList,
  keyListSchema,
  meaningOfLastKey,
  servedWithoutKeys,
} from "../keys/key-list";
import { createKey, type NewKey, newKeySchema, revokeKey } from "../keys/stored-keys";
import { adminHeaders, ask, type RunningServer, readAs, serverOf } from "./running-server";
import { table } from "./table";
import { atTerminal, confirm, interrupted, print, printJson, say } from "./terminal";
import { UsageError } from "./usage-error";
import { withConfig } from "./with-stores";

export interface KeyOptions {
  environment: Environment;
}

interface AddOptions extends KeyOptions {
  name: string;
  /** Ids or patterns, separated by commas. */
  models?: string;
  expires?: string;
}

/** Prints the key, and nothing else, on stdout. */
export async function keyAdd({ environment, name, models, expires }: AddOptions): Promise<number> {
  const wanted = readWanted({
    name,
    ...(models !== undefined && { models: models.split(",").map((model) => model.trim()) }),
    ...(expires !== undefined && { expires_at: expires }),
  });
  const server = serverOf(environment);
  const before = server ? await askForKeys(server) : await storedKeys(environment);
  const key = server
    ? await createThere(server, wanted)
    : await withConfig(environment, (config) => createKey(config, wanted));
  if (!before.required) say("This is the first key: from now on, every client must send a key.");
  say("Copy the key now. Only its hash is stored, so it cannot be shown again.");
  print(key);
  return 0;
}

export async function keyLs({ environment, json }: KeyOptions & { json: boolean }): Promise<number> {
  const server = serverOf(environment);
  const list = server ? await askForKeys(server) : await storedKeys(environment);
  if (json) printJson(list);
  else if (list.items.length === 0)
    say(
      list.required
        ? "There are no client keys of the owner, and members have theirs. `dragoman key add NAME` creates one."
        : "There are no client keys: clients need none. `dragoman key add NAME` creates one.",
    );
  else print(...keyLines(list.items));
  return 0;
}

export async function keyRm({ environment, name, yes }: KeyOptions & { name: string; yes: boolean }): Promise<number> {
  const server = serverOf(environment);
  const { items, served_without: served } = server ? await askForKeys(server) : await storedKeys(environment);
  const isLast = items.length === 1 && isSameName(items[0]!.name, name);
  const meaning = isLast ? meaningOfLastKey(served) : undefined;
  if (meaning !== undefined && !yes && !(await agreed(meaning))) {
    say("Nothing was removed.");
    return 1;
  }
  if (server) await post(server, `/api/admin/keys/${encodeURIComponent(name)}/revoke`, {});
  else await withConfig(environment, (config) => revokeKey(config, name));
  const isOpen = isLast && served === "anyone";
  say(
    `The client key ${name} was removed. ${isOpen ? "From now on clients need no key." : "Its next request is refused."}`,
  );
  return 0;
}

const isSameName = (one: string | null, other: string) => one?.toLowerCase() === other.toLowerCase();

/** @throws UsageError where nobody can be asked. */
async function agreed(meaning: string): Promise<boolean> {
  say(meaning);
  if (!atTerminal()) throw new UsageError("Nobody can be asked here. Add --yes to agree in advance.");
  return confirm("Remove it?", false, interrupted());
}

function readWanted(wanted: z.input<typeof newKeySchema>): NewKey {
  const result = newKeySchema.safeParse(wanted);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const option = { name: "The name", models: "--models", expires_at: "--expires" }[String(issue?.path[0])];
  throw new UsageError(`${option ?? "The key"}: ${issue?.message}.`);
}

const createdSchema = z.object({ key: z.string() });

const createThere = async (server: RunningServer, wanted: NewKey) =>
  readAs(createdSchema, await post(server, "/api/admin/keys", wanted), server).key;

const askForKeys = async (server: RunningServer) =>
  readAs(keyListSchema, await ask(server, { path: "/api/admin/keys", headers: adminHeaders(server) }), server);

const post = (server: RunningServer, path: string, body: object) =>
  ask(server, { path, method: "POST", body, headers: adminHeaders(server) });

const storedKeys = (environment: Environment): Promise<KeyList> =>
  withConfig(environment, async (config, { members }) => {
    const keys = clientKeysOf(config.current.auth.apiKeys, environment.clientKey);
    const required = keys.length > 0 || members?.needKeys === true;
    const servedWithout = servedWithoutKeys({ config, environment, members, allowOpen: true });
    return keyList(keys, { now: Date.now(), required, servedWithout });
  });

function keyLines(items: readonly KeyItem[]): string[] {
  const rows = items.map(({ name, models, expires_at_ms, expired, last_used_at_ms }) => [
    name ?? "(no name)",
    models?.join(" ") ?? "all",
    expires_at_ms === null ? "never" : `${utcDay(expires_at_ms)}${expired ? " (expired)" : ""}`,
    last_used_at_ms === null ? "unknown" : ago(last_used_at_ms, Date.now()),
  ]);
  return table([["name", "models", "expires", "last used"], ...rows]);
}
