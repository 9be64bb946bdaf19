/** Questions to the other servers about one request: whether they run it, and to cancel it. Each answers at once. */
import { ProxyError } from "../../../errors";
import { plural } from "../../../format";
import type { InFlight, InFlightRequest } from "../../../history/in-flight";
import { cancelHere, findHere } from "../../../history/running-requests";
import type { Logger } from "../../../logger";
import { isAwayError, orAway } from "../away";
import type { Changes } from "../changes";
import type { Postgres } from "../connection";
import { otherReplicas } from "../replica";
import { isRequest, maxPayloadBytes, withinBytes } from "./messages";

export interface RunningQuestions {
  /** @param member Only the member's own requests exist. @throws ProxyError `unable` if not every server answers. */
  find(requestId: string, member?: string): Promise<InFlightRequest | undefined>;
  /** @returns Whether it was cancelled. */
  cancel(requestId: string, member?: string): Promise<boolean>;
}

interface QuestionParts {
  postgres: Postgres;
  changes: Changes;
  inFlight: InFlight;
  /** The id of this server. */
  replica: string;
  logger(): Logger;
}

interface Question {
  ask: "find" | "cancel";
  id: string;
  member: string | undefined;
}

interface Answer {
  from: string;
  found?: InFlightRequest;
  isCancelled: boolean;
}

const topic = "running question";
const topicOf = (number: string) => `running answer ${number}`;
/** Milliseconds until a server that has not answered is waited for no longer. */
const patienceMs = 1_000;

/** Answers those of others too. */
export function openRunningQuestions(parts: QuestionParts): RunningQuestions {
  const { changes, inFlight, replica, logger } = parts;
  changes.on(topic, ({ from, number, ask, id, member }) => {
    if (from === replica || typeof id !== "string" || typeof number !== "string") return;
    const whose = typeof member === "string" ? member : undefined;
    const found = findHere(inFlight, id, whose);
    const isCancelled = ask === "cancel" && cancelHere(inFlight, id, whose);
    const short = found && withinBytes(found, maxPayloadBytes - 200);
    notify(parts, { topic: topicOf(number), from: replica, found: short, isCancelled }).catch((thrown) => {
      if (!isAwayError(thrown)) logger().error("A question about a running request could not be answered.", thrown);
    });
  });
  return {
    async find(id, member) {
      const asked = askOthers(parts, { ask: "find", id, member });
      return (await orAway(asked, "It is unknown what other servers run."))?.found;
    },
    async cancel(id, member) {
      const asked = askOthers(parts, { ask: "cancel", id, member });
      return (await orAway(asked, "What other servers run cannot be cancelled from here."))?.isCancelled ?? false;
    },
  };
}

/** Ids of requests are ours, and shorter. */
const maxIdLength = 100;

/** @returns The answer of the server that runs it; undefined if none does. */
async function askOthers(parts: QuestionParts, question: Question): Promise<Answer | undefined> {
  const { postgres, changes, replica } = parts;
  if (question.id.length > maxIdLength) return undefined;
  const waiting = new Set(await otherReplicas(postgres, replica));
  if (waiting.size === 0) return undefined;
  const number = crypto.randomUUID();
  const { promise, resolve } = Promise.withResolvers<Answer | undefined>();
  const off = changes.on(topicOf(number), ({ from, found, isCancelled }) => {
    if (typeof from !== "string") return;
    waiting.delete(from);
    if (isRequest(found)) resolve({ from, found, isCancelled: isCancelled === true });
    else if (waiting.size === 0) resolve(undefined);
  });
  const limit = setTimeout(resolve, patienceMs);
  try {
    await notify(parts, { topic, from: replica, number, ...question });
    const answer = await promise;
    if (!answer && waiting.size > 0) throw silent(waiting.size);
    return answer;
  } finally {
    clearTimeout(limit);
    off();
  }
}

const notify = ({ postgres }: QuestionParts, message: object) =>
  postgres.ask((sql) => sql`SELECT pg_notify('dragoman', ${JSON.stringify(message)})`);

const silent = (count: number) =>
  new ProxyError(
    "unable",
    `${plural(count, "server")} of the team did not answer within a second, and may run this request. Try again in a moment.`,
    { code: "server_silent", status: 503, headers: { "retry-after": "5" } },
  );
