/** Scenario: files of the data folder: private, written whole or not at all, and read with patience. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  ensurePrivateFolder,
  readPrivate,
  removeDataFolder,
  removeLeftovers,
  writePrivate,
} from "../../src/config/files";
import { inHome } from "../../src/config/home-names";
import { temporaryFolder } from "../support/temporary-folder";

const posix = process.platform !== "win32";
const asRoot = posix && process.getuid!() === 0;
const modeOf = (path: string) => statSync(path).mode & 0o777;

const everyName: Record<Parameters<typeof inHome>[1], true> = {
  ...{ accounts: true, budgets: true, config: true, connect: true, demo: true, history: true, keptKeys: true },
  ...{ logins: true, notices: true, running: true, serviceLog: true, serviceVariables: true },
  ...{ members: true, sealKey: true, updateCheck: true, waiting: true, demoTeam: true },
};

let folder: string;
let umask: number;
let warnings: string[];
const warn = (sentence: string) => void warnings.push(sentence);
const at = (name: string) => join(folder, name);

beforeEach(() => {
  folder = temporaryFolder();
  umask = process.umask(0);
  warnings = [];
});

afterEach(() => process.umask(umask));

describe.if(posix)("a private folder", () => {
  test("a private folder is made with its parents for its owner alone, whatever the umask", () => {
    ensurePrivateFolder(at("a/b"), warn);
    expect([modeOf(at("a")), modeOf(at("a/b")), warnings]).toEqual([0o700, 0o700, []]);
  });

  test("that others could read is tightened with one warning, once", () => {
    mkdirSync(at("old"), { mode: 0o755 });
    ensurePrivateFolder(at("old"), warn);
    ensurePrivateFolder(at("old"), warn);
    expect([modeOf(at("old")), warnings.length]).toEqual([0o700, 1]);
    expect(warnings[0]).toContain(at("old"));
  });

  test("that holds what is not dragoman's is refused and left open to others, until it is closed already", () => {
    mkdirSync(at("shared/somebody"), { recursive: true });
    chmodSync(at("shared"), 0o755);
    writeFileSync(at("shared/config.json"), "{}");
    expect(() => ensurePrivateFolder(at("shared"), warn)).toThrow("is not dragoman's alone (somebody)");
    expect([modeOf(at("shared")), warnings]).toEqual([0o755, []]);
    chmodSync(at("shared"), 0o700);
    ensurePrivateFolder(at("shared"), warn);
  });

  test("a private folder with dragoman's own files and an empty volume's is tightened", () => {
    mkdirSync(at("own/lost+found"), { recursive: true });
    const more = [
      "config.json.keys",
      "config.json.lock",
      "admin.sqlite-wal",
      "service.log.1",
      "logins.json.tmp-1-0a1b",
    ];
    for (const path of [
      ...(Object.keys(everyName) as (keyof typeof everyName)[]).map((name) => inHome(at("own"), name)),
      ...more.map((name) => at(`own/${name}`)),
    ])
      writeFileSync(path, "");
    chmodSync(at("own"), 0o755);
    ensurePrivateFolder(at("own"), warn);
    expect([modeOf(at("own")), warnings.length]).toEqual([0o700, 1]);
  });

  test.each(["notes.txt", "config.jsonx", "my-accounts", "logins", "kept-keys.json5", ".env"])(
    "%s in it is somebody else's",
    (name) => {
      mkdirSync(at("own"));
      writeFileSync(at(`own/${name}`), "");
      expect(() => removeDataFolder(at("own"))).toThrow(`is not dragoman's alone (${name})`);
    },
  );

  test("whoever writes into the data folder takes the path from the table of its names", () => {
    const source = join(import.meta.dir, "../../src");
    // The homes of people and of their tools are other folders.
    const others = /^(?:clients\/locate|clients\/.*|cli\/update\/update|deploy\/.*)\.ts$/;
    const made = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(source)].filter(
      (file) => !others.test(file) && /\bjoin\(\s*(?:[\w#.]+\.)?home,/.test(readFileSync(join(source, file), "utf8")),
    );
    expect(made).toEqual([]);
  });

  test.each([0o777, 0o1777, 0o775, 0o702])(
    "others may write into (%o) is refused, also behind a link, and left alone",
    (mode) => {
      mkdirSync(at("open"));
      chmodSync(at("open"), mode);
      symlinkSync(at("open"), at("link"));
      for (const path of [at("open"), at("link")])
        expect(() => ensurePrivateFolder(path, warn)).toThrow(`Others may write into the folder ${path}`);
      expect(modeOf(at("open"))).toBe(mode & 0o777);
    },
  );

  test.if(asRoot)("a private folder of another user is refused", () => {
    mkdirSync(at("theirs"), { mode: 0o700 });
    chownSync(at("theirs"), 12_345, 12_345);
    expect(() => ensurePrivateFolder(at("theirs"), warn)).toThrow("belongs to another user (uid 12345");
  });

  test("a private folder cannot be where a file is", () => {
    writeFileSync(at("file"), "");
    expect(() => ensurePrivateFolder(at("file"), warn)).toThrow("cannot be created (EEXIST)");
  });
});

describe("writing", () => {
  test("makes a file only its owner may read, and replaces a file others could", () => {
    writeFileSync(at("old"), "old", { mode: 0o644 });
    for (const name of ["old", "new"]) {
      writePrivate(at(name), "größe");
      expect(readFileSync(at(name), "utf8")).toBe("größe");
      if (posix) expect(modeOf(at(name))).toBe(0o600);
    }
    expect(readdirSync(folder).sort()).toEqual(["new", "old"]);
  });

  test.if(posix)("writing through a link replaces what it leads to, and keeps the link", () => {
    mkdirSync(at("dotfiles"));
    writeFileSync(at("dotfiles/config.json"), "old");
    symlinkSync("dotfiles/config.json", at("one"));
    symlinkSync(at("one"), at("two"));
    writePrivate(at("two"), "new");
    expect(readFileSync(at("dotfiles/config.json"), "utf8")).toBe("new");
    expect([lstatSync(at("one")).isSymbolicLink(), lstatSync(at("two")).isSymbolicLink()]).toEqual([true, true]);
  });

  test.if(posix)("writing through a link that leads to nothing yet makes what it leads to", () => {
    symlinkSync("later.json", at("link"));
    writePrivate(at("link"), "now");
    expect([lstatSync(at("link")).isSymbolicLink(), readFileSync(at("later.json"), "utf8")]).toEqual([true, "now"]);
  });

  test("that fails leaves no half file behind", () => {
    mkdirSync(at("taken"));
    expect(() => writePrivate(at("taken"), "x")).toThrow();
    expect(() => writePrivate(at("missing/x"), "x")).toThrow("ENOENT");
    expect(readdirSync(folder)).toEqual(["taken"]);
  });

  test.if(posix)("writing in a circle of links is refused, not followed for ever", () => {
    symlinkSync(at("b"), at("a"));
    symlinkSync(at("a"), at("b"));
    expect(() => writePrivate(at("a"), "x")).toThrow("ELOOP");
  });
});

describe("reading", () => {
  test("gives the text without a byte order mark, and nothing for a missing file", () => {
    writeFileSync(at("f"), "\ufeffgröße\r\n");
    expect(readPrivate(at("f"), 100)).toBe("größe\r\n");
    expect(readPrivate(at("missing"), 100)).toBeUndefined();
  });

  test.if(posix)("a file others could read makes it its owner's alone", () => {
    writeFileSync(at("f"), "x", { mode: 0o644 });
    readPrivate(at("f"), 100);
    expect(modeOf(at("f"))).toBe(0o600);
  });

  test.if(posix)("refuses a pipe, a device, a folder, a circle and a giant", () => {
    Bun.spawnSync(["mkfifo", at("pipe")]);
    mkdirSync(at("folder"));
    symlinkSync(at("circle"), at("circle"));
    writeFileSync(at("giant"), "x".repeat(101));
    for (const [path, why] of [
      [at("pipe"), "is not a file"],
      ["/dev/zero", "is not a file"],
      [at("folder"), "is not a file"],
      [at("circle"), "cannot be read (ELOOP)"],
      [at("giant"), "is larger than 100 bytes"],
    ] as const)
      expect(() => readPrivate(path, 100)).toThrow(`${path} ${why}`);
  });

  test("a file that is not text is refused", () => {
    writeFileSync(at("binary"), new Uint8Array([0xff, 0xfe, 0x00, 0x80]));
    expect(() => readPrivate(at("binary"), 100)).toThrow(`${at("binary")} is not readable text`);
  });

  test.if(asRoot)("a file that another user owns is refused", () => {
    writeFileSync(at("theirs"), "{}");
    chownSync(at("theirs"), 12_345, 12_345);
    expect(() => readPrivate(at("theirs"), 100)).toThrow("belongs to another user (uid 12345");
  });
});

test("leftovers of a killed write go; those of a write under way, and everything else, stay", () => {
  const dead = Bun.spawnSync([process.execPath, "--version"]).pid;
  const names = [
    `config.json.tmp-${dead}-0a1b2c`,
    `config.json.tmp-${process.pid}-0a1b2c`,
    "config.json",
    "notes.tmp-mine",
  ];
  for (const name of names) writeFileSync(at(name), "x");
  const stale = `old.json.tmp-${process.pid}-0a1b2c`;
  writeFileSync(at(stale), "x");
  utimesSync(at(stale), new Date(0), new Date(0));
  removeLeftovers(folder);
  expect(readdirSync(folder).sort()).toEqual(names.slice(1).sort());
  expect(existsSync(at(stale))).toBe(false);
});
