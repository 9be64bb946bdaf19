/**
 * What the pages of this server watch, ordered from the other servers. An order holds for some seconds and is repeated while it
 * is needed, so that a server that is killed leaves nobody working for it.
 */
import { plural } from "../../format";
import type { Entry } from "../../history/entry";
import type { InFlightRequest } from "../../history/in-flight";
import { isAwayError } from "../away";
import type { ServerParts } from "../parts";
import { otherReplicas } from "../replica";
import { openRunningChannel } from "./channel";
import type { WatchedGroup } from "./messages";
import type { WatchOrder } from "./publisher";
import { notifySealed } from "./sealed";
import { openRunningView } from "./view";

export interface RunningOrders {
  /** Keeps the group current. @returns A function that ends it. */
  hold(group: WatchedGroup): () => void;
  /** Settles when the other servers have answered, and after a second at most. */
  asked(group: WatchedGroup): Promise<void>;
  /** What the others run. @returns `gap`: why something may be missing, as a sentence. */
  of(group: WatchedGroup): { running: InFlightRequest[]; count: number; gap: string | undefined };
  find(requestId: string): InFlightRequest | undefined;
  /** Forgets a request that was cancelled, until more is heard of it. */
  ended(requestId: string): void;
  close(): void;
}

interface OrderParts extends Omit<ServerParts, "changes"> {
  /** How many requests of a group are listed, of all servers together. */
  maxListed: number;
  running(request: InFlightRequest): void;
  ended(entry: Entry): void;
  missed(): void;
  /** The group is to be read again; without one, all of them. */
  renewed(group?: WatchedGroup): void;
}

interface Ordered {
  watchers: number;
  /** Until then it is kept without a watcher: a page without script asks again and again. By the monotonic clock, ms. */
  until: number;
  /** Until then those who ask wait for the others. */
  waitUntil: number;
  isSent: boolean;
  /** As it was last reported. */
  gap: string | undefined;
  answered: PromiseWithResolvers<void>;
}

export const orderTopic = "running order";
/** Ids of groups and of servers in one message, which has room for 140. */
const [groupsInOrder, maxNamed] = [70, 60];
const maxGroups = 1_000;
/** Milliseconds. */
const patienceMs = 1_000;
/** A page without script loads itself anew every five seconds. */
const lingerMs = 5_500;
const tickEvery = 1_000;
const renewEvery = 3_000;
const orderHolds = 5_000;
/** A server from which nothing was heard for so long, though each order is answered. */
const silentAfter = 6_500;
/** At most so many milliseconds, changes are gathered: the more servers, the longer, so that messages do not become more. */
const [minEvery, everyPerServer, maxEvery] = [250, 25, 2_000];
const minLimit = 5;

