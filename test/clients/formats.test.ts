/** Property: a person's settings keep everything of theirs when ours are put in: bytes, comments, order, line endings. */

import { describe, expect, test } from "bun:test";
import { type Edit, SettingsFault } from "../../src/clients/edit";
import { editSettings, readSettings } from "../../src/clients/formats";
import { clientOf } from "../../src/clients/index";
import { chooseModels } from "../../src/clients/models";
import { revertValues } from "../../src/clients/settings-file/revert";
import { models } from "../../src/deploy/documents/client-settings";
import { isObject } from "../../src/lib/json";
import { testPairs } from "../support/pairs";
import fc, { triesOf } from "../support/random";

const place = { url: "http://127.0.0.1:4141", key: "k-0123456789abcdef", models: chooseModels(Object.values(models))! };
const agents = { json: "claude-code", toml: "codex" } as const;
type Format = keyof typeof agents;
const editsFor = (format: Format) => clientOf(agents[format]).setUp(place).edits;
const put = (format: Format, text: string) => editSettings(format, text, editsFor(format));

/** What must hold for whatever a person wrote. */
function check(format: Format, text: string): void {
  const after = put(format, text);
  // It says ours, and all of theirs; this is read by Bun's own parsers too.
  const [before, now] = [readSettings(format, text), readSettings(format, after)];
  const called = clientOf(agents[format]).file!.destinations(now, {});
  expect(called.map(({ address }) => address)).toContain(format === "json" ? place.url : `${place.url}/v1`);
  for (const [name, value] of Object.entries(before))
    if (
      !["env", "model", "models", "model_provider", "model_context_window", "model_providers", "features"].includes(
        name,
      )
    )
      expect(now[name]).toEqual(value);
  expect(now).toMatchObject(kept[format](before));
  // Comments stand in their order, and nothing else was written anew.
  expect(after.match(/remark \d+/g)).toEqual(text.match(/remark \d+/g));
  expect(after.startsWith("\uFEFF")).toBe(text.startsWith("\uFEFF"));
  const crlf = /^[^\n]*\r\n/.test(text);
  if (crlf || !text.includes("\r")) expect(/(^|[^\r])\n/.test(after)).toBe(!crlf && after.includes("\n"));
  expect(put(format, after)).toBe(after);
  checkBack(format, text, after);
}

/** Taken out again, also after the client has put in something of its own: theirs is all there, and nothing of ours. */
function checkBack(format: Format, before: string, written: string): void {
  const paths = editsFor(format).map(({ path }) => path);
  const was = readSettings(format, before);
  const own = { path: ["theirs"], value: "stays" };
  for (const now of [written, editSettings(format, written, [own]), ...(format === "json" ? reprinted(written) : [])]) {
    const left = takenBack({ format, paths }, { before, written, now });
    expect(readSettings(format, left)).toEqual(now === written ? was : { ...was, theirs: "stays" });
    if (format !== "json" || now.includes("remark"))
      expect([left, left.match(/remark \d+/g)]).toEqual([left, before.match(/remark \d+/g)]);
  }
}

function takenBack(target: Parameters<typeof revertValues>[0], texts: Parameters<typeof revertValues>[1]): string {
  const left = revertValues(target, texts, "refuse");
  if (!left || "changed" in left) throw new Error(`not taken back: ${JSON.stringify({ left, ...texts })}`);
  return left.text;
}

/** As clients write their files anew: without the remarks, in lines or in one. */
function reprinted(text: string): string[] {
  const value = { theirs: "stays", ...readSettings("json", text) };
  return [JSON.stringify(value), JSON.stringify(value, null, 2)];
}

/** Of what ours stands beside, what must still be there. */
const kept: Record<Format, (before: Record<string, unknown>) => object> = {
  json: ({ env }) => (isObject(env) && env.OWN !== undefined ? { env: { OWN: env.OWN } } : {}),
  toml: ({ model_providers }) => {
    const { dragoman: _, ...others } = (model_providers ?? {}) as Record<string, unknown>;
    return Object.keys(others).length > 0 ? { model_providers: others } : {};
  },
};

const ending = fc.constantFrom("\n", "\r\n");
const mark = fc.constantFrom("", "\uFEFF");
/** Each remark has a number of its own. */
const numbered = (text: string) => {
  let count = 0;
  return text.replaceAll("REMARK", () => `remark ${++count}`);
};

