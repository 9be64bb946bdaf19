/** What the other servers have said that they run, for each group that is watched here. */
import type { Entry } from "../../history/entry";
import type { InFlightRequest } from "../../history/in-flight";
import { isSameJson } from "../../json";
import { isIn, type RunningItem, type RunningMessage, type WatchedGroup } from "./messages";

export interface RunningView {
  /** Begins or ends to keep what is said of the group. */
  add(group: WatchedGroup): void;
  remove(group: WatchedGroup): void;
  read(message: RunningMessage): void;
  /** Requests of the group, and how many run in all. */
  of(group: WatchedGroup): { running: InFlightRequest[]; count: number };
  find(requestId: string): InFlightRequest | undefined;
  /** Forgets a request. */
  end(requestId: string): void;
  /** The servers that have sent all of the group. */
  answered(group: WatchedGroup): ReadonlySet<string>;
  /** No server counts as `answered` any more. */
  restart(): void;
  /** Forgets servers of which nothing was heard since a time. @returns Whether something was forgotten. */
  forget(isGone: (server: string, heardAt: number) => boolean): boolean;
  clear(): void;
}

/** What the view reports. */
export interface ViewListener {
  running(request: InFlightRequest): void;
  ended(entry: Entry): void;
  /** A server has sent all of the group. @param isNews Something of it was not known yet. */
  complete(group: WatchedGroup, isNews: boolean): void;
  missed(): void;
  /** A server has stopped. */
  gone(server: string): void;
  /** A message of a server was lost, so that it does not count as `answered` any more. */
  lost(server: string): void;
}

interface Kept {
  from: string;
  request: InFlightRequest;
}

interface Group {
  /** By request id. */
  kept: Map<string, Kept>;
  counts: Map<string, number>;
  answered: Set<string>;
}

export function openRunningView(listener: ViewListener): RunningView {
  const groups = new Map<WatchedGroup, Group>();
  const heard = new Map<string, { at: number; number: number }>();
  /** By server: the group that it is sending as a whole, and what it has sent of it. */
  const sending = new Map<string, { group: WatchedGroup; seen: Set<string>; isNews: boolean }>();

  const keep = (from: string, request: InFlightRequest) => {
    const id = request.request_id;
    const whole = sending.get(from);
    if (whole) {
      whole.seen.add(id);
      whole.isNews ||= !isSameJson(groups.get(whole.group)?.kept.get(id)?.request, request);
    }
    for (const [name, { kept }] of groups) if (isIn(name, request)) kept.set(id, { from, request });
    if (!whole) listener.running(request);
  };
  const endWhole = (from: string) => {
    const whole = sending.get(from);
    sending.delete(from);
    const group = whole && groups.get(whole.group);
    if (!group) return;
    let isNews = whole.isNews || !group.answered.has(from);
    for (const [id, kept] of group.kept)
      if (kept.from === from && !whole.seen.has(id)) {
        group.kept.delete(id);
        isNews = true;
      }
    group.answered.add(from);
    listener.complete(whole.group, isNews);
  };
  const endRequest = (id: string) => {
    for (const { kept } of groups.values()) kept.delete(id);
  };
  const forgetServer = (server: string) => {
    heard.delete(server);
    sending.delete(server);
    for (const { kept, counts, answered } of groups.values()) {
      for (const [id, { from }] of kept) if (from === server) kept.delete(id);
      counts.delete(server);
      answered.delete(server);
    }
  };
  const readItem = (from: string, item: RunningItem) => {
    if ("begin" in item) sending.set(from, { group: item.begin, seen: new Set(), isNews: false });
    else if ("running" in item) keep(from, item.running);
    else if ("end" in item) endWhole(from);
    else if ("ended" in item) {
      endRequest(item.ended.request_id);
      listener.ended(item.ended);
    } else if ("dropped" in item) {
      groups.get(item.group)?.kept.delete(item.dropped);
      listener.complete(item.group, true);
    } else if ("count" in item) groups.get(item.group)?.counts.set(from, item.count);
    else if ("missed" in item) listener.missed();
    else if ("gone" in item) {
      forgetServer(from);
      listener.gone(from);
    }
  };

  return {
    add(group) {
      if (!groups.has(group)) groups.set(group, { kept: new Map(), counts: new Map(), answered: new Set() });
    },
    remove: (group) => void groups.delete(group),
    read({ from, number, items }) {
      const last = heard.get(from);
      heard.set(from, { at: performance.now(), number });
      const isLost = last !== undefined && number !== last.number + 1;
      if (isLost) {
        sending.delete(from);
        for (const { answered } of groups.values()) answered.delete(from);
      }
      for (const item of items) readItem(from, item);
      if (isLost) listener.lost(from);
    },
    of(name) {
      const { kept, counts } = groups.get(name) ?? { kept: new Map<string, Kept>(), counts: new Map() };
      const listed = new Map<string, number>();
      for (const { from } of kept.values()) listed.set(from, (listed.get(from) ?? 0) + 1);
      const servers = new Set([...listed.keys(), ...counts.keys()]);
      const count = [...servers].reduce(
        (sum, server) => sum + Math.max(listed.get(server) ?? 0, counts.get(server) ?? 0),
        0,
      );
      return { running: [...kept.values()].map(({ request }) => request), count };
    },
    find(requestId) {
      for (const { kept } of groups.values()) {
        const found = kept.get(requestId);
        if (found) return found.request;
      }
      return undefined;
    },
    end: endRequest,
    answered: (group) => groups.get(group)?.answered ?? new Set(),
    restart() {
      for (const { answered } of groups.values()) answered.clear();
    },
    forget(isGone) {
      const gone = [...heard].filter(([server, { at }]) => isGone(server, at));
      for (const [server] of gone) forgetServer(server);
      return gone.length > 0;
    },
    clear() {
      for (const server of [...heard.keys()]) forgetServer(server);
    },
  };
}
