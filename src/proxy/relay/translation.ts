/** Request and reply go through the hub: the client and the upstream speak different dialects, or tools run in between. */

import { codecs, type TranslationOptions } from "../../dialects/codecs";
import { type Adapted, adapt } from "../../dialects/hub/adapt";
import { said, unframed } from "../../dialects/hub/beat";
import type { Conversation, Dialect } from "../../dialects/hub/conversation";
import type { OfferedTools } from "../../dialects/hub/server-offers";
import { shownNatively } from "../../dialects/native-search";
import { withTexts } from "../../lib/net/in/request-body";
import type { ResponseBody } from "../../lib/net/out/body";
import { joined, pipe, run } from "../../lib/net/stream/stream";
import type { RequestScope } from "../scope";
import type { Book } from "./book";
import type { Exchange } from "./exchange";
import { passed } from "./passthrough";
import { type ReplyReader, ReplyWay } from "./reply";
import { needsStream, type Target, whoOf } from "./target";
import type { UpstreamCall } from "./upstream-call";

type TranslationTarget = Target & { dialect: Dialect };

interface TranslationTools {
  /** What is sent in place of the client's tools. */
  plan?: OfferedTools;
  parts: RequestScope;
  /** Sends the request for a further answer, after tools have run here. */
  send(encoded: Pick<UpstreamCall, "body" | "headers">, stream: boolean): Promise<ResponseBody>;
  /** Reads the rough count of the prompt that was begun, once it is there. */
  estimate?: () => number | undefined;
}

/** @throws ProxyError `invalid_request` where leaving something out would change the meaning. */
export function translation(
  exchange: Exchange,
  target: TranslationTarget,
  options: TranslationOptions,
  tools?: TranslationTools,
): UpstreamCall {
  const { codec, book, reshape, running } = exchange;
  const plan = tools?.plan;
  const conversation = exchange.decoded();
  // Collected into a full reply where the client did not ask for a stream.
  const isStreamed = conversation.stream || needsStream(conversation.maxTokens, target);
  const { conversation: asked, restore } = adapted(exchange, target, options, plan?.conversation ?? conversation);
  const who = whoOf(target);
  const estimate = tools?.estimate;
  const written = {
    codec,
    asked: { ...conversation, turns: conversation.turns.filter(({ isInstructions }) => isInstructions) },
    estimate: estimate && (() => noted(book, estimate())),
  };
  const way = { running, who, written };
  const anew = { reader: readAnew(target, joined(restore, reshape)) };
  if (!plan || plan.offers.size === 0) {
    const first = encoded(exchange, target, options, asked, isStreamed);
    return { ...first, who, stream: isStreamed, reply: new ReplyWay({ ...way, ...anew }) };
  }
  const isPassed = restore === undefined && isStreamed === conversation.stream && isUnnumbered(exchange, target);
  // A reply that may go on is asked for as a stream, unless the client may get the upstream's own text.
  const stream = isStreamed || !isPassed;
  const ask = async (further: Conversation) => {
    const next = adapted(exchange, target, options, further);
    const body = await tools.send(encoded(exchange, target, options, next.conversation, true), stream);
    return { body, reader: readAnew(target, next.restore) };
  };
  const loop = { parts: tools.parts, plan, ask };
  const reply = new ReplyWay({ ...way, ...(isPassed ? passed(exchange, target) : anew), loop });
  return { ...encoded(exchange, target, options, asked, stream), who, stream, reply };
}

/** Whether the reply can be passed on at first. Events of the responses dialect are numbered: one writer writes all of them. */
const isUnnumbered = ({ dialect, incoming }: Exchange, target: TranslationTarget): boolean =>
  dialect === target.dialect && !(dialect === "responses" && incoming.stream);

/** Reads a reply that is written anew. @param restore Gives back the client's names. */
function readAnew({ dialect }: TranslationTarget, restore: Adapted["restore"]): ReplyReader {
  const { decodeReply, decodeStream } = codecs[dialect];
  const toBeats = restore ? pipe(restore, unframed) : unframed;
  return {
    readStream: pipe(decodeStream(), pipe(said, toBeats)),
    readFull: (json) => ({ events: restore ? run(restore, decodeReply(json)) : decodeReply(json) }),
  };
}

function noted(book: Book, tokens: number | undefined): number | undefined {
  if (tokens !== undefined) book.setEstimate("estimatedInput", tokens);
  return tokens;
}

/** What the upstream can be asked, and the way back to the client's names. @throws ProxyError as {@link translation} */
function adapted(
  { dialect: client }: Exchange,
  { dialect: upstream, upstreamModel }: TranslationTarget,
  { notes }: TranslationOptions,
  asked: Conversation,
): Adapted {
  const { conversation, restore } = adapt(asked, upstream, upstreamModel.vendor, notes);
  const isShown = client !== "responses" && upstream === "responses";
  return { conversation, restore: joined(isShown ? shownNatively : undefined, restore) };
}

/** @throws ProxyError as {@link translation} */
function encoded(
  { dialect: client, headers, incoming }: Exchange,
  { dialect: upstream, upstreamModel }: TranslationTarget,
  options: TranslationOptions,
  conversation: Conversation,
  stream: boolean,
) {
  const codec = codecs[upstream];
  const body = codec.encodeRequest({ ...conversation, stream }, upstreamModel, options);
  const ofDialect = codec.requestHeaders?.(client === upstream ? headers : null, body, upstreamModel, options);
  return { body: withTexts(JSON.stringify(body), incoming.skeleton), headers: ofDialect ?? {} };
}
