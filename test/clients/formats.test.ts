/** Rows: a person's settings keep everything of theirs when ours are put in: bytes, comments, order, line endings. */

import { describe, expect, test } from "bun:test";
import { NotEditable, SettingsFault } from "../../src/clients/edit";
import { editSettings, readSettings } from "../../src/clients/formats";
import { clientOf } from "../../src/clients/index";
import { chooseModels } from "../../src/clients/models";
import { revertValues } from "../../src/clients/settings-file/revert";
import { models } from "../../src/deploy/documents/client-settings";
import { isObject } from "../../src/lib/json";
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
    const left = revertValues({ format, paths }, { before, written, now }, "refuse");
    if (!left || "changed" in left) throw new Error(`not taken back: ${JSON.stringify({ left, before, now })}`);
    const is = readSettings(format, left.text);
    expect(is).toEqual(now === written ? was : { ...was, theirs: "stays" });
    if (format !== "json" || now.includes("remark"))
      expect([left.text, left.text.match(/remark \d+/g)]).toEqual([left.text, before.match(/remark \d+/g)]);
  }
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

  test.each([
    ["nothing", ""],
    ["only remarks", "// remark 1\n/* remark 2 */"],
    ["only a byte order mark", "\uFEFF"],
    ["one line", '{"env":{"OWN":"1"},"a":[1]}'],
    ["tabs", '{\n\t"env": {\n\t\t"OWN": "1" // remark 1\n\t},\n\t// remark 2\n}'],
    ["four spaces and CRLF", '{\r\n    "a": 1,\r\n    "env": { "OWN": "x" }\r\n}\r\n'],
    ["a name twice", '{ "a": 1, "env": {}, "env": { "OWN": "2" } }'],
    ["null where an object belongs", '{ "env": null }'],
    ["two remarks on a line", '{"env": {\n  "Z":"x"/* remark 1 */},"permissions":1/* remark 2 */\n}'],
  ])("a file in JSON with comments keeps what a person wrote: %s", (_, text) => check("json", text));

  test("new lines look like those around them", () => {
    const text = '{\n\t"env": {\n\t\t"OWN": "1" // mine\n\t}\n}\n';
    expect(put("json", text)).toStartWith(
      '{\n\t"env": {\n\t\t"OWN": "1", // mine\n\t\t"ANTHROPIC_BASE_URL": "http://127.0.0.1:4141",\n',
    );
  });

  test.each([200, 1_000_000])("JSON that is nested %d levels deep is refused", (levels) => {
    const deep = `{ "a": ${"[".repeat(levels)}${"]".repeat(levels)} }`;
    expect(() => readSettings("json", deep)).toThrow(/nested too deep/);
  });

  test.each(["__proto__", "constructor"])("a name that every object has is a name as any other: %s", (name) => {
    const text = `{ "${name}": { "a": 1 } }`;
    expect(Object.keys(readSettings("json", text))).toEqual([name]);
    check("json", text);
  });

  test("something of another kind is not replaced", () => {
    expect(() => put("json", '{ "env": [1] }')).toThrow(/of another type/);
  });
});

