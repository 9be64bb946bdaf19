/** The saved accounts: one private file each, `accounts/<host>/<login>.json`, so that removing one is one unlink. */
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { checkEnterpriseHost } from "../../config/environment";
import { ensurePrivateFolder, readPrivate, removeFile, removeLeftovers, writePrivate } from "../../config/files";
import type { Awaitable } from "../../lib/awaitable";
import { asProxyError, codeOf, ProxyError } from "../../lib/errors";
import { isObject } from "../../lib/json";
import { lazy } from "../../lib/lazy";
import type { Logger } from "../../lib/logger";
import { aboutToken, type Seals } from "../../lib/seals";

/** Also as it is given at start, or by a form. */
export const appInstallation = lazy(() => {
  const number = z.string().regex(/^\d{1,20}$/);
  return z.object({
    id: number,
    /** Of any repository that it may see: with the repository permission, Copilot wants one to be named. */
    repository: number.optional(),
    /** PEM */
    privateKey: z.string().min(1).max(16_384),
  });
});

const savedAccount = lazy(() => {
  const common = {
    /**
     * GitHub's own rule, plus dashes at either end (old logins) and underscores (managed users). No such name can leave the
     * folder. Of an App's installation, the login of the organization.
     */
    login: z.string().regex(/^[A-Za-z0-9_-]{1,39}$/),
    /** `github.com`, or a tenant's domain. */
    host: z.string().transform((host) => checkEnterpriseHost("host", host)),
    /** The sign-in app it came from: a known name or a client id. Of an installation, the App's id or client id. */
    app: z.string().min(1).max(100),
    mode: z.enum(["exchange", "direct"]),
    /** The order of registration: a ms timestamp, or one more than the newest account's if the clock was set back. */
    addedAt: z.number(),
    /** The id of the member whose account it is; missing for the owner's. */
    member: z.string().min(1).max(100).optional(),
  };
  const githubToken = z
    .string()
    .trim()
    .regex(/^[!-~]{4,1024}$/);
  return z.union([
    z.object({ ...common, installation: appInstallation() }),
    /** Of the Copilot CLI that is signed in: a path, or a name on the PATH. Its token stays with it. */
    z.object({ ...common, command: z.string().min(1).max(1024) }),
    z.object({ ...common, githubToken }),
  ]);
});

/** Where a GitHub App is installed, and the key by which it gets tokens for that. */
export type AppInstallation = z.infer<ReturnType<typeof appInstallation>>;
/** A person's, that of a GitHub App in an organization, or what GitHub's own Copilot CLI has. */
export type SavedAccount = z.infer<ReturnType<typeof savedAccount>>;

/** Given at start, and never saved. Its login is not known yet. */
export type TemporaryAccount = { temporary: true } & (
  | { githubToken: string }
  | { app: string; installation: AppInstallation }
);

/** `copilot-cli`: GitHub's own program on this machine is asked for its token. */
export type AccountKind = "person" | "app" | "copilot-cli";

export const kindOf = (account: SavedAccount | TemporaryAccount): AccountKind =>
  "installation" in account ? "app" : "command" in account ? "copilot-cli" : "person";

/** What nobody may see of an account, as one text, which tells its sign-ins apart; of the Copilot CLI, which it is. */
export const secretOf = (account: SavedAccount | TemporaryAccount): string =>
  "installation" in account
    ? JSON.stringify(account.installation)
    : "command" in account
      ? account.command
      : account.githubToken;

/** What {@link secretOf} was made from. @param kind `app` for an installation. */
export const withSecret = (
  secret: string,
  kind: string,
): { githubToken: string } | { installation: AppInstallation } =>
  kind === "app" ? { installation: appInstallation().parse(JSON.parse(secret)) } : { githubToken: secret };

/** What a file has beside the account. */
const choices = lazy(() => z.object({ paused: z.boolean().default(false), place: z.number().optional() }));
type Choices = z.infer<ReturnType<typeof choices>>;

