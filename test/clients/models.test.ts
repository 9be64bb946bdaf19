/** Pairs: which models a set-up names, what a client is told, and its state, from `fixtures/pairs/clients/`; and what shells read. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ClientId, clientOf } from "../../src/clients/index";
import { locations } from "../../src/clients/locate";
import { type ClientModel, chooseModels } from "../../src/clients/models";
import { setVariables, usualShell } from "../../src/clients/shells";
import { clientStatus } from "../../src/clients/status";
import { models } from "../../src/deploy/documents/client-settings";
import { testPairs } from "../support/pairs";
import fc from "../support/random";
import { temporaryFolder } from "../support/temporary-folder";

/** One of the known models, another id, and what is other of it, or null what is not known; or its name alone. */
type Given = string | [like: string, id: string, more?: Partial<ClientModel>];

const modelOf = (given: Given): ClientModel => {
  const [like, id, more] = [given].flat() as [keyof typeof models, string?, Partial<ClientModel>?];
  const all = Object.entries({ ...models[like]!, ...(id && { id }), ...more });
  return Object.fromEntries(all.filter(([, value]) => value !== null)) as unknown as ClientModel;
};

testPairs("clients", {
  /** The model that is chosen for each purpose, and the order in which they are offered. */
  choice(...given: Given[]) {
    const choice = chooseModels(given.map(modelOf));
    if (!choice) return null;
    const { all, ...chosen } = choice;
    const ids = Object.entries(chosen).flatMap(([name, model]) => (model ? [[name, model.id]] : []));
    return { ...Object.fromEntries(ids), all: all.map(({ id }) => id) };
  },
  /** A client, where the server is, and the models; the first one is meant. */
  "set-up"(id: ClientId, { url, key }: { url: string; key?: string }, ...given: Given[]) {
    const all = given.map(modelOf);
    const { edits, variables, programs } = clientOf(id).setUp({ url, key, models: chooseModels(all)!, model: all[0] });
    const parts = { edits: edits.map(({ path, value }) => [path, value]), variables, programs };
    return Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0));
  },
  /** A client, the files in its HOME, and the environment: what is known of its settings for a server at port 4141. */
  status(id: ClientId, files: Record<string, object | string>, env: Record<string, string> = {}, platform = "linux") {
    const home = temporaryFolder();
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(home, name)), { recursive: true });
      writeFileSync(join(home, name), typeof text === "string" ? text : JSON.stringify(text));
    }
    const around = { home, env: JSON.parse(JSON.stringify(env).replaceAll("HOME", home)) };
    const status = clientStatus(id, {
      ...around,
      platform: platform as NodeJS.Platform,
      url: "http://127.0.0.1:4141",
    });
    const { off, ...more } = status;
    const told = { ...more, ...(off && { off: off.map(({ path }) => path.at(-1)) }) };
    return JSON.parse(JSON.stringify(told).replaceAll(home, "HOME"));
  },
  /** The environment and the system: where each client's file is, none of them being there. */
  location: (env: Record<string, string>, platform: NodeJS.Platform) =>
    Object.fromEntries(
      Object.entries(locations).map(([name, locate]) => [
        name,
        locate({ home: "/home", env, platform }, "/projects", "a b"),
      ]),
    ),
  shell: (shell: Parameters<typeof setVariables>[1], value: string) => setVariables({ A: value }, shell),
  "usual-shell": (...given: Parameters<typeof usualShell>) => usualShell(...given),
});

describe("a shell", () => {
  test("sets what was meant, whatever is in it", () => {
    const printable = fc.string({ unit: fc.integer({ min: 32, max: 126 }).map((code) => String.fromCharCode(code)) });
    const values = fc.sample(printable, 50);
    const lines = values.flatMap((value) => [setVariables({ TRIED: value }, "bash"), `printf '%s\\0' "$TRIED"`]);
    const { stdout } = Bun.spawnSync(["bash", "-c", lines.join("\n")], { timeout: 10_000 });
    expect(stdout.toString().split("\0")).toEqual([...values, ""]);
  });

  test("cmd gets what was meant, whatever is in it", () => {
    const printable = fc.string({
      unit: fc.oneof(
        fc.constantFrom("%", '"', "^", "PATH", "&", "!", "%PATH%"),
        fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code)),
      ),
      minLength: 1,
    });
    fc.assert(fc.property(printable, (value) => expect(readByCmd(setVariables({ A: value }, "cmd"))).toBe(value)));
  });

  /**
   * As cmd reads a line at its prompt: first `%NAME%` of a variable that is set is replaced, then `"` begins and ends
   * what is taken as it is, and outside of it `^` is taken away and the next character as it is. `set` itself takes
   * quotes around the whole away. (Stack Overflow 4094699, “How does the Windows Command Interpreter parse scripts?”)
   */
  function readByCmd(line: string): string {
    const replaced = line.replace(/%([^%]*)%/g, (whole, name) => (name === "PATH" ? "C:\\Windows" : whole));
    let [read, quoted] = ["", false];
    for (let at = 0; at < replaced.length; at++) {
      const escaped = !quoted && replaced[at] === "^";
      if (escaped) at++;
      else if (replaced[at] === '"') quoted = !quoted;
      else if (!quoted && /[&|<>]/.test(replaced[at]!)) throw new Error(`another command begins: ${line}`);
      read += replaced[at] ?? "";
    }
    return /^set (?:"A=(.*)"|A=(.*))$/
      .exec(read)!
      .slice(1)
      .find((each) => each !== undefined)!;
  }
});
