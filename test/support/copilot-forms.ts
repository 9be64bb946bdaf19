/**
 * Streams and full replies in the form in which Copilot sends them, vendor by vendor, from `fixtures/copilot/`: for tests and for
 * the bench. Behind its title each has its dialect, and the data of its events: what begins a stream (`<`), each piece of text (`*`)
 * and what ends it (`>`).
 *
 * `$model` is the id that a client asks for, `$text` a piece of text, `$inner` the same in JSON that is a text itself, `$input` the
 * tokens of the prompt, `$cached` those of them that the cache had; `$(3+at/7)` is reckoned, `at` being how many pieces came before.
 */
import type { Dialect } from "../../src/dialects/hub/conversation";
import { blocksIn } from "./blocks";

interface StreamForm {
  dialect: Dialect;
  begin: string;
  /** One event of text. @param at How many came before. */
  words(text: string, at: number): string;
  end: string;
}

/** The blocks of a file of `fixtures/copilot/`. */
export const formsIn = (name: string) =>
  blocksIn(`copilot/${name}.txt`).map((block) => {
    const [title = "", dialect, ...lines] = block.split("\n");
    return { title, dialect: dialect as Dialect, lines };
  });
const [streams, replies] = [formsIn("streams"), formsIn("replies")];

export type Given = Record<string, string | number>;

/** A line with what stands for its `$names`. */
export const filled = (line: string, given: Given): string =>
  line.replace(
    /\$(?:(\w+)|\((-?\d+)\+(\w+)(?:\/(\d+))?\))(?:\{(-?\w+)\})?/g,
    (_, name: string, base: string, summand: string, share = "1", item: string) => {
      if (name === "id") return btoa(`item ${given[item] ?? item}`.padEnd(300, "."));
      return String(name ? given[name] : Number(base) + Math.floor(Number(given[summand]) / Number(share)));
    },
  );

/** An event has the name of its type, which is its last member where it has one. */
export const eventOf = (data: string): string => {
  const [, type] = /"type":"([\w.]+)"\}$/.exec(data) ?? [];
  return `${type === undefined ? "" : `event: ${type}\n`}data: ${data}\n\n`;
};

/**
 * @param model The id that a client asks for; chat answers with a dated one.
 * @param input Tokens of the prompt.
 */
export const copilotStreams = (model: string, input = 912): Record<string, StreamForm> =>
  Object.fromEntries(
    streams.map(({ title, dialect, lines }) => {
      const events = (sign: string, more: Given = {}) =>
        lines.flatMap((line) =>
          line.startsWith(sign) ? [eventOf(filled(line.slice(2), { model, input, ...more }))] : [],
        );
      const words = (text: string, at: number) => {
        const escaped = JSON.stringify(text).slice(1, -1);
        return events("*", { at, text: escaped, inner: JSON.stringify(escaped).slice(1, -1) }).join("");
      };
      return [title, { dialect, begin: events("<").join(""), words, end: events(">").join("") }];
    }),
  );

/**
 * Full replies, of which most name a dated model.
 * @param input Tokens of the prompt.
 */
export const copilotReplies = (model: string, input = 912): Record<string, { dialect: Dialect; reply: object }> =>
  Object.fromEntries(
    replies.map(({ title, dialect, lines }) => {
      const cached = Math.min(input, 800);
      const text = filled(lines.join("\n"), { model, input, cached, uncached: input - cached });
      return [title, { dialect, reply: JSON.parse(text) }];
    }),
  );