/** What members have decided about their accounts. What the owner has decided is in the config. */
export interface AccountChoices {
  /** @param key Of an account. */
  isPaused(key: string): boolean;
  /** Accounts with a smaller number are used first; undefined if the member has not said. */
  placeOf(key: string): number | undefined;
  /** @throws ProxyError `not_found` if the member has no such account */
  pause(member: string, key: string, paused: boolean): Promise<void>;
  /** @param keys Of the member's accounts, in the order in which they are to be used; others are left alone. */
  arrange(member: string, keys: readonly string[]): Promise<void>;
}

export interface AccountStore {
  /** Missing where nobody can be a member. A change of theirs shows in `stamp`. */
  readonly choices?: AccountChoices;
  /** In registration order. Reads the files each time, which is cheap; an invalid one is skipped with one warning. */
  load(): SavedAccount[];
  /**
   * Checks that an account of this host can be saved, before a person is asked to approve the sign-in.
   * @throws ProxyError `permission` or `internal` with what is wrong with the folder
   */
  prepare(host: string): Awaitable<void>;
  /** Saves the account as the last one. A saved login keeps its place and gets the new token: `replaced`. */
  add(account: SavedAccount): Awaitable<"added" | "replaced">;
  /**
   * Finds an account by its 1-based index in `load`, else by username or `host/username`. A number that is a valid index is always an index;
   * if a login is that number too, its account is returned as `namesake`.
   * @throws ProxyError `not_found`, or `invalid_request` when several hosts know the name
   */
  find(indexOrUsername: string): { found: SavedAccount; namesake?: SavedAccount };
  /** Removes what {@link find} finds. @throws as it does */
  remove(indexOrUsername: string): Awaitable<{ removed: SavedAccount; namesake?: SavedAccount }>;
  /** Reads what other servers have changed, now. @throws ProxyError `unable` */
  reload?(): Promise<void>;
  /** Changes when a saved account may have changed; cheap, and reads no file. */
  stamp(): string;
  /** Calls back at each change that `stamp` shows. Missing where nobody reports changes, so that `stamp` has to be asked. */
  follow?(changed: () => void): void;
}

/** The accounts in files, which are read and written without waiting. */
export interface LocalAccountStore extends AccountStore {
  prepare(host: string): void;
  add(account: SavedAccount): "added" | "replaced";
  remove(indexOrUsername: string): { removed: SavedAccount; namesake?: SavedAccount };
  /** Removes the accounts of a member. */
  removeOf(member: string): void;
}

interface LocalOptions {
  /** Whether reading a file that others could read makes it private. */
  tighten?: boolean;
  /** Seals the tokens of members; missing where nobody can be one. */
  seals?(): Seals;
}

