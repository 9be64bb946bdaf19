/** Pairs: what an upstream's error means, and what its list of models says, from `fixtures/pairs/upstream/`. */

import { isKnownHeader } from "../../../src/books/changes/known-names";
import { warningInWords, warningsOf } from "../../../src/books/changes/warnings";
import type { JsonObject } from "../../../src/dialects/hub/conversation";
import type { Account } from "../../../src/people/accounts/account";
import { RecentItems } from "../../../src/proxy/recent-items";
import { matchTools } from "../../../src/proxy/server-tools/tool-match";
import { isAllowedPage } from "../../../src/proxy/server-tools/web-search";
import { labelOf, modelOf, strongest, tokenOf, turnPlanOf } from "../../../src/proxy/upstream/copilot/auto-answer";
import { autoModel, hasOnlyAuto, mayHaveOnlyAuto, picksNone } from "../../../src/proxy/upstream/copilot/auto-model";
import type { Failure } from "../../../src/proxy/upstream/copilot/failure";
import {
  readBrokenReply,
  readFailure,
  upstreamErrorIn,
  writtenOfReply,
} from "../../../src/proxy/upstream/copilot/failure";
import { isKnownCode, isSuspensionEvent, statuses, statusOf } from "../../../src/proxy/upstream/copilot/failure-match";
import { rows } from "../../../src/proxy/upstream/copilot/failure-rows";
import { patternOf, refusedParam, withoutParams } from "../../../src/proxy/upstream/copilot/unsupported-params";
import { codexAliases, codexCatalogue } from "../../../src/proxy/upstream/models/codex-catalogue";
import { googleAliases } from "../../../src/proxy/upstream/models/google-names";
import { readModel } from "../../../src/proxy/upstream/models/model";
import { findModel, nearest } from "../../../src/proxy/upstream/models/model-name";
import { clientModels, listedModel } from "../../../src/proxy/upstream/models/model-view";
import { cacheSaving, costOf, dearestOf } from "../../../src/proxy/upstream/models/price";
import { isLongDearer, type Price } from "../../../src/proxy/upstream/models/price-list";
import { clientLimitsOf, promptLimitOf } from "../../../src/proxy/upstream/models/prompt-limit";
import { changes, testPairs } from "../../support/pairs";

const now = Date.parse("2026-07-20T10:00:00Z");

/** What a failure means, without what says nothing. The account's reason is the error's words unless it is shown. */
function meant({ error, reason, values, ...others }: Failure) {
  const { message: told, written, status, details } = error;
  return {
    ...others,
    ...(Object.keys(values ?? {}).length > 0 && { values }),
    ...(!Bun.deepEquals(reason, { told, written }) && { reason }),
    ...{ kind: error.kind, status, code: details.code, headers: details.headers, told, written },
  };
}

const unknown = readModel({ id: "unknown" })!;

/** A model of the list: what is other than of one of which nothing is known, or all of it. */
function modelAs(item: unknown, how?: "whole") {
  const model = readModel(item);
  if (!model || how === "whole") return model;
  const { id, supports, ...others } = model;
  return {
    ...changes({ ...unknown, id, name: id, version: id, supports }, { ...others, id, supports }),
    supports: changes(unknown.supports, supports),
  };
}

const chat = (more: object) => readModel({ id: "m", capabilities: { type: "chat" }, ...more })!;
const anyPrice = { input: 1, output: 10, cachedInput: undefined, cacheWrite: undefined, cacheWriteHour: undefined };

const ids =
  "claude-sonnet-4.5 claude-sonnet-4 claude-opus-4.6 claude-opus-4.6-1m claude-haiku-4.5 gpt-5-mini gpt-4o-2024-11-20 gemini-3.1-pro-preview";
const models = ids.split(" ").map((id) => ({ id }));
const patterns = {
  "*": "gpt-5-mini",
  "claude-*": "claude-sonnet-4.5",
  "claude-*-next": "claude-opus-4.6",
  "claude-x": "claude-sonnet-4",
  "*t*h*i*r*d*": "claude-opus-4.6",
  "third-*": "claude-sonnet-4",
};

