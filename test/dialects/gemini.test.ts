/** Rows: Gemini as its clients speak it: requests that are read, and replies that are written. */
import { describe, expect, test } from "bun:test";
import { geminiReader } from "../../src/deploy/documents/gemini-reply";
import { gemini } from "../../src/dialects/gemini/codec";
import { jsonSchemaOf } from "../../src/dialects/gemini/schema";
import type { Conversation, JsonObject } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { overviewOf } from "../../src/dialects/overview";
import fc, { triesOf } from "../support/random";
import { refusalOf } from "../support/refusal";
import { decodeFrames, wire, written } from "../support/streams";

const decode = (members: JsonObject): Conversation =>
  gemini.decodeRequest({ model: "m", contents: [{ parts: [{ text: "Hi" }] }], ...members });
const decodeContents = (...contents: unknown[]) => decode({ contents }).turns;
const refusal = (members: JsonObject) => refusalOf(() => decode(members));
const packed = (text: string) => Buffer.from(text).toString("base64");

describe("the words of a request", () => {
  test("mean the same in snake_case, but the names that are a tool's own stay", () => {
    const camel = {
      systemInstruction: { parts: [{ text: "Be brief." }] },
      contents: [
        { role: "user", parts: [{ inlineData: { mimeType: "image/png", data: "iVBO" } }] },
        { role: "model", parts: [{ functionCall: { id: "c1", name: "f", args: { some_key: 1 } } }] },
        { role: "user", parts: [{ functionResponse: { id: "c1", name: "f", response: { some_key: 2 } } }] },
      ],
      tools: [
        {
          functionDeclarations: [
            { name: "f", parameters: { type: "OBJECT", properties: { some_key: { type: "NUMBER" } } } },
          ],
        },
      ],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
      generationConfig: {
        maxOutputTokens: 9,
        stopSequences: ["END"],
        topP: 0.5,
        thinkingConfig: { thinkingBudget: 99, includeThoughts: true },
      },
      safetySettings: [],
    };
    const spelt = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(spelt);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(
        Object.entries(value).map(([key, member]) => [
          key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
          spelt(member),
        ]),
      );
    };
    expect(decode(spelt(camel) as JsonObject)).toEqual(decode(camel));
    const { turns, tools } = decode(camel);
    expect(turns[2]!.parts[0]).toMatchObject({ input: '{"some_key":1}' });
    expect(turns[3]!.parts[0]).toMatchObject({ parts: [{ text: '{"some_key":2}' }] });
    expect(tools[0]).toMatchObject({ schema: { properties: { some_key: { type: "number" } } } });
  });

  test("mean the same with one object in place of a list of one, and with numbers as texts", () => {
    const many = {
      systemInstruction: { parts: [{ text: "Be brief." }] },
      contents: [{ role: "user", parts: [{ text: "Hi", inlineData: undefined }] }],
      tools: [
        {
          functionDeclarations: [
            {
              name: "f",
              parameters: {
                type: "OBJECT",
                required: ["a"],
                properties: { a: { type: "NUMBER", minimum: 1, maxItems: 3 } },
              },
            },
          ],
        },
      ],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
      generationConfig: {
        ...{ maxOutputTokens: 100, temperature: 0.5, topP: 0.9, topK: 40, seed: -7, candidateCount: 1 },
        ...{ stopSequences: ["END"], responseModalities: ["TEXT"], thinkingConfig: { thinkingBudget: 2000 } },
      },
    };
    const one = {
      systemInstruction: { parts: { text: "Be brief." } },
      contents: { role: "user", parts: { text: "Hi" } },
      tools: {
        functionDeclarations: {
          name: "f",
          parameters: {
            type: "OBJECT",
            required: "a",
            properties: { a: { type: "NUMBER", minimum: "1", maxItems: "3" } },
          },
        },
      },
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: "f" } },
      generationConfig: {
        ...{ maxOutputTokens: "100", temperature: "0.5", topP: "9e-1", topK: "40", seed: "-7", candidateCount: "1" },
        ...{ stopSequences: "END", responseModalities: "TEXT", thinkingConfig: { thinkingBudget: "2000" } },
      },
    };
    expect(decode(one)).toEqual(decode(many));
    const overview = (body: unknown) => overviewOf(gemini.outline(body as JsonObject));
    expect(overview(one)).toEqual(overview(many));
    expect(() => gemini.checkRequest({ contents: {} })).not.toThrow();
  });

  test.each([
    [{ contents: 5 }, "contents"],
    [{ contents: "Hi" }, "contents"],
    [{ contents: [{ parts: "Hi" }] }, "contents[0].parts"],
    [{ generationConfig: { maxOutputTokens: "many" } }, "generationConfig.maxOutputTokens"],
    [{ generationConfig: { maxOutputTokens: "" } }, "generationConfig.maxOutputTokens"],
    [{ generationConfig: { stopSequences: { text: "END" } } }, "generationConfig.stopSequences"],
  ])("that no spelling makes sense of are refused by name: %j", (members, param) => {
    expect(refusal(members).details.param).toBe(param);
  });

  test("instructions may be a text, parts or a content", () => {
    const turn: Conversation["turns"][number] = { role: "system", parts: [{ kind: "text", text: "Be brief." }] };
    for (const systemInstruction of ["Be brief.", [{ text: "Be brief." }], { parts: [{ text: "Be brief." }] }])
      expect(decode({ systemInstruction }).turns[0]).toEqual(turn);
  });

  test.each([
    [{ thinkingBudget: 0 }, { disabled: true }],
    [{ thinkingBudget: -1 }, { adaptive: true }],
    [{ thinkingBudget: 500 }, { budget: 500 }],
    [
      { thinkingLevel: "HIGH", includeThoughts: true },
      { effort: "high", summary: "auto" },
    ],
    [{ thinkingLevel: "THINKING_LEVEL_UNSPECIFIED" }, undefined],
    [{ includeThoughts: true }, { adaptive: true, summary: "auto" }],
    [{ includeThoughts: false }, undefined],
  ])("a request with thinkingConfig %j asks for that reasoning", (thinkingConfig, reasoning) => {
    expect(decode({ generationConfig: { thinkingConfig } }).reasoning).toEqual(reasoning!);
  });

  test.each([
    [{ mode: "AUTO" }, { toolChoice: "auto" }],
    [
      { mode: "VALIDATED", allowedFunctionNames: ["a"] },
      { toolChoice: "auto", allowedTools: ["a"] },
    ],
    [{ mode: "ANY" }, { toolChoice: "required" }],
    [{ mode: "any", allowedFunctionNames: ["a"] }, { toolChoice: { name: "a" } }],
    [
      { mode: "ANY", allowedFunctionNames: ["a", "b"] },
      { toolChoice: "required", allowedTools: ["a", "b"] },
    ],
    [{ mode: "NONE", allowedFunctionNames: ["a"] }, { toolChoice: "none" }],
    [{ mode: "MODE_UNSPECIFIED" }, {}],
  ])("functionCallingConfig %j", (functionCallingConfig, choice) => {
    const { toolChoice, allowedTools } = decode({ toolConfig: { functionCallingConfig } });
    expect(JSON.parse(JSON.stringify({ toolChoice, allowedTools }))).toEqual(choice);
  });

  test.each([
    [{ cachedContent: "cachedContents/a" }, "cachedContent"],
    [{ generationConfig: { candidateCount: 2 } }, "generationConfig.candidateCount"],
    [{ generationConfig: { responseModalities: ["TEXT", "IMAGE"] } }, "generationConfig.responseModalities"],
    [{ generationConfig: { responseMimeType: "text/x.enum" } }, "generationConfig.responseMimeType"],
    [{ contents: [{ role: "system", parts: [] }] }, "contents[0].role"],
    [{ contents: [{ parts: [{ fileData: { fileUri: "gs://bucket/a" } }] }] }, "contents[0].parts[0].fileData.fileUri"],
    [
      {
        contents: [{ parts: [{ fileData: { fileUri: "https://generativelanguage.googleapis.com/v1beta/files/a" } }] }],
      },
      "contents[0].parts[0].fileData.fileUri",
    ],
    [{ toolConfig: { functionCallingConfig: { mode: "SOME" } } }, "toolConfig.functionCallingConfig.mode"],
  ])("what would change the answer is refused: %j", (members, param) => {
    expect(refusal(members).details.param).toBe(param);
  });

  test("what is left out keeps its name", () => {
    const google = decode({
      safetySettings: [{}],
      labels: {},
      alt: "sse",
      generationConfig: { mediaResolution: "LOW", candidateCount: 1, responseModalities: ["TEXT"] },
      toolConfig: { retrievalConfig: {} },
    }).extras!.google!;
    expect(Object.keys(google).sort()).toEqual([
      "alt",
      "labels",
      "mediaResolution",
      "retrievalConfig",
      "safetySettings",
    ]);
  });

  test("code that Google ran is text, and parts of other kinds are named", () => {
    const [turn] = decodeContents({
      role: "model",
      parts: [
        { executableCode: { language: "PYTHON", code: "print(1)" } },
        { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } },
        { toolCall: { id: "x" } },
      ],
    });
    expect(turn!.parts).toMatchObject([
      { kind: "foreign", value: { type: "executableCode" }, instead: [{ text: "```python\nprint(1)\n```" }] },
      { kind: "foreign", instead: [{ text: "OUTCOME_OK\n1" }] },
      { kind: "foreign", value: { type: "toolCall" } },
    ]);
  });
});

