/**
 * Property: what clients and owners may send: requests, changes of the config, and the errors and lists of an upstream,
 * all but right.
 */
import { describe, expect, test } from "bun:test";
import { patched, type Stored } from "../../src/config/patch";
import { parseConfig } from "../../src/config/schema";
import { codecs } from "../../src/dialects/codecs";
import {
  type ClientDialect,
  type Conversation,
  clientDialects,
  dialects,
  type JsonObject,
} from "../../src/dialects/hub/conversation";
import { unnoted } from "../../src/dialects/hub/notes";
import { mendRefused } from "../../src/dialects/hub/refused-schemas";
import { type RuleTable, requestRules } from "../../src/dialects/hub/rules";
import { overviewOf } from "../../src/dialects/overview";
import { editedTo } from "../../src/lib/net/json/json-edit";
import { learnFromHeaders, type Quota, readQuota } from "../../src/people/accounts/quota";
import { measurePrompt } from "../../src/proxy/tokens/measured-prompt";
import { readFailure } from "../../src/proxy/upstream/copilot/failure";
import { withoutParams } from "../../src/proxy/upstream/copilot/unsupported-params";
import { readModel } from "../../src/proxy/upstream/models/model";
import { adapt } from "../support/adapt";
import { estimateTokens } from "../support/estimate";
import { ableModel, unableModel } from "../support/facts";
import { rulesOf, samples } from "../support/hostile-shapes";
import { fixRequest } from "../support/noted";
import fc, { triesOf } from "../support/random";
import { almost, object, odd } from "../support/requests";
import { only } from "./assert-healthy";

/** All of them in the check too: most are refused, and those that are read have to be enough. */
const runs = { numRuns: 300 };
/** Of requests with something wrong in them a third is read. */
const runsOfRequests = { numRuns: triesOf(300, 3) };

/** A model that can do everything, and one that can do nothing. */
const models = [ableModel("able", "Anthropic"), unableModel("unable", "unknown")];

const copied = <T>(value: T): T => JSON.parse(JSON.stringify(value));

/** The codec, if upstreams speak the dialect. */
const upstreamCodec = (dialect: ClientDialect) => (dialect === "gemini" ? undefined : codecs[dialect]);

/** The rules of a dialect, each asked of every request. */
const askingAll = (rules: RuleTable["rules"]) =>
  requestRules({
    rules: Object.fromEntries(
      Object.entries(rules).map(([name, row]) => [name, [row.at(-1)] as unknown as typeof row]),
    ),
    dropped: {},
    providerRules: {},
  }).applyRules;

describe.each([...clientDialects])("a request of %s with something wrong in it", (dialect) => {
  const codec = codecs[dialect];
  const upstream = upstreamCodec(dialect);
  const likely = object.map((body) => ({ ...body, model: "m" }));
  const requests = fc.oneof({ arbitrary: almost(dialect, "request"), weight: 8 }, object, likely).map(copied);

  test("is read and said in each dialect to each model, or refused in words", () => {
    let read = 0;
    fc.assert(
      fc.property(requests, (body) => {
        const conversation = only(() => codec.decodeRequest(copied(body)));
        if (!conversation) return;
        read++;
        for (const target of dialects)
          for (const model of models) {
            const said = only(() => codecs[target].encodeRequest(adapt(conversation, target).conversation, model));
            if (said) expect(copied(said)).toBeObject();
          }
      }),
      runsOfRequests,
    );
    // Else the property would be true of refusals alone.
    expect(read, "requests that were read").toBeGreaterThan(10);
    expect(({} as Record<string, unknown>).model, "a prototype").toBeUndefined();
  });

  if (upstream)
    test("passed through is mended in what the mend names and nowhere else, or refused in words", () => {
      fc.assert(
        fc.property(requests, (body) => {
          for (const model of models) {
            const text = JSON.stringify(body);
            const fixup = only(() => fixRequest(upstream, body, model));
            // The client's own body is not written to.
            expect(JSON.stringify(body)).toBe(text);
            if (!fixup) continue;
            const edited = JSON.parse(editedTo(text, body, fixup.body));
            expect(edited).toEqual(copied(fixup.body));
            if (fixup.fixups.length === 0) expect(fixup.body).toBe(body);
            only(() => upstream.requestHeaders?.(new Headers({ "anthropic-beta": "x,y" }), edited, model));
          }
        }),
        runsOfRequests,
      );
    });

  if (dialect !== "gemini")
    test("a rule that does not find its words in it would change nothing", () => {
      const all = askingAll(rulesOf[dialect]);
      const { applyRules } = requestRules({ rules: rulesOf[dialect], dropped: {}, providerRules: {} });
      const same = (body: JsonObject) => {
        for (const model of models) {
          const asked = only(() => applyRules(copied(body), model));
          expect(asked).toEqual(only(() => all(copied(body), model)) as typeof asked);
        }
      };
      for (const [, body] of samples("request", dialect)) same(body);
      fc.assert(fc.property(requests, same), runsOfRequests);
    });

  test("is described without a crash, for its headers and the cache", () => {
    fc.assert(
      fc.property(requests, (body) => {
        expect(["nobody", "model", "others"]).toContain(overviewOf(codec.outline(copied(body))).last);
        expect(measurePrompt(codec.outline(copied(body)), new Uint8Array(), undefined)).toBeObject();
        only(() => codec.checkRequest(copied(body)));
      }),
      runsOfRequests,
    );
  });

  if (upstream)
    test("is repaired without a crash, and asked about", () => {
      fc.assert(
        fc.property(requests, (body) => {
          expect(copied(only(() => upstream.remedies.repair(copied(body), () => true)) ?? {})).toBeObject();
          expect(upstream.passOn(body, unnoted)).toBeObject();
          for (const { vendor } of models)
            for (const isLast of [false, true]) {
              const target = { dialect: "chat", vendor, places: upstream.schemas, notes: unnoted } as const;
              const mended = mendRefused(copied(body), target, {}, isLast);
              if (mended) expect(copied(mended.set)).toBeObject();
            }
        }),
        runsOfRequests,
      );
    });

  test("is estimated as a number of tokens, or refused in words", async () => {
    const tokenizer = { count: async (texts: string[]) => texts.join("").length, close() {} } as never;
    await fc.assert(
      fc.asyncProperty(requests, async (body) => {
        const conversation: Conversation | undefined = only(() => codec.decodeRequest(copied(body)));
        if (conversation) expect(await estimateTokens(conversation, tokenizer, 1.1)).toBeGreaterThanOrEqual(0);
      }),
      runsOfRequests,
    );
  });
});

