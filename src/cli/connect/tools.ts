/** The tools that are connected to a server, and the client key of each. */
import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import type { Path } from "../../clients/edit";
import { type ClientFile, type ClientId, clientIds, clientOf, filesOf } from "../../clients/index";
import { HalfDone } from "../../clients/settings-file/all-or-none";
import { type SettingsFile, type Written, writeSettings } from "../../clients/settings-file/write";
import { clientStatus } from "../../clients/status";
import { type Environment, homeFolder } from "../../config/environment";
import { asProxyError } from "../../lib/errors";
import type { KeyStore } from "../key-store";
import { say, shortened } from "../terminal";

/** Whose settings are read and written. */
export const person = () => ({ home: homeFolder(), env: process.env });

export interface ConnectedTool {
  id: ClientId;
  name: string;
  file: string;
  /** The keys that it sends, and where they are in its settings; undefined if it keeps its key elsewhere. */
  keys?: { at: Path; value: string }[];
}

/** The tools whose settings lead to this address. */
export const connectedTools = (url: string): ConnectedTool[] =>
  clientIds.flatMap((id) => {
    const { state, file, keys } = clientStatus(id, { ...person(), url });
    if ((state !== "here" && state !== "overridden") || file === undefined) return [];
    return [{ id, name: clientOf(id).name, file, keys }];
  });

/** Whether the keys in a tool's settings are all accepted; undefined if they are not known. */
export async function takesKeysOf(
  { keys }: Pick<ConnectedTool, "keys">,
  { accepts }: Pick<KeyStore, "accepts">,
): Promise<boolean | undefined> {
  const unknown = keys === undefined && !(await accepts(undefined));
  if (unknown) return undefined;
  for (const { value } of keys ?? []) if (!(await accepts(value))) return false;
  return true;
}

/** Creates a key named after a tool: `claude-code`, or `claude-code-2` if there is one of that name. */
export async function createKeyFor(id: ClientId, { create }: KeyStore): Promise<{ name: string; key: string }> {
  for (let count = 1; ; count++) {
    const name = count === 1 ? id : `${id}-${count}`;
    try {
      return { name, key: await create({ name }) };
    } catch (thrown) {
      if (asProxyError(thrown).details.code !== "key_exists") throw thrown;
    }
  }
}

/** @throws what `work` throws, after the new key is revoked again, unless a file has it now */
export async function orRevoke<T>(
  name: string | undefined,
  { revoke, changer }: KeyStore,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (name === undefined) throw thrown;
    const remedy = `${changer("rm", name)} removes it.`;
    if (thrown instanceof HalfDone) say(`The client key \`${name}\` was created and stays valid. ${remedy}`);
    else await revoke(name).catch(() => say(`The client key \`${name}\` was created and is in no file. ${remedy}`));
    throw thrown;
  }
}

/** Gives a connected tool a key of its own, and changes nothing else in its settings. @returns The key's name. */
export async function giveKey(tool: ConnectedTool, store: KeyStore, environment: Environment): Promise<string> {
  const { name, key } = await createKeyFor(tool.id, store);
  const edits = (tool.keys ?? []).map(({ at }) => ({ path: at, value: key }));
  await orRevoke(name, store, async () => {
    const files = filesOf(tool.id, edits, person()).filter((file) => file.edits.length > 0);
    const written = await writeSettings(
      files.map(({ edits: only, ...file }) => [placeOf(tool.id, file, environment), { only }] as const),
    );
    for (const each of written) sayWhoMayRead(each);
  });
  return name;
}

export const placeOf = (
  client: ClientId,
  file: Omit<ClientFile, "edits">,
  { home }: Pick<Environment, "home">,
): SettingsFile => ({ ...file, undoneBy: `dragoman connect ${client} --undo`, home, warn: say });

/** Warns of a file that contains a key where others can read it, or where git would commit it. */
export function sayWhoMayRead({ file, open }: Written): void {
  const name = shortened(file);
  if (open)
    say(
      `Others on this machine can read ${name}, and it contains the client key now. Run: chmod 600 ${JSON.stringify(file)}`,
    );
  if (isTakenByGit(file))
    say(`git would commit ${name}, and it contains the client key now. Keep the key out of what you push.`);
}

/** Whether a file lies in a work tree of git that does not ignore it. */
function isTakenByGit(file: string): boolean {
  if (!Bun.which("git", { PATH: process.env.PATH ?? "" })) return false;
  const real = realpathSync(file);
  const command = ["git", "-C", dirname(real), "check-ignore", "--quiet", "--", real];
  // 1 where no rule ignores it, 128 outside of a work tree.
  return Bun.spawnSync(command, { env: process.env, timeout: 2000 }).exitCode === 1;
}
