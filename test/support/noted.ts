/** What a codec makes of a request, with what was noted of it. */
import type { Codec, TranslationOptions } from "../../src/dialects/codec";
import type { Conversation, JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { Noted, type Notes } from "../../src/dialects/hub/notes";

export function noted<Made>(work: (notes: Notes) => Made) {
  const notes = new Noted();
  const body = work(notes);
  return { body, fixups: [...(notes.fixups ?? [])], dropped: [...(notes.dropped ?? [])] };
}

const usual: TranslationOptions = { webSearch: true };

export const fixRequest = (codec: Codec, body: JsonObject, model: ModelFacts, options = usual) =>
  noted((notes) => codec.fixRequest(body, model, { ...options, notes }));

export const encodeRequest = (codec: Codec, conversation: Conversation, model: ModelFacts, options = usual) =>
  noted((notes) => codec.encodeRequest(conversation, model, { ...options, notes }));
