/** Reads replies of the gemini dialect, as a client does. No upstream speaks it, so the codec cannot. */
import type { Codec } from "../../dialects/codec";
import { unframed } from "../../dialects/hub/beat";
import type { ReplyEvent, StopReason } from "../../dialects/hub/reply";
import { jsonOf } from "../../lib/net/stream/sse";

interface Part {
  text?: string;
  thought?: boolean;
  thoughtSignature?: string;
  functionCall?: { id: string; name: string; args: object };
}

interface Reply {
  candidates?: { content?: { parts?: Part[] }; finishReason?: string }[];
  usageMetadata?: Record<string, number>;
  modelVersion?: string;
  responseId?: string;
  error?: { status: string; message: string };
}

const stopReasons: Record<string, StopReason> = { STOP: "stop", MAX_TOKENS: "length", SAFETY: "refusal" };

/** All pieces of a reply, the last of which ended it. */
function read(pieces: Reply[]): ReplyEvent[] {
  const last = pieces.at(-1);
  if (!last || last.error)
    return [{ type: "error", code: last?.error?.status ?? "cut", message: last?.error?.message ?? "" }];
  const events: ReplyEvent[] = [{ type: "start", id: last.responseId ?? "", model: last.modelVersion ?? "" }];
  let open: "text" | "thinking" | undefined;
  let hasCalls = false;
  const close = (signature?: string) => {
    if (open) events.push({ type: "block-end", ...(signature && { signature: proofOf(signature) }) });
    open = undefined;
  };
  const say = (kind: "text" | "thinking", text: string) => {
    if (open !== kind) {
      close();
      events.push({ type: "block-start", block: { kind } });
      open = kind;
    }
    if (text !== "") events.push({ type: "block-delta", text });
  };
  for (const { text = "", thought, thoughtSignature, functionCall } of pieces.flatMap(partsOf)) {
    if (thoughtSignature) {
      if (open !== "thinking") say("thinking", "");
      close(thoughtSignature);
    }
    if (functionCall) {
      hasCalls = true;
      close();
      const { id, name, args } = functionCall;
      events.push({ type: "block-start", block: { kind: "tool-call", id, name } });
      events.push({ type: "block-delta", text: JSON.stringify(args) }, { type: "block-end" });
    } else if (text !== "") say(thought ? "thinking" : "text", text);
  }
  close();
  const { promptTokenCount: input, candidatesTokenCount = 0, thoughtsTokenCount: reasoning } = last.usageMetadata ?? {};
  const cachedInput = last.usageMetadata?.cachedContentTokenCount;
  const usage = { input, cachedInput, output: candidatesTokenCount + (reasoning ?? 0), reasoning };
  if (input !== undefined) events.push({ type: "usage", usage: JSON.parse(JSON.stringify(usage)) });
  const word = last.candidates?.[0]?.finishReason ?? "";
  const reason = hasCalls && word === "STOP" ? "tool-call" : stopReasons[word];
  events.push(
    reason ? { type: "finish", reason } : { type: "error", code: "unfinished", message: `finishReason: ${word}` },
  );
  return events;
}

const partsOf = ({ candidates }: Reply): Part[] => candidates?.[0]?.content?.parts ?? [];

/** Base64 of what dragoman packed, or a proof of Google's own. */
function proofOf(signature: string) {
  const packed = Buffer.from(signature, "base64").toString();
  return { dialect: "gemini" as const, value: packed.startsWith("dragoman.") ? packed : signature };
}

export const geminiReader: Pick<Codec, "decodeReply" | "decodeStream"> = {
  decodeReply: (body) => read([body as Reply]),
  decodeStream: () => (beats) => {
    const next = unframed(beats);
    const pieces: Reply[] = [];
    let isOver = false;
    const finish = () => {
      if (isOver) return;
      isOver = true;
      for (const event of read(pieces)) next.push(event);
    };
    return {
      push(frame) {
        const piece = frame.data === undefined ? undefined : (jsonOf(frame) as Reply);
        if (piece === undefined || isOver) return;
        pieces.push(piece);
        if (piece.error || piece.candidates?.[0]?.finishReason) finish();
      },
      end() {
        if (!isOver) pieces.push({ error: { status: "cut", message: "The stream ended early." } });
        finish();
      },
    };
  },
};
