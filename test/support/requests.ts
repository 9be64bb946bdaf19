/**
 * Random requests of each dialect. {@link requests} are those that a client may well send, with members that nobody knows;
 * {@link almost} are requests, or replies, with something wrong in them, and {@link object} what only looks like one.
 */
import type { ClientDialect, Dialect, JsonObject } from "../../src/dialects/hub/conversation";
import { hostileReplies, hostileRequests, samples } from "./hostile-shapes";
import { wholeIn } from "./pairs";
import fc from "./random";

// ── What a client may well send ──

type Members = Record<string, fc.Arbitrary<unknown>>;
const is = fc.constant;
const one = fc.constantFrom<unknown[]>;
const words = fc.oneof(one("", " ", "two\n", "größe 字 🎈\u2028", '{"a":1}', "\ud800"), fc.string());
const list = (item: fc.Arbitrary<unknown>, minLength = 1, maxLength = 3) => fc.array(item, { minLength, maxLength });

/** Objects with these members, with some of those that may be missing, and with others that nobody knows. */
const shapes = (...strange: string[]) => {
  const key = fc.constantFrom("x_a", "x_b", "y.z", "__proto__", "constructor", "größe", ...strange);
  const value = fc.oneof(words, fc.jsonValue(), is({ a: [1, null] }));
  const strangers = fc.dictionary(key, value, { maxKeys: 2, noNullPrototype: true });
  return (members: Members, optional: Members = {}): fc.Arbitrary<JsonObject> =>
    fc
      .tuple(strangers, fc.record({ ...members, ...optional }, { requiredKeys: Object.keys(members) }))
      .map(([unknown, known]) => ({ ...unknown, ...known }));
};

function chatRequests(): fc.Arbitrary<JsonObject> {
  const shape = shapes("safety_identifier", "verbosity");
  const said = fc.string({ minLength: 1, maxLength: 8, unit: "grapheme" });
  const name = fc.stringMatching(/^[a-z]{1,8}$/);
  const text = shape({ type: is("text"), text: said });
  const others = one(
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
    { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low", media_type: "image/png" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBE", x: 1 } },
    { type: "input_audio", input_audio: { data: "UklG", format: "wav" } },
    { type: "video", x: 1 },
  );
  const spoken = (...parts: fc.Arbitrary<unknown>[]) => fc.oneof(said, list(fc.oneof(...parts), 2));
  const thinking: Members = { reasoning_text: said, reasoning_opaque: said };
  const call = shape({
    id: fc.stringMatching(/^call_[a-z0-9]{1,12}$/),
    type: is("function"),
    function: fc.record(
      { name, arguments: one("{}", '{"a": 1}', "", "not json"), x: is(1) },
      { requiredKeys: ["name", "arguments"] },
    ),
  });
  const acts = fc
    .tuple(
      fc.record(
        { role: is("assistant"), content: fc.option(said), ...thinking },
        { requiredKeys: ["role", "content"] },
      ),
      fc.uniqueArray(call, { minLength: 1, maxLength: 3, selector: ({ id }) => id }),
      spoken(text),
    )
    .map(([assistant, tool_calls, content]): JsonObject[] => [
      { ...assistant, tool_calls },
      ...tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content, name: "f" })),
    ]);
  const message = fc.oneof(
    shape({ role: is("system"), content: spoken(text) }, { name }),
    shape({ role: is("user"), content: spoken(text, others) }, { name }),
    shape({ role: is("assistant"), content: spoken(text) }, { refusal: said, audio: is({ id: "a" }), ...thinking }),
  );
  const tool = fc.oneof(
    shape({
      type: is("function"),
      function: fc.record(
        {
          name,
          description: said,
          parameters: one({ type: "object", properties: {} }, { type: "object", properties: { a: {} }, $schema: "x" }),
          ...{ strict: fc.boolean(), x: is(1) },
        },
        { requiredKeys: ["name", "parameters"] },
      ),
    }),
    fc.record({
      type: is("custom"),
      custom: fc.record({
        name,
        format: is({ type: "grammar", grammar: { syntax: "lark", definition: "start: x" } }),
      }),
    }),
    is({ type: "web_search", search_context_size: "low" }),
  );
  const unlisted = { type: "function", function: { name: "unlisted" } };
  const idsIn = (messages: JsonObject[]) =>
    messages.flatMap(({ tool_calls }) => ((tool_calls ?? []) as JsonObject[]).map(({ id }) => id));
  return shape(
    {
      model: is("gpt-4.1"),
      messages: fc
        .array(fc.oneof({ weight: 3, arbitrary: message.map((each) => [each]) }, acts), { maxLength: 5 })
        .map((turns) => turns.flat())
        // Of calls that share an id all but the first get another.
        .filter((messages) => new Set(idsIn(messages)).size === idsIn(messages).length),
      stream: fc.boolean(),
    },
    {
      tools: list(tool),
      tool_choice: one(...["auto", "none", "required", unlisted], {
        type: "allowed_tools",
        allowed_tools: { mode: "auto", tools: [unlisted] },
      }),
      parallel_tool_calls: fc.boolean(),
      max_tokens: fc.integer({ min: 4_001, max: 16_384 }),
      stop: list(said, 1, 4),
      temperature: fc.double({ min: 0, max: 2, noNaN: true }),
      top_p: fc.double({ min: 0, max: 1, noNaN: true }),
      reasoning_effort: one("low", "high"),
      thinking_budget: fc.integer({ min: 1024, max: 4000 }),
      response_format: one(
        { type: "json_object" },
        { type: "grammar", x: 1 },
        { type: "json_schema", json_schema: { name: "a", description: "b", schema: { type: "object" }, strict: null } },
        { type: "json_schema", json_schema: { name: "a", schema: {}, strict: true } },
      ),
      ...{ n: is(1), seed: fc.integer(), user: said, logit_bias: is({ "50256": -100 }) },
      ...{ presence_penalty: is(0.5), prediction: is({ type: "content", content: "x" }) },
    },
  );
}

