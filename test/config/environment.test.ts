/** Rows: variables of the environment, and what each spelling of them means. */
import { describe, expect, test } from "bun:test";
import {
  checkEnterpriseHost,
  databaseName,
  readEnvironment,
  secretsOfEnvironment,
  variables,
} from "../../src/config/environment";
import { refusalOf } from "../support/refusal";

const own = { HOME: "/home/ada" };
const read = (env: Record<string, string | undefined>) => readEnvironment({ ...own, ...env }, "linux");

function refusal(work: () => unknown): string {
  const { kind, message } = refusalOf(work);
  expect(kind).toBe("invalid_request");
  return message;
}

describe("the data folder", () => {
  test("the data folder is in the home folder by default", () => {
    expect(read({})).toEqual({
      home: "/home/ada/.local/share/dragoman",
      configFile: "/home/ada/.local/share/dragoman/config.json",
      accountsFolder: "/home/ada/.local/share/dragoman/accounts",
      historyFile: "/home/ada/.local/share/dragoman/admin.sqlite",
    });
  });

  test("lies in the profile on Windows, with spaces and umlauts", () => {
    const { configFile } = readEnvironment({ USERPROFILE: "C:\\Users\\Jörg Müller" }, "win32");
    expect(configFile).toBe("C:\\Users\\Jörg Müller\\.local\\share\\dragoman\\config.json");
  });

  test.each([
    ["/srv/dragoman/", "/srv/dragoman"],
    ["~/dragoman", "/home/ada/dragoman"],
    ["~", "/home/ada"],
    ["/srv/~odd", "/srv/~odd"],
  ])("moves to DRAGOMAN_HOME=%s", (given, home) => {
    expect(read({ DRAGOMAN_HOME: given })).toMatchObject({ home, historyFile: `${home}/admin.sqlite` });
  });

  test("the data folder is a full path even when DRAGOMAN_HOME is not", () => {
    expect(read({ DRAGOMAN_HOME: "data" }).home).toBe(`${process.cwd()}/data`);
  });

  test("the data folder must be named where no folder is the person's own", () => {
    expect(refusal(() => readEnvironment({}, "linux"))).toContain("DRAGOMAN_HOME");
    expect(refusal(() => readEnvironment({ HOME: "relative" }, "linux"))).toContain("DRAGOMAN_HOME");
    expect(refusal(() => readEnvironment({ DRAGOMAN_HOME: "~/x" }, "linux"))).toContain("DRAGOMAN_HOME");
  });
});

describe("two spellings", () => {
  const pairs = Object.entries(variables).flatMap(([key, { names }]) => (names.length === 2 ? [[key, ...names]] : []));
  const good: Record<string, [string, string]> = {
    clientKey: ["key-one", "key-two"],
    oauthApp: ["vscode", "opencode"],
    enterpriseHost: ["a.ghe.com", "b.ghe.com"],
    anthropicApiKey: ["sk-one", "sk-two"],
  };

  test("these variables have two spellings, and no others", () => {
    expect(pairs.map(([key]) => key!).sort()).toEqual(Object.keys(good).sort());
  });

  test.each(pairs)(
    "the two spellings of %s, %s and %s, mean the same, also both alike; different values are refused by both names",
    (key, one, two) => {
      const [value, other] = good[key!]!;
      for (const env of [
        { [one!]: value },
        { [two!]: value },
        { [one!]: value, [two!]: value },
        { [one!]: "", [two!]: value },
      ])
        expect(read(env)).toMatchObject({ [key!]: value });
      const sentence = refusal(() => read({ [one!]: value, [two!]: other }));
      expect(sentence).toContain(one!);
      expect(sentence).toContain(two!);
      expect(sentence).not.toContain(value);
    },
  );
});

describe("values", () => {
  test("that are blank count as unset, so a blank ADMIN_TOKEN opens nothing", () => {
    const blank = Object.values(variables).flatMap(({ names }) => names.map((name) => [name, " \t"]));
    expect(read(Object.fromEntries(blank))).toEqual(read({}));
    expect(read({ ADMIN_TOKEN: "" }).adminToken).toBeUndefined();
  });

  test("lose blanks around them, such as the line end of a file they were read from", () => {
    expect(read({ ADMIN_TOKEN: " top secret\r\n", DRAGOMAN_GITHUB_TOKEN: "gho_x\n" })).toMatchObject({
      adminToken: "top secret",
      githubToken: "gho_x",
    });
  });

  test.each([
    ["ADMIN_TOKEN", "a\nb"],
    ["ADMIN_TOKEN", "schlüssel"],
    ["PROXY_API_KEY", "a\u0000b"],
    ["DRAGOMAN_GITHUB_TOKEN", "gho a"],
    ["DRAGOMAN_GITHUB_TOKEN", "gho\na"],
    ["DRAGOMAN_OAUTH_APP", "../../x"],
    ["DRAGOMAN_OAUTH_APP", "a/b"],
    ["DRAGOMAN_UPSTREAM_TIMEOUT_MS", "0"],
    ["DRAGOMAN_UPSTREAM_TIMEOUT_MS", "-5"],
    ["DRAGOMAN_UPSTREAM_TIMEOUT_MS", "1.5"],
    ["DRAGOMAN_UPSTREAM_TIMEOUT_MS", "0x10"],
    ["DRAGOMAN_UPSTREAM_TIMEOUT_MS", "1e3"],
    ["DRAGOMAN_UPSTREAM_TIMEOUT_MS", "99999999999"],
    ["DRAGOMAN_ENTERPRISE_URL", "https://company.ghe.com"],
    // No form but that of a plain text has these characters.
    ...Object.values(variables).flatMap(({ names, kind }) =>
      kind === "text" ? [] : names.map((name) => [name, "\u0001 é"] as const),
    ),
  ])("values of %s that cannot work are refused by name, never shown: %j", (name, value) => {
    const sentence = refusal(() => read({ [name]: value }));
    expect(sentence).toContain(name);
    if (value.length > 4) expect(sentence).not.toContain(value);
  });

  test("that work arrive in their own type", () => {
    expect(read({ DRAGOMAN_UPSTREAM_TIMEOUT_MS: "250", PROXY_API_OAUTH_APP: "Iv1.0123456789abcdef" })).toMatchObject({
      upstreamTimeoutMs: 250,
      oauthApp: "Iv1.0123456789abcdef",
    });
  });
});

