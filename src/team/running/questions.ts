/** Questions to the other servers: whether they run a request, to cancel it, how many they run. Each answers at once. */
import { ProxyError } from "../../errors";
import { plural } from "../../format";
import type { InFlight, InFlightRequest } from "../../history/in-flight";
import { cancelHere, findHere, isOf } from "../../history/running-requests";
import { isAwayError, orAway } from "../away";
import type { ServerParts } from "../parts";
import { otherReplicas } from "../replica";
import { isRequest, withinBytes } from "./messages";
import { maxPayloadBytes, notifySealed, onSealed } from "./sealed";

/** Everywhere, with a member's id only the member's own requests exist. */
export interface RunningQuestions {
  /** @throws ProxyError `unable` if not every server answers. */
  find(requestId: string, member?: string): Promise<InFlightRequest | undefined>;
  /** @returns Whether it was cancelled. @throws ProxyError `unable` if not every server answers. */
  cancel(requestId: string, member?: string): Promise<boolean>;
  /** @throws ProxyError `unable` if the database is away. */
  count(member?: string): Promise<CountOfOthers>;
}

export interface CountOfOthers {
  count: number;
  /** How many servers were asked. */
  asked: number;
  /** How many of them did not answer. */
  silent: number;
}

interface QuestionParts extends ServerParts {
  inFlight: InFlight;
}

interface Question {
  ask: "find" | "cancel" | "count";
  id?: string;
  member: string | undefined;
}

interface Answer {
  found?: InFlightRequest;
  isCancelled?: boolean;
  count?: number;
}

const topic = "running question";
const topicOf = (number: string) => `running answer ${number}`;
/** Milliseconds until a server that has not answered is waited for no longer. */
const patienceMs = 1_000;
/** Ids of requests are ours, and shorter. */
const maxIdLength = 100;

/** Answers those of others too. */
export function openRunningQuestions(parts: QuestionParts): RunningQuestions {
  const { replica, logger } = parts;
  onSealed(parts, topic, (message) => {
    const { from, number } = message;
    if (from === replica || typeof number !== "string") return;
    const answer = { topic: topicOf(number), from: replica, ...answerTo(parts, message) };
    notifySealed(parts, answer).catch((thrown) => {
      if (!isAwayError(thrown)) logger().error("A question about running requests could not be answered.", thrown);
    });
  });
  /** About one request, so that the first server that runs it decides. */
  const askAbout = async (question: Question): Promise<Answer | undefined> => {
    if (question.id!.length > maxIdLength) return undefined;
    const { answers, silent } = await askOthers(parts, question, ({ found }) => found !== undefined);
    const answer = answers.find(({ found }) => found);
    if (!answer && silent > 0) throw unanswered(silent);
    return answer;
  };
  return {
    async find(id, member) {
      const asked = askAbout({ ask: "find", id, member });
      return (await orAway(asked, "It is unknown what other servers run."))?.found;
    },
    async cancel(id, member) {
      const asked = askAbout({ ask: "cancel", id, member });
      return (await orAway(asked, "What other servers run cannot be cancelled from here."))?.isCancelled ?? false;
    },
    async count(member) {
      const { answers, asked, silent } = await askOthers(parts, { ask: "count", member }, () => false);
      return { count: answers.reduce((sum, { count = 0 }) => sum + count, 0), asked, silent };
    },
  };
}

function answerTo({ inFlight }: QuestionParts, { ask, id, member }: Record<string, unknown>): Answer {
  const whose = typeof member === "string" ? member : undefined;
  if (ask === "count") return { count: inFlight.running().filter(isOf(whose)).length };
  if (typeof id !== "string") return {};
  const found = findHere(inFlight, id, whose);
  const isCancelled = ask === "cancel" && cancelHere(inFlight, id, whose);
  return { found: found && withinBytes(found, maxPayloadBytes - aroundAnswer), isCancelled };
}

/** Bytes of an answer beside the request. */
const aroundAnswer = 200;

/** @param isEnough No other answer is waited for. */
async function askOthers(
  parts: QuestionParts,
  question: Question,
  isEnough: (answer: Answer) => boolean,
): Promise<{ answers: Answer[]; asked: number; silent: number }> {
  const { postgres, replica } = parts;
  const waiting = new Set(await otherReplicas(postgres, replica));
  const asked = waiting.size;
  const answers: Answer[] = [];
  if (asked === 0) return { answers, asked, silent: 0 };
  const number = crypto.randomUUID();
  const { promise, resolve } = Promise.withResolvers<void>();
  const off = onSealed(parts, topicOf(number), (message) => {
    if (typeof message.from !== "string" || !waiting.delete(message.from)) return;
    const answer = readAnswer(message);
    answers.push(answer);
    if (waiting.size === 0 || isEnough(answer)) resolve();
  });
  const limit = setTimeout(resolve, patienceMs);
  try {
    await notifySealed(parts, { topic, from: replica, number, ...question });
    await promise;
    return { answers, asked, silent: waiting.size };
  } finally {
    clearTimeout(limit);
    off();
  }
}

const readAnswer = ({ found, isCancelled, count }: Record<string, unknown>): Answer => ({
  ...(isRequest(found) && { found }),
  isCancelled: isCancelled === true,
  ...(typeof count === "number" && { count }),
});

const unanswered = (count: number) =>
  new ProxyError(
    "unable",
    `${plural(count, "server")} of the team did not answer within a second, and may run this request. Try again in a moment.`,
    { code: "server_silent", status: 503, headers: { "retry-after": "5" } },
  );