function responsesRequests(): fc.Arbitrary<JsonObject> {
  const shape = shapes("prompt_cache_breakpoint");
  const [id, customId] = [one("a", "b", "msg_0190"), one("c", "d")];
  const part = fc.oneof(
    shape({ type: one("input_text", "output_text", "text"), text: words }, { annotations: is([]) }),
    shape({ type: is("refusal"), refusal: words }),
    shape(
      { type: is("input_image"), image_url: one("data:image/png;base64,AA", "https://a/b") },
      { detail: is("low") },
    ),
    shape({ type: is("input_image"), file_id: is("file_1") }),
    shape({ type: is("input_file"), file_data: is("data:application/pdf;base64,AA") }, { filename: is("a.pdf") }),
    shape({ type: is("input_mystery") }),
  );
  const result = (type: string, call_id: fc.Arbitrary<unknown>) =>
    shape(
      { type: is(type), call_id, output: fc.oneof(words, list(part, 0, 2)) },
      { id, status: one("completed", "incomplete") },
    );
  const tool = fc.oneof(
    shape(
      { type: is("function"), name: one("f", "g") },
      {
        description: fc.option(words),
        parameters: one({ type: "object", properties: { a: { $ref: "#" } } }, { type: "object" }, null),
        strict: fc.option(fc.boolean()),
      },
    ),
    shape({ type: is("custom"), name: is("p") }, { format: is({ type: "grammar", syntax: "lark", definition: "x" }) }),
    shape({ type: one("web_search", "image_generation", "tool_search", "mcp") }),
  );
  const namespace = shape({ type: is("namespace"), name: one("n", "image_gen"), tools: list(tool, 0, 2) });
  const tools = list(fc.oneof(tool, namespace), 0, 4);
  const item = fc.oneof(
    shape(
      { role: one("user", "assistant", "system", "developer"), content: fc.oneof(words, list(part)) },
      { type: is("message"), id, status: is("completed"), phase: one("commentary", null) },
    ),
    shape(
      { type: is("function_call"), call_id: id, name: is("f"), arguments: words },
      { id, namespace: is("n"), status: is("completed") },
    ),
    shape({ type: is("custom_tool_call"), call_id: customId, name: is("p"), input: words }, { id }),
    result("function_call_output", id),
    result("custom_tool_call_output", customId),
    shape(
      {
        type: is("reasoning"),
        summary: list(fc.record({ type: is("summary_text"), text: words }), 0, 2),
      },
      { id, encrypted_content: one("cHJvb2Y=", null), content: is(null) },
    ),
    shape(
      { type: one("compaction", "web_search_call", "item_reference", "local_shell_call_output") },
      { id, call_id: id },
    ),
    shape({ type: is("additional_tools"), tools }, { role: is("developer") }),
  );
  return shape(
    { model: is("some-model"), input: fc.oneof(words, list(item, 0, 8)) },
    {
      ...{ instructions: fc.option(words), tools: fc.option(tools), parallel_tool_calls: fc.option(fc.boolean()) },
      tool_choice: one("auto", "none", null, { type: "function", name: "f" }, { type: "mcp", server_label: "x" }),
      max_output_tokens: fc.option(fc.integer({ min: 16, max: 1e6 })),
      temperature: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
      top_p: one(0.5, null),
      reasoning: one(...[null, {}, { effort: "low" }, { effort: "none", summary: "auto" }, { context: "all_turns" }], {
        effort: null,
      }),
      text: one(
        ...[null, {}, { verbosity: "low" }, { format: { type: "text" } }, { format: { type: "json_object" } }],
        {
          verbosity: "high",
          format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: null, x: 1 },
          y: 2,
        },
        { format: { type: "mystery" } },
      ),
      ...{ stream: fc.option(fc.boolean()), store: fc.option(fc.boolean()), include: one(["x"], null) },
      ...{ service_tier: is("auto"), user: words, metadata: is({ a: "b" }), truncation: is("auto") },
      ...{ client_metadata: is({ a: 1 }), prompt_cache_key: words, previous_response_id: is(null) },
      stream_options: is({ include_obfuscation: false }),
    },
  );
}