describe("schemas", () => {
  test("a schema of Google's becomes JSON Schema", () => {
    expect(
      jsonSchemaOf({
        type: "OBJECT",
        propertyOrdering: ["b", "a"],
        properties: {
          a: { type: "STRING", nullable: true, enum: ["x"], format: "enum", example: "x" },
          b: { type: "ARRAY", items: { type: "INTEGER", format: "int32" }, minItems: "1", max_items: "2" },
          c: { anyOf: [{ type: "STRING" }, { type: "NUMBER" }], nullable: true },
          type: { type: "TYPE_UNSPECIFIED" },
        },
        required: ["a"],
      }),
    ).toEqual({
      type: "object",
      properties: {
        b: { type: "array", items: { type: "integer", format: "int32" }, minItems: 1, maxItems: 2 },
        a: { type: ["string", "null"], enum: ["x", null], examples: ["x"] },
        c: { anyOf: [{ type: "string" }, { type: "number" }, { type: "null" }] },
        type: {},
      },
      required: ["a"],
    });
    expect(
      Object.keys((jsonSchemaOf({ properties: { a: {}, b: {} }, propertyOrdering: ["b"] }) as Json).properties),
    ).toEqual(["b", "a"]);
  });

  test("the schema of a reply allows no other properties, and is strict where OpenAI can hold it", () => {
    const responseSchema = { type: "OBJECT", properties: { a: { type: "STRING" } }, required: ["a"] };
    const config = { responseMimeType: "application/json", responseSchema };
    expect(decode({ generationConfig: config }).format).toEqual({
      schema: { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false },
      strict: true,
    });
    const loose = { ...config, responseSchema: { ...responseSchema, required: [] } };
    expect(decode({ generationConfig: loose }).format).not.toHaveProperty("strict");
    expect(decode({ generationConfig: { responseMimeType: "application/json" } }).format).toEqual({});
    expect(decode({ generationConfig: { responseMimeType: "text/plain" } }).format).toBeUndefined();
  });

  test("the schema of a choice may want the value itself, without JSON's quotes", () => {
    const config = { responseMimeType: "text/x.enum", responseSchema: { type: "STRING", enum: ["a", "b"] } };
    expect(decode({ generationConfig: config }).format).toMatchObject({ schema: { enum: ["a", "b"] }, isPlain: true });
  });
});