describe("an upstream's address", () => {
  test.each([
    ["https://api.example.com", "https://api.example.com"],
    ["https://api.example.com/base/path//", "https://api.example.com/base/path"],
    ["HTTPS://API.Example.com:443/", "https://api.example.com"],
    ["http://127.0.0.1:1", "http://127.0.0.1:1"],
    ["http://127.9.9.9:8080/x/", "http://127.9.9.9:8080/x"],
    ["http://localhost:4141/", "http://localhost:4141"],
    ["http://[::1]:9", "http://[::1]:9"],
  ])("%s is read as %s", (given, address) => {
    expect(read({ DRAGOMAN_COPILOT_API_URL: given }).copilotApiUrl).toBe(address);
  });

  test.each([
    "http://evil.example",
    "http://169.254.169.254",
    "http://0.0.0.0:1",
    "http://localhost.evil.example",
    "http://localhost.",
    "http://127.0.0.1.evil.example",
    "https://user:hunter2@host",
    "https://@host",
    "https://host?key=hunter2",
    "https://host?",
    "https://host#hunter2",
    "https://h\t.evil",
    "https://h\\evil",
    "https:host",
    "//host",
    "host",
    "ftp://host",
    "file:///etc/passwd",
    "data:text/plain,x",
    "javascript:alert(1)",
    "https://",
  ])("%j is refused in every variable, without being repeated", (address) => {
    for (const [, variable] of Object.entries(variables)) {
      if (variable.kind !== "url") continue;
      const sentence = refusal(() => read({ [variable.names[0]]: address }));
      expect(sentence).toContain(variable.names[0]);
      expect(sentence).not.toContain("hunter2");
    }
  });
});

describe("an enterprise's host", () => {
  test.each([
    ["company.ghe.com", "company.ghe.com"],
    ["GitHub.Example.ORG", "github.example.org"],
    ["xn--mller-kva.example", "xn--mller-kva.example"],
  ])("%s is accepted", (given, host) => expect(checkEnterpriseHost("--enterprise-url", given)).toBe(host));

  test.each([
    "https://x",
    "a@b",
    "a/b",
    "x#y",
    "a b",
    "-x",
    "localhost",
    "x.localhost",
    "127.0.0.1",
    "127.1",
    "0x7f.0.0.1",
    "[::1]",
    "::1",
    "github.example.com:8443",
    "github.example.com.",
    ".example.com",
    "a..b.com",
    "-a.example.com",
    "",
    `${"a".repeat(64)}.com`,
    `${"a.".repeat(130)}com`,
  ])("%j is refused by the name it was given under", (host) => {
    expect(refusal(() => checkEnterpriseHost("--enterprise-url", host))).toStartWith("--enterprise-url ");
  });
});

test("each variable that holds a secret is concealed, a seal key too, and a database's password in both its forms", () => {
  const names = Object.values(variables).flatMap(({ names: [name] }) => (/KEY|TOKEN|SECRET/.test(name) ? [name] : []));
  const exampleOf = (name: string) =>
    ({
      DRAGOMAN_APP_KEY: "-----BEGIN KEY-----\nabc\n-----END KEY-----",
      DRAGOMAN_SEAL_KEY: Buffer.alloc(32, 0xfb).toString("base64"),
      DRAGOMAN_SEAL_KEY_NEXT: Buffer.alloc(32, 0xfa).toString("base64url"),
    })[name] ?? `${name.toLowerCase()}-0123456789`;
  const values = Object.fromEntries(names.map((name) => [name, exampleOf(name)]));
  const database = (password: string) => `postgres://anna:${password}@db.example:5432/dragoman`;
  const environment = read({
    ...values,
    DRAGOMAN_DATABASE_URL: database("p%40ss%20w%C3%B6rd"),
    DRAGOMAN_DATABASE_DIRECT_URL: database("direct"),
  });
  const secrets = secretsOfEnvironment(environment);
  const expected = [
    ...Object.values(values).map((value) => value.replace(/=$/, "")),
    "p%40ss%20w%C3%B6rd",
    "p@ss wörd",
    "direct",
  ];
  expect(expected.filter((secret) => !secrets.includes(secret))).toEqual([]);
  expect(names).toHaveLength(10);
  expect(databaseName(environment.databaseUrl!)).toBe("postgres://db.example:5432/dragoman");
});
