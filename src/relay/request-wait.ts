/** What a row says of the time in which its request waited for a limit to end. */
import { type RequestState, withoutContent } from "./request-log";

export class RequestWait {
  readonly #state: RequestState;
  readonly #scrub: (text: string) => string;
  readonly #changed: () => void;
  #began: number | undefined;

  /** @param changed Called when those who watch are to be told. */
  constructor(state: RequestState, scrub: (text: string) => string, changed: () => void) {
    this.#state = state;
    this.#scrub = scrub;
    this.#changed = changed;
  }

  /** @param until Timestamp, ms: when the limit probably ends. */
  begin(why: string, until: number): void {
    const reason = this.#scrub(withoutContent(this.#state, why));
    this.#state.wait = { why: reason, until, ms: this.#state.wait?.ms ?? 0 };
    // Models that could not serve before are asked anew.
    this.#state.passedOver = undefined;
    this.#began ??= performance.now();
    this.#changed();
  }

  end(): void {
    const { wait } = this.#state;
    if (!wait || this.#began === undefined) return;
    this.#state.wait = { ...wait, until: null, ms: wait.ms + performance.now() - this.#began };
    this.#began = undefined;
    this.#changed();
  }
}
