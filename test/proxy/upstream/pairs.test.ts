/** Pairs: what an upstream's error means, and what its list of models says, from `fixtures/pairs/upstream/`. */

import type { Failure } from "../../../src/proxy/upstream/copilot/failure";
import { readBrokenReply, readFailure, writtenOfReply } from "../../../src/proxy/upstream/copilot/failure";
import { patternOf, withoutParams } from "../../../src/proxy/upstream/copilot/unsupported-params";
import { readModel } from "../../../src/proxy/upstream/models/model";
import { findModel } from "../../../src/proxy/upstream/models/model-name";
import { costOf } from "../../../src/proxy/upstream/models/price";
import { changes, testPairs } from "../../support/pairs";

const now = Date.parse("2026-07-20T10:00:00Z");

/** What a failure means, without what says nothing. The account's reason is the error's words unless it is shown. */
function meant({ error, reason, values, ...others }: Failure) {
  const { message: told, written, status, details } = error;
  return {
    ...others,
    ...(Object.keys(values ?? {}).length > 0 && { values }),
    ...(!Bun.deepEquals(reason, { told, written }) && { reason }),
    ...{ status, code: details.code, headers: details.headers, told, written },
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
});