// biome-ignore lint/suspicious/noExplicitAny: JSON as it comes
type Json = any;

describe("calls and results", () => {
  const call = (name: string, id?: string) => ({ functionCall: { name, args: {}, ...(id && { id }) } });
  const result = (name: string, output: string, id?: string) => ({
    functionResponse: { name, response: { output }, ...(id && { id }) },
  });
  const pairs = (...contents: unknown[]) => {
    const parts = decodeContents(...contents).flatMap((turn) => turn.parts);
    const calls = parts.flatMap((part) => (part.kind === "tool-call" ? [part] : []));
    return parts.flatMap((part) =>
      part.kind === "tool-result" ? [[calls.findIndex(({ id }) => id === part.id), (part.parts[0] as Json)?.text]] : [],
    );
  };

  test("belong together by their ids, in any order", () => {
    const contents = [
      { role: "model", parts: [call("f", "1"), call("f", "2")] },
      { role: "user", parts: [result("f", "two", "2"), result("f", "one", "1")] },
    ];
    expect(pairs(...contents)).toEqual([
      [1, "two"],
      [0, "one"],
    ]);
  });

  test("calls and results without ids are matched by their names and their order", () => {
    const contents = [
      { role: "model", parts: [call("f"), call("g"), call("f")] },
      { role: "function", parts: [result("g", "g"), result("f", "first"), result("f", "second")] },
    ];
    expect(pairs(...contents)).toEqual([
      [1, "g"],
      [0, "first"],
      [2, "second"],
    ]);
  });

  test("a call is matched with a result that alone has an id", () => {
    expect(pairs({ role: "model", parts: [call("f")] }, { parts: [result("f", "x", "f-17")] })).toEqual([[0, "x"]]);
  });

  test("a call of an earlier turn that was never answered takes no later result", () => {
    const contents = [
      { role: "model", parts: [call("f")] },
      { role: "user", parts: [{ text: "Stop." }] },
      { role: "model", parts: [call("f")] },
      { role: "user", parts: [result("f", "x")] },
    ];
    expect(pairs(...contents)).toEqual([[1, "x"]]);
  });

  test("ids that are made are the same for the same beginning", () => {
    const first = [{ role: "model", parts: [call("f")] }, { parts: [result("f", "x")] }];
    const more = [...first, { role: "model", parts: [call("f"), call("g")] }];
    expect(decodeContents(...more).slice(0, 2)).toEqual(decodeContents(...first));
  });

  test("a response is a text, an error, or JSON", () => {
    const responses = [
      [{ output: "text" }, { text: "text" }],
      [{ output: { a: 1 } }, { text: '{"a":1}' }],
      [{ error: "broken" }, { text: "broken", failed: true }],
      [{ result: "text" }, { text: '{"result":"text"}' }],
      [{ output: "text", more: 1 }, { text: '{"output":"text","more":1}' }],
    ] as const;
    for (const [response, { text, ...more }] of responses) {
      const [turn] = decodeContents({ parts: [{ functionResponse: { name: "f", response } }] });
      expect(turn!.parts).toMatchObject([{ kind: "tool-result", parts: [{ text }], ...more }]);
    }
  });
});

