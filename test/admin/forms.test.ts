/** Property: what a form or an address says is read back as the same, whatever is in it. */
import { expect, test } from "bun:test";
import { queries, writeFilters } from "../../src/admin/api/query";
import { formOf, patchFrom, shownConfig } from "../../src/admin/pages/config/form";
import { parseConfig } from "../../src/config/schema";
import { ProxyError } from "../../src/lib/errors";
import { readQuery } from "../../src/web/query";
import fc, { triesOf } from "../support/random";

/** As a browser sends it: line breaks of a text area as CRLF. */
function sent(form: URLSearchParams): URLSearchParams {
  const crlf = [...form].map(([name, value]) => [name, value.replace(/\r\n|\r|\n/g, "\r\n")] as [string, string]);
  return new URLSearchParams(new URLSearchParams(crlf).toString());
}

const odd = fc.oneof(
  fc.string({
    unit: fc.constantFrom("a", "=", '"', "\\", "\n", "\r", " ", "\t", "\u2028", "é", "\ud800", ":"),
    minLength: 1,
  }),
  fc.string({ unit: "binary", minLength: 1 }),
);

test("the config's form sent as it is shown changes nothing, whatever the names and values are", () => {
  const header = fc.string({ unit: fc.constantFrom("a", "=", '"', "\\", " ", "\t", "#") });
  fc.assert(
    fc.property(
      fc.dictionary(odd, odd, { maxKeys: 4 }),
      fc.dictionary(fc.constantFrom("x-a", "x-b", "#x"), header),
      fc.dictionary(odd, fc.array(fc.oneof(odd, fc.constantFrom("a,b", "[1]")), { minLength: 1, maxLength: 3 }), {
        maxKeys: 3,
      }),
      (modelAliases, upstreamHeaders, fallbacks) => {
        const stored = { modelAliases, upstreamHeaders, fallbacks };
        try {
          parseConfig(stored);
        } catch (thrown) {
          fc.pre(!(thrown instanceof ProxyError)); // no config
        }
        const config = shownConfig(stored);
        expect(patchFrom(sent(formOf(config)), config)).toEqual({});
      },
    ),
    { numRuns: triesOf(1000) },
  );
});

test("the config's form takes what a person writes, in quotes or not", () => {
  const config = shownConfig({});
  const patch = (modelAliases: string) => {
    const form = formOf(config);
    form.set("modelAliases", modelAliases);
    return patchFrom(form, config).modelAliases;
  };
  expect(patch('fast=gpt-5-mini\n "ft:gpt=mini" = gpt-5-mini \n"=" = "a b"\nx = a=b\n')).toEqual({
    fast: "gpt-5-mini",
    "ft:gpt=mini": "gpt-5-mini",
    "=": "a b",
    x: "a=b",
  });
  for (const wrong of ["nothing", "= gpt", '"open = gpt', 'a = "open', 'a = 1\n"a" = 2'])
    expect(() => patch(wrong)).toThrow(/^modelAliases: /);
});

test("several keys of a group that are changed at once are all changed", () => {
  const wanted = {
    notices: { webhookFormat: "slack", desktop: true, accounts: [0.5] },
    webSearchEngine: { name: "searxng", url: "https://search.test" },
  };
  expect(patchFrom(formOf(shownConfig(wanted)), shownConfig({}))).toMatchObject(wanted);
});

test("the config's form reads the numbers of pairs as numbers; what is none stays for the schema to report", () => {
  const config = shownConfig({ maxPromptTokens: { "gpt-5.4": 900_000 } });
  const form = formOf(config);
  expect(form.get("maxPromptTokens")).toBe("gpt-5.4 = 900000");
  expect(patchFrom(sent(form), config)).toEqual({});
  form.set("maxPromptTokens", "gpt-5.4 = 300000\nclaude-sonnet-5 = many");
  expect(patchFrom(form, config)).toEqual({ maxPromptTokens: { "gpt-5.4": 300_000, "claude-sonnet-5": "many" } });
});

test("the filters of an address are read back as they were, also a name that reads as none", () => {
  const name = fc.option(fc.oneof(odd, fc.constantFrom("(none)", "\\(none)", "\\\\(none)", "\\", "(none) ")));
  const narrowed = fc.record(
    {
      ...{ stream: fc.boolean(), has_error: fc.boolean(), from_ms: fc.nat(), to_ms: fc.nat() },
      ...{ status: fc.integer({ min: 100, max: 599 }), status_class: fc.integer({ min: 1, max: 5 }) },
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(name, name, narrowed, (upstream_model, account_id, others) => {
      const filters = { upstream_model, account_id, ...others };
      const url = `http://127.0.0.1/?${writeFilters(filters)}`;
      fc.pre(![upstream_model, account_id].some((each) => each !== null && !each.isWellFormed()));
      expect(readQuery(url, queries.filters)).toEqual(filters);
    }),
  );
  expect(String(writeFilters({ path: undefined }))).toBe("");
  expect(readQuery("http://127.0.0.1/?upstream_model=(none)", queries.filters)).toEqual({ upstream_model: null });
});
