/** One vocabulary for all apps of a test process: each load of it takes a core more than a second. */
import { openTokenizer, type Tokenizer } from "../../src/proxy/tokens/tokenizer";

const shared = openTokenizer();
/** Characters that are not counted yet. */
let backlog = 0;
/** Characters that take as long to count as the vocabulary takes to load. */
const dearBacklog = 2_000_000;

/** @returns For one app: what it waits for fails when it is closed, as with a tokenizer of its own. */
export function sharedTokenizer(): Tokenizer {
  const closed = Promise.withResolvers<never>();
  closed.promise.catch(() => {});
  return {
    count(texts) {
      const length = texts.reduce((sum, text) => sum + text.length, 0);
      backlog += length;
      const counted = shared.count(texts).finally(() => {
        backlog -= length;
      });
      counted.catch(() => {}); // Whoever waits for it hears of it below.
      return Promise.race([counted, closed.promise]);
    },
    close() {
      closed.reject(new Error("The tokenizer was closed."));
      if (backlog > dearBacklog) shared.close();
    },
  };
}