export function openRunningOrders(parts: OrderParts): RunningOrders {
  const { postgres, replica, logger, renewed } = parts;
  const groups = new Map<WatchedGroup, Ordered>();
  let others = new Set<string>();
  let isAway = false;
  let sentAt = Number.NEGATIVE_INFINITY;
  let ticking: Timer | undefined;
  let isSending = false;

  const silentOf = (name: WatchedGroup) => [...others].filter((server) => !view.answered(name).has(server));
  const settle = (name: WatchedGroup) => {
    const group = groups.get(name);
    if (group?.isSent && silentOf(name).length === 0) group.answered.resolve();
  };
  const view = openRunningView({
    running: parts.running,
    ended: parts.ended,
    missed: parts.missed,
    complete(name, isNews) {
      settle(name);
      report(name, isNews);
    },
    gone(server) {
      others.delete(server);
      renewed();
    },
    lost: (server) => void send([...groups.keys()], [server]),
  });
  const isDown = () => isAway || postgres.isAway;
  const gapOf = (name: WatchedGroup): string | undefined => {
    if (isDown()) return awayGap;
    if (!groups.get(name)?.isSent) return "The other servers have not answered yet.";
    const silent = silentOf(name).length;
    return silent === 0 ? undefined : silentGap(silent, others.size);
  };
  /** @param isNews Something else has changed. */
  const report = (name: WatchedGroup, isNews = false) => {
    const group = groups.get(name);
    const gap = gapOf(name);
    if (!group || (gap === group.gap && !isNews)) return;
    group.gap = gap;
    renewed(name);
  };
  const reportGaps = () => {
    for (const name of groups.keys()) report(name);
  };

  const channel = openRunningChannel(parts, {
    heard(message) {
      if (message.from === replica) return;
      others.add(message.from);
      view.read(message);
    },
    again() {
      view.restart();
      void send([...groups.keys()], true);
    },
  });

  /** @param fresh Whether the others send all of the groups, or which of them do. */
  const send = async (names: WatchedGroup[], fresh: boolean | string[]): Promise<void> => {
    try {
      others = new Set(await otherReplicas(postgres, replica));
      await channel.open();
      if (others.size > 0) await notify(parts, names, { fresh, ...paceOf(others.size + 1, parts.maxListed) });
      isAway = false;
      for (const name of names) {
        const group = groups.get(name);
        if (group) group.isSent = true;
        settle(name);
      }
    } catch (thrown) {
      // It is tried again every second.
      if (!isAwayError(thrown) && !isAway)
        logger().error("Other servers could not be asked for what they run.", thrown);
      isAway = true;
      view.clear();
      for (const { answered } of groups.values()) answered.resolve();
    }
    reportGaps();
  };

  const tick = async (): Promise<void> => {
    const now = performance.now();
    for (const [name, { watchers, until }] of groups) if (watchers === 0 && until <= now) drop(name);
    if (groups.size === 0) return stop();
    if (view.forget((server, heardAt) => heardAt < now - silentAfter || !others.has(server))) renewed();
    reportGaps();
    // An order may get lost while the connections of others are down, so who has not answered is asked again.
    const silent = [...new Set([...groups.keys()].flatMap(silentOf))];
    const isCurrent = !isDown() && silent.length === 0;
    if (isSending || (isCurrent && now - sentAt < renewEvery)) return;
    isSending = true;
    sentAt = now;
    await send([...groups.keys()], isAway || silent.length > maxNamed || silent);
    isSending = false;
  };
  const drop = (name: WatchedGroup) => {
    groups.delete(name);
    view.remove(name);
  };
  const stop = () => {
    clearInterval(ticking);
    ticking = undefined;
    channel.close();
    view.clear();
  };

  const ordered = (name: WatchedGroup): Ordered => {
    const known = groups.get(name);
    if (known) return known;
    if (groups.size >= maxGroups) for (const [idle, { watchers }] of groups) if (watchers === 0) drop(idle);
    const until = performance.now() + lingerMs;
    const waitUntil = performance.now() + patienceMs;
    const group: Ordered = {
      watchers: 0,
      until,
      waitUntil,
      isSent: false,
      gap: undefined,
      answered: Promise.withResolvers(),
    };
    groups.set(name, group);
    view.add(name);
    ticking ??= setInterval(tick, tickEvery).unref();
    void send([name], true);
    return group;
  };

  return {
    hold(name) {
      const group = ordered(name);
      group.watchers += 1;
      return () => {
        group.watchers -= 1;
        group.until = performance.now() + lingerMs;
      };
    },
    async asked(name) {
      const group = ordered(name);
      group.until = performance.now() + lingerMs;
      const { promise, resolve } = Promise.withResolvers<void>();
      const limit = setTimeout(resolve, Math.max(0, group.waitUntil - performance.now()));
      await Promise.race([group.answered.promise, promise]);
      clearTimeout(limit);
    },
    of: (name) => ({ ...(isDown() ? nothing : view.of(name)), gap: gapOf(name) }),
    find: view.find,
    ended: view.end,
    close() {
      groups.clear();
      stop();
    },
  };
}

export const awayGap = "The database cannot be used now, so it is unknown what other servers run.";
export const silentGap = (silent: number, others: number) =>
  `${plural(silent, "server")} of ${others + 1} did not answer, so it is unknown what runs there.`;

const nothing = { running: [], count: 0 };

const paceOf = (servers: number, maxListed: number) => ({
  holds: orderHolds,
  limit: Math.max(minLimit, Math.floor(maxListed / servers)),
  every: Math.min(maxEvery, Math.max(minEvery, everyPerServer * servers)),
});

type SentOrder = Omit<WatchOrder, "groups" | "fresh"> & { fresh: boolean | string[] };

async function notify(parts: OrderParts, groups: WatchedGroup[], order: SentOrder): Promise<void> {
  for (let at = 0; at < groups.length; at += groupsInOrder) {
    const named = groups.slice(at, at + groupsInOrder);
    await notifySealed(parts, { topic: orderTopic, from: parts.replica, groups: named, ...order });
  }
}

/** @param replica The id of this server. @returns The order of another server; undefined if it cannot be read. */
export function readOrder(message: Record<string, unknown>, replica: string): WatchOrder | undefined {
  const { groups, fresh, ...pace } = message;
  const [holds, limit, every] = [pace.holds, pace.limit, pace.every].map(Number);
  if (message.from === replica || !Array.isArray(groups) || !holds || !limit || !every) return undefined;
  return {
    groups: groups.filter((name) => typeof name === "string"),
    fresh: Array.isArray(fresh) ? fresh.includes(replica) : fresh === true,
    ...{ holds, limit, every },
  };
}
