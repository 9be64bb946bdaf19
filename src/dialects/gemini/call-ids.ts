/** Google's clients may leave out the ids of calls and results: a result then answers the first open call of its name. */

interface OpenCall {
  id: string;
  name: string;
  /** The client sent no id. */
  isOurs: boolean;
}

/** The ids that are made here depend on the conversation's beginning only, so that an upstream's cache finds it again. */
export class CallIds {
  #open: OpenCall[] = [];
  #made = 0;

  /** The id of a call of the model. */
  call(id: string | undefined, name: string): string {
    const known: OpenCall = { id: id ?? this.#make(), name, isOurs: id === undefined };
    this.#open.push(known);
    return known.id;
  }

  /** The id of the call that a result answers. */
  answer(id: string | undefined, name: string): string {
    // An id that no call has: some clients give ids to their results only.
    const candidates = id === undefined ? this.#open : this.#open.filter(({ isOurs }) => isOurs);
    const found =
      this.#open.find((call) => call.id === id) ?? candidates.find((call) => call.name === name) ?? candidates[0];
    this.#open = this.#open.filter((call) => call !== found);
    return found?.id ?? id ?? this.#make();
  }

  /** A new turn of the model begins: earlier calls stay unanswered. */
  nextTurn(): void {
    this.#open = [];
  }

  #make(): string {
    return `dragoman_call_${++this.#made}`;
  }
}
