/** Rows: all variables of the environment; what each may say is in `fixtures/pairs/config/`. */
import { describe, expect, test } from "bun:test";
import { databaseName, readEnvironment, secretsOfEnvironment, variables } from "../../src/config/environment";
import { refusalOf } from "../support/refusal";

const own = { HOME: "/home/ada" };
const read = (env: Record<string, string | undefined>) => readEnvironment({ ...own, ...env }, "linux");

function refusal(work: () => unknown): string {
  const { kind, message } = refusalOf(work);
  expect(kind).toBe("invalid_request");
  return message;
}

test("the data folder is a full path even when DRAGOMAN_HOME is not", () => {
  expect(read({ DRAGOMAN_HOME: "data" }).home).toBe(`${process.cwd()}/data`);
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

test("values that are blank count as unset, so a blank ADMIN_TOKEN opens nothing", () => {
  const blank = Object.values(variables).flatMap(({ names }) => names.map((name) => [name, " \t"]));
  expect(read(Object.fromEntries(blank))).toEqual(read({}));
});

// No form but that of a plain text has these characters.
test.each(Object.values(variables).flatMap(({ names, kind }) => (kind === "text" ? [] : names)))(
  "a value of %s that is no text of its kind is refused by name",
  (name) => expect(refusal(() => read({ [name]: "\u0001 é" }))).toContain(name),
);

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
