/**
 * The running requests of all servers of a team. Nothing is sent while nobody watches: a server whose pages are open orders what
 * it needs from the others, and again every few seconds; they send what changes until the order has expired.
 */
import type { InFlight } from "../../history/in-flight";
import {
  cancelHere,
  fairShare,
  findHere,
  isOf,
  openWatchers,
  type RunningCount,
  type RunningList,
  type RunningRequests,
} from "../../history/running-requests";
import { isAwayError } from "../away";
import type { ServerParts } from "../parts";
import { groupOf, payloadsOf, type RunningItem, runningChannel, type WatchedGroup } from "./messages";
import { awayGap, openRunningOrders, orderTopic, readOrder, silentGap } from "./orders";
import { openRunningPublisher } from "./publisher";
import { openRunningQuestions } from "./questions";
import { onSealed, sealMessage } from "./sealed";

export interface PostgresRunning extends RunningRequests {
  /** Reports that this server stops. */
  leave(): Promise<void>;
}

interface RunningParts extends ServerParts {
  inFlight: InFlight;
}

/** Requests that are listed at most, of all servers together. */
const maxListed = 400;

export function openPostgresRunning(parts: RunningParts): PostgresRunning {
  const { postgres, seals, inFlight, replica, logger } = parts;
  const watchers = openWatchers(inFlight);
  let messages = 0;
  const publish = async (items: RunningItem[]): Promise<void> => {
    const all = payloadsOf(replica, messages, items);
    messages += all.length;
    const payloads = JSON.stringify(all.map((text) => sealMessage(seals, text)));
    await postgres.ask(
      (sql) =>
        sql`SELECT pg_notify(${runningChannel}, payload) FROM json_array_elements_text(${payloads}::text::json) payload`,
    );
  };
  const publisher = openRunningPublisher(inFlight, publish, (thrown) => {
    if (!isAwayError(thrown)) logger().error("Other servers could not be sent what runs here.", thrown);
  });
  const questions = openRunningQuestions(parts);
  const orders = openRunningOrders({
    ...parts,
    maxListed,
    running: (running) => watchers.emit({ type: "running", running }),
    ended: (entry) => watchers.emit({ type: "finished", entry }),
    missed: () => watchers.emit({ type: "missed" }),
    renewed: (group) => watchers.emit({ type: "renewed" }, group === undefined ? undefined : isGroup(group)),
  });
  onSealed(parts, orderTopic, (message) => {
    const order = readOrder(message, replica);
    if (order) publisher.accept(order);
  });

  const known = (member?: string): RunningList => {
    const own = inFlight.running().filter(isOf(member));
    const others = orders.of(groupOf(member));
    const all = [...own, ...others.running].sort((one, other) => one.started_at_ms - other.started_at_ms);
    return { running: fairShare(all, maxListed), count: own.length + others.count, gap: others.gap };
  };
  const countAll = async (member?: string): Promise<RunningCount> => {
    const own = inFlight.running().filter(isOf(member)).length;
    try {
      const { count, asked, silent } = await questions.count(member);
      return { count: own + count, gap: silent > 0 ? silentGap(silent, asked) : undefined };
    } catch (thrown) {
      if (!isAwayError(thrown)) logger().error("Other servers could not be asked how much they run.", thrown);
      return { count: own, gap: awayGap };
    }
  };
  const findKnown: RunningRequests["findKnown"] = (requestId, member) => {
    const found = findHere(inFlight, requestId, member) ?? orders.find(requestId);
    return found && isOf(member)(found) ? found : undefined;
  };
  return {
    async list(member) {
      await orders.asked(groupOf(member));
      return known(member);
    },
    count: (member) => countAll(member),
    known,
    findKnown,
    find: async (requestId, member) => findHere(inFlight, requestId, member) ?? questions.find(requestId, member),
    cancel: async (requestId, member) => cancelHere(inFlight, requestId, member) || questions.cancel(requestId, member),
    watch(watcher, member) {
      const leave = watchers.add(watcher, member);
      const release = orders.hold(groupOf(member));
      return () => {
        leave();
        release();
      };
    },
    close: watchers.close,
    async leave() {
      orders.close();
      await publisher.close();
    },
  };
}

const isGroup = (group: WatchedGroup) => (member: string | undefined) => groupOf(member) === group;
