/** `dragoman key add`, `ls` and `rm`: through the running server, or in the stored config if none is running. */
import type { Environment } from "../config/environment";
import { asProxyError } from "../lib/errors";
import { ago, utcDay } from "../lib/format";
import { type KeyItem, meaningOfLastKey } from "../people/keys/key-list";
import { newKeySchema } from "../people/keys/stored-keys";
import { type ConnectedTool, connectedTools, giveKey, takesKeysOf } from "./connect/tools";
import { type KeyStore, keyStoreOf } from "./key-store";
import { table } from "./layout";
import type { ListOptions } from "./list-command";
import { besideDemo, serverOf } from "./running-server";
import { atTerminal, confirm, interrupted, mayRemove, print, printJson, say, shortened } from "./terminal";
import { readOptions, UsageError } from "./usage-error";

interface KeyOptions {
  environment: Environment;
}

interface AddOptions extends KeyOptions {
  name: string;
  /** Ids or patterns. */
  models?: string[];
  expires?: string;
  /** Give each connected tool that needs one a key, without asking. */
  yes: boolean;
}

/** Prints the key, and nothing else, on stdout. */
export async function keyAdd({ environment, name, models, expires, yes }: AddOptions): Promise<number> {
  const typed = { name, ...(models && { models }), ...(expires !== undefined && { expires_at: expires }) };
  const wanted = readOptions(newKeySchema, typed, { name: "The name", expires_at: "--expires" });
  const server = serverOf(environment);
  say(...besideDemo(environment, "this changes your real config"));
  const store = keyStoreOf(environment, server);
  const { required, from_environment } = await store.list();
  const key = await store.create(wanted);
  if (!required) say("This is the first key: from now on, every client must send a key.");
  if (from_environment) say("It replaces DRAGOMAN_API_KEY, which is not accepted any more.");
  say("Copy the key now. Only its hash is stored, so it cannot be shown again.");
  print(key);
  const tools = connectedTools(server?.url ?? "http://127.0.0.1:4141");
  const isServed = await serveTools(tools, store, environment, yes);
  if (tools.length === 0) say("Next: `dragoman connect <tool> --write --key <key>` sets a tool up with it.");
  return isServed ? 0 : 1;
}

/**
 * Names the connected tools whose key is not accepted, and gives each one of its own if the person agrees.
 * @returns False if one of them could not get it.
 */
async function serveTools(
  tools: ConnectedTool[],
  store: KeyStore,
  environment: Environment,
  yes: boolean,
): Promise<boolean> {
  const states = await Promise.all(tools.map(async (tool) => ({ tool, taken: await takesKeysOf(tool, store) })));
  const refused = states.filter(({ taken }) => taken === false).map(({ tool }) => tool);
  const unknown = states.filter(({ taken }) => taken === undefined).map(({ tool }) => tool);
  if (unknown.length > 0) say(`Enter a key in ${namesOf(unknown)} yourself: it is not kept in a settings file.`);
  if (refused.length === 0) return true;
  say("", `These connected tools need a key now: ${namesOf(refused)}.`);
  const agreed =
    yes || (atTerminal() && (await confirm("Make a key for each and write it there?", true, interrupted())));
  if (!agreed) {
    say(...refused.map(({ id }) => `\`dragoman connect ${id} --write\` makes one and writes it.`));
    return true;
  }
  let isDone = true;
  for (const tool of refused)
    try {
      const name = await giveKey(tool, store, environment);
      say(`Created the client key \`${name}\` and wrote it to ${shortened(tool.file)}.`);
    } catch (thrown) {
      say(asProxyError(thrown).message);
      isDone = false;
    }
  return isDone;
}

const namesOf = (tools: readonly ConnectedTool[]) => tools.map(({ name }) => name).join(", ");

export async function keyLs({ environment, json }: ListOptions): Promise<number> {
  const list = await keyStoreOf(environment, serverOf(environment)).list();
  say(...besideDemo(environment, "these are the keys of your real config"));
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
  say(...besideDemo(environment, "this changes your real config"));
  const store = keyStoreOf(environment, serverOf(environment));
  const { items, served_without: served } = await store.list();
  const isLast = items.length === 1 && isSameName(items[0]!.name, name);
  const meaning = isLast ? meaningOfLastKey(served) : undefined;
  if (!(await mayRevoke(name, meaning, yes))) return 1;
  await store.revoke(name);
  const isOpen = isLast && served === "anyone";
  say(
    `The client key ${name} was removed. ${isOpen ? "From now on clients need no key." : "Its next request is refused."}`,
  );
  return 0;
}

const isSameName = (one: string | null, other: string) => one?.toLowerCase() === other.toLowerCase();

/** @param meaning What it means that this is the last key. @throws UsageError where nobody can be asked about that. */
async function mayRevoke(name: string, meaning: string | undefined, yes: boolean): Promise<boolean> {
  if (meaning !== undefined && !yes) say(meaning);
  if (meaning !== undefined && !yes && !atTerminal())
    throw new UsageError("This is no terminal, so nobody can be asked. Add --yes to confirm.");
  return mayRemove(`Remove the client key ${name}? What uses it is refused, and it cannot be made again.`, yes);
}

function keyLines(items: readonly KeyItem[]): string[] {
  const rows = items.map(({ name, models, expires_at_ms, expired, last_used_at_ms }) => [
    name ?? "(no name)",
    models?.join(" ") ?? "all",
    expires_at_ms === null ? "never" : `${utcDay(expires_at_ms)}${expired ? " (expired)" : ""}`,
    last_used_at_ms === null ? "unknown" : ago(last_used_at_ms, Date.now()),
  ]);
  return table([["name", "models", "expires", "last used"], ...rows]);
}
