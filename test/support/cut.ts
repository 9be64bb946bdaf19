/** A stream that breaks when the test says so: a reset by the clock may overtake what was sent before it. */
import type { Demo } from "../../src/demo/demo";
import { eventStream } from "./event-stream";

interface Cut {
  /** The connection breaks now. */
  cut(): void;
}

/** The next answer at this endpoint has the first events of the scripted one, and then waits for its end. */
export function startCut(demo: Demo, endpoint: string, events: number): Cut {
  let upstream: ReadableStreamDefaultController<Uint8Array> | undefined;
  demo.intercept(endpoint, async (seen, request) => {
    const { headers } = request;
    // The scripted one's own answer: the interception has been used up.
    const whole = await fetch(demo.url + endpoint, { method: "POST", headers, body: Buffer.from(seen.bytes) });
    const first = (await whole.text()).split(/(?<=\n\n)/).slice(0, events);
    const source = new ReadableStream<Uint8Array>({
      start(controller) {
        upstream = controller;
        controller.enqueue(new TextEncoder().encode(first.join("")));
      },
    });
    return eventStream(source);
  });
  return { cut: () => upstream!.error(new Error("cut on request")) };
}

/** What the client is told of a stream that is cut once this has come to it. */
export async function cutOnce(response: Response, pattern: RegExp, { cut }: Cut): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let isCut = false;
  for await (const piece of response.body!) {
    text += decoder.decode(piece, { stream: true });
    if (isCut || !pattern.test(text)) continue;
    isCut = true;
    cut();
  }
  return text;
}