describe("thoughts", () => {
  const proof = "dragoman.messages..cHJvb2Y=";
  const model = (...parts: unknown[]) => decodeContents({ role: "model", parts })[0]!.parts;
  const signature = { dialect: "messages", value: "cHJvb2Y=" };

  test("get the signature of the part after them, whether they were sent back or not", () => {
    const call = { functionCall: { id: "1", name: "f", args: {} }, thoughtSignature: packed(proof) };
    expect(model({ text: "Hm.", thought: true }, call)).toMatchObject([
      { kind: "thinking", text: "Hm.", signature },
      { kind: "tool-call" },
    ]);
    expect(model(call)).toMatchObject([{ kind: "thinking", text: "", signature }, { kind: "tool-call" }]);
    // Python's package writes the other alphabet of base64.
    const url = Buffer.from("dragoman.messages..~~~>>>???").toString("base64url");
    expect(model({ text: "A", thoughtSignature: url })).toMatchObject([{ signature: { value: "~~~>>>???" } }, {}]);
  });

  test("two in a row keep their own signatures, with an empty text between them", () => {
    expect(
      model(
        { text: "A", thought: true },
        { text: "", thoughtSignature: packed(`${proof}1`) },
        { text: "B", thought: true },
        { text: "Hi.", thoughtSignature: packed(`${proof}2`) },
      ),
    ).toMatchObject([
      { kind: "thinking", text: "A", signature: { value: "cHJvb2Y=1" } },
      { kind: "thinking", text: "B", signature: { value: "cHJvb2Y=2" } },
      { kind: "text", text: "Hi." },
    ]);
  });

  test("placeholders sign nothing; a proof of Google's own is one that nobody here can read", () => {
    for (const text of ["skip_thought_signature_validator", packed("context_engineering_is_the_way_to_go")])
      expect(model({ functionCall: { name: "f" }, thoughtSignature: text })).toMatchObject([{ kind: "tool-call" }]);
    expect(model({ text: "Hi.", thoughtSignature: "CiQ=" })).toMatchObject([
      { kind: "thinking", text: "", signature: { dialect: "gemini", value: "CiQ=" } },
      { kind: "text" },
    ]);
  });
});

