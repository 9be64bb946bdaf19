/** A page that is shown before all of it is known: what takes its time comes after the rest, in its place. */
import { asProxyError } from "../../errors";
import { Markup } from "./jsx/jsx-runtime";

export interface StreamedPage {
  page: Markup;
  /** One for each `slot` in the page, in its order. They begin together, once the rest is on its way. */
  parts: (() => Promise<Markup>)[];
}

const mark = "<!--part-->";

/** Where a part goes. */
export const slot = new Markup(mark);

/** @param instead What stands where a part could not be made. */
export function streamPage(
  { page, parts }: StreamedPage,
  instead: (sentence: string) => Markup,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const pieces = `<!doctype html>${page}`.split(mark);
  let begun: Promise<Markup>[] = [];
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      if (sent === 1) {
        await Bun.sleep(0);
        // A part that fails while an earlier one is awaited is nobody's surprise.
        begun = parts.map((part) => part().catch((thrown) => instead(asProxyError(thrown).message)));
      }
      const part = sent === 0 ? "" : String(await begun[sent - 1]);
      controller.enqueue(encoder.encode(part + pieces[sent]));
      sent += 1;
      if (sent >= pieces.length) controller.close();
    },
  });
}
