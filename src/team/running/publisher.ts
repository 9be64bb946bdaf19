/** Sends the other servers what runs here, as long as somebody watches there: bounded, and gathered for a moment. */
import type { Entry } from "../../history/entry";
import type { InFlight, InFlightEvent, InFlightRequest } from "../../history/in-flight";
import { fairShare } from "../../history/running-requests";
import { everybody, isIn, type RunningItem, type WatchedGroup } from "./messages";

/** What a server asks of the others for those who watch there. */
export interface WatchOrder {
  groups: WatchedGroup[];
  /** Milliseconds for which the order holds, unless it is repeated. */
  holds: number;
  /** All of the groups is to be sent now, not only what changes. */
  fresh: boolean;
  /** How many requests of a group are sent at most: of each member the oldest, as `fairShare` has it. */
  limit: number;
  /** Milliseconds for which changes are gathered. */
  every: number;
}

export interface RunningPublisher {
  accept(order: WatchOrder): void;
  /** Reports that this server stops, if somebody watches. */
  close(): Promise<void>;
}

/** Milliseconds between two tries while messages cannot be sent. */
const retryMs = 1_000;
/** Milliseconds for which orders that come together are gathered. */
const orderMs = 5;

interface Group {
  /** By the monotonic clock, ms. */
  until: number;
  /** All of it is to be sent. */
  isStale: boolean;
  /** The ids of what is sent. */
  sent: Set<string>;
  /** The number that was last sent. */
  count: number;
}

/**
 * @param send Sends the items to the others. It rejects if that is not possible now; then it is tried again.
 * @param failed Called with the error of `send`.
 */
export function openRunningPublisher(
  inFlight: InFlight,
  send: (items: RunningItem[]) => Promise<void>,
  failed: (thrown: unknown) => void,
): RunningPublisher {
  const groups = new Map<WatchedGroup, Group>();
  const running = new Map<string, InFlightRequest>();
  const changed = new Set<string>();
  const ended = new Map<string, Entry>();
  let hasMissed = false;
  let [limit, every] = [1, retryMs];
  let unwatch: (() => void) | undefined;
  let timer: Timer | undefined;
  let sending: Promise<void> | undefined;

  const schedule = (ms: number) => {
    timer ??= setTimeout(() => {
      timer = undefined;
      sending ??= publish().finally(() => {
        sending = undefined;
        if (hasNews()) schedule(every);
      });
    }, ms).unref();
  };
  const hasNews = () =>
    hasMissed || changed.size > 0 || ended.size > 0 || [...groups.values()].some(({ isStale }) => isStale);

  const onEvent = (event: InFlightEvent) => {
    if (event.type === "running") {
      running.set(event.running.request_id, event.running);
      changed.add(event.running.request_id);
    } else {
      const { request_id: id } = event.entry;
      running.delete(id);
      changed.delete(id);
      if (![...groups.keys()].some((group) => isIn(group, event.entry))) return;
      const fits = ended.size < limit;
      if (fits) ended.set(id, event.entry);
      else hasMissed = true;
      // Without a message that it ended, it would stay in the lists of others.
      for (const group of groups.values()) if (group.sent.delete(id) && !fits) group.isStale = true;
    }
    schedule(every);
  };

  const publish = async (): Promise<void> => {
    for (const [name, { until }] of groups) if (until <= performance.now()) groups.delete(name);
    if (groups.size === 0) return stop();
    const items = news();
    changed.clear();
    ended.clear();
    hasMissed = false;
    try {
      await send(items);
    } catch (thrown) {
      failed(thrown);
      // What is lost with it is made up for by all that is there.
      for (const group of groups.values()) group.isStale = true;
      hasMissed = true;
      every = Math.max(every, retryMs);
    }
  };

  const news = (): RunningItem[] => {
    const counts = countsOf(running.values());
    const items: RunningItem[] = [...ended.values()].map((entry) => ({ ended: entry }));
    const added = new Set<string>();
    for (const [name, group] of groups) {
      const count = counts.get(name) ?? 0;
      const mayChange = count > limit || group.sent.size < count;
      const listed = mayChange ? chooseListed(name, group, running.values(), limit) : { added: [], dropped: [] };
      if (!group.isStale) {
        for (const id of listed.added) added.add(id);
        items.push(...listed.dropped.map((id) => ({ group: name, dropped: id })));
      }
      if (group.isStale) {
        const all = [...group.sent].flatMap((id) => running.get(id) ?? []);
        items.push({ begin: name }, ...all.map((request) => ({ running: request })), { end: name });
      }
      if (group.isStale || count !== group.count) items.push({ group: name, count });
      group.isStale = false;
      group.count = count;
    }
    const inSome = (id: string) => [...groups.values()].some(({ sent }) => sent.has(id));
    const changes = [...new Set([...changed, ...added])].filter(inSome);
    items.push(...changes.flatMap((id) => running.get(id) ?? []).map((request) => ({ running: request })));
    if (hasMissed) items.push({ missed: true });
    return items;
  };

  const start = () => {
    for (const request of inFlight.running()) running.set(request.request_id, request);
    unwatch = inFlight.watch(onEvent);
  };
  const stop = () => {
    unwatch?.();
    unwatch = undefined;
    for (const each of [groups, running, changed, ended]) each.clear();
    hasMissed = false;
  };

  return {
    accept(order) {
      [limit, every] = [order.limit, order.every];
      if (!unwatch) start();
      const until = performance.now() + order.holds;
      let isUrgent = order.fresh;
      for (const name of order.groups) {
        const known = groups.get(name);
        isUrgent ||= known === undefined;
        groups.set(name, {
          until,
          isStale: order.fresh || (known?.isStale ?? true),
          sent: known?.sent ?? new Set(),
          count: known?.count ?? 0,
        });
      }
      if (isUrgent) {
        clearTimeout(timer);
        timer = undefined;
      }
      // Without news it says that this server is there.
      schedule(isUrgent ? orderMs : every);
    },
    async close() {
      clearTimeout(timer);
      await sending;
      const isWatched = groups.size > 0;
      stop();
      if (isWatched) await send([{ gone: true }]).catch(() => {}); // its silence says the same, later
    },
  };
}

function countsOf(running: Iterable<InFlightRequest>): Map<WatchedGroup, number> {
  const counts = new Map<WatchedGroup, number>([[everybody, 0]]);
  for (const { member } of running) {
    counts.set(everybody, counts.get(everybody)! + 1);
    if (member !== null) counts.set(member, (counts.get(member) ?? 0) + 1);
  }
  return counts;
}

/** Brings what is sent of the group up to date. @returns The ids that were added, and those that make room for them. */
function chooseListed(name: WatchedGroup, { sent }: Group, running: Iterable<InFlightRequest>, limit: number) {
  const all = [...running].filter((request) => isIn(name, request));
  const chosen = new Set(fairShare(all, limit).map(({ request_id }) => request_id));
  const added = [...chosen].filter((id) => !sent.has(id));
  const dropped = [...sent].filter((id) => !chosen.has(id));
  for (const id of dropped) sent.delete(id);
  for (const id of added) sent.add(id);
  return { added, dropped };
}