/** A reply of blocks with deltas, and its proofs. */
const word = fc.string({ minLength: 1, maxLength: 6 });
const words = fc.array(word, { minLength: 1, maxLength: 4 });
const block = fc.oneof(
  fc.record({ kind: fc.constant("text" as const), words }),
  fc.record({ kind: fc.constant("thinking" as const), words, proof: word }),
  fc.record({ kind: fc.constant("tool-call" as const), name: fc.constantFrom("f", "g") }),
);
const reply = fc.array(block, { minLength: 1, maxLength: 6 }).map((blocks): ReplyEvent[] => [
  { type: "start", id: "r1", model: "m" },
  ...blocks.flatMap((each, index): ReplyEvent[] => {
    if (each.kind === "tool-call")
      return [
        { type: "block-start", block: { kind: "tool-call", id: `call_${index}`, name: each.name } },
        { type: "block-delta", text: '{"a":' },
        { type: "block-delta", text: `${index}}` },
        { type: "block-end" },
      ];
    const signature = each.kind === "thinking" ? { dialect: "messages" as const, value: each.proof } : undefined;
    return [
      { type: "block-start", block: { kind: each.kind } },
      ...each.words.map((text): ReplyEvent => ({ type: "block-delta", text })),
      { type: "block-end", ...(signature && { signature }) },
    ];
  }),
  { type: "usage", usage: { input: 9, output: 5 } },
  { type: "finish", reason: "stop" },
]);
const asked = (extras: JsonObject = { alt: "sse" }): Conversation => ({
  model: "m",
  turns: [],
  tools: [],
  stream: true,
  reasoning: { adaptive: true, summary: "auto" },
  extras: { google: extras },
});
const runs = { numRuns: triesOf(300) };