/** Paths as upstreams spell them, and as nobody does. */
const field = fc.array(
  fc.oneof(fc.constantFrom("model", "tools", "messages", "*", "0", "__proto__", "content", ""), fc.string()),
  {
    minLength: 1,
    maxLength: 4,
  },
);

test("a request without refused fields is JSON, and no other member of it is touched", () => {
  fc.assert(
    fc.property(
      fc.oneof(almost("messages", "request"), object).map(copied),
      fc.array(field, { maxLength: 3 }),
      (body, fields) => {
        const text = JSON.stringify(body);
        const lighter = JSON.parse(
          withoutParams(
            text,
            fields.map((path) => path.join(".")),
          ).text,
        );
        const named = new Set(fields.map(([first]) => first!.split(".")[0]));
        for (const key of Object.keys(body)) if (!named.has(key)) expect(lighter[key]).toEqual(body[key]);
      },
    ),
    runs,
  );
});

const words = fc.oneof(
  fc.string(),
  fc.json(),
  odd.map((value) => JSON.stringify(value) ?? ""),
  object.map((body) => JSON.stringify({ error: body })),
  fc.constantFrom(
    '{"error":{"message":"messages.0.content.0.x: Extra inputs are not permitted"}}',
    "<html>",
    '{"error":"',
    "null",
  ),
);

test("an upstream may refuse in any words: it is a failure with a status and a sentence", () => {
  const headers = fc.dictionary(
    fc.constantFrom("retry-after", "x-ratelimit-exceeded"),
    fc.stringMatching(/^[ -~]{0,20}$/),
  );
  fc.assert(
    fc.property(fc.integer({ min: 400, max: 599 }), headers, words, (status, sent, body) => {
      const { error, account } = readFailure(status, new Headers(sent), body, 1_700_000_000_000);
      expect(error.status).toBeWithin(400, 600);
      expect(error.message.trim()).not.toBe("");
      const wait = error.details.headers?.["retry-after"];
      if (wait !== undefined) expect(Number(wait)).toBeWithin(0, 86_401);
      if (account && "until" in account && account.until !== undefined)
        expect(account.until).toBeWithin(1_700_000_000_000, 1_700_000_000_000 + 86_400_001);
    }),
    runs,
  );
});

test("an upstream may list any model: it is one with finite limits, or none", () => {
  const item = fc.record(
    {
      id: fc.oneof(odd, fc.string()),
      name: odd,
      capabilities: fc.oneof(
        odd,
        fc.record({ type: odd, limits: fc.oneof(odd, object), supports: fc.oneof(odd, object) }, { requiredKeys: [] }),
      ),
      billing: fc.oneof(
        odd,
        fc.record({ is_premium: odd, multiplier: odd, token_prices: fc.oneof(odd, object) }, { requiredKeys: [] }),
      ),
      supported_endpoints: fc.oneof(odd, fc.array(fc.constantFrom("/responses", "/v1/messages", 7, null))),
      policy: odd,
    },
    { requiredKeys: [] },
  );
  let read = 0;
  fc.assert(
    fc.property(item, (given) => {
      const model = readModel(copied(given));
      if (!model) return;
      read++;
      expect(model.id.length).toBeWithin(1, 257);
      for (const limit of Object.values(model.limits))
        if (typeof limit === "number") expect(limit).toBeGreaterThanOrEqual(0);
      for (const target of dialects) only(() => codecs[target].encodeRequest(plain, model));
    }),
    runs,
  );
  expect(read, "models that were read").toBeGreaterThan(10);
});

