/** Streams a page: the layout is sent first, slow parts follow in their places. */
import { asProxyError } from "../../lib/errors";
import { Markup } from "./jsx/jsx-runtime";

export interface StreamedPage {
  page: Markup;
  /** One for each `slot` in the page, in its order. All start together after the first piece is sent. */
  parts: (() => Promise<Markup>)[];
}

const mark = "<!--part-->";

/** The place of a part in the page. */
export const slot = new Markup(mark);

/** @param instead Replaces a part that failed. */
export function streamPage(
  { page, parts }: StreamedPage,
  instead: (sentence: string) => Markup,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const pieces = `<!doctype html>${page}`.split(mark);
  let started: Promise<Markup>[] = [];
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      if (sent === 1) {
        await Bun.sleep(0);
        // Errors are caught here, because a part may fail while an earlier one is still awaited.
        started = parts.map((part) => part().catch((thrown) => instead(asProxyError(thrown).message)));
      }
      const part = sent === 0 ? "" : String(await started[sent - 1]);
      controller.enqueue(encoder.encode(part + pieces[sent]));
      sent += 1;
      if (sent >= pieces.length) controller.close();
    },
  });
}