/** @param folder Made when the first account is added. */
export function openAccountStore(
  folder: string,
  logger: Logger,
  { tighten = true, seals }: LocalOptions = {},
): LocalAccountStore {
  const warned = new Set<string>();
  /** By the keys of accounts, as they were last read. */
  const chosen = new Map<string, Choices>();

  const load = () => inRegistrationOrder(saved());
  const saved = () =>
    folders(folder)
      .flatMap((host) => files(join(folder, host)).map((file) => read(host, file)))
      .filter((account) => account !== undefined);

  function read(host: string, file: string): SavedAccount | undefined {
    const path = join(folder, host, file);
    try {
      const stored = textOf(path);
      const account = savedAccount().parse(opened(stored));
      if (pathOf(account) !== path)
        throw new ProxyError("invalid_request", "It names another account than its file name.");
      chosen.set(accountKeyOf(account), choices().parse(stored));
      return account;
    } catch (thrown) {
      if (!warned.has(path)) logger.warn(`The saved account ${path} is skipped: ${faultOf(thrown)}`);
      warned.add(path);
      return undefined;
    }
  }

  const textOf = (path: string) => JSON.parse(readPrivate(path, 64 * 1024, { tighten }) ?? "");

  /** Also where the token cannot be opened, as long as the seal key is not there. */
  function isOf(member: string, path: string): boolean {
    try {
      return textOf(path).member === member;
    } catch {
      return false; // `read` has said what is wrong with it
    }
  }

  /** The owner's tokens are as readable as the file; those of members need the seal key too. */
  function opened(stored: unknown): unknown {
    if (!isObject(stored) || typeof stored.sealedToken !== "string" || !seals) return stored;
    const about = aboutToken(accountKeyOf(stored as unknown as SavedAccount));
    return { ...stored, githubToken: seals().open(Buffer.from(stored.sealedToken, "base64"), about) };
  }

  function write(account: SavedAccount, { paused, place }: Choices): void {
    const kept = account.member !== undefined && seals ? sealed(account, seals()) : account;
    const text = JSON.stringify({ ...kept, ...(paused && { paused }), place }, null, 2);
    attempt("saved", () => writePrivate(pathOf(account), `${text}\n`));
  }

  const choicesOf = (key: string): Choices => chosen.get(key) ?? { paused: false };

  /** @throws ProxyError `not_found` if the member has no such account */
  function choose(member: string, key: string, choice: Partial<Choices>): void {
    const account = load().find((each) => accountKeyOf(each) === key && each.member === member);
    if (!account) throw accountNotFound(key);
    chosen.set(key, { ...choicesOf(key), ...choice });
    write(account, choicesOf(key));
  }

  const ofMembers: AccountChoices = {
    isPaused: (key) => choicesOf(key).paused,
    placeOf: (key) => choicesOf(key).place,
    pause: async (member, key, paused) => choose(member, key, { paused }),
    async arrange(member, keys) {
      for (const [place, key] of keys.entries()) choose(member, key, { place });
    },
  };

  const find = (which: string) => findAmong(load(), which);
  const pathOf = ({ host, login }: SavedAccount) => join(folder, host, fileOf(login));

  function makeFolders(host: string): void {
    const warn = (sentence: string) => logger.warn(sentence);
    for (const needed of [folder, join(folder, host)]) ensurePrivateFolder(needed, warn);
    removeLeftovers(join(folder, host));
  }

  return {
    load,
    ...(seals && { choices: ofMembers }),
    prepare(host) {
      makeFolders(host);
      // Named like a leftover of `writePrivate`, so that the next sign-in removes it if this process is killed.
      const trial = join(folder, host, `trial.tmp-${process.pid}-0`);
      attempt("saved", () => writePrivate(trial, ""));
      rmSync(trial, { force: true });
    },
    add(given) {
      const account = checkedAccount(given);
      const path = pathOf(account);
      const others = load();
      const before = others.find((other) => pathOf(other) === path);
      if (before && before.member !== account.member) throw belongsToAnother(account);
      makeFolders(account.host);
      // The clock may have been set back since the other accounts were added.
      const next = Math.max(account.addedAt, ...others.map(({ addedAt }) => addedAt + 1));
      const kept = { ...account, addedAt: before?.addedAt ?? next };
      write(kept, before ? choicesOf(accountKeyOf(account)) : { paused: false });
      return before ? "replaced" : "added";
    },
    find,
    remove(which) {
      const { found, namesake } = find(which);
      attempt("removed", () => removeFile(pathOf(found)));
      return { removed: found, namesake };
    },
    removeOf(member) {
      for (const host of folders(folder))
        for (const path of files(join(folder, host)).map((file) => join(folder, host, file)))
          if (isOf(member, path)) attempt("removed", () => removeFile(path));
    },
    stamp: () =>
      folders(folder)
        .map((host) => stampOfFolder(join(folder, host)))
        .join("\n"),
  };
}

/** The error for an account that another member, or the owner, has signed in. */
export const belongsToAnother = ({ login, host }: SavedAccount) =>
  new ProxyError(
    "conflict",
    `The account ${login} at ${host} belongs to somebody else here, and GitHub does not allow a login to be shared. Sign in with an account of your own.`,
    { code: "account_taken" },
  );