test("an upstream may tell any quota: its numbers are finite, or unknown", () => {
  const count = fc.oneof(odd, fc.constantFrom<unknown>("300", "1e999", "-1", "NaN", 300, 12.5));
  const snapshot = fc.dictionary(
    fc.constantFrom("entitlement", "remaining", "unlimited", "overage_count", "percent_remaining", "quota_remaining"),
    count,
  );
  const snapshots = fc.dictionary(
    fc.constantFrom("premium_interactions", "premium_models", "chat", "completions"),
    fc.oneof(odd, snapshot),
  );
  const answer = fc.record(
    { quota_snapshots: fc.oneof(odd, snapshots), quota_reset_date_utc: odd, copilot_plan: odd },
    { requiredKeys: [] },
  );
  const header = fc.dictionary(
    fc.constantFrom("ent", "rem", "ov", "ovPerm", "rst"),
    fc.constantFrom("300", "1e999", "-1", "NaN", "", "true", "0.0", "2026-08-01T00:00:00Z"),
  );
  const finite = (value: unknown): boolean =>
    typeof value === "number"
      ? Number.isFinite(value)
      : typeof value !== "object" || value === null || Object.values(value).every(finite);
  const now = 1_700_000_000_000;
  let known = 0;
  fc.assert(
    fc.property(fc.oneof(odd, answer), header, (given, serialized) => {
      let quota: Quota | undefined;
      try {
        const { snapshots: _, ...numbers } = readQuota(copied({ given }).given, now);
        expect(finite(numbers)).toBe(true);
        quota = { snapshots: {}, ...numbers };
        known++;
      } catch (thrown) {
        // What is no answer at all is an outage to whoever asked.
        expect((thrown as Error).name).toBe("ZodError");
      }
      const headers = new Headers({ "x-quota-snapshot-premium_models": String(new URLSearchParams(serialized)) });
      expect(finite(learnFromHeaders(quota, headers, now))).toBe(true);
    }),
    {
      ...runs,
      examples: [
        [
          { quota_snapshots: { premium_interactions: { percent_remaining: "300", entitlement: 1e308 } } },
          { ent: "300" },
        ],
      ],
    },
  );
  expect(known).toBeGreaterThan(20);
});

const plain: Conversation = codecs.chat.decodeRequest({ model: "m", messages: [{ role: "user", content: "Hello" }] });

const stored: Stored = {
  logLevel: "warn",
  auth: { apiKeys: ["k-alpha-0123456789"] },
  vendorxApiKey: "sk-ant-0123456789",
  providers: { x: { type: "anthropic", baseUrl: "https://h.example", apiKey: "pk-0123456789" } },
};
const names = fc.constantFrom(
  "logLevel",
  "auth",
  "providers",
  "vendorxApiKey",
  "anthropicApiKey",
  "modelAliases",
  "maxRows",
  "allowedOrigins",
  "upstreamHeaders",
  "__proto__",
  "constructor",
);
const provider = fc.record(
  {
    type: fc.constantFrom("anthropic", "vendorx", 1),
    baseUrl: fc.constantFrom("https://h.example", "https://evil.example", "…"),
    apiKey: fc.oneof(odd, fc.constantFrom("…6789", "new-key")),
  },
  { requiredKeys: [] },
);
const change = fc.dictionary(
  names,
  fc.oneof(
    odd,
    fc.dictionary(
      fc.constantFrom("x", "y", "apiKeys"),
      fc.oneof(odd, provider, fc.array(fc.oneof(odd, fc.constantFrom("…6789", "…9999", "key-0123")))),
    ),
    fc.constantFrom("…6789", "info", null, 7),
  ),
  { maxKeys: 3 },
);

test("a change of the config is a config that holds, or refused in words; what was stored stays, and no key goes to another address", () => {
  const before = JSON.stringify(stored);
  fc.assert(
    fc.property(change, (patch) => {
      const next = only(() => patched(stored, copied(patch)));
      expect(JSON.stringify(stored)).toBe(before);
      expect(Object.keys(Object.prototype)).toEqual([]);
      if (!next) return;
      const config = parseConfig(next);
      for (const { baseUrl, apiKey } of Object.values(config.providers))
        if (!baseUrl.startsWith("https://h.example")) expect(apiKey).not.toBe("pk-0123456789");
      expect(JSON.stringify(next)).not.toContain("…");
    }),
    { ...runs, numRuns: 600 },
  );
});

test("changes of the config that are accepted are among them", () => {
  // Else the property above would be true of refusals alone.
  const accepted = fc.sample(change, runs).filter((patch) => only(() => patched(stored, copied(patch))) !== undefined);
  expect(accepted.length).toBeGreaterThan(5);
});

test("the corpus has requests of every dialect", () => {
  expect(Object.keys(codecs).sort()).toEqual([...clientDialects].sort() as ClientDialect[]);
});