function messagesRequests(): fc.Arbitrary<JsonObject> {
  const shape = shapes("citations", "n");
  const mark = { type: "ephemeral" };
  const cache_control = one(mark, { ...mark, ttl: "1h" }, { ...mark, scope: "global" });
  const block = (members: Members, optional: Members = {}) => shape(members, { ...optional, cache_control });
  const id = one("t1", "t2", "t3", "functions.x:0");
  const text = block({ type: is("text"), text: words }).map(({ cache_control, ...each }) =>
    // Where the mark of a blank text goes depends on how turns are cut; it has a folder of its own.
    cache_control && String(each.text).trim() ? { ...each, cache_control } : each,
  );
  const png = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };
  const image = block({
    type: is("image"),
    source: one(
      png,
      { ...png, detail: 1 },
      { type: "url", url: "https://a.test/a.png" },
      { type: "file", file_id: "f" },
    ),
  });
  const document = block(
    {
      type: is("document"),
      source: one(
        { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
        { type: "text", media_type: "text/plain", data: "plain" },
        { type: "url", url: "https://a.test/a.pdf" },
        { type: "content", content: [] },
      ),
    },
    { title: is("A title") },
  );
  const thinking = fc.oneof(
    block({ type: is("thinking"), thinking: words }, { signature: one("", "c2ln", "a@b", "dragoman.chat..b3A") }),
    block({ type: is("redacted_thinking"), data: one("ZGF0YQ==", "dragoman.responses.cnM.ZW5j") }),
  );
  const name = one("look", "seek");
  const input = fc.dictionary(fc.constantFrom("a", "b", "__proto__"), fc.jsonValue({ maxDepth: 1 }), {
    ...{ maxKeys: 2, noNullPrototype: true },
  });
  const call = block({ type: is("tool_use"), id, name, input });
  const strange = block({ type: one("search_result", "constructor", "container_upload"), text: words });
  const reference = block({ type: is("tool_reference"), tool_name: one("look", "gone") });
  const result = block(
    { type: is("tool_result"), tool_use_id: id },
    { content: fc.oneof(words, list(fc.oneof(text, image, strange, reference), 0)), is_error: is(true) },
  );
  const content = (...kinds: fc.Arbitrary<unknown>[]) => fc.oneof(words, list(fc.oneof(...kinds), 0, 4));
  const message = fc.oneof(
    fc.record({ role: is("user"), content: content(text, image, document, result, result, strange) }),
    fc.record({ role: is("assistant"), content: content(text, thinking, call, call, strange) }),
    fc.record({ role: is("system"), content: content(text), output_config: is({ effort: "low" }) }),
  );
  const tool = fc.oneof(
    block(
      { name },
      {
        description: is("Looks."),
        input_schema: one({ type: "object" }, { $schema: "x", properties: {} }),
        ...{ eager_input_streaming: is(true), defer_loading: is(true), strict: is(true) },
      },
    ),
    is({ type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" }),
  );
  const schema = { type: "json_schema", schema: { type: "object" } };
  return shape(
    { model: is("claude"), messages: list(message, 1, 6) },
    {
      system: content(text),
      max_tokens: one(1, 1500, 4096, 64_000),
      tools: list(tool, 0),
      tool_choice: one(
        ...[{ type: "auto" }, { type: "any", disable_parallel_tool_use: true }, { type: "tool", name: "look" }],
        ...[{ type: "none" }, { type: "auto", later: 1 }, { type: "quite new" }],
      ),
      thinking: one(
        { type: "enabled", budget_tokens: 2000 },
        { type: "enabled", budget_tokens: 31_999, display: "omitted" },
        ...[{ type: "adaptive" }, { type: "adaptive", display: "summarized" }, { type: "disabled" }],
        { type: "quite new", much: true },
      ),
      output_config: one(
        ...[{ effort: "high" }, { effort: "max", task_budget: { type: "tokens", total: 1 } }, { format: schema }],
        ...[{ format: { ...schema, schema: {}, later: 1 } }, { format: { type: "quite new" }, effort: "low" }],
      ),
      ...{ temperature: one(0, 0.2, 1), top_p: one(0.5, 0.99), top_k: is(5), stop_sequences: is(["END"]) },
      ...{ stream: fc.boolean(), metadata: is({ user_id: "me" }), context_management: is({ edits: [] }) },
      ...{ cache_control: is(mark), service_tier: is("auto") },
    },
  );
}

export const requests: Record<Dialect, fc.Arbitrary<JsonObject>> = {
  chat: chatRequests(),
  responses: responsesRequests(),
  messages: messagesRequests(),
};

// ── What is almost one ──

/** Members a decoder will look at, holding what it does not expect. */
const names = fc.constantFrom(
  ...`
    model messages contents parts functionCall function_response inlineData generationConfig input content role
    type text tools tool_calls function name arguments id index choices delta message usage output item error
    stop_reason finish_reason system tool_choice thinking source max_tokens input_schema tool_use_id call_id
    image_url response_format stop stream __proto__ constructor
  `.match(/\w+/g)!,
);
const values = fc.constantFrom<unknown>(
  ...`
    user assistant tool system text tool_use tool_result thinking image function_call function_call_output
    reasoning message function message_start content_block_start content_block_delta response.created
    response.output_item.added auto
  `.match(/[\w.]+/g)!,
  0,
  -1,
  1e308,
  null,
  true,
  "",
  "\ud800",
);
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    values,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(names, tie("tree"), { maxKeys: 6 }),
  ),
}));
export const object = fc.dictionary(names, tree, { maxKeys: 8 });

