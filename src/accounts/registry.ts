/** The saved accounts: one private file each, `accounts/<host>/<login>.json`, so that removing one is one unlink. */
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { checkEnterpriseHost } from "../config/environment";
import { ensurePrivateFolder, readPrivate, removeLeftovers, writePrivate } from "../config/files";
import { asProxyError, codeOf, ProxyError } from "../errors";
import type { Logger } from "../logger";

const savedAccount = z.object({
  /** GitHub's own rule, and the underscore of managed users; nothing in it can leave the folder. */
  login: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,38}$/),
  /** `github.com`, or a tenant's domain. */
  host: z.string().transform((host) => checkEnterpriseHost("host", host)),
  /** The sign-in app it came from: a known name or a client id. */
  app: z.string().min(1).max(100),
  mode: z.enum(["exchange", "direct"]),
  githubToken: z
    .string()
    .trim()
    .regex(/^[!-~]{4,1024}$/),
  /** ms timestamp; the order of registration. */
  addedAt: z.number(),
});

export type SavedAccount = z.infer<typeof savedAccount>;

export interface Registry {
  /** In the order of registration. Cheap, and reads the files each time; a broken one is skipped with one warning. */
  load(): SavedAccount[];
  /** Saves the account. The same person again keeps the place in the order and gets the new token: `replaced`. */
  add(account: SavedAccount): "added" | "replaced";
  /**
   * Finds by 1-based index as `load` orders them, else by username. A number is an index as long as there is such an
   * index, even where somebody is called so: `namesake` is that other account then, to be mentioned.
   * @throws ProxyError `not_found`, or `invalid_request` when several hosts know the name
   */
  find(indexOrUsername: string): { found: SavedAccount; namesake?: SavedAccount };
  /** Removes what {@link find} finds. @throws as it does */
  remove(indexOrUsername: string): { removed: SavedAccount; namesake?: SavedAccount };
  /** Changes when a saved account may have changed; cheap, and reads no file. */
  stamp(): string;
}

/**
 * @param folder Made when the first account is added.
 * @param tighten Whether reading a file that others could read makes it private.
 */
export function openRegistry(folder: string, logger: Logger, { tighten = true } = {}): Registry {
  const warned = new Set<string>();

  const load = () =>
    folders(folder)
      .flatMap((host) => files(join(folder, host)).map((file) => read(host, file)))
      .filter((account) => account !== undefined)
      .sort((a, b) => a.addedAt - b.addedAt || (a.login < b.login ? -1 : 1));

  function read(host: string, file: string): SavedAccount | undefined {
    const path = join(folder, host, file);
    try {
      const account = savedAccount.parse(JSON.parse(readPrivate(path, 64 * 1024, { tighten }) ?? ""));
      if (pathOf(account) !== path)
        throw new ProxyError("invalid_request", "It names another account than its file name.");
      return account;
    } catch (thrown) {
      if (!warned.has(path)) logger.warn(`The saved account ${path} does not read and is left out: ${faultOf(thrown)}`);
      warned.add(path);
      return undefined;
    }
  }

  function find(which: string): { found: SavedAccount; namesake?: SavedAccount } {
    const accounts = load();
    const named = accounts.filter(({ login }) => login.toLowerCase() === which.toLowerCase());
    const byIndex = /^\d{1,6}$/.test(which) ? accounts[Number(which) - 1] : undefined;
    if (!byIndex && named.length > 1)
      throw new ProxyError(
        "invalid_request",
        `Accounts on ${named.length} hosts are called ${which}; remove one by its index.`,
      );
    const found = byIndex ?? named[0];
    if (!found)
      throw new ProxyError("not_found", `There is no account ${which.slice(0, 60)}; \`dragoman auth ls\` shows them.`);
    return { found, namesake: byIndex && named.find((account) => account !== byIndex) };
  }

  // GitHub logins differ by more than case, and some disks do not tell the cases apart.
  const pathOf = ({ host, login }: SavedAccount) => join(folder, host, `${login.toLowerCase()}.json`);

  return {
    load,
    add(given) {
      const account = check(given);
      const path = pathOf(account);
      const before = load().find((other) => pathOf(other) === path);
      const warn = (sentence: string) => logger.warn(sentence);
      for (const needed of [folder, join(folder, account.host)]) ensurePrivateFolder(needed, warn);
      removeLeftovers(join(folder, account.host));
      const kept = { ...account, addedAt: before?.addedAt ?? account.addedAt };
      attempt("saved", () => writePrivate(path, `${JSON.stringify(kept, null, 2)}\n`));
      return before ? "replaced" : "added";
    },
    find,
    remove(which) {
      const { found, namesake } = find(which);
      attempt("removed", () => rmSync(pathOf(found)));
      return { removed: found, namesake };
    },
    stamp: () =>
      folders(folder)
        .flatMap((host) => files(join(folder, host)).map((file) => stampOf(join(folder, host, file))))
        .join("\n"),
  };
}

/** A saved file is always a new one: `writePrivate` never writes into the old. */
function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return `${path} ${stats?.ino} ${stats?.mtimeMs} ${stats?.size}`;
}

function check(given: SavedAccount): SavedAccount {
  const read = savedAccount.safeParse(given);
  if (read.success) return read.data;
  throw new ProxyError("invalid_request", `The account cannot be saved: ${faultOf(read.error)}`);
}

function attempt(done: string, work: () => void): void {
  try {
    work();
  } catch (cause) {
    const code = codeOf(cause) && ` (${codeOf(cause)})`;
    throw new ProxyError("internal", `The account could not be ${done}${code}: is the data folder writable?`, {
      cause,
    });
  }
}

/** Names the field at fault, never its value. */
function faultOf(thrown: unknown): string {
  if (thrown instanceof z.ZodError) return `its ${thrown.issues[0]?.path.join(".") || "text"} is not valid.`;
  if (thrown instanceof SyntaxError) return "it is not JSON.";
  return asProxyError(thrown).message;
}

const folders = (path: string) =>
  entries(path)
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
const files = (path: string) =>
  entries(path)
    .map(({ name }) => name)
    .filter((name) => name.endsWith(".json"));

function entries(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (cause) {
    const code = codeOf(cause);
    if (code === "ENOENT" || code === "ENOTDIR") return []; // nobody has signed in yet
    throw new ProxyError("internal", `The folder ${path} cannot be read (${code}).`, { cause });
  }
}
