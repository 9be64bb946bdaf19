/** Embeddings. The upstream limits how many texts one call may carry; a client may send more, so they are sent in batches. */

import {
  decodeEmbeddings,
  decodeEmbeddingsRequest,
  type Embeddings,
  encodeEmbeddings,
  encodeEmbeddingsRequest,
} from "../../dialects/embeddings";
import { inOnePiece } from "../../lib/net/in/request-body";
import { type CallResponse, readText } from "../../lib/net/out/body";
import type { KeyedCaller } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import { withoutRefused } from "./body-remedies";
import { tellRemaining } from "./budget-lines";
import { readIncoming } from "./incoming";
import { openRequest, type RunningRequest } from "./running-request";
import { send } from "./send";
import { chooseEmbeddingsTarget, type Target, whoOf } from "./target";

/** Texts in one upstream call, where the catalogue does not give the model's limit. */
const defaultBatchSize = 256;
const maxAnswerBytes = 64 * 1024 * 1024;

/** @throws ProxyError for the server to send; its row is written. */
export async function embed(parts: RequestScope, request: Request, caller: KeyedCaller): Promise<Response> {
  const running = openRequest(parts, request, caller, "embeddings");
  const { book } = running;
  try {
    const incoming = await readIncoming(request, undefined, undefined, running.held);
    caller.connection.keepOpen();
    book.setRequest(incoming);
    const asked = decodeEmbeddingsRequest(incoming.body);
    const { texts, dimensions } = asked;
    const target = await running.whileThere(chooseEmbeddingsTarget(parts, incoming.model, caller.key));
    book.setTarget(target, { initiator: "agent", reason: "embeddings are not a turn", vision: false });

    const all: Embeddings = { vectors: [], tokens: 0 };
    for (const batch of inBatches(texts, target.model.limits.inputs ?? defaultBatchSize)) {
      const { vectors, tokens } = await embedBatch(parts, request, { target, texts: batch, dimensions, running });
      all.vectors.push(...vectors);
      all.tokens += tokens;
      // After each batch: it is charged, also if a later one fails.
      book.addUsage({ input: all.tokens, output: 0 });
      book.markCharged();
    }
    running.end(200);
    return await tellRemaining(running, Response.json(encodeEmbeddings(incoming.model, all, asked)));
  } catch (thrown) {
    throw running.fail(thrown);
  }
}

function* inBatches<T>(items: T[], size: number): Generator<T[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}

interface Batch {
  target: Target;
  texts: string[];
  dimensions: unknown;
  running: RunningRequest;
}

async function embedBatch(
  parts: RequestScope,
  request: Request,
  { target, texts, dimensions, running }: Batch,
): Promise<Embeddings> {
  const json = encodeEmbeddingsRequest(target.upstreamModel.id, texts, dimensions);
  const outgoing = {
    path: target.endpoint,
    body: inOnePiece(withoutRefused(parts, target, JSON.stringify(json), running.book)),
    intent: "copilot-panel" as const,
    initiator: "agent" as const,
    limits: parts.limits.full,
  };
  const accept = async (response: CallResponse) => {
    running.book.markFirstByte();
    return decodeEmbeddings(await readText(response, maxAnswerBytes), texts.length, whoOf(target));
  };
  return send(parts, { target, outgoing, running, request, accept });
}