describe("a reply", () => {
  const contentOf = (body: Json) => body.candidates[0].content;

  test("a reply to a Gemini client says the same full, as events and as an array, wherever it is beaten", () => {
    fc.assert(
      fc.property(reply, fc.integer({ min: 1, max: 5 }), (events, every) => {
        const full = geminiReader.decodeReply(gemini.encodeReply(events, asked()));
        const beat = (client: { keepAlive(): void }, index: number) => {
          if (index % every === 0) client.keepAlive();
        };
        const frames = written(gemini.encodeStream(asked()), events, beat);
        expect(text(decodeFrames(geminiReader, frames))).toEqual(text(full));
        const array = written(gemini.encodeStream(asked({})), events, beat);
        const pieces = JSON.parse(new TextDecoder().decode(wire(array)));
        const data = pieces.map((piece: Json) => ({ data: JSON.stringify(piece) }));
        expect(text(decodeFrames(geminiReader, data))).toEqual(text(full));
      }),
      runs,
    );
  });

  test("sent back whole or in the pieces it was streamed in is one turn, with every word and proof", () => {
    fc.assert(
      fc.property(reply, (events) => {
        const whole = contentOf(gemini.encodeReply(events, asked()));
        const pieces = written(gemini.encodeStream(asked()), events).map(({ data }) => contentOf(JSON.parse(data!)));
        const turns = decodeContents(whole);
        expect(turns).toHaveLength(1);
        expect(decodeContents(...pieces)).toEqual(turns);
        const parts = turns[0]!.parts;
        const said = (kind: string) =>
          parts.flatMap((part) => (part.kind === kind ? [(part as Json).text] : [])).join("");
        expect(said("text")).toBe(spoken(events, "text"));
        expect(said("thinking")).toBe(spoken(events, "thinking"));
        const proofs = parts.flatMap((part) =>
          part.kind === "thinking" && part.signature ? [part.signature.value] : [],
        );
        expect(proofs).toEqual(
          events.flatMap((event) => (event.type === "block-end" && event.signature ? [event.signature.value] : [])),
        );
      }),
      runs,
    );
  });

  test("a reply to a Gemini client shows thoughts to who asked for them alone, and signs for everyone", () => {
    const events: ReplyEvent[] = [
      { type: "start", id: "r1", model: "m" },
      { type: "block-start", block: { kind: "thinking" } },
      { type: "block-delta", text: "Hm." },
      { type: "block-end", signature: { dialect: "chat", value: "p" } },
      { type: "finish", reason: "length" },
    ];
    const { reasoning, ...silent } = asked();
    expect(reasoning).toBeDefined();
    const thoughtSignature = packed(`dragoman.chat.~${Buffer.from("Hm.").toString("base64url")}.p`);
    expect(contentOf(gemini.encodeReply(events, silent)).parts).toEqual([{ text: "", thoughtSignature }]);
    expect(contentOf(gemini.encodeReply(events, asked())).parts).toEqual([
      { text: "Hm.", thought: true },
      { text: "", thoughtSignature },
    ]);
    const frames = written(gemini.encodeStream(silent), events);
    expect(frames.map(({ data }) => contentOf(JSON.parse(data!)).parts)).toEqual([[{ text: "", thoughtSignature }]]);
  });

  test("that says nothing has a part, and tells no number that is not known", () => {
    const body = gemini.encodeReply(
      [
        { type: "start", id: "", model: "m" },
        { type: "finish", reason: "refusal", explanation: "Not this." },
      ],
      asked(),
    );
    expect(body).toMatchObject({
      candidates: [{ content: { parts: [{ text: "" }] }, finishReason: "SAFETY", finishMessage: "Not this." }],
      modelVersion: "m",
      responseId: expect.stringMatching(/^\w{32}$/),
    });
    expect(body).not.toHaveProperty("usageMetadata");
  });
});

/** The blocks' texts, without the cuts. */
const text = (events: ReplyEvent[]) => {
  const all: string[] = [];
  for (const event of events)
    if (event.type === "block-start") all.push(JSON.stringify(event.block));
    else if (event.type === "block-delta") all[all.length - 1] += event.text;
    else if (event.type === "block-end") all[all.length - 1] += event.signature?.value ?? "";
    else if (event.type !== "start") all.push(JSON.stringify(event));
  return all;
};

function spoken(events: ReplyEvent[], kind: string): string {
  let open = false;
  let said = "";
  for (const event of events)
    if (event.type === "block-start") open = event.block.kind === kind;
    else if (event.type === "block-delta" && open) said += event.text;
  return said;
}
