/**
 * What survives between dialects, found out: each idea is spelt in every dialect that has a word for it, read by the one
 * codec and written by the other, and looked for in what comes out.
 */
import { codecs } from "../../dialects/codecs";
import { adapt } from "../../dialects/hub/adapt";
import {
  type ClientDialect,
  clientDialects,
  type Dialect,
  dialects,
  type JsonObject,
} from "../../dialects/hub/conversation";
import type { ModelFacts } from "../../dialects/hub/model";
import { unnoted } from "../../dialects/hub/notes";
import { offerFunctions } from "../../dialects/hub/server-offers";
import { ProxyError } from "../../lib/errors";
import { isObject } from "../../lib/json";
import { serverTools } from "../../proxy/server-tools/tools";
import { exampleModels } from "../../proxy/upstream/models/known-models";
import { ableModel } from "./able-model";
import { geminiReader } from "./gemini-reply";
import { plainReplies, plainRequests } from "./plain-bodies";
import { replies } from "./reply-ideas";
import { requests } from "./request-ideas";
import type { Idea } from "./spellings";

type Fate = "kept" | "carried" | "dropped" | "refused" | "left out" | "–";

/** Client first, upstream second. */
export const pairs = clientDialects.flatMap((client) =>
  dialects.filter((upstream) => upstream !== client).map((upstream) => [client, upstream] as const),
);

export function fidelityTable(): string {
  const rows = [
    ["in a request", ...pairs.map(([client, upstream]) => `${client} → ${upstream}`)],
    ...requests.map((idea) => [idea.name, ...pairs.map(([client, upstream]) => requestFate(idea, client, upstream))]),
  ];
  const replyRows = [
    ["in a reply", ...pairs.map(([client, upstream]) => `${client} ← ${upstream}`)],
    ...replies.map((idea) => [idea.name, ...pairs.map(([client, upstream]) => replyFate(idea, client, upstream))]),
  ];
  return `${markdown(rows)}\n\n${markdown(replyRows)}`;
}

function markdown([head = [], ...rows]: string[][]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** A model that can do everything, of the maker whose own dialect it is. */
const models: Record<Dialect, ModelFacts> = {
  chat: ableModel(exampleModels.small, "OpenAI"),
  responses: ableModel(exampleModels.gpt, "OpenAI"),
  messages: ableModel(exampleModels.claude, "Anthropic"),
};

/** Where the idea went that a client of the one dialect sends to an upstream of the other. */
export function requestFate(idea: Idea, client: ClientDialect, upstream: Dialect): Fate {
  const said = spelling(idea, client, upstream);
  if (!said) return "–";
  const plain = translated({}, client, upstream);
  let told: Translated;
  try {
    told = translated(said, client, upstream);
  } catch (thrown) {
    if (thrown instanceof ProxyError) return "refused";
    throw thrown;
  }
  const isTold = told.dropped.some((name) => !plain.dropped.includes(name));
  const own = spelling(idea, upstream, upstream);
  const word = own ? without(respelt(own, upstream), respelt({}, upstream)) : [];
  if (arrived(idea, told.leaves)) {
    if (!idea.isAnotherForm && word.length > 0 && word.every((leaf) => told.leaves.includes(leaf))) return "kept";
    const isElsewhere = without(told.leaves, plain.leaves).length > 0;
    if (isElsewhere && (!isTold || idea.needle !== undefined)) return "carried";
  }
  return isTold ? "dropped" : "left out";
}

/** Where the idea went that an upstream of the one dialect answers to a client of the other. */
export function replyFate(idea: Idea, client: ClientDialect, upstream: Dialect): Fate {
  const said = spelling(idea, upstream, upstream);
  if (!said) return "–";
  const told = answered(said, client, upstream);
  if (!arrived(idea, told)) return "–";
  const own = spelling(idea, client, client);
  const word = own ? without(answered(own, client, client), answered(plainReplies[client], client, client)) : [];
  if (word.length > 0 && word.every((leaf) => told.includes(leaf))) return "kept";
  return without(told, answered(plainReplies[upstream], client, upstream)).length > 0 ? "carried" : "–";
}

function spelling({ said }: Idea, dialect: ClientDialect, upstream: ClientDialect): JsonObject | undefined {
  const words = said[dialect];
  return typeof words === "function" ? words(upstream) : words;
}

function arrived({ needle }: Idea, leaves: string[]): boolean {
  if (needle === undefined) return true;
  return leaves.some((leaf) => (typeof needle === "string" ? leaf.includes(needle) : needle.test(leaf)));
}

interface Translated {
  leaves: string[];
  dropped: string[];
}

/** As `relay/translation` does it. */
function translated(said: JsonObject, client: ClientDialect, upstream: Dialect): Translated {
  const decoded = codecs[client].decodeRequest({ ...plainRequests[client], ...said });
  const { conversation } = offerFunctions(decoded, serverTools["web-search"].form) ?? { conversation: decoded };
  const dropped: string[] = [];
  const notes = { ...unnoted, addDropped: (name: string) => void dropped.push(name) };
  const adapted = adapt(conversation, upstream, "", notes);
  const written = codecs[upstream].encodeRequest(adapted.conversation, models[upstream], { webSearch: true, notes });
  return { leaves: leavesOf(written), dropped };
}

/** The dialect's own request, as it writes it itself. */
function respelt(said: JsonObject, dialect: Dialect): string[] {
  const conversation = codecs[dialect].decodeRequest({ ...plainRequests[dialect], ...said });
  return leavesOf(codecs[dialect].encodeRequest(conversation, models[dialect], { webSearch: true }));
}

function answered(reply: JsonObject, client: ClientDialect, upstream: ClientDialect): string[] {
  const asked = codecs[client].decodeRequest({ ...plainRequests[client], ...wishes[client] });
  const { decodeReply } = upstream === "gemini" ? geminiReader : codecs[upstream];
  return leavesOf(codecs[client].encodeReply(decodeReply(reply), asked));
}

/** What a client must ask for to be shown all of a reply. */
const wishes: Partial<Record<ClientDialect, JsonObject>> = {
  gemini: { generationConfig: { thinkingConfig: { includeThoughts: true } } },
};

/** Every value of the body with the way to it, places in lists, made ids and times left aside. */
function leavesOf(value: unknown, path = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((member) => leavesOf(member, `${path}[]`));
  if (isObject(value))
    return Object.entries(value).flatMap(([key, member]) => (made.has(key) ? [] : leavesOf(member, `${path}.${key}`)));
  return [`${path}=${JSON.stringify(path.endsWith(".thoughtSignature") ? unpacked(String(value)) : value)}`];
}

/** Google's signatures are base64, also those that dragoman packed. */
function unpacked(signature: string): string {
  const text = Buffer.from(signature, "base64").toString();
  return text.startsWith("dragoman.") ? text : signature;
}

const made = new Set(["id", "created", "created_at", "responseId"]);

const without = (leaves: string[], others: string[]): string[] => leaves.filter((leaf) => !others.includes(leaf));
