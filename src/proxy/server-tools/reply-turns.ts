/** What the model has said, as turns of a conversation, so that it can be asked to go on. */
import type { Part, Turn } from "../../dialects/hub/conversation";
import type { Block, BlockEnd, ReplyEvent } from "../../dialects/hub/reply";

/** Collects the events of a reply. */
export function collectTurns() {
  const turns: Turn[] = [];
  let block: Block | undefined;
  let text = "";

  const add = (part: Part, phase?: unknown) => {
    const last = turns.at(-1);
    const extras = phase == null ? {} : { extras: { openai: { phase } } };
    // A turn holds one message at most where messages have a phase, so that each keeps its own.
    const isNew = !last || (phase != null && last.parts.some(({ kind }) => kind === "text"));
    if (isNew) turns.push({ role: "assistant", parts: [part], ...extras });
    else Object.assign(last, extras).parts.push(part);
  };

  const end = (done: Block, { signature, extras }: BlockEnd) => {
    switch (done.kind) {
      case "text": {
        const { phase, ...openai } = done.extras?.openai ?? {};
        const { anthropic } = done.extras ?? {};
        if (text === "") return;
        const kept = { ...(anthropic ? { anthropic } : {}), ...(Object.keys(openai).length > 0 ? { openai } : {}) };
        const more = Object.keys(kept).length > 0 ? { extras: kept } : {};
        return add({ kind: "text", text, ...(done.refusal ? { refusal: true } : {}), ...more }, phase);
      }
      case "thinking":
        return add({
          ...done,
          text,
          ...(signature ? { signature } : {}),
          ...(extras ? { extras: { ...done.extras, ...extras } } : {}),
        });
      case "tool-call":
        return add({ ...done, input: text });
      default:
        return add({ ...done });
    }
  };

  return {
    push(event: ReplyEvent) {
      if (event.type === "block-start") [block, text] = [event.block, ""];
      else if (event.type === "block-delta") text += event.text;
      else if (event.type === "block-end" && block) {
        end(block, event);
        block = undefined;
      }
    },
    turns: (): Turn[] => turns,
  };
}