export const odd: fc.Arbitrary<unknown> = fc.oneof(values, tree);

/** Something of a hostile shape, small enough to try many. */
export const shaped = <T>(
  shapes: readonly { dialect: ClientDialect; make(bytes: number): T }[],
  dialect: ClientDialect,
) =>
  fc
    .tuple(fc.constantFrom(...shapes.filter((shape) => shape.dialect === dialect)), fc.integer({ min: 100, max: 3000 }))
    .map(([{ make }, bytes]) => make(bytes));

/** A request or reply of the dialect, recorded, of a hostile shape or random, in which one to three values are others, or are gone. */
export function almost(dialect: ClientDialect, what: "request" | "reply"): fc.Arbitrary<Record<string, unknown>> {
  const seeds: unknown[] = samples(what, dialect).map(([, sample]) => sample);
  const sized = shaped(what === "request" ? hostileRequests : hostileReplies, dialect);
  const random: fc.Arbitrary<unknown>[] = [];
  if (what === "request") {
    seeds.push(JSON.parse(wholeIn(`${dialect}.request.txt`).given));
    if (dialect !== "gemini") random.push(requests[dialect]);
  }
  return fc
    .tuple(
      fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...seeds) }, sized, ...random),
      fc.array(fc.tuple(fc.nat(), odd, fc.boolean()), { minLength: 1, maxLength: 3 }),
    )
    .map(([seed, changes]) => {
      const body = structuredClone(seed) as Record<string, unknown>;
      for (const [at, value, gone] of changes) change(body, at, value, gone);
      return body;
    });
}

/** Changes one of all the members within, the deepest included. */
export function change(root: object, at: number, value: unknown, gone: boolean): void {
  const places: [object: Record<string, unknown>, key: string][] = [];
  const walk = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    for (const key of Object.keys(node)) {
      places.push([node as Record<string, unknown>, key]);
      walk((node as Record<string, unknown>)[key]);
    }
  };
  walk(root);
  const [object, key] = places[at % places.length] ?? [];
  if (!object || key === undefined) return;
  if (gone) delete object[key];
  else object[key] = value;
}
