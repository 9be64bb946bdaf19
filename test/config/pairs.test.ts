/** Pairs: what the config and the environment may say, and the words that refuse it, from `fixtures/pairs/config/`. */
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkEnterpriseHost, readEnvironment, variables } from "../../src/config/environment";
import { patched, type Stored } from "../../src/config/patch";
import { parseConfig } from "../../src/config/schema";
import { masked } from "../../src/config/secrets";
import { openConfig } from "../../src/config/store";
import { isObject } from "../../src/lib/json";
import { changes, outOf, testPairs } from "../support/pairs";
import { temporaryFolder } from "../support/temporary-folder";

type Variables = Record<string, string>;

const read = (env: Variables) => readEnvironment({ HOME: "/home/ada", ...env }, "linux");
const differing = (value: unknown) => changes(parseConfig({}), parseConfig(value));

testPairs("config", {
  /** What differs from the defaults. */
  config(value: unknown) {
    try {
      return differing(value);
    } finally {
      expect(Object.hasOwn(Object.prototype, "x")).toBe(false);
    }
  },
  /** The config with each of these sizes: how long a text is, or a list or record, or a number: what of them is taken. */
  edge: (config: unknown, sizes: number[]) =>
    Promise.all(
      sizes.map(async (size) => {
        const out = (await outOf(() => void parseConfig(sized(config, size)))) as { refused: Error } | undefined;
        return out?.refused.message.replace(/a{9,}|(?:a\.){9,}/g, "a…").slice(0, 150) ?? size;
      }),
    ),
  providers: (providers: object) => parseConfig({ providers }).providers,
  /** The text of a file, which is at PATH and is only read. */
  async file(text: string) {
    const path = join(temporaryFolder(), "config.json");
    writeFileSync(path, text);
    const out = await outOf(() => differing(openConfig(path).stored));
    const after = readFileSync(path, "utf8");
    return { ...JSON.parse(JSON.stringify(out).replaceAll(path, "PATH")), ...(after !== text && { after }) };
  },
  /** What is stored, and what is put into it. */
  patch: patched,
  /** What a form shows of what is stored, and what is stored when all of it is sent back. */
  shown(stored: Stored) {
    const shown = masked(parseConfig(stored));
    return { shown: changes(masked(parseConfig({})), shown), after: patched(stored, shown) };
  },
  "data-folder": (env: Variables, platform: NodeJS.Platform) => readEnvironment(env, platform),
  /** What differs from an environment without these variables. */
  environment: (env: Variables) => changes(read({}), read(env)),
  /** In each variable for an address, which is NAME here. */
  async address(address: string) {
    const names = Object.values(variables).flatMap(({ kind, names }) => (kind === "url" ? [names[0]] : []));
    const outs = names.map(async (name) => {
      const out = await outOf(() => Object.values(changes(read({}), read({ [name]: address }))));
      return JSON.stringify(out).replaceAll(name, "NAME");
    });
    const [out, ...others] = new Set(await Promise.all(outs));
    return others.length === 0 ? JSON.parse(out!) : [out, ...others];
  },
  "enterprise-host": (host: string) => checkEnterpriseHost("--enterprise-url", host),
});

/** `@` is the size itself, `@a` such a text, and behind `@` stands what comes so often, or as often as is said, with `#` for its place. */
function sized(value: unknown, size: number): unknown {
  const many = (of: unknown, count: number) =>
    Array.from({ length: count }, (_, at) => JSON.parse(JSON.stringify(of).replaceAll("#", String(at))));
  if (typeof value === "string") return value === "@" ? size : value.replaceAll("@a", () => "a".repeat(size));
  if (Array.isArray(value))
    return value[0] === "@" && value.length > 1 ? many(value[1][0], size) : value.map((each) => sized(each, size));
  if (!isObject(value)) return value;
  const [key, item, count = size] = (value["@"] ?? []) as [string?, unknown?, number?];
  const entries = key === undefined ? Object.entries(value) : many([key, item], count);
  return Object.fromEntries(entries.map(([name, each]) => [sized(name, size), sized(each, size)]));
}
