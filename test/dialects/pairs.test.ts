/** Pairs: what a codec does, from `fixtures/pairs/<dialect>/<act>.txt`: under each title what goes in and what comes out. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chat } from "../../src/dialects/chat/codec";
import type { Codec } from "../../src/dialects/codec";
import { gemini } from "../../src/dialects/gemini/codec";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { fitSchema, type SchemaFixup, vendorRow } from "../../src/dialects/hub/tool-schema";
import { messages } from "../../src/dialects/messages/codec";
import { responses } from "../../src/dialects/responses/codec";
import { outcomeOf, plains, rowsIn } from "../support/codec-pairs";
import { noted } from "../support/noted";
import { testPairs } from "../support/pairs";
import { fixtures } from "../support/streams";

const codecs: Record<string, Codec> = { chat, responses, messages, gemini: gemini as Codec };

for (const [dialect, codec] of Object.entries(codecs))
  for (const file of readdirSync(join(fixtures, "pairs", dialect))) {
    const act = file.replace(".txt", "");
    const rows = rowsIn(readFileSync(join(fixtures, "pairs", dialect, file), "utf8"), act);
    test.each(rows)(`${dialect}, ${act}: %s`, (_, ofTitle) => {
      expect(ofTitle.length).toBeGreaterThan(0);
      for (const row of ofTitle) expect(outcomeOf(act, codec, row, plains[dialect]!)).toEqual(row.out);
    });
  }

testPairs("hub", {
  /** What becomes of the schema of a property. */
  "schema-fixup"(name: SchemaFixup, schema: JsonObject) {
    const before = structuredClone(schema);
    const { properties } = fitSchema({ type: "object", properties: { a: schema } }, [name]).schema;
    expect(schema).toEqual(before);
    const { a } = properties as JsonObject;
    return a === schema ? "the same" : a;
  },
  /** What becomes of a tool's for OpenAI. */
  "tool-schema"(given: JsonObject) {
    const { body, ...notes } = noted((each) => fitSchema(given, vendorRow("responses", "OpenAI").fixups, each));
    return body.schema === given ? "the same" : { schema: body.schema, ...notes };
  },
});
