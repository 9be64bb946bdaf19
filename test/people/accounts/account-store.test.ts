/** Scenario: accounts saved in files of the data folder. */
import { beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { ProxyError } from "../../../src/lib/errors";
import { openAccountStore, type SavedAccount } from "../../../src/people/accounts/account-store";
import { temporaryFolder } from "../../support/temporary-folder";
import { keptLog } from "./bench";

let home: string;
let folder: string;
beforeEach(() => {
  home = temporaryFolder();
  folder = join(home, "accounts");
});

const person = (login: string, addedAt: number, more: Partial<SavedAccount> = {}): SavedAccount => ({
  login,
  host: "github.com",
  app: "vscode",
  mode: "exchange",
  githubToken: `ghu_token_of_${login}_${addedAt}`,
  addedAt,
  ...more,
});

function store() {
  const { logger, lines } = keptLog();
  return { ...openAccountStore(folder, logger), lines };
}

const logins = (accounts: SavedAccount[]) => accounts.map(({ login }) => login);

describe("saved accounts", () => {
  test("a look whether they have changed asks of no file while nobody has changed them, and notices who does", () => {
    const { add, remove, stamp } = store();
    for (const login of ["ada", "bob", "eve"]) add(person(login, 1));
    const long = 3_600;
    const later = () => utimesSync(join(folder, "github.com"), Date.now() / 1000 - long, Date.now() / 1000 - long);
    later();
    const idle = stamp();
    expect(idle.split("\n")).toEqual([expect.stringContaining("github.com")]);
    for (const change of [() => add(person("bob", 2)), () => remove("eve"), () => add(person("mia", 3))]) {
      later();
      const before = stamp();
      change();
      expect(stamp()).not.toBe(before);
    }
  });

  test("no account is saved before the first sign-in", () => {
    const { load, lines } = store();
    expect(load()).toEqual([]);
    expect(lines).toEqual([]);
  });

  test("one private file each, whatever the umask", () => {
    const before = process.umask(0);
    try {
      store().add(person("octo", 1));
    } finally {
      process.umask(before);
    }
    const path = join(folder, "github.com", "octo.json");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    for (const each of [folder, join(folder, "github.com")]) expect(statSync(each).mode & 0o777).toBe(0o700);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(person("octo", 1));
  });

  test("any login that GitHub ever gave can be saved and is found again, also where its name is a device's", () => {
    const { add, load, find } = store();
    const names = ["con", "NUL", "aux", "com1", "con-sole", "-dash", "dash-", "--", "octo_company"];
    for (const [at, name] of names.entries()) add(person(name, at));
    expect(logins(load())).toEqual(names);
    for (const name of names) expect(find(name).found.login).toBe(name);
    const files = readdirSync(join(folder, "github.com"));
    expect(files.filter((file) => /^(?:con|prn|aux|nul|com\d|lpt\d)\./i.test(file))).toEqual([]);
  });

  test.if(process.platform !== "win32")(
    "a host's folder behind a link is found again; one that leads nowhere is no account",
    () => {
      const { add, load, remove, stamp } = store();
      mkdirSync(join(home, "elsewhere"), { mode: 0o700 });
      mkdirSync(folder, { mode: 0o700 });
      symlinkSync(join(home, "elsewhere"), join(folder, "github.com"));
      symlinkSync(join(home, "nowhere"), join(folder, "company.ghe.com"));
      const before = stamp();
      add(person("octo", 1));
      expect(logins(load())).toEqual(["octo"]);
      expect(stamp()).not.toBe(before);
      remove("octo");
      expect(load()).toEqual([]);
      expect(() => store().prepare("company.ghe.com")).toThrow("cannot be");
    },
  );

  test("whether an account can be saved is known beforehand, and nothing is left of the trial", () => {
    store().prepare("github.com");
    expect(readdirSync(join(folder, "github.com"))).toEqual([]);
  });

  test.each([
    ["login", person("../../x", 1)],
    ["login", person("", 1)],
    ["login", person("a/b", 1)],
    ["host", person("octo", 1, { host: "../../etc" })],
    ["host", person("octo", 1, { host: "company.ghe.com/.." })],
    ["githubToken", person("octo", 1, { githubToken: "ghu_1\r\nx-evil: 1" })],
  ])("a %s that could lead elsewhere is not saved", (field, account) => {
    const thrown = (() => {
      try {
        store().add(account);
      } catch (error) {
        return error as ProxyError;
      }
    })();
    expect(thrown).toBeInstanceOf(ProxyError);
    expect(thrown!.message).toContain(field);
    expect(thrown!.message).not.toContain("ghu_");
    expect(readdirSync(home)).toEqual([]);
  });
});

describe("files that went wrong", () => {
  const plant = (name: string, text: string | Uint8Array) => {
    mkdirSync(join(folder, "github.com"), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, "github.com", name), text, { mode: 0o600 });
  };

  test.each<[string, string, string | Uint8Array]>([
    ["an empty file", "octo.json", ""],
    ["half a file", "octo.json", JSON.stringify(person("octo", 1)).slice(0, 40)],
    ["a megabyte", "octo.json", "x".repeat(1024 * 1024)],
    ["bytes that are no text", "octo.json", new Uint8Array([0xff, 0xfe, 0x00, 0xd8])],
    ["another person's content", "octo.json", JSON.stringify(person("work", 1))],
    ["a login that climbs out", "octo.json", JSON.stringify(person("../../x", 1))],
    ["no token", "octo.json", JSON.stringify({ ...person("octo", 1), githubToken: undefined })],
    ["an unknown mode", "octo.json", JSON.stringify({ ...person("octo", 1), mode: "magic" })],
  ])("%s is left out with one warning, and the others serve; it stays where a member leaves", (_, name, text) => {
    plant(name, text);
    const { add, load, lines, removeOf } = store();
    add(person("work", 2));
    expect(logins(load())).toEqual(["work"]);
    expect(logins(load())).toEqual(["work"]);
    const warnings = lines.filter((line) => line.includes("octo.json is skipped:"));
    expect(warnings.length).toBe(1);
    expect(lines.join("")).not.toContain("ghu_");
    removeOf("anna");
    expect(existsSync(join(folder, "github.com", name))).toBe(true);
  });

  test("a folder in the place of a file, and one that leads to itself, are errors that say so", () => {
    const { add, load } = store();
    add(person("work", 2));
    mkdirSync(join(folder, "github.com", "octo.json", "x"), { recursive: true });
    expect(() => add(person("octo", 1))).toThrow(
      "The account could not be saved (EISDIR): is the data folder writable?",
    );
    expect(logins(load())).toEqual(["work"]);
    folder = join(home, "round");
    symlinkSync("round", folder);
    expect(() => store().load()).toThrow(`The folder ${folder} cannot be read (ELOOP).`);
  });

  test("a byte order mark, CRLF and blanks around the token do no harm", () => {
    const text = JSON.stringify({ ...person("octo", 1), githubToken: " ghu_token_of_octo_1\r\n" }, null, 2);
    plant("octo.json", `\ufeff${text.replaceAll("\n", "\r\n")}\r\n`);
    expect(store().load()).toEqual([person("octo", 1)]);
  });

  test("what is not an account's file is not looked at", () => {
    plant("octo.json.tmp-1-ab12", "half");
    plant(".DS_Store", "x");
    writeFileSync(join(folder, "notes.json"), "{}");
    const { load, lines } = store();
    expect(load()).toEqual([]);
    expect(lines).toEqual([]);
  });
});

describe("removing an account", () => {
  test("its token is in no file any more", () => {
    const { add, remove } = store();
    add(person("ada", 1));
    add(person("ada", 2));
    remove("ada");
    expect(readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())).toEqual([]);
  });

  test("a number is an index as long as there is such an index; whoever is called so is mentioned", () => {
    const { add, load, remove } = store();
    add(person("ada", 1));
    add(person("2", 2));
    add(person("1", 3));
    add(person("404", 4));
    const { removed, namesake } = remove("1");
    expect([removed.login, namesake?.login]).toEqual(["ada", "1"]);
    expect(remove("2")).toMatchObject({ removed: { login: "1" }, namesake: { login: "2" } });
    expect(remove("404")).toEqual({ removed: person("404", 4), namesake: undefined });
    expect(logins(load())).toEqual(["2"]);
    expect(remove("1").namesake).toBeUndefined();
  });

  test.each(["7", "0", "-1", "nobody", "../../config"])("%s is nobody: nothing is removed", (which) => {
    const { add, load, remove } = store();
    add(person("ada", 1));
    expect(() => remove(which)).toThrow(`There is no account ${which}; \`dragoman auth ls\` shows them.`);
    expect(load().length).toBe(1);
  });
});