/** @param key As a caller gave it. */
export const accountNotFound = (key: string): ProxyError =>
  new ProxyError(
    "not_found",
    `There is no account ${key.slice(0, 100)}; the page Accounts shows those that there are.`,
    {
      code: "account_not_found",
    },
  );

/** Identifies an account for good. The same login on another host is another person. */
export const accountKeyOf = ({ host, login }: Pick<SavedAccount, "host" | "login">): string =>
  `${host}/${login.toLowerCase()}`;

export const inRegistrationOrder = (accounts: SavedAccount[]): SavedAccount[] =>
  accounts.sort((a, b) => a.addedAt - b.addedAt || (a.login < b.login ? -1 : 1));

/** As {@link AccountStore.find}, in accounts in registration order. */
export function findAmong(accounts: SavedAccount[], which: string): { found: SavedAccount; namesake?: SavedAccount } {
  const wanted = which.toLowerCase();
  const named = accounts.filter((account) => [account.login.toLowerCase(), accountKeyOf(account)].includes(wanted));
  const byIndex = /^\d{1,6}$/.test(which) ? accounts[Number(which) - 1] : undefined;
  if (!byIndex && named.length > 1)
    throw new ProxyError(
      "invalid_request",
      `Accounts on ${named.length} hosts are called ${which}; name one with its host: ${named.map(accountKeyOf).join(", ")}.`,
    );
  const found = byIndex ?? named[0];
  if (!found)
    throw new ProxyError("not_found", `There is no account ${which.slice(0, 60)}; \`dragoman auth ls\` shows them.`);
  return { found, namesake: byIndex && named.find((account) => account !== byIndex) };
}

/** Names of devices on Windows, with any extension: `con.json` cannot be created there. */
const device = /^(?:con|prn|aux|nul|com\d|lpt\d)$/;

/** Of a member's account, whose only kind has a token of GitHub's. */
function sealed(account: SavedAccount, seals: Seals): object {
  if (!("githubToken" in account)) return account;
  const { githubToken, ...rest } = account;
  const token = seals.seal(githubToken, aboutToken(accountKeyOf(account)));
  return { ...rest, sealedToken: token.toString("base64") };
}

/** Lower case, as some file systems ignore case and GitHub does too. No login has an `@`. */
function fileOf(login: string): string {
  const name = login.toLowerCase();
  return `${device.test(name) ? "@" : ""}${name}.json`;
}

/** Milliseconds: the coarsest time that a file system notes, and a little more. */
const coarsestTime = 5_000;

/**
 * Each save makes a new file (`writePrivate`), which changes the time of its folder: of thousands of accounts that nobody changes,
 * no file is asked. While that time is young, a second change may not show in it.
 */
function stampOfFolder(folder: string): string {
  const { mtimeMs = 0 } = statSync(folder, { throwIfNoEntry: false }) ?? {};
  const own = `${folder} ${mtimeMs}`;
  if (Math.abs(Date.now() - mtimeMs) > coarsestTime) return own;
  return [own, ...files(folder).map((file) => stampOf(join(folder, file)))].join("\n");
}

function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return `${path} ${stats?.ino} ${stats?.mtimeMs} ${stats?.size}`;
}

/** @throws ProxyError `invalid_request` that names what is wrong, never its value. */
export function checkedAccount(given: SavedAccount): SavedAccount {
  const read = savedAccount().safeParse(given);
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

/** Names the invalid field, never its value. */
function faultOf(thrown: unknown): string {
  if (thrown instanceof z.ZodError) return `its ${thrown.issues[0]?.path.join(".") || "text"} is not valid.`;
  if (thrown instanceof SyntaxError) return "it is not JSON.";
  return asProxyError(thrown).message;
}

/** Follows links: a person may keep the folder elsewhere. */
const folders = (path: string) =>
  entries(path)
    .filter((entry) => entry.isDirectory() || (entry.isSymbolicLink() && isFolder(join(path, entry.name))))
    .map(({ name }) => name);

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // a link that leads nowhere
  }
}

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