testPairs("upstream", {
  /** A name, and tables of aliases. */
  "model-name": (name: string, ...tables: (Record<string, string> | "patterns")[]) =>
    findModel(name, models, ...tables.map((table) => (table === "patterns" ? patterns : table))).id,
  /** A model as the list has it. */
  model: modelAs,
  /** A body, and the names of parameters that are refused. */
  "without-params": (body: object, ...params: string[]) =>
    JSON.parse(
      withoutParams(
        JSON.stringify(body),
        params.map((param) => patternOf(param)!),
      ).text,
    ),
  /** A status, a body as text or JSON, and headers. */
  failure: (status: number, body: unknown, headers: Record<string, string> = {}) =>
    meant(readFailure(status, new Headers(headers), typeof body === "string" ? body : JSON.stringify(body), now)),
  "broken-reply": (error: Parameters<typeof readBrokenReply>[0]) => meant(readBrokenReply(error, new Headers(), now)),
  /** An error within a reply, and who reported it. */
  "written-of-reply": (...given: Parameters<typeof writtenOfReply>) => writtenOfReply(...given),
  /** What the list says of a model's price, and its id. */
  price: (billing: unknown, id = "m") => readModel({ id, capabilities: { type: "chat" }, billing })!.price,
  /** A price, what was used, whether a person asked, and what is known of the plan. */
  cost: (...given: Parameters<typeof costOf>) => costOf(...given),
  "long-dearer": (price: Price) => isLongDearer(price),
  dearest: (...models: Parameters<typeof dearestOf>[0]) => dearestOf(models),
  /** A price, and tokens that were read from the cache and written to it. */
  "cache-saving": (...given: Parameters<typeof cacheSaving>) => cacheSaving(...given),
  /** What clients are given, and what is found of it later: `has` tells only whether it is there, `many` the first of many. */
  "recent-items"(...steps: ["keep" | "find" | "pass" | "has" | "large" | "many", ...never[]][]) {
    let now = 0;
    const recent = new RecentItems(() => now);
    const large = (owner: string, id: string, bytes: number) =>
      recent.keep(owner, { id, text: "x".repeat(bytes - JSON.stringify({ id, text: "" }).length) });
    const acts: Record<string, (...given: never[]) => unknown> = {
      keep: (owner: string, item: JsonObject) => recent.keep(owner, item),
      find: (owner: string, id: string) => recent.find(owner, id) ?? null,
      has: (owner: string, id: string) => recent.find(owner, id) !== undefined,
      pass(ms: number) {
        now += ms;
      },
      large,
      many(count: number, bytes: number) {
        const ids = Array.from({ length: count }, (_, at) => String(at));
        for (const id of ids) large("me", id, bytes);
        return ids.find((id) => recent.find("me", id));
      },
    };
    return steps.map(([name, ...given]) => acts[name]!(...given)).filter((found) => found !== undefined);
  },
  /** What the list has: Auto, or one of its tiers. */
  "auto-model": (items: object[], id?: string) =>
    autoModel(
      items.map((item) => readModel(item)!),
      id,
    ),
  /** What the list has, a plan, and whether it refuses names: whether it may have nothing but Auto, and whether it has. */
  "auto-only"(items: object[], plan: string | null, refusesNames: boolean) {
    const account = { knownQuota: plan === null ? undefined : { plan } } as Account;
    const signs = { picksNone: picksNone(items.map((item) => readModel(item)!)), refusesNames };
    return [mayHaveOnlyAuto(account, signs), hasOnlyAuto(account, signs)];
  },
  /** A model of the list: as clients see it, and what their settings have. */
  "listed-model"(item: object) {
    const listed = listedModel(readModel(item)!, { maxPromptTokens: {} });
    return { listed, settings: clientModels([listed]) };
  },
  /** Models of the list as Codex reads them, without its instructions, and the one that reviews approvals. */
  codex(...items: object[]) {
    const models = items.map((item) => readModel(item)!);
    const { models: entries } = codexCatalogue(models, { maxPromptTokens: {} }) as { models: JsonObject[] };
    const told = entries.map(({ base_instructions, ...entry }) => changes({ shell_type: "unified_exec" }, entry));
    return { told, review: [codexAliases("codex-auto-review", models), codexAliases("gpt-6", models)] };
  },
  "tool-match": (given: Parameters<typeof matchTools>[0]) => matchTools(given),
  "allowed-page": (...given: Parameters<typeof isAllowedPage>) => isAllowedPage(...given),
  /** What the list says beside of a model: the warnings in it. */
  warnings: (more: object) => chat(more).warnings,
  /** Models of the list: what people are told of all of them. */
  "told-warnings": (...models: { id: string }[]) => warningsOf(models.map(chat)).map(warningInWords),
  /** An error of the upstream: the parameter that it names, and what is left out for it. */
  "refused-param"(error: Parameters<typeof refusedParam>[0]) {
    const param = refusedParam(error);
    return param && [param, patternOf(param)];
  },
  /** Parameters: those that may be left out. */
  removable: (...params: string[]) => params.filter((param) => patternOf(param) !== undefined),
  /** The text of a body, and what is left out of it. */
  lighter: (text: string, ...patterns: string[]) => withoutParams(text, patterns),
  /** One of Google's names, and models by their ids with their prices, of which some are light, or hold `none`. */
  google: (name: string, models: Record<string, [input: number, what?: "light" | "none", per?: number]>) =>
    googleAliases(
      name,
      Object.entries(models).map(([id, [input, what, per = 1_000_000]]) => ({
        ...chat({ id, model_picker_category: what === "light" ? "lightweight" : "powerful" }),
        ...(what === "none" && { dialects: [] }),
        price: { premium: true, tokens: { ...anyPrice, input, per } },
      })),
    ),
  /** A model of the list, and the limits of the owner: above which length dragoman refuses, and what clients are told. */
  "prompt-limit"(item: object, maxPromptTokens: Record<string, number>) {
    const model = readModel(item)!;
    return [promptLimitOf(model, { maxPromptTokens }) ?? null, clientLimitsOf(model, { maxPromptTokens })];
  },
  /** An answer of Auto, and the list: what is read of it. */
  "auto-answer": (answer: Record<string, unknown>, ...items: object[]) => ({
    token: tokenOf(answer),
    model: changes(
      unknown,
      modelOf(
        answer.selected_model,
        items.map((item) => readModel(item)!),
      ),
    ),
    why: [strongest(answer.hydra_scores), labelOf(answer.predicted_label)],
  }),
  /** What Auto says of further turns. */
  "turn-plan": (answer: Record<string, unknown>) => turnPlanOf(answer),
  nearest: (name: string, ...ids: string[]) =>
    nearest(
      name,
      ids.map((id) => ({ id })),
    ),
  /** The code and message of an error in a stream. */
  suspended: (code: string, message: string) => isSuspensionEvent(code, message),
  /** The code of an error with status 200: the status that it means, and how many rows and patterns say so. */
  status: (code: string) => [
    statusOf(code),
    rows.filter((row) => row.stream !== undefined && row.code!.test(code)).length,
    statuses.filter(([pattern]) => pattern.test(code)).length,
  ],
  /** A body that should have been a stream. */
  "error-in": (body: string) => upstreamErrorIn(body),
  /** Error codes and names of headers: those that are known. */
  known: (codes: string[], headers: string[]) => [codes.filter(isKnownCode), headers.filter(isKnownHeader)],
});
