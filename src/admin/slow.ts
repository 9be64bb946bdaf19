/** A page that is shown before all of it is known: what takes its time comes after the rest, in its place. */
import { asProxyError } from "../errors";
import { Markup } from "./jsx/jsx-runtime";

export interface SlowPage {
  page: Markup;
  /** One for each `slot` in the page, in its order. */
  parts: Promise<Markup>[];
}

const mark = "<!--part-->";

/** Where a part goes. */
export const slot = new Markup(mark);

export const isSlow = (page: object): page is SlowPage => "parts" in page;

/** @param instead What stands where a part could not be made. */
export function streamed({ page, parts }: SlowPage, instead: (sentence: string) => Markup): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const pieces = `<!doctype html>${page}`.split(mark);
  // A part that fails while an earlier one is awaited is nobody's surprise.
  const settled = parts.map((part) => part.catch((thrown) => instead(asProxyError(thrown).message)));
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      const part = sent === 0 ? "" : String(await settled[sent - 1]);
      controller.enqueue(encoder.encode(part + pieces[sent]));
      sent += 1;
      if (sent >= pieces.length) controller.close();
    },
  });
}
