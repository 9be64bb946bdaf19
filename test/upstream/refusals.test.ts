import { expect, test } from "bun:test";
import { anyIndex, openRefusals, withoutFields } from "../../src/upstream/refusals";
import { startProxy } from "../support/proxy";

test("a field is removed where the upstream says it is, names of kinds left aside", () => {
  const text =
    '{"system":[{"text":"a","cache_control":{"type":"ephemeral","scope":"global"}},{"text":"b","cache_control":{"scope":"x"}}],"seed":9007199254740993,"extra":1}';
  expect(withoutFields(text, ["extra"])).toBe(text.replace(',"extra":1', ""));
  expect(JSON.parse(withoutFields(text, ["system.1.cache_control.ephemeral.scope"])).system[1].cache_control).toEqual(
    {},
  );
  const all = withoutFields(text, [anyIndex("system.1.cache_control.ephemeral.scope")]);
  expect(JSON.parse(all).system.map((block: { cache_control: object }) => block.cache_control)).toEqual([
    { type: "ephemeral" },
    {},
  ]);
  expect(all).toContain("9007199254740993");
});

test("a request without the field stays the very same text", () => {
  const text = '{ "a": 1 }';
  expect(withoutFields(text, ["b", "a.b.c", "toString"])).toBe(text);
});

test("what was refused is remembered for an hour, for that model", () => {
  let now = 0;
  const refusals = openRefusals(() => now);
  refusals.learn("m", "x");
  expect([refusals.known("m"), refusals.known("other")]).toEqual([["x"], []]);
  now = 3600_000;
  expect(refusals.all()).toEqual([]);
});

test("a refused field costs one more try the first time, and none after that", async () => {
  await using proxy = await startProxy();
  let refused = 0;
  proxy.demo.intercept(
    "/chat/completions",
    (seen) => {
      if (!(seen.body as { new_field?: unknown }).new_field) return undefined;
      refused++;
      return Response.json(
        { error: { message: "Unrecognized request argument supplied: new_field", type: "invalid_request_error" } },
        { status: 400 },
      );
    },
    Number.POSITIVE_INFINITY,
  );
  const ask = { model: "gpt-5-mini", new_field: 1, messages: [{ role: "user", content: "Hello" }] };
  for (let turn = 0; turn < 3; turn++) expect((await proxy.post("/v1/chat/completions", ask)).status).toBe(200);
  expect(refused).toBe(1);
  expect(proxy.rows().map(({ mends }) => JSON.parse(mends).includes("refused:new_field"))).toEqual([true, true, true]);
  expect(proxy.rows().map(({ attempts }) => JSON.parse(attempts).length)).toEqual([1, 1, 2]);
});

test("a field no request is complete without is not removed", async () => {
  await using proxy = await startProxy();
  proxy.demo.intercept(
    "/chat/completions",
    () => Response.json({ error: { message: "Unsupported parameter: 'messages'" } }, { status: 400 }),
    5,
  );
  const response = await proxy.post("/v1/chat/completions", {
    model: "gpt-5-mini",
    messages: [{ role: "user", content: "Hello" }],
  });
  expect(response.status).toBe(400);
  expect(JSON.parse(proxy.rows()[0]!.attempts)).toHaveLength(1);
});