describe("JSON with comments", () => {
  const scalar = fc.constantFrom("1", '"a // b"', '"{"', "true", "null", "[1, 2,]", "[]", "{}", '"\\"]"', "-1.5e3");
  const space = fc.constantFrom("", " ", "\n", "\t", " // REMARK\n", "/* REMARK */", "\n  ", "\n/* REMARK\n */\n");
  const object = (names: string[], inner: fc.Arbitrary<string>) =>
    fc
      .tuple(
        fc.subarray(names),
        fc.boolean(),
        fc.array(fc.tuple(space, space, space, space, inner), { minLength: 9 }),
        space,
      )
      .map(([chosen, comma, pieces, last]) => {
        const members = chosen.map((name, at) => {
          const [a, b, c, d, value] = pieces[at]!;
          return `${a}"${name}"${b}:${c}${value}${d}`;
        });
        return `{${members.join(",")}${comma && members.length > 0 ? "," : ""}${last}}`;
      });
  const names = ["OWN", "ANTHROPIC_BASE_URL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "Z"];
  const env = object(names, fc.constantFrom('"x"', '"http://old"', '"y // z"'));
  const text = fc
    .tuple(
      object(["a", "permissions", "b"], fc.oneof(scalar, object(["c", "d"], scalar))),
      fc.option(env),
      space,
      mark,
      ending,
    )
    .map(([whole, own, after, bom, eol]) => {
      const inside = own === null ? whole : whole.replace(/^\{/, `{"env": ${own}${whole.match(/"/) ? "," : ""}`);
      return bom + numbered(inside + after).replaceAll("\n", eol);
    });

  test("a file in JSON with comments keeps whatever a person wrote through a change and its undoing", () => {
    fc.assert(
      fc.property(text, (given) => check("json", given)),
      { numRuns: triesOf(200) },
    );
  });

  test.each([200, 1_000_000])("JSON that is nested %d levels deep is refused", (levels) => {
    const deep = `{ "a": ${"[".repeat(levels)}${"]".repeat(levels)} }`;
    expect(() => readSettings("json", deep)).toThrow(/nested too deep/);
  });
});

const listEdits = clientOf("vscode")
  .setUp(place)
  .edits.filter(({ path }) => path[0] === "list");
const listPaths = listEdits.map(({ path }) => path);
const listOf = (text: string) => (readSettings("json-list", text).list ?? []) as { name?: string }[];

/** Ours is there once, theirs are as they were, and taken out again all is as it was. */
function checkList(text: string): void {
  const after = editSettings("json-list", text, listEdits);
  const isOurs = ({ name }: { name?: string }) => name === "dragoman";
  const [before, now] = [listOf(text), listOf(after)];
  expect(now.filter(isOurs)).toEqual([listEdits[0]!.value as { name: string }]);
  expect(now.filter((item) => !isOurs(item))).toEqual(before.filter((item) => !isOurs(item)));
  expect(after.match(/remark \d+/g)).toEqual(text.match(/remark \d+/g));
  expect(after.includes("\r\n") || !/\r\n/.test(text)).toBe(true);
  expect(editSettings("json-list", after, listEdits)).toBe(after);
  for (const now of [after, `${after}\n`, after.replaceAll("\t", " ")]) {
    const left = takenBack({ format: "json-list", paths: listPaths }, { before: text, written: after, now });
    expect(listOf(left)).toEqual(before);
    expect(left.match(/remark \d+/g)).toEqual(text.match(/remark \d+/g));
  }
}

describe("JSON lists", () => {
  const space = fc.constantFrom("", " ", "\n", "\n\t", " // REMARK\n", "/* REMARK */", "\n\t/* REMARK */\n\t");
  const item = fc.constantFrom(
    '{"name":"a","vendor":"x"}',
    '{\n\t\t"name": "b", // REMARK\n\t\t"models": [{ "name": "dragoman" }]\n\t}',
    "{}",
    "1",
    '"dragoman"',
    "[{}]",
  );
  const own = fc.constantFrom([], ['{ "name": "dragoman", "vendor": "by hand" }']);
  const list = fc
    .tuple(fc.array(fc.tuple(space, item, space), { maxLength: 4 }), own, fc.boolean(), space, mark, ending)
    .map(([items, ours, comma, last, bom, eol]) => {
      const pieces = [...items.map((parts) => parts.join("")), ...ours];
      const inside = pieces.join(",") + (comma && pieces.length > 0 ? "," : "");
      return bom + numbered(`[${inside}${last}]`).replaceAll("\n", eol);
    });

  test("a list in JSON keeps whatever a person wrote through a change and its undoing", () => {
    fc.assert(fc.property(list, checkList), { numRuns: triesOf(300) });
  });
});

describe("TOML", () => {
  const value = fc.constantFrom(
    "1",
    '"a # b"',
    "'[x]'",
    "true",
    "[\n  1, # REMARK\n  2,\n]",
    '"""\n[model_providers.dragoman]\nmodel = 1\n"""',
    "'''\n# no comment\n'''",
    "{ a = 1, b = { c = 2 } }",
    "1979-05-27T07:32:00Z",
    '[[1, 2], ["]"]]',
  );
  const comment = fc.constantFrom("", "# REMARK\n", "\n", "\n# REMARK\n\n");
  const behind = fc.constantFrom("", " # REMARK", "  ");
  const key = (name: string) =>
    fc.tuple(comment, value, behind).map(([above, it, after]) => `${above}${name} = ${it}${after}\n`);
  const own = (name: string, it: string) =>
    fc
      .tuple(comment, behind, fc.boolean())
      .map(([above, after, there]) => (there ? `${above}${name} = ${it}${after}\n` : ""));
  const inline = fc
    .constantFrom("{ a = true, b = { c = 1 } }", "{}", "{ api_key_model_discovery.x = 1, a = 2 }")
    .chain((it) => own("features", it));
  const table = (header: string) =>
    fc
      .tuple(comment, key("k"), key('"q.r"'), behind)
      .map(([above, first, second, after]) => `${above}${header}${after}\n${first}${second}`);
  const text = fc
    .tuple(
      fc
        .tuple(key("a"), own("model", '"old"'), key("b.c"), own("model_provider", '"openai"'), inline)
        .map((all) => all.join("")),
      fc
        .subarray(["[t]", "[[l]]", "[model_providers.other]", "[model_providers.dragoman]", "[ z . 'y' ]"])
        .chain((headers) => fc.tuple(...headers.map(table)).map((all) => all.join(""))),
      fc.constantFrom("", "[model_providers.dragoman.http_headers]\nx = 1\n"),
      fc.boolean(),
      mark,
      ending,
    )
    .map(([root, tables, below, cut, bom, eol]) => {
      const whole = numbered(root + tables + below);
      return bom + (cut ? whole.replace(/\n+$/, "") : whole).replaceAll("\n", eol);
    });

  test("a TOML file keeps whatever a person wrote through a change and its undoing", () => {
    fc.assert(
      fc.property(text, (given) => {
        // A remark inside a dragoman table of theirs goes with the table.
        const bare = given.replace(/(\[model_providers\.dragoman\b[\s\S]*)/, (part) =>
          part.replace(/ ?# remark \d+/g, ""),
        );
        check("toml", bare);
      }),
      { numRuns: triesOf(200) },
    );
  });

  test("integers that differ in their last digit are not the same", () => {
    const said = (digit: number) => readSettings("toml", `big = 900719925474099${digit}`);
    expect(said(3)).not.toEqual(said(4));
  });
});

/** A few edits, so that what comes of a text can be read; {@link check} makes those of the client. */
const few: Record<Format, Edit[]> = {
  json: [
    { path: ["env", "ANTHROPIC_BASE_URL"], value: "http://here" },
    { path: ["env", "ANTHROPIC_AUTH_TOKEN"], value: "k" },
  ],
  toml: [
    { path: ["model"], value: "gpt" },
    { path: ["features", "api_key_model_discovery"], value: true },
    { path: ["model_providers", "dragoman"], value: { name: "OpenAI", base_url: "http://here" } },
  ],
};

/** What becomes of a text, or why it is not read. */
function edited(format: Format, text: string) {
  try {
    check(format, text);
    return editSettings(format, text, few[format]);
  } catch (thrown) {
    if (!(thrown instanceof SettingsFault)) throw thrown;
    return { fault: thrown.message, line: thrown.line };
  }
}

testPairs("clients", {
  json: (text: string) => edited("json", text),
  toml: (text: string) => edited("toml", text),
  "json-list"(text: string) {
    checkList(text);
    return editSettings("json-list", text, [{ path: listPaths[0]!, value: { name: "dragoman", models: ["gpt"] } }]);
  },
  /** The text, and what it is once a line was added and ours is taken out; null where that cannot be. */
  env(before: string, value = "http://here") {
    const written = editSettings("env", before, [{ path: ["URL"], value }]);
    expect(readSettings("env", written).URL).toBe(value);
    const now = `${written}${written.endsWith("\n") ? "" : "\n"}THEIRS=1\n`;
    const left = revertValues({ format: "env", paths: [["URL"]] }, { before, written, now }, "refuse");
    if (!left || "changed" in left) return [written, null];
    expect(readSettings("env", left.text)).toEqual({ ...readSettings("env", before), THEIRS: "1" });
    return [written, left.text];
  },
});

test("no line is named where a long text has broken at its end", () => {
  const long = Array.from({ length: 5000 }, (_, at) => `key${at} = "${at}"`).join("\n");
  expect(edited("toml", `${long}\n"`)).toMatchObject({ line: undefined });
});