describe("JSON lists", () => {
  const edits = clientOf("vscode")
    .setUp(place)
    .edits.filter(({ path }) => path[0] === "list");
  const paths = edits.map(({ path }) => path);
  const listOf = (text: string) => (readSettings("json-list", text).list ?? []) as { name?: string }[];

  /** Ours is there once, theirs are as they were, and taken out again all is as it was. */
  function checkList(text: string): void {
    const after = editSettings("json-list", text, edits);
    const isOurs = ({ name }: { name?: string }) => name === "dragoman";
    const [before, now] = [listOf(text), listOf(after)];
    expect(now.filter(isOurs)).toEqual([edits[0]!.value as { name: string }]);
    expect(now.filter((item) => !isOurs(item))).toEqual(before.filter((item) => !isOurs(item)));
    expect(after.match(/remark \d+/g)).toEqual(text.match(/remark \d+/g));
    expect(after.includes("\r\n") || !/\r\n/.test(text)).toBe(true);
    expect(editSettings("json-list", after, edits)).toBe(after);
    for (const written of [after, `${after}\n`, after.replaceAll("\t", " ")]) {
      const left = revertValues(
        { format: "json-list", paths },
        { before: text, written: after, now: written },
        "refuse",
      );
      if (!left || "changed" in left) throw new Error(`not taken back: ${JSON.stringify({ left, text, written })}`);
      expect(listOf(left.text)).toEqual(before);
      expect(left.text.match(/remark \d+/g)).toEqual(text.match(/remark \d+/g));
    }
  }

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

  test.each(["", "[]", "[ ]\n", "// remark 1\n[\n]"])(
    "a first item is added to a list that is written as %j",
    checkList,
  );

  test("an item is put in with the indentation of those before it", () => {
    const text = '[\n\t{\n\t\t"name": "a"\n\t} // mine\n]\n';
    expect(editSettings("json-list", text, edits)).toStartWith('[\n\t{\n\t\t"name": "a"\n\t}, // mine\n\t{');
  });

  test("something else than a list is refused", () => {
    expect(() => readSettings("json-list", "{}")).toThrow(/not a list/);
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

  // biome-ignore format: a table is read by its rows
  test.each([
    ["nothing", ""],
    ["only remarks", "# remark 1\n\n# remark 2"],
    ["only tables", "# remark 1\n\n# remark 2\n[a]\nb = 1\n"],
    ["a dragoman by hand", '[model_providers.dragoman]\nname = "x"\nenv_key = "NOT_SET"\n\n# remark 1\n[tui]\na = 1'],
    ["a dragoman on one line", '[model_providers]\ndragoman = { name = "x" }\n'],
    ["features", "[features]\na = true # remark 1\n\n# remark 2\n[tui]\nb = 1\n"],
    ["features without an end of line", "[features]\r\na = true # remark 1"],
    ["no feature yet", "[features]\n# remark 1\n[tui]\nb = 1\n"],
    ["a feature with settings", "[features.other]\na = true # remark 1\n"],
    ["features by their whole names", "features.a = true # remark 1\n[tui]\nb = 1\n"],
    ["features in an inline table", "# remark 1\nfeatures = { multi_agent = true } # remark 2\n[tui]\nb = 1\n"],
    ["features in an empty inline table", "features = {}\r\nb = 1\r\n"],
    ["the feature in an inline table", 'features = { api_key_model_discovery = false, "a.b" = [1, 2] }\n'],
    ["providers in an inline table", 'model_providers = { other = { name = "x", http_headers = { a = "b" } } } # remark 1\n'],
    ["a dragoman in an inline table", 'model_providers = { dragoman.name = "y", other = { name = "x" }, dragoman.env_key = "Z" }\n'],
    ["an inline table in lines", "features = {\n  a = true, # remark 1\n  b = false, # remark 2\n}\n"],
    ["an inline table in a table", "[features]\nother = { a = true } # remark 1\n"],
    ["the feature, turned off", "[features]\napi_key_model_discovery = false # remark 1\na = true\n"],
  ])("a TOML file keeps what a person wrote: %s", (_, text) => check("toml", text));

  test.each([
    "big = 9007199254740993",
    "big = -9223372036854775808",
    "big = 0x7ead_beef_0000_0001 # remark 1",
    "big = [1, 1_000_000_000_000_000_000, { a = 9007199254740993 }]",
    "theirs = 'x'\n[own.9007199254740993]\n9007199254740993 = \"9007199254740993\"\nbig = 9007199254740993",
  ])("integers of 64 bits stay as they are: %s", (text) => {
    check("toml", `${text}\n`);
    expect(put("toml", `${text}\n`)).toContain(text.split("\n")[0]!);
  });

  test("integers that differ in their last digit are not the same", () => {
    const said = (digit: number) => readSettings("toml", `big = 900719925474099${digit}`);
    expect(said(3)).not.toEqual(said(4));
  });

  test("what a dragoman by hand had is gone, or it would go before ours", () => {
    expect(put("toml", '[model_providers.dragoman]\nenv_key = "NOT_SET"\n')).not.toContain("env_key");
  });

  test("keys stand before the tables, and remarks stay with theirs", () => {
    expect(put("toml", "# head\n\n# of a\n[a]\nb = 1\n")).toStartWith(
      `# head\n\nmodel = "${models.gpt.id}"\nmodel_context_window = 272000\nmodel_provider = "dragoman"\n\n# of a\n[a]\nb = 1\n\n[features]\napi_key_model_discovery = true\n\n[model_providers.dragoman]\n`,
    );
  });

  test("what cannot be changed alone is refused", () => {
    expect(() => put("toml", 'model_providers.dragoman.name = "x"\n')).toThrow(NotEditable);
  });
});

describe("lines NAME=value", () => {
  const set = (text: string, value = "http://here") => editSettings("env", text, [{ path: ["URL"], value }]);

  test.each([
    [
      "export and a comment",
      "export URL=https://gw.example # office gateway\n",
      "export URL=http://here # office gateway\n",
    ],
    ["indentation and spaces", "  URL = 'a b'  # c\r\nX=1\r\n", "  URL = http://here  # c\r\nX=1\r\n"],
    ["a colon", "URL: a # c", "URL: http://here # c"],
    ["a comment that touches the value", "URL=a#c\n", "URL=http://here #c\n"],
    ["no value", "export URL=\nX=1\n", "export URL=http://here\nX=1\n"],
    ["no value and a comment", "URL= # c\n", "URL=http://here # c\n"],
    ["a name twice", "URL=a # 1\nexport URL=b # 2\n", "URL=a # 1\nexport URL=http://here # 2\n"],
  ])("only the value changes in a line with %s, and changes back", (_, before, after) => {
    expect(set(before)).toBe(after);
    expect(readSettings("env", after).URL).toBe("http://here");
    const was = readSettings("env", before);
    const now = `${after}${after.endsWith("\n") ? "" : "\n"}THEIRS=1\n`;
    const left = revertValues({ format: "env", paths: [["URL"]] }, { before, written: after, now }, "refuse");
    if (!left || "changed" in left) throw new Error(`not taken back: ${JSON.stringify(left)}`);
    expect(readSettings("env", left.text)).toEqual({ ...was, THEIRS: "1" });
    expect(left.text.match(/export|#.*/g)).toEqual(before.match(/export|#.*/g));
  });

  test("a value that needs quotes gets them, one of several lines goes whole, and a new name gets its own line", () => {
    expect(set('export URL="a\nb" # c\n')).toBe("export URL=http://here # c\n");
    expect(set("export URL=a # c", "a b")).toBe("export URL='a b' # c");
    expect(set("# mine")).toBe("# mine\nURL=http://here\n");
  });
});

test("what stands in a file that does not read is not shown", () => {
  const told = () => readSettings("toml", 'model = "x"\nexperimental_bearer_token = sk-of-theirs-0123456789\n');
  expect(told).toThrow(SettingsFault);
  expect(told).not.toThrow(/sk-of/);
});

const long = Array.from({ length: 5000 }, (_, at) => `key${at} = "${at}"`).join("\n");
const big = "big = 9007199254740993";
test.each<[Format, string, line: number | undefined]>([
  ["json", '{\n  "a": 1\n  "b": 2\n}', 3],
  ["json", '{\n  "a": tru\n}', 2],
  ["json", '{\n  "a": 1,\n', 3],
  ["json", "{ 'a': 1 }", 1],
  ["json", "[1]", 1],
  ["json", '{ "a": 1 } x', 1],
  ["json", "{\n /* open\n", 2],
  ["toml", 'a = 1\n[x\nb = "c"\n', 2],
  ["toml", "a = 1\nb = [\n 1,\n", 2],
  ["toml", "a = 1\n\n# c\na = 2\nb = 3", 4],
  ["toml", 'm = """\nx\n"""\nno', 4],
  ["toml", "big = 9223372036854775809", 1],
  ...["\n[x", "\n[[", " x", '\n"'].map((end): ["toml", string, number] => [
    "toml",
    big + end,
    end.startsWith("\n") ? 2 : 1,
  ]),
  ["toml", `${long}\n"`, undefined],
])("%s: %j is refused, line %p", (format, text, line) => {
  let fault: unknown;
  try {
    put(format, text);
  } catch (thrown) {
    fault = thrown;
  }
  expect(fault).toBeInstanceOf(SettingsFault);
  expect((fault as SettingsFault).line).toBe(line as number);
});
