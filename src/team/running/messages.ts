/**
 * What servers send each other of the requests that they run, by NOTIFY. It is metadata as in the history: no prompt and no
 * answer. A message has at most `maxPayloadBytes`, so long ones go in several.
 */
import { cut, type Entry } from "../../history/entry";
import type { InFlightRequest } from "../../history/in-flight";
import { isObject, parseJson } from "../../json";
import { maxPayloadBytes } from "./sealed";

/** The channel of these messages. Only servers whose pages are being watched listen to it. */
export const runningChannel = "dragoman_running";

/** Whose requests are watched: a member's id, or `everybody`. */
export type WatchedGroup = string;
export const everybody: WatchedGroup = "";
export const groupOf = (member: string | undefined): WatchedGroup => member ?? everybody;
export const isIn = (group: WatchedGroup, { member }: Pick<InFlightRequest, "member">): boolean =>
  group === everybody || group === member;

/** In the order in which they are to be read. */
export type RunningItem =
  /** Between `begin` and `end` stands all that is sent of a group. */
  | { begin: WatchedGroup }
  | { running: InFlightRequest }
  | { end: WatchedGroup }
  | { ended: Entry }
  /** The id of a request that runs on, and is not listed any more because others have to be. */
  | { group: WatchedGroup; dropped: string }
  /** How many requests of the group run, also those that are not sent. */
  | { group: WatchedGroup; count: number }
  /** More has ended than was sent. */
  | { missed: true }
  /** The server stops. */
  | { gone: true };

export interface RunningMessage {
  /** The id of the server that runs them. */
  from: string;
  /** Counts the messages of the server, so that a lost one is noticed. */
  number: number;
  items: RunningItem[];
}

/**
 * @param first The number of the first message.
 * @returns Payloads that together have all items, at least one.
 */
export function payloadsOf(from: string, first: number, items: readonly RunningItem[]): string[] {
  const payloads: string[] = [];
  const payload = (texts: string[]) =>
    `{"from":${JSON.stringify(from)},"number":${first + payloads.length},"items":[${texts.join(",")}]}`;
  const room = maxPayloadBytes - payload([]).length;
  let texts: string[] = [];
  let bytes = 0;
  for (const item of items) {
    const text = fitting(item, room);
    const more = Buffer.byteLength(text) + 1;
    if (texts.length > 0 && bytes + more > room) {
      payloads.push(payload(texts));
      texts = [];
      bytes = 0;
    }
    texts.push(text);
    bytes += more;
  }
  payloads.push(payload(texts));
  return payloads;
}

function fitting(item: RunningItem, room: number): string {
  if ("running" in item) return JSON.stringify({ running: withinBytes(item.running, room) });
  if ("ended" in item) return JSON.stringify({ ended: withinBytes(item.ended, room) });
  return JSON.stringify(item);
}

/** Characters that are kept of each text, until the whole fits. */
const shorter = [100, 40, 16];
/** Bytes around a request. */
const aroundRequest = 50;

/** The request, with shorter texts if its JSON would be too long. Ids stay whole. */
export function withinBytes<Fields extends InFlightRequest>(request: Fields, bytes: number): Fields {
  const { request_id, parent_id, member } = request;
  let fits = request;
  for (const limit of shorter) {
    if (Buffer.byteLength(JSON.stringify(fits)) + aroundRequest <= bytes) break;
    fits = { ...cut(request, limit), request_id, parent_id, member };
  }
  return fits;
}

/** What another server sent, which may have another version; undefined if it cannot be read. */
export function readRunningMessage(payload: string): RunningMessage | undefined {
  const message = parseJson(payload);
  if (!isObject(message)) return undefined;
  const { from, number, items } = message;
  if (typeof from !== "string" || typeof number !== "number" || !Array.isArray(items)) return undefined;
  return { from, number, items: items.filter(isItem) };
}

const isItem = (item: unknown): item is RunningItem => {
  if (!isObject(item)) return false;
  const request = item.running ?? item.ended;
  return request === undefined || isRequest(request);
};

export const isRequest = (given: unknown): given is InFlightRequest =>
  isObject(given) && typeof given.request_id === "string" && typeof given.started_at_ms === "number";
