/** Embeddings: the upstream takes so many texts at once; a client may send more. */
import { type App, callLimits } from "../app";
import {
  decodeEmbeddings,
  decodeEmbeddingsRequest,
  type Embeddings,
  encodeEmbeddings,
  encodeEmbeddingsRequest,
} from "../dialects/embeddings";
import { readText } from "../net/body";
import type { Visitor } from "../net/guard";
import { sendWithFailover } from "./failover";
import { readIncoming } from "./incoming";
import { openRequestRecord, type RequestRecord } from "./request-record";
import { chooseEmbeddingsTarget, type Target } from "./target";

/** Texts of one upstream call, where the catalogue does not say how many a model takes. */
const usualInputs = 256;
/** Bytes. */
const answerLimit = 64 * 1024 * 1024;

/** @throws ProxyError for the door to speak; its row is written. */
export async function embed(app: App, request: Request, caller: Visitor): Promise<Response> {
  const record = openRequestRecord(app, request, caller, "embeddings");
  try {
    const incoming = await readIncoming(request);
    caller.keepOpen();
    record.setRequest(incoming);
    const { texts, base64, dimensions } = decodeEmbeddingsRequest(incoming.body);
    const target = await chooseEmbeddingsTarget(app, incoming.model);
    record.setTarget(target, { initiator: "agent", reason: "embeddings are nobody's turn", vision: false });

    const all: Embeddings = { vectors: [], tokens: 0 };
    for (const batch of inBatches(texts, target.model.limits.inputs ?? usualInputs)) {
      const { vectors, tokens } = await embedBatch(app, target, batch, dimensions, record);
      all.vectors.push(...vectors);
      all.tokens += tokens;
    }
    record.addUsage({ input: all.tokens, output: 0 });
    record.end(200);
    return Response.json(encodeEmbeddings(incoming.model, all, base64));
  } catch (thrown) {
    throw record.fail(thrown);
  }
}

function* inBatches<T>(items: T[], size: number): Generator<T[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}

async function embedBatch(
  app: App,
  target: Target,
  texts: string[],
  dimensions: unknown,
  exchange: RequestRecord,
): Promise<Embeddings> {
  return sendWithFailover(
    app,
    target,
    {
      path: target.endpoint,
      body: JSON.stringify(encodeEmbeddingsRequest(target.model.id, texts, dimensions)),
      intent: "copilot-panel",
      initiator: "agent",
      limits: callLimits(app.limits, false),
    },
    exchange,
    async (response) => {
      exchange.markFirstByte();
      return decodeEmbeddings(await readText(response, answerLimit), texts.length);
    },
  );
}
